"""Two candidates on the examples on which both were scored.

The module gives one number per example, by position.
"""

from collections.abc import Collection
from functools import cache
from typing import NamedTuple

from sqlalchemy import ColumnElement, Float, ScalarSelect, and_, case, func, or_, select, type_coerce
from sqlalchemy.orm import Session, aliased

from winnow.storage.engine.raw_sql import PARAMETERS_AT_ONCE, in_portions
from winnow.storage.json_types import JsonArray, JsonObject
from winnow.storage.models import Candidate, CandidateStats, Comparison, Example, Generation, Metric, Round
from winnow.storage.records.record_types import EQUAL_OUTPUTS


class Scored(NamedTuple):
    """A score of a candidate."""

    example_id: int
    key: str
    """Key of the example."""
    comparison_id: int
    outcome: float


def scores(session: Session, campaign_id: int, name: str, *, most: int) -> list[Scored]:
    """Scores of a candidate, by example position; at most the first `most`."""
    rows = (
        select(Comparison.example_id, Example.key, Comparison.id, Comparison.outcome)
        .join(Example, Example.id == Comparison.example_id)
        .where(
            Comparison.candidate_a_id == _candidate_id(campaign_id, name),
            Comparison.candidate_b_id.is_(None),
            Comparison.outcome.is_not(None),
        )
        .order_by(Example.position)
        .limit(most)
    )
    return [
        Scored(id_, key, comparison, float(outcome))
        for id_, key, comparison, outcome in session.execute(rows)
    ]


def metric_values(
    session: Session, campaign_id: int, name: str, metrics: Collection[str]
) -> dict[str, dict[str, float | None]]:
    """Metric values of a candidate, by metric and example key; None if missing."""
    rows = session.execute(
        select(Metric.name, Example.key, Metric.score)
        .join(Comparison, Comparison.id == Metric.comparison_id)
        .join(Example, Example.id == Comparison.example_id)
        .where(Comparison.candidate_a_id == _candidate_id(campaign_id, name), Metric.name.in_(metrics))
    )
    found: dict[str, dict[str, float | None]] = {metric: {} for metric in metrics}
    for metric, key, score in rows:
        found[metric][key] = score
    return found


def duel_scores(session: Session, campaign_id: int, first: str, second: str, *, most: int) -> list[Scored]:
    """Preference for a candidate over another, in [0, 1], by example.

    At most the first `most`. The preference is the mean over the duels of the two candidates on the example.
    """
    is_ours, is_theirs = _is_duel(campaign_id, first, second), _is_duel(campaign_id, second, first)
    rows = (
        select(
            Comparison.example_id,
            Example.key,
            func.min(Comparison.id),
            func.avg(case((is_ours, Comparison.outcome), else_=1.0 - Comparison.outcome)),
        )
        .join(Example, Example.id == Comparison.example_id)
        .where(or_(is_ours, is_theirs), Comparison.outcome.is_not(None))
        .group_by(Comparison.example_id, Example.key, Example.position)
        .order_by(Example.position)
        .limit(most)
    )
    return [
        Scored(id_, key, comparison, float(outcome))
        for id_, key, comparison, outcome in session.execute(rows)
    ]


def examples(session: Session, ids: Collection[int]) -> dict[int, tuple[JsonObject, JsonArray]]:
    """Fields and targets of examples by id."""
    query = select(Example.id, Example.fields, Example.targets)
    return {
        id_: (fields, targets)
        for some in in_portions(sorted(ids), PARAMETERS_AT_ONCE)
        for id_, fields, targets in session.execute(query.where(Example.id.in_(some)))
    }


def all_scores(session: Session, campaign_id: int, *, most: int) -> list[tuple[int, int, float]]:
    """Candidate position, example id and score, by example; at most the first `most`."""
    rows = (
        select(Candidate.position, Comparison.example_id, Comparison.outcome)
        .join(Candidate, Candidate.id == Comparison.candidate_a_id)
        .where(
            Candidate.campaign_id == campaign_id,
            Comparison.candidate_b_id.is_(None),
            Comparison.outcome.is_not(None),
        )
        .order_by(Comparison.example_id, Comparison.id)
        .limit(most)
    )
    return [(position, example, float(outcome)) for position, example, outcome in session.execute(rows)]


def outcomes(session: Session, campaign_id: int, name: str) -> dict[str, float | None]:
    """Outcomes of a candidate by example key, None if missing; for benchmarks."""
    rows = (
        select(Example.key, Comparison.outcome)
        .join(Example, Example.id == Comparison.example_id)
        .where(
            Comparison.candidate_a_id == _candidate_id(campaign_id, name), Comparison.candidate_b_id.is_(None)
        )
    )
    return {key: outcome for key, outcome in session.execute(rows)}


def outcomes_since(
    session: Session, campaign_id: int, name: str, after: int | None
) -> list[tuple[int, float | None]]:
    """Example ids and outcomes of a candidate in rounds after a given round.

    This is for benchmarks. Only rounds with a number above `after` count; all rounds if `after` is None.
    """
    rows = select(Comparison.example_id, Comparison.outcome).where(Comparison.candidate_b_id.is_(None))
    own = _candidate_id(campaign_id, name)
    if after is None:
        rows = rows.where(Comparison.candidate_a_id == own)
    else:
        rows = rows.join(Round, Round.id == Comparison.round_id).where(
            Round.campaign_id == campaign_id,
            Round.number > after,
            # `+ 0` prevents the use of an index on the candidate, which would read all its comparisons.
            Comparison.candidate_a_id + 0 == own,
        )
    return list(session.execute(rows).tuples())


class Scores(NamedTuple):
    """Scores of two candidates on an example that was scored for both."""

    difference: float
    """Score of the first candidate minus that of the second."""
    prompt_id: int | None
    """Prompt of the first candidate's output; None without a stored output."""


def score_differences(session: Session, campaign_id: int, first: str, second: str) -> list[Scores]:
    """Score differences on all examples scored for both candidates."""
    ours, theirs = aliased(Comparison), aliased(Comparison)
    difference: ColumnElement[float] = type_coerce(ours.outcome - theirs.outcome, Float)
    rows = (
        select(difference, Generation.prompt_id)
        .join(theirs, theirs.example_id == ours.example_id)
        .join(Example, Example.id == ours.example_id)
        .outerjoin(Generation, Generation.id == ours.generation_a_id)
        .where(_is_score(ours, campaign_id, first), _is_score(theirs, campaign_id, second))
        .order_by(Example.position)
    )
    return [Scores(*row) for row in session.execute(rows).tuples()]


class Draw(NamedTuple):
    """A finished comparison of a candidate, or of two candidates in a duel."""

    candidate: int
    """Position of the candidate; in a duel, of the first candidate."""
    example: int
    """Position of the example."""
    outcome: float | None


def draws(session: Session, campaign_id: int, *, spared: float | None = None) -> list[Draw]:
    """All comparisons of single candidates, in the order of the draws, with the pairs' latest outcomes.

    Args:
        session: Reads the results.
        campaign_id: The campaign.
        spared: Outcome of comparisons that needed no verdict; None if the campaign has no such comparisons.
    """
    outcome: ColumnElement[float | None] = Comparison.outcome.expression
    if spared is not None:
        outcome = case((Comparison.reason == EQUAL_OUTPUTS, spared), else_=Comparison.outcome)
    rows = (
        select(Candidate.position, Example.position, outcome)
        .select_from(Comparison)
        .join(Candidate, Candidate.id == Comparison.candidate_a_id)
        .join(Example, Example.id == Comparison.example_id)
        .join(Round, Round.id == Comparison.round_id)
        .where(Candidate.campaign_id == campaign_id, Comparison.candidate_b_id.is_(None))
        .order_by(Round.number, Comparison.position)
    )
    found: dict[tuple[int, int], Draw] = {}  # a pair without an outcome can have been asked again
    for candidate, example, value in session.execute(rows).tuples():
        found[candidate, example] = Draw(candidate, example, value)
    return list(found.values())


def first_duels(session: Session, campaign_id: int, first: str, second: str) -> list[Draw]:
    """First scored duel of two candidates on each example, in order.

    The outcome is the first candidate's. An example without a scored duel has a row without an outcome.
    """
    is_ours, is_theirs = _is_duel(campaign_id, first, second), _is_duel(campaign_id, second, first)
    rows = (
        select(Example.position, case((is_ours, Comparison.outcome), else_=1.0 - Comparison.outcome))
        .select_from(Comparison)
        .join(Example, Example.id == Comparison.example_id)
        .join(Round, Round.id == Comparison.round_id)
        .where(or_(is_ours, is_theirs))
        .order_by(Round.number, Comparison.position)
    )
    found: dict[int, float | None] = {}
    for example, outcome in session.execute(rows).tuples():
        if found.get(example) is None:
            found[example] = outcome
    return [Draw(0, example, outcome) for example, outcome in found.items()]


def positions_scored(session: Session, campaign_id: int, name: str) -> set[int]:
    """Positions of the examples on which a candidate has a score."""
    rows = (
        select(Example.position)
        .join(Comparison, Comparison.example_id == Example.id)
        .where(_is_score(Comparison, campaign_id, name))
    )
    return set(session.scalars(rows))


def prompts_of_duels(session: Session, campaign_id: int, first: str, second: str) -> tuple[int, int]:
    """Numbers of examples and of prompts in the scored duels of two candidates.

    The prompts are those of the first candidate.
    """
    is_ours, is_theirs = _is_duel(campaign_id, first, second), _is_duel(campaign_id, second, first)
    text = case((is_ours, Comparison.generation_a_id), else_=Comparison.generation_b_id)
    found = (
        select(func.count(Comparison.example_id.distinct()), func.count(Generation.prompt_id.distinct()))
        .select_from(Comparison)
        .join(Generation, Generation.id == text)
        .where(or_(is_ours, is_theirs), Comparison.outcome.is_not(None))
    )
    examples, prompts = session.execute(found).one()
    return examples, prompts


def unscored(
    session: Session, campaign_id: int, first: str, second: str, *, duels: bool, but: Collection[str] = ()
) -> int:
    """Number of comparisons of two candidates without an outcome.

    Counts their own comparisons, except those with the reasons `but`; if `duels`, their duels with each
    other.
    """
    if duels:
        are_theirs = or_(_is_duel(campaign_id, first, second), _is_duel(campaign_id, second, first))
        found = select(func.count()).select_from(Comparison).where(are_theirs, Comparison.outcome.is_(None))
    else:
        ids = [_candidate_id(campaign_id, name) for name in (first, second)]
        found = select(func.coalesce(func.sum(CandidateStats.comparisons), 0)).where(
            CandidateStats.candidate_id.in_(ids), CandidateStats.reason.not_in(["", *but])
        )
    return int(session.scalars(found).one())


def scored_examples(session: Session, campaign_id: int, name: str) -> dict[str | None, int]:
    """Number of examples on which a candidate was scored, by opponent.

    The key is None except for duels.
    """
    own, rival = _candidate_id(campaign_id, name), _rival()
    is_first = Comparison.candidate_a_id == own
    other = case((is_first, Comparison.candidate_b_id), else_=Comparison.candidate_a_id)
    rows = (
        select(rival.name, func.count(Comparison.example_id.distinct()))
        .select_from(Comparison)
        .outerjoin(rival, rival.id == other)
        .where(or_(is_first, Comparison.candidate_b_id == own), Comparison.outcome.is_not(None))
        .group_by(rival.name)
    )
    return {each: count for each, count in session.execute(rows)}


def count_and_mean(session: Session, campaign_id: int, name: str) -> tuple[int, float] | None:
    """Number of a candidate's scores on a benchmark, and their mean; None without scores."""
    rows = select(func.count(), func.avg(Comparison.outcome)).where(_is_score(Comparison, campaign_id, name))
    count, mean = session.execute(rows).one()
    return (count, float(mean)) if count else None


@cache  # creating the alias takes longer than using it
def _rival() -> type[Candidate]:
    return aliased(Candidate)


def _is_score(comparison: type[Comparison], campaign_id: int, name: str) -> ColumnElement[bool]:
    return and_(
        comparison.candidate_a_id == _candidate_id(campaign_id, name),
        # Always true in such a campaign, but it makes the index of pairs usable.
        comparison.candidate_b_id.is_(None),
        comparison.outcome.is_not(None),
    )


def _is_duel(campaign_id: int, first: str, second: str) -> ColumnElement[bool]:
    return and_(
        Comparison.candidate_a_id == _candidate_id(campaign_id, first),
        Comparison.candidate_b_id == _candidate_id(campaign_id, second),
    )


def _candidate_id(campaign_id: int, name: str) -> ScalarSelect[int]:
    return (
        select(Candidate.id)
        .where(Candidate.campaign_id == campaign_id, Candidate.name == name)
        .scalar_subquery()
    )
