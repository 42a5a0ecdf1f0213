"""The type of values in each column of a view, so that frames and files have it for empty columns too."""

import datetime as dt
import json
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Any, Literal

from winnow.storage.json_types import JsonView
from winnow.storage.text import storable

Kind = Literal["integer", "real", "truth", "time", "text", "conversation"]
"""A conversation is a list of messages, each with its role and content; no view has one."""
Cell = int | float | bool | dt.datetime | str | None

_COLUMNS: dict[Kind, str] = {
    "integer": "round position repeat attempt rounds comparisons scored unscored candidates generations "
    "input_tokens output_tokens duels wins ties losses judgments unread both_orders labels picks until same "
    "opposite generated reused loads cached_tokens answered out_in_round out_at output texts examples "
    "unclear",
    "real": "estimate lower upper ranking outcome seconds human_loss auto_loss unlabelled_loss "
    "unlabelled_missing win_rate strength verdict first_wins flip_rate e_value log_e_value needed rho weight "
    "share mean agreement kappa load_seconds cache_hit_rate wealth level score preference tokens tokens_sd "
    "seconds_sd latency latency_sd cost cost_sd",
    "truth": "stop skip changed no_answer truncated truncated_b pareto worst",
    "time": "planned_at decided_at created_at labelled_at",
}
KINDS: dict[str, Kind] = {name: kind for kind, names in _COLUMNS.items() for name in names.split()}
"""Every other column holds text."""

KINDS_IN_VIEW: dict[tuple[str, str], Kind] = {
    ("leaderboard", "best"): "truth",
    ("leaderboard", "held_out"): "integer",
    ("comparisons", "held_out"): "truth",
    ("coverage", "no_answer"): "integer",
    ("coverage", "truncated"): "integer",
    ("history", "outcome"): "text",
    ("labels", "output"): "text",
    ("labels", "verdict"): "text",
}
"""Columns that have another kind in one view."""


def kind_of(view: str, column: str) -> Kind:
    """The kind of values in a column of a view."""
    return KINDS_IN_VIEW.get((view, column), KINDS.get(column, "text"))


def kinds_of(view: str, columns: Iterable[str]) -> dict[str, Kind]:
    """The kind of each of a view's columns, in order."""
    return {column: kind_of(view, column) for column in columns}


def cells(rows: Iterable[JsonView], view: str) -> Iterator[dict[str, Cell]]:
    """Rows of a view with values converted to their column's kind; other kinds become JSON."""
    for row in rows:
        yield {name: cell(value, kind_of(view, name)) for name, value in row.items()}


def cell(value: Any, kind: Kind) -> Cell:  # noqa: ANN401 -- whatever a database holds
    """Convert a value to its kind; NUL and half a surrogate pair are replaced as in stored texts."""
    if value is None:
        return None
    if kind == "integer":
        return int(value)
    if kind == "real":
        return float(value)
    if kind == "truth":
        return bool(value)
    if kind == "time":
        assert isinstance(value, dt.datetime)
        return value
    return storable(value if isinstance(value, str) else _json(value))


def untyped_cell(value: object) -> Cell:
    """Convert a value of an undeclared column by its own type; bytes become hexadecimal digits."""
    if value is None or isinstance(value, (bool, int, float, str, dt.datetime)):
        return storable(value) if isinstance(value, str) else value
    if isinstance(value, Decimal):
        return int(value) if value.is_finite() and value == value.to_integral_value() else float(value)
    if isinstance(value, dt.date):
        return value.isoformat()
    return value.hex() if isinstance(value, bytes) else storable(_json(value))


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def guessed_kind(values: Iterable[object]) -> Kind | None:
    """The kind that all values of a SQL column share; None if they differ, or one has no kind."""
    types = {type(value) for value in values if value is not None}
    if types == {bool}:
        return "truth"
    if types == {int}:
        return "integer"
    if types and types <= {int, float, Decimal}:
        return "real"
    if types == {dt.datetime}:
        return "time"
    return "text" if types == {str} else None
