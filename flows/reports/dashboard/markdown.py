"""Markdown of others as HTML that can do nothing: no markup of their own, no link, no picture, no address."""

from markdown_it import MarkdownIt

from winnow.flows.reports.html.figures.labels import readable

NOTHING_ELSE = ("html_block", "html_inline", "image", "link", "autolink", "reference", "entity")
"""Rules of CommonMark that would make elements of what others write, or hide where they lead."""

_PARSER = MarkdownIt("commonmark", {"html": False}).enable("table").disable(list(NOTHING_ELSE))


def as_html(text: str) -> str:
    """Paragraphs, emphasis, lists, tables and code as HTML; all else as the characters that were written.

    Headings become bold lines: those of the page are its own.
    """
    tokens = _PARSER.parse(readable(text))
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = "p"
        if token.type == "heading_open":
            token.attrSet("class", "heading")
    written: str = _PARSER.renderer.render(tokens, _PARSER.options, {})
    return f'<div dir="auto">{written}</div>'
