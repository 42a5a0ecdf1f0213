"""The views of a campaign by name, each with the function that answers it for each objective."""

from collections.abc import Iterable
from numbers import Integral
from typing import TYPE_CHECKING

from winnow.algorithms.state.plugin_registry import object_at
from winnow.storage.json_types import Row
from winnow.tasks.errors import SpecError, did_you_mean

if TYPE_CHECKING:  # the command line reads the names alone
    from sqlalchemy.orm import Session

    from winnow.storage.records.values import CampaignRecord


ANY = "any objective"
SCORED = ("best-mean", "certify", "route")
"""Objectives in which a judge scores each output by itself."""

VIEWS: dict[str, dict[str, str]] = {
    "leaderboard": {
        ANY: "winnow.storage.queries.campaign_views:leaderboard",
        "best-mean": "winnow.tasks.queries.held_out:leaderboard",
        "certify": "winnow.storage.queries.objective.certify:leaderboard",
    },
    "comparisons": {
        ANY: "winnow.storage.queries.campaign_views:comparisons",
        "best-mean": "winnow.tasks.queries.held_out:comparisons",
        "best-duel": "winnow.storage.queries.objective.duels:comparisons",
        "certify": "winnow.storage.queries.objective.certify:comparisons",
    },
    "pareto": {"best-mean": "winnow.tasks.queries.pareto:pareto"},
    "metrics": dict.fromkeys(SCORED, "winnow.tasks.queries.breakdowns:metrics"),
    "tags": {"best-mean": "winnow.tasks.queries.breakdowns:tags"},
    "outputs": dict.fromkeys(SCORED, "winnow.storage.queries.campaign_views:outputs"),
    "rounds": {ANY: "winnow.storage.queries.campaign_views:rounds"},
    "curve": {ANY: "winnow.storage.queries.campaign_views:curve"},
    "eliminations": {"best-mean": "winnow.storage.queries.campaign_views:eliminations"},
    "coverage": {ANY: "winnow.tasks.queries.warnings.from_outputs:coverage"},
    "costs": {ANY: "winnow.storage.queries.costs:costs"},
    "reuse": {ANY: "winnow.storage.queries.costs:reuse"},
    "history": {ANY: "winnow.tasks.queries.schedule_history:history"},
    "head-to-head": {"best-duel": "winnow.storage.queries.objective.duels:head_to_head"},
    "strengths": {"best-duel": "winnow.tasks.objectives.best_duel.strengths:strengths"},
    "judgments": {ANY: "winnow.storage.queries.objective.duels:judgments"},
    "judges": {"best-duel": "winnow.storage.queries.objective.duels:judges"},
    "verdicts": {"best-duel": "winnow.storage.queries.objective.duels:verdicts"},
    "unread": {ANY: "winnow.storage.queries.objective.duels:unread"},
    "agreement": {
        "best-duel": "winnow.tasks.objectives.best_duel.judge_agreement:agreement",
        "certify": "winnow.storage.queries.objective.agreement:human_agreement",
    },
    "e-values": {"certify": "winnow.tasks.objectives.certify.evidence:e_values"},
    "weights": {"certify": "winnow.tasks.objectives.certify.evidence:weights"},
    "annotators": {
        "best-mean": "winnow.storage.queries.objective.agreement:annotators",
        "best-duel": "winnow.storage.queries.objective.agreement:annotators",
        "certify": "winnow.storage.queries.objective.agreement:annotators",
    },
    "labels": {
        "best-mean": "winnow.tasks.objectives.human.files:label_rows",
        "best-duel": "winnow.tasks.objectives.human.files:label_rows",
        "certify": "winnow.tasks.objectives.certify.evidence:label_rows",
    },
    "picks": {"route": "winnow.tasks.objectives.route.status:picks"},
}
"""Functions of a session and a campaign, imported when they are asked: some need more than the others."""

FILTERED = "comparisons"
"""The view that can be asked of one candidate, and for the first rows alone."""


def answered_by(objective: str) -> list[str]:
    """The views that campaigns of an objective answer."""
    return [view for view, by_objective in VIEWS.items() if ANY in by_objective or objective in by_objective]


def ask(
    session: "Session",
    campaign: "CampaignRecord",
    view: str,
    *,
    candidate: str | None = None,
    limit: int | None = None,
) -> Iterable[Row]:
    """The rows of a view.

    Args:
        session: Reads the results.
        campaign: The campaign.
        view: One of `VIEWS`.
        candidate: Only comparisons of this one.
        limit: Only the first so many comparisons.

    Raises:
        SpecError: If campaigns of this objective cannot answer it, it cannot be limited, or there is no such
            candidate.
    """
    if limit is not None and not (isinstance(limit, Integral) and limit >= 1):
        raise SpecError(f"limit is {limit!r}; give a whole number of at least 1")
    if candidate is not None:
        _require_candidate(session, campaign, candidate)
    by_objective = VIEWS[view]
    path = by_objective.get(campaign.objective, by_objective.get(ANY))
    if path is None:
        raise SpecError(
            f"{view} is asked of {' and '.join(by_objective)} campaigns, and '{campaign.name}' is a "
            f"{campaign.objective} campaign"
        )
    filters = {"candidate": candidate, "limit": limit}
    if view != FILTERED:
        if any(value is not None for value in filters.values()):
            raise SpecError(f"{view} cannot be limited to a candidate or a number; only {FILTERED} can")
        filters = {}
    # Storage knows campaigns by their ids.
    subject = campaign.id if path.startswith("winnow.storage.") else campaign
    rows: Iterable[Row] = object_at(path)(session, subject, **filters)
    return rows


def columns_of(rows: Iterable[Row]) -> tuple[str, ...]:
    """The columns of a view's rows where they are known without a row; else none."""
    return getattr(rows, "columns", ())


def _require_candidate(session: "Session", campaign: "CampaignRecord", candidate: str) -> None:
    # Imported here: the names of the views alone need no database.
    from winnow.storage.records.campaigns import candidate_names

    names = candidate_names(session, campaign.id)
    if candidate not in names:
        question = did_you_mean(candidate, names)
        raise SpecError(
            f"'{campaign.name}' has no candidate {candidate!r}; {question}{' ' * bool(question)}"
            f"winnow show {campaign.name} lists all {len(names)}"
        )
