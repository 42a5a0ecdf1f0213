"""Text as every database can hold it."""

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def storable(text: str) -> str:
    """The text as every database can hold it."""
    if text.isascii():
        return text if "\0" not in text else text.replace("\0", REPLACEMENT)
    return text.replace("\0", REPLACEMENT).encode("utf-8", "replace").decode("utf-8")
