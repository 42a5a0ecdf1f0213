"""Text that does nothing to a terminal but stand there."""

import re

_LINE_ENDS = re.compile(r"\s*[\n\r\u2028\u2029]\s*")


def printable(text: str) -> str:
    """Text that can move no cursor and change no colour: a dot for what is not printable but a line's end."""
    return "".join(c if c.isprintable() or c == "\n" else "\N{MIDDLE DOT}" for c in text)


def one_line(text: str) -> str:
    """Printable text without the ends of its lines."""
    return printable(_LINE_ENDS.sub(" ", text).strip())
