"""Base class of all models of the schema."""

import datetime as dt
from typing import Any

from sqlalchemy import JSON, Connection, Float, MetaData, String, Table, event
from sqlalchemy.orm import DeclarativeBase, Mapped, Mapper, mapped_column

from winnow.storage.columns import UtcDateTime
from winnow.storage.engine import row_digests
from winnow.storage.json_types import JsonArray, JsonObject

NAMING_CONVENTION = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}


NEVER_TWICE = {"sqlite_autoincrement": True}
"""Prevents SQLite from reusing the id of a deleted row.
Another process may still hold the id."""


class WithDigest:
    """A row whose digest lets `winnow db check` detect changes."""

    row_digest: Mapped[str | None] = mapped_column(String(row_digests.LENGTH))
    """See `storage.engine.row_digests`.
    NULL in rows stored before digests were introduced."""


class Base(DeclarativeBase):
    """Base class of all models.

    All constraints are named, so that a migration can drop them in every database.
    """

    __table_args__: Any = NEVER_TWICE
    metadata = MetaData(naming_convention=NAMING_CONVENTION)
    type_annotation_map = {  # noqa: RUF012 -- SQLAlchemy reads it as a plain class attribute
        dt.datetime: UtcDateTime(),
        float: Float(),  # as in the migrations; by default it depends on SQLAlchemy's version
        JsonObject: JSON(none_as_null=True),
        JsonArray: JSON(),
    }


def table_of(model: type[Base]) -> Table:
    """Table of a model."""
    table = model.__table__
    assert isinstance(table, Table)
    return table


@event.listens_for(Base, "before_insert", propagate=True)
def _add_digest(_: Mapper[Any], __: Connection, row: Base) -> None:
    if isinstance(row, WithDigest):
        row.row_digest = _digest_of(row)


@event.listens_for(Base, "before_update", propagate=True)
def _renew_digest(_: Mapper[Any], __: Connection, row: Base) -> None:
    if isinstance(row, WithDigest):
        # The count stored in the same column may have changed since the row was read.
        column = table_of(type(row)).c[row_digests.COLUMN]
        row.row_digest = row_digests.with_stored_count(column, _digest_of(row))


def _digest_of(row: Base) -> str:
    table = table_of(type(row))
    columns = row_digests.digested_columns(table)
    return row_digests.row_digest(table, columns, [getattr(row, each) for each in columns])
