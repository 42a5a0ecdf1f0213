"""Views of a campaign: their functions by objective, and their columns' kinds.

The kind of a column does not depend on its values, so frames and files have it for empty columns, too.
"""

import datetime as dt
import json
from collections.abc import Iterable, Iterator
from decimal import Decimal
from numbers import Integral
from typing import Any, Literal

from winnow.algorithms.state.plugin_registry import object_at
from winnow.storage.json_types import JsonView, Row
from winnow.storage.objectives import OBJECTIVES, traits_of
from winnow.storage.text import storable
from winnow.tasks.campaign.look import Look
from winnow.tasks.errors import SpecError, did_you_mean

Kind = Literal["integer", "real", "truth", "time", "text", "conversation"]
"""Kind of a column's values.
A conversation is a list of messages with role and content; no view has one.
"""
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
"""Kind of each column in any view; columns that are missing here contain text."""

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
"""Kinds of columns that have another kind in one view."""


def kind_of(view: str, column: str) -> Kind:
    """Kind of the values in a column of a view."""
    return KINDS_IN_VIEW.get((view, column), KINDS.get(column, "text"))


def kinds_of(view: str, columns: Iterable[str]) -> dict[str, Kind]:
    """Kind of each of a view's columns, in order."""
    return {column: kind_of(view, column) for column in columns}


def cells(rows: Iterable[JsonView], view: str) -> Iterator[dict[str, Cell]]:
    """Convert the values of a view's rows to the kinds of their columns."""
    for row in rows:
        yield {name: cell(value, kind_of(view, name)) for name, value in row.items()}


def cell(value: Any, kind: Kind) -> Cell:  # noqa: ANN401 -- whatever a database holds
    """Convert a value to a kind; NUL and unpaired surrogates are replaced.

    They are replaced as in stored outputs. Values that are not texts become JSON.
    """
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
    """Convert a value of an undeclared column by its type; bytes become hex digits."""
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
    """The kind that all values of a SQL column have; None without a common kind."""
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


SCORED = {
    "metrics": "winnow.tasks.queries.breakdowns:metrics",
    "outputs": "winnow.storage.queries.campaign_views:outputs",
}
"""Views of objectives whose judge scores single outputs."""

SHARED = {
    "leaderboard": "winnow.storage.queries.campaign_views:leaderboard",
    "comparisons": "winnow.storage.queries.campaign_views:comparisons",
    "rounds": "winnow.storage.queries.campaign_views:rounds",
    "curve": "winnow.storage.queries.campaign_views:curve",
    "coverage": "winnow.tasks.queries.warnings.from_outputs:coverage",
    "costs": "winnow.storage.queries.costs:costs",
    "reuse": "winnow.storage.queries.costs:reuse",
    "history": "winnow.tasks.queries.schedule_history:history",
    "judgments": "winnow.storage.queries.objective.duels:judgments",
    "unread": "winnow.storage.queries.objective.duels:unread",
}
"""Views of all objectives."""


def _views_of(objective: str) -> dict[str, str]:
    """Import paths of the view functions for an objective's campaigns, by name.

    A function takes a look and is imported when it is called; those of `storage` take a session and an id.
    """
    traits = traits_of(objective)
    return {**SHARED, **({} if traits.compares_pairs else SCORED), **traits.views}


VIEWS = tuple(dict.fromkeys(view for objective in OBJECTIVES for view in _views_of(objective)))

FILTERED = "comparisons"
"""The view that can be limited to one candidate and to the first rows."""


def answered_by(objective: str) -> list[str]:
    """Names of the views that campaigns of an objective have."""
    return [*_views_of(objective)]


def ask(look: Look, view: str, *, candidate: str | None = None, limit: int | None = None) -> Iterable[Row]:
    """The rows of a view.

    Args:
        look: The campaign.
        view: Name of the view.
        candidate: The only candidate whose comparisons are read; None for all.
        limit: Maximum number of comparisons; None for all.

    Raises:
        SpecError: Campaigns of this objective do not have the view, the view cannot be limited, or the
            candidate does not exist.
    """
    if limit is not None and not (isinstance(limit, Integral) and limit >= 1):
        raise SpecError(f"limit is {limit!r}; give a whole number of at least 1")
    if candidate is not None:
        _require_candidate(look, candidate)
    address = _views_of(look.record.objective).get(view)
    if address is None:
        those = " and ".join(each for each in OBJECTIVES if view in _views_of(each))
        raise SpecError(
            f"only {those} campaigns have the view {view}, "
            f"and '{look.record.name}' is a {look.record.objective} campaign"
        )
    filters = {"candidate": candidate, "limit": limit}
    if view != FILTERED:
        if any(value is not None for value in filters.values()):
            raise SpecError(f"{view} cannot be limited to a candidate or a number; only {FILTERED} can be")
        filters = {}
    # Functions of `storage` identify campaigns by id.
    subject = (look.session, look.record.id) if address.startswith("winnow.storage.") else (look,)
    rows: Iterable[Row] = object_at(address)(*subject, **filters)
    return rows


def columns_of(rows: Iterable[Row]) -> tuple[str, ...]:
    """The columns of a view's rows, if known without reading a row; else empty."""
    return getattr(rows, "columns", ())


def _require_candidate(look: Look, candidate: str) -> None:
    # Imported here because the names of views need no database.
    from winnow.storage.records.campaigns import candidate_names

    names = candidate_names(look.session, look.record.id)
    if candidate not in names:
        question = did_you_mean(candidate, names)
        raise SpecError(
            f"'{look.record.name}' has no candidate {candidate!r}; {question}{' ' * bool(question)}"
            f"winnow show {look.record.name} lists all {len(names)}"
        )
