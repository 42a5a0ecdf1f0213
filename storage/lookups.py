"""Rows by many values of one column at once, however many there are."""

import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy.orm import Session

from storage.driving import run


def rows_with(
    session: Session, columns: str, table: str, column: str, values: Sequence[str]
) -> list[tuple[Any, ...]]:
    """The columns of the rows of a table in which one column has one of these values.

    The values travel as one parameter, so that neither their number nor their kind makes another statement:
    a round asks this several times, and preparing a list of parameters took longer than finding the rows.
    """
    if not values:
        return []
    if session.connection().dialect.name == "postgresql":
        return run(session, f"SELECT {columns} FROM {table} WHERE {column} = ANY(?)", (list(values),))
    query = f"SELECT {columns} FROM {table} WHERE {column} IN (SELECT value FROM json_each(?))"
    return run(session, query, (json.dumps(list(values)),))
