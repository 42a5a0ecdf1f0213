"""The base of all models of the schema."""

import datetime as dt
from typing import Any

from sqlalchemy import JSON, MetaData, Table
from sqlalchemy.orm import DeclarativeBase

from winnow.storage.columns import UtcDateTime
from winnow.storage.json_types import JsonArray, JsonObject

NAMING_CONVENTION = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}


NEVER_TWICE = {"sqlite_autoincrement": True}
"""SQLite would give the id of a deleted row to the next one; some process may still hold it."""


class Base(DeclarativeBase):
    """All constraints are named, so that a migration can drop them on every database."""

    __table_args__: Any = NEVER_TWICE
    metadata = MetaData(naming_convention=NAMING_CONVENTION)
    type_annotation_map = {  # noqa: RUF012 -- SQLAlchemy reads it as a plain class attribute
        dt.datetime: UtcDateTime(),
        JsonObject: JSON(none_as_null=True),
        JsonArray: JSON(),
    }


def table_of(model: type[Base]) -> Table:
    """The table that a model's rows are in."""
    table = model.__table__
    assert isinstance(table, Table)
    return table
