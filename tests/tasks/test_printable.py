"""Text of others in Markdown: nothing in it is markup, and what cannot be is left as it is."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from winnow.tasks.text.printable import escaped, one_line

MARKDOWN = MarkdownIt("commonmark").enable(["table", "strikethrough"])
PLACES = {
    "paragraph": "{}",
    "after a line": "before:\n{}",
    "item": "- {}",
    "heading": "### {}",
    "cell": "| a |\n|---|\n| {} |",
}


MARKUP = [
    "*a*", "**a**", "_a_", "__a__", "`a`", "~~a~~", "<b>", "<!--", "-->", "<http://a.b>", "&lt;", "&#35;",
    "[a](b)", "![a](b)", "[a]: b", "[a][b]", "# a", "> a", "- a", "+ a", "* a", "1. a", "1) a", "---", "===",
    "***", "```", "~~~", "|", "|---|", "\\", "\\\\", "\n", "\t", " ",
]  # fmt: skip
PARTS = [*MARKUP, *string.punctuation, "a", "1"]


def shown(text, place):
    """What a page shows there; only text is."""
    tokens = [each for each in MARKDOWN.parse(PLACES[place].format(text)) if each.type == "inline"]
    children = [child for child in tokens[-1].children if child.type != "softbreak"]
    assert {child.type for child in children} <= {"text"}
    return "".join(child.content for child in children).removeprefix("before:")


@pytest.mark.parametrize("place", PLACES)
def test_each_kind_of_markup_is_shown_as_it_is(place):
    for text in filter(None, map(one_line, MARKUP)):
        assert shown(escaped(text), place) == text


@given(
    text=st.lists(st.sampled_from(PARTS), min_size=1, max_size=6).map("".join),
    place=st.sampled_from(sorted(PLACES)),
)
def test_whatever_is_put_together_of_them_is_too(text, place):
    text = one_line(text)
    if text:
        assert shown(escaped(text), place) == text


@pytest.mark.parametrize(
    "text",
    [
        "winner, exact; 95% (of 150 examples) and 'more' than \"that\"?",
        "best-mean {a} ^b^ c+d e=f -- g",
        "7 of 8) nine",
        "0.94 on adder/direct: 150 of 1,200 examples. See docs/how-to/gate.md",
        "1.5 a/b",
    ],
)
def test_what_no_markdown_reads_as_markup_is_left_as_it_is(text):
    assert escaped(text) == text


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("- item", r"\- item"),
        ("---", r"\---"),
        ("+ item", r"\+ item"),
        ("===", r"\==="),
        ("12) item", r"12\) item"),
        ("12. item", r"12\. item"),
        ("> said", r"\> said"),
        ("# title", r"\# title"),
        ("[a](b)", r"\[a\]\(b)"),
        ("![a](b)", r"\!\[a\]\(b)"),
        ("<b onclick='x'>", r"\<b onclick='x'\>"),
        ("http://a.example", r"http\://a.example"),
        ("www.a.example", r"www\.a.example"),
        ("1.", r"1\."),
        (":tada: mailto:a", r"\:tada: mailto\:a"),
        ("me@a.example", r"me\@a.example"),
        ("see @team #12 and $x$", r"see \@team \#12 and \$x\$"),
        ("&lt; a|b ~~c~~ `d` *e* _f_ g\\", r"\&lt; a\|b \~\~c\~\~ \`d\` \*e\* \_f\_ g" + "\\\\"),
    ],
)
def test_what_may_be_markup_is_escaped(text, written):
    assert escaped(text) == written
