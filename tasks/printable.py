"""Text that does nothing to a terminal but stand there."""


def printable(text: str) -> str:
    """Text that can move no cursor and change no colour: a dot for what is not printable but a line's end."""
    return "".join(c if c.isprintable() or c == "\n" else "\N{MIDDLE DOT}" for c in text)
