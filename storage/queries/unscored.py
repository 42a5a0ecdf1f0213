"""Comparisons without an outcome, by round and by campaign."""

from itertools import takewhile
from typing import NamedTuple

from sqlalchemy import case, func, select
from sqlalchemy.orm import Session, aliased

from winnow.storage.columns import ByCodePoints
from winnow.storage.json_types import Row
from winnow.storage.models import Candidate, CandidateStats, Comparison, Example, Round
from winnow.storage.objectives import traits_of
from winnow.storage.queries.comparison_joins import is_last
from winnow.storage.records.record_types import EQUAL_OUTPUTS, CampaignRecord

HIGHEST = case((CandidateStats.reason == EQUAL_OUTPUTS, 1.0), else_=CandidateStats.highest)
"""Highest outcome in a row of stats.
1 for comparisons that needed no verdict, because their outcome can be that high."""


def of_round(session: Session, round_id: int) -> list[Row]:
    """Comparisons of a round without an outcome, by candidate and reason.

    Duels are counted by pair of candidates and reason.
    """
    first, second = aliased(Candidate), aliased(Candidate)
    rows = (
        select(
            first.name.label("candidate"),
            second.name.label("opponent"),
            Comparison.reason,
            func.count().label("comparisons"),
            func.min(ByCodePoints(Comparison.detail)).label("detail"),
        )
        .join(first, first.id == Comparison.candidate_a_id)
        .outerjoin(second, second.id == Comparison.candidate_b_id)
        .where(Comparison.round_id == round_id, Comparison.outcome.is_(None))
        .group_by(first.name, second.name, Comparison.reason)
        .order_by(ByCodePoints(first.name), ByCodePoints(second.name), ByCodePoints(Comparison.reason))
    )
    return [dict(row) for row in session.execute(rows).mappings()]


def latest(session: Session, campaign_id: int, reason: str) -> list[tuple[int, int | None]]:
    """Candidates of the latest comparisons with this reason, newest first.

    The list ends at the first judged comparison without this reason. Comparisons that lack an output or
    needed no verdict are skipped.
    """
    newest_first = (
        select(Comparison.candidate_a_id, Comparison.candidate_b_id, Comparison.reason)
        .join(Round, Round.id == Comparison.round_id)
        .where(
            Round.campaign_id == campaign_id,
            Comparison.generation_a_id.is_not(None),
            Comparison.reason.is_distinct_from(EQUAL_OUTPUTS),
            Comparison.generation_b_id.is_not(None) | Comparison.candidate_b_id.is_(None),
        )
        .order_by(Round.number.desc(), Comparison.position.desc())
        .execution_options(yield_per=500)
    )
    with session.execute(newest_first) as rows:
        return [(row[0], row[1]) for row in takewhile(lambda row: row[2] == reason, rows)]


class FailedPair(NamedTuple):
    """A candidate and an example without an output."""

    arm: int
    example: int
    reason: str


def without_output(session: Session, campaign_id: int) -> list[FailedPair]:
    """Pairs of a campaign of scores that have no output, in the order in which they were last asked."""
    rows = (
        select(Candidate.position, Example.position, Comparison.reason)
        .join(Round, Round.id == Comparison.round_id)
        .join(Candidate, Candidate.id == Comparison.candidate_a_id)
        .join(Example, Example.id == Comparison.example_id)
        .where(
            Round.campaign_id == campaign_id,
            Comparison.candidate_b_id.is_(None),
            Comparison.generation_a_id.is_(None),
            Comparison.outcome.is_(None),
            is_last(),
        )
        .order_by(Round.number, Comparison.position)
    )
    return [FailedPair(arm, example, reason or "") for arm, example, reason in session.execute(rows).tuples()]


def by_reason(session: Session, campaign: CampaignRecord) -> dict[str, int]:
    """Number of a campaign's comparisons by reason.

    The key "" counts those with an outcome.
    """
    rows = session.execute(
        select(CandidateStats.reason, func.sum(CandidateStats.comparisons))
        .join(Candidate, Candidate.id == CandidateStats.candidate_id)
        .where(Candidate.campaign_id == campaign.id)
        .group_by(CandidateStats.reason)
        .order_by(ByCodePoints(CandidateStats.reason))
    )
    # Both candidates of a duel count it in their stats.
    sides = 2 if traits_of(campaign.objective).compares_pairs else 1
    return {reason: int(count) // sides for reason, count in rows}


def texts_by_candidate(session: Session, campaign_id: int) -> list[int]:
    """Number of comparisons with an output, by position of the first candidate."""
    rows = session.execute(
        select(func.count(Comparison.generation_a_id))
        .select_from(Candidate)
        .outerjoin(Comparison, Comparison.candidate_a_id == Candidate.id)
        .where(Candidate.campaign_id == campaign_id)
        .group_by(Candidate.id, Candidate.position)
        .order_by(Candidate.position)
    )
    return [int(count) for (count,) in rows]


def shares(session: Session, campaign_id: int) -> list[Row]:
    """Observed and unscored comparisons of each candidate.

    One row per candidate, by position. `reason` is the most frequent reason, null if every comparison has an
    outcome.
    """
    commonest = (
        select(CandidateStats.reason)
        .where(CandidateStats.candidate_id == Candidate.id, CandidateStats.reason != "")
        .order_by(CandidateStats.comparisons.desc(), ByCodePoints(CandidateStats.reason))
        .limit(1)
        .correlate(Candidate)
        .scalar_subquery()
    )
    counts = (
        select(
            CandidateStats.candidate_id,
            func.sum(CandidateStats.comparisons).label("told"),
            func.sum(CandidateStats.comparisons).filter(CandidateStats.reason != "").label("unscored"),
        )
        .group_by(CandidateStats.candidate_id)
        .subquery()
    )
    rows = session.execute(
        select(
            Candidate.name.label("candidate"),
            func.coalesce(counts.c.told, 0).label("told"),
            func.coalesce(counts.c.unscored, 0).label("unscored"),
            commonest.label("reason"),
        )
        .outerjoin(counts, counts.c.candidate_id == Candidate.id)
        .where(Candidate.campaign_id == campaign_id)
        .order_by(Candidate.position)
    )
    return [dict(row) for row in rows.mappings()]
