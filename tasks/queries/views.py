"""A campaign's views by name, each with its function for each objective."""

from collections.abc import Iterable
from numbers import Integral
from typing import TYPE_CHECKING

from winnow.algorithms.state.plugin_registry import object_at
from winnow.storage.json_types import Row
from winnow.storage.objectives import OBJECTIVES, traits_of
from winnow.tasks.campaign.look import Look
from winnow.tasks.errors import SpecError, did_you_mean

if TYPE_CHECKING:  # the command line reads the names alone
    pass


SCORED = {
    "metrics": "winnow.tasks.queries.breakdowns:metrics",
    "outputs": "winnow.storage.queries.campaign_views:outputs",
}
"""Views of objectives with a judge of single outputs."""

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

    Each takes a look and is imported when called; those of storage take a session and an id.
    """
    traits = traits_of(objective)
    return {**SHARED, **({} if traits.compares_pairs else SCORED), **traits.views}


VIEWS = tuple(dict.fromkeys(view for objective in OBJECTIVES for view in _views_of(objective)))
"""The names of all views."""

FILTERED = "comparisons"
"""The view that can be limited to one candidate and to the first rows."""


def answered_by(objective: str) -> list[str]:
    """The views available for campaigns of an objective."""
    return [*_views_of(objective)]


def ask(look: Look, view: str, *, candidate: str | None = None, limit: int | None = None) -> Iterable[Row]:
    """The rows of a view.

    Only comparisons of `candidate` are included.

    Raises:
        SpecError: If campaigns of this objective do not have it, it cannot be limited, or there is no such
            candidate.
    """
    if limit is not None and not (isinstance(limit, Integral) and limit >= 1):
        raise SpecError(f"limit is {limit!r}; give a whole number of at least 1")
    if candidate is not None:
        _require_candidate(look, candidate)
    address = _views_of(look.record.objective).get(view)
    if address is None:
        those = " and ".join(each for each in OBJECTIVES if view in _views_of(each))
        raise SpecError(
            f"{view} is asked of {those} campaigns, "
            f"and '{look.record.name}' is a {look.record.objective} campaign"
        )
    filters = {"candidate": candidate, "limit": limit}
    if view != FILTERED:
        if any(value is not None for value in filters.values()):
            raise SpecError(f"{view} cannot be limited to a candidate or a number; only {FILTERED} can")
        filters = {}
    # Storage knows campaigns by their ids.
    subject = (look.session, look.record.id) if address.startswith("winnow.storage.") else (look,)
    rows: Iterable[Row] = object_at(address)(*subject, **filters)
    return rows


def columns_of(rows: Iterable[Row]) -> tuple[str, ...]:
    """The columns of a view's rows if known without a row; else empty."""
    return getattr(rows, "columns", ())


def _require_candidate(look: Look, candidate: str) -> None:
    # Imported here: the names of the views alone need no database.
    from winnow.storage.records.campaigns import candidate_names

    names = candidate_names(look.session, look.record.id)
    if candidate not in names:
        question = did_you_mean(candidate, names)
        raise SpecError(
            f"'{look.record.name}' has no candidate {candidate!r}; {question}{' ' * bool(question)}"
            f"winnow show {look.record.name} lists all {len(names)}"
        )
