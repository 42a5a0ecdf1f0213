"""What the code of others raised, in words that can be shown."""

MOST_CHARACTERS = 300
"""Of a message; the rest is left out."""


def in_words(error: BaseException) -> str:
    """The kind of an exception and its message, in one line of at most about `MOST_CHARACTERS` characters.

    What would move a cursor or begin a line is shown as Python writes it in a string.
    """
    kind = _one_line(type(error).__name__)
    try:
        message = str(error)[: MOST_CHARACTERS + 1]
    except BaseException:  # its __str__ is code of others as well
        return f"{kind}, whose message cannot be printed"
    if len(message) > MOST_CHARACTERS:
        message = message[:MOST_CHARACTERS] + "..."
    return f"{kind}: {shown}" if (shown := _one_line(message)) else kind


def _one_line(text: str) -> str:
    words = " ".join(text.split())
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in words)
