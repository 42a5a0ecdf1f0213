"""Escape text for terminals and Markdown."""

import re

LONGEST = 2_000
"""Maximum length of a displayed line; of a longer one, both ends are shown."""

HEAD = 1_500
"""Number of these characters from the line's beginning."""

_MARKUP = re.compile(
    r"[]!#$&*<>@[\\_`|~]|(?<=])\(|:(?=[\w+/-])|(?<=www)\.|^\s*[-+=]|^\s*[0-9]+(?:\)|\.(?=\s|$))",
    re.IGNORECASE,
)
"""Matches everything that may begin a span, a table row, an entity, a formula, a mention, an emoji or a link,
bare or in brackets, anywhere, and what begins a list or underlines a heading at the beginning of a line."""

_LINE_ENDS = re.compile(r"\s*[\n\r\u2028\u2029]\s*")


def printable(text: str) -> str:
    """Text without terminal control: unprintable characters except line ends become a dot."""
    return "".join(c if c.isprintable() or c == "\n" else "\N{MIDDLE DOT}" for c in text)


def one_line(text: str) -> str:
    """Printable text without line ends."""
    return printable(_LINE_ENDS.sub(" ", text).strip())


def escaped(text: str) -> str:
    """Printable text in one line, without active Markdown or HTML."""
    return _MARKUP.sub(_behind_a_backslash, printable(text).replace("\n", " "))


def _behind_a_backslash(found: re.Match[str]) -> str:
    """The match, with a backslash before its last character, which is the markup."""
    return f"{found[0][:-1]}\\{found[0][-1]}"


def shortened(text: str) -> str:
    """The text with lines of bounded length; a long line keeps both ends, with place and remedy."""
    lines = text.split("\n")
    return "\n".join(
        line if len(line) <= LONGEST else f"{line[:HEAD]} … {line[HEAD - LONGEST + 3 :]}" for line in lines
    )
