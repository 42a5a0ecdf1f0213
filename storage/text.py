"""Text as every database can hold it, and how words are found in it."""

from sqlalchemy import ColumnElement, func
from sqlalchemy.orm import InstrumentedAttribute, Session

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def storable(text: str) -> str:
    """The text as every database can hold it."""
    if text.isascii():
        return text if "\0" not in text else text.replace("\0", REPLACEMENT)
    return text.replace("\0", REPLACEMENT).encode("utf-8", "replace").decode("utf-8")


def holds(
    session: Session, column: ColumnElement[str] | InstrumentedAttribute[str], words: str
) -> ColumnElement[bool]:
    """Whether a column has the words somewhere; A to Z match in either case."""
    if session.get_bind().dialect.name == "sqlite":  # whose LIKE takes no more than 50 000 bytes
        return func.instr(func.lower(column), func.lower(words)) > 0
    return column.icontains(words, autoescape=True)
