"""Column types that are equal in all databases.

They store UTC times, any text, names and large integers.
"""

import datetime as dt

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    DateTime,
    Dialect,
    Integer,
    SQLColumnExpression,
    String,
    Text,
    func,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.orm import InstrumentedAttribute, Session
from sqlalchemy.sql import coercions, roles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.visitors import InternalTraversal
from sqlalchemy.types import TypeDecorator

from winnow.storage.text import storable


class UtcDateTime(TypeDecorator[dt.datetime]):
    """An aware datetime, stored in UTC.

    SQLite drops time zones, so there the stored time is naive.
    """

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: dt.datetime | None, dialect: Dialect) -> dt.datetime | None:
        """Convert a time to UTC.

        Refuse naive times, whose time zone could not be recovered later.
        """
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"a time without a time zone cannot be stored: {value!r}")
        in_utc = value.astimezone(dt.UTC)
        return in_utc.replace(tzinfo=None) if dialect.name == "sqlite" else in_utc

    def process_result_value(self, value: dt.datetime | None, dialect: Dialect) -> dt.datetime | None:
        """Return the stored time as an aware datetime in UTC; None stays None."""
        if value is None:
            return None
        return value.replace(tzinfo=dt.UTC) if value.tzinfo is None else value.astimezone(dt.UTC)


class AnyText(TypeDecorator[str]):
    """Text of any length and content that every database can store.

    NUL, which PostgreSQL cannot store, becomes U+FFFD, and an unpaired surrogate, which is not a character,
    becomes a question mark; everything else is stored unchanged.
    """

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """Replace characters that cannot be stored; None stays None."""
        return None if value is None else storable(value)


NAME = String(255).with_variant(Text(), "postgresql")
"""A name given by a user.
SQLite does not limit the length of names, so PostgreSQL does not either."""

LARGE = Integer().with_variant(BigInteger(), "postgresql")
"""Any 64-bit integer. In SQLite every INTEGER has 64 bits."""


class ByCodePoints(ColumnElement[str | None]):
    """A text ordered by code points, like texts in Python and SQLite.

    PostgreSQL orders by the locale of its database, in which B comes after a.
    """

    inherit_cache = True
    _traverse_internals = [("text", InternalTraversal.dp_clauseelement)]  # noqa: RUF012 -- SQLAlchemy's pattern

    def __init__(self, text: SQLColumnExpression[str] | SQLColumnExpression[str | None]) -> None:
        self.text = coercions.expect(roles.ExpressionElementRole, text)
        self.type = self.text.type


@compiles(ByCodePoints)
def _without_collation(element: ByCodePoints, compiler: SQLCompiler, **options: object) -> str:
    return compiler.process(element.text, **options)


@compiles(ByCodePoints, "postgresql")
def _with_collation(element: ByCodePoints, compiler: SQLCompiler, **options: object) -> str:
    return f'{compiler.process(element.text, **options)} COLLATE "C"'


def holds(
    session: Session, column: ColumnElement[str] | InstrumentedAttribute[str], words: str
) -> ColumnElement[bool]:
    """Condition that a column contains the words; A to Z match in either case."""
    if session.get_bind().dialect.name == "sqlite":  # LIKE of SQLite is limited to 50 000 bytes
        return func.instr(func.lower(column), func.lower(words)) > 0
    return column.icontains(words, autoescape=True)
