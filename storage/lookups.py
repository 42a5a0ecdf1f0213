"""Rows by many values of one column at once, however many there are."""

import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Row
from sqlalchemy.orm import Session


def rows_with(
    session: Session, columns: str, table: str, column: str, values: Sequence[str]
) -> Sequence[Row[Any]]:
    """The columns of the rows of a table in which one column has one of these values.

    The values travel as one parameter, so that neither their number nor their kind makes another statement:
    a round asks this several times, and preparing a list of parameters took longer than finding the rows.
    """
    if not values:
        return []
    connection = session.connection()
    if connection.dialect.name == "postgresql":
        query = f"SELECT {columns} FROM {table} WHERE {column} = ANY(%s)"
        return connection.exec_driver_sql(query, (list(values),)).all()
    query = f"SELECT {columns} FROM {table} WHERE {column} IN (SELECT value FROM json_each(?))"
    return connection.exec_driver_sql(query, (json.dumps(list(values)),)).all()
