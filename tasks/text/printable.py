"""Text that does nothing to a terminal, or to a page written in Markdown, but stand there."""

import re

LONGEST = 2_000
"""Characters of a line that is shown in one; of a longer one, both ends are."""

HEAD = 1_500
"""Number of these characters that are of the line's beginning."""

_MARKUP = re.compile(
    r"[]!#$&*<>@[\\_`|~]|(?<=])\(|:(?=[\w+/-])|(?<=www)\.|^\s*[-+=]|^\s*[0-9]+(?:\)|\.(?=\s|$))",
    re.IGNORECASE,
)
"""Matches what is or may begin a span, a row of a table, an entity, a formula, a mention, an emoji or a link,
bare or in brackets, anywhere, and what begins a list or underlines a heading where a line begins with it."""

_LINE_ENDS = re.compile(r"\s*[\n\r\u2028\u2029]\s*")


def printable(text: str) -> str:
    """Text that can move no cursor and change no colour: a dot for what is not printable but a line's end."""
    return "".join(c if c.isprintable() or c == "\n" else "\N{MIDDLE DOT}" for c in text)


def one_line(text: str) -> str:
    """Printable text without the ends of its lines."""
    return printable(_LINE_ENDS.sub(" ", text).strip())


def escaped(text: str) -> str:
    """Printable text in one line, in which Markdown and HTML find nothing to act on."""
    return _MARKUP.sub(_behind_a_backslash, printable(text).replace("\n", " "))


def _behind_a_backslash(found: re.Match[str]) -> str:
    """The match, with a backslash before its last character, which is the one that is markup."""
    return f"{found[0][:-1]}\\{found[0][-1]}"


def shortened(text: str) -> str:
    """The text with lines of bounded length; of a long one the place and the remedy are left, at its ends."""
    lines = text.split("\n")
    return "\n".join(
        line if len(line) <= LONGEST else f"{line[:HEAD]} … {line[HEAD - LONGEST + 3 :]}" for line in lines
    )
