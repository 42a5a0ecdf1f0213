"""Counts for warnings about a campaign, from its stats.

Few rows of pairs and duels are read.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from sqlalchemy import case, func, select, text
from sqlalchemy.orm import Session

from winnow.storage.models import Candidate, CandidateStats, Comparison, Generation, Judgment, Round
from winnow.storage.queries.campaign_views import ROWS_AT_ONCE
from winnow.storage.queries.unscored import HIGHEST


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Sums over a campaign's candidates; a duel counts twice, once for each candidate."""

    scored: int
    """Number of comparisons with an outcome."""
    candidates: int
    """Number of candidates with such comparisons."""
    lowest: float | None
    """Lowest outcome of a comparison, from its candidate's side.
    The next field is the highest."""
    highest: float | None
    texts: int
    """Number of candidates' outputs that were shown to a judge."""
    no_answer: int
    """Number of outputs without an answer."""


def counts(session: Session, campaign_id: int) -> Counts:
    """Sum the stats of a campaign's candidates."""
    scored, candidates, lowest, highest, texts, no_answer = session.execute(
        select(
            func.coalesce(func.sum(CandidateStats.comparisons).filter(CandidateStats.reason == ""), 0),
            func.count().filter(CandidateStats.reason == ""),
            func.min(CandidateStats.lowest),
            func.max(HIGHEST),
            func.coalesce(func.sum(CandidateStats.texts), 0),
            func.coalesce(func.sum(CandidateStats.no_answer), 0),
        )
        .join(Candidate, Candidate.id == CandidateStats.candidate_id)
        .where(Candidate.campaign_id == campaign_id)
    ).one()
    return Counts(
        scored=int(scored),
        candidates=int(candidates),
        lowest=lowest,
        highest=highest,
        texts=int(texts),
        no_answer=int(no_answer),
    )


def cut_replies(session: Session, campaign_id: int, reasons: Collection[str]) -> tuple[int, int]:
    """Number of judges' replies without a verdict that were cut off.

    The second number is that of all replies without a verdict. `reasons` are the reasons of missing verdicts.
    If no comparison is unscored for one of them, both numbers are 0 and no replies are read.
    """
    missed = (
        select(CandidateStats.candidate_id)
        .join(Candidate, Candidate.id == CandidateStats.candidate_id)
        .where(Candidate.campaign_id == campaign_id, CandidateStats.reason.in_(reasons))
    )
    if session.scalar(missed.limit(1)) is None:
        return 0, 0
    found = (
        select(func.count().filter(Generation.finish_reason == "length"), func.count())
        .select_from(Judgment)
        .join(Comparison, Comparison.id == Judgment.comparison_id)
        .join(Round, Round.id == Comparison.round_id)
        .join(Generation, Generation.id == Judgment.generation_id)
        .where(Round.campaign_id == campaign_id, Judgment.metric.is_(None), Judgment.reason.in_(reasons))
    )
    cut, replies = session.execute(found).one()
    return cut, replies


def first_calls(session: Session, campaign_id: int, *, rounds: int) -> list[tuple[str, str | None]]:
    """Judge of each first call about an output, and the reason for no verdict.

    The reason is None if a verdict was parsed. Only the campaign's first `rounds` rounds are inspected.
    """
    found = (
        select(Judgment.judge, Judgment.reason)
        .join(Comparison, Comparison.id == Judgment.comparison_id)
        .join(Round, Round.id == Comparison.round_id)
        .where(Round.campaign_id == campaign_id, Round.number < rounds)
        .where(Judgment.metric.is_(None), Judgment.attempt == 0)
        .order_by(Judgment.id)
    )
    return list(session.execute(found).tuples())


def score_sums(session: Session, *candidates: int) -> list[tuple[float, int]]:
    """Sum and number of each candidate's scores, from its stats; not for duels."""
    rows = session.execute(
        select(CandidateStats.candidate_id, CandidateStats.outcome_sum, CandidateStats.comparisons).where(
            CandidateStats.candidate_id.in_(candidates), CandidateStats.reason == ""
        )
    )
    found = {candidate: (total, count) for candidate, total, count in rows}
    return [found.get(each, (0.0, 0)) for each in candidates]


@dataclass(frozen=True, slots=True, kw_only=True)
class OneSide:
    """The side that won all duels of a campaign."""

    is_first: bool
    duels: int
    """Number of duels that show the effect of the side.
    In these, the same two candidates were compared as often on swapped sides."""


def side_that_won(session: Session, campaign_id: int) -> OneSide | None:
    """The side that won every scored duel, in stored order.

    None if both sides won some duels.
    """
    scored = (
        select(Comparison.id)
        .join(Round, Round.id == Comparison.round_id)
        .where(Round.campaign_id == campaign_id, Comparison.candidate_b_id.is_not(None))
    )
    is_first = session.scalar(scored.where(Comparison.outcome <= 0.5).limit(1)) is None
    if not is_first and session.scalar(scored.where(Comparison.outcome >= 0.5).limit(1)) is not None:
        return None
    pairs = (
        select(Comparison.candidate_a_id, Comparison.candidate_b_id, func.count())
        .join(Round, Round.id == Comparison.round_id)
        .where(Round.campaign_id == campaign_id, Comparison.outcome.is_not(None))
        .group_by(Comparison.candidate_a_id, Comparison.candidate_b_id)
    )
    met = {(a, b): count for a, b, count in session.execute(pairs)}
    return OneSide(
        is_first=is_first, duels=sum(min(count, met.get((b, a), 0)) for (a, b), count in met.items())
    )


def place_that_won(session: Session, campaign_id: int) -> OneSide | None:
    """The place whose output won in all verdicts of judge models on duels.

    None if neither place won in all.
    """
    verdicts = (
        select(Judgment.id)
        .join(Comparison, Comparison.id == Judgment.comparison_id)
        .join(Round, Round.id == Comparison.round_id)
        .where(Round.campaign_id == campaign_id, Comparison.candidate_b_id.is_not(None))
    )
    first = case((Judgment.presentation_order == "original", Judgment.verdict), else_=1.0 - Judgment.verdict)
    is_first = session.scalar(verdicts.where(first <= 0.5).limit(1)) is None
    if not is_first and session.scalar(verdicts.where(first >= 0.5).limit(1)) is not None:
        return None
    orders = verdicts.with_only_columns(Judgment.presentation_order, func.count()).where(
        Judgment.verdict.is_not(None)
    )
    counts = [count for _, count in session.execute(orders.group_by(Judgment.presentation_order))]
    return OneSide(is_first=is_first, duels=2 * min(counts) if len(counts) > 1 else 0)


_PAIRS = text("""
    SELECT e.key, e.position, max(CASE WHEN x.candidate_a_id = :first THEN x.outcome END),
        max(CASE WHEN x.candidate_a_id = :second THEN x.outcome END)
    FROM comparisons x JOIN examples e ON e.id = x.example_id
    WHERE x.candidate_a_id IN (:first, :second) AND x.candidate_b_id IS NULL AND x.outcome IS NOT NULL
    GROUP BY e.id, e.key, e.position ORDER BY e.id
""")


def score_pairs(
    session: Session, first: int, second: int
) -> Iterator[tuple[str, int, float | None, float | None]]:
    """Yield each example on which one of two candidates has a score.

    Each has its key, its position and both scores; a missing score is None.
    """
    found = session.execute(
        _PAIRS, {"first": first, "second": second}, execution_options={"yield_per": ROWS_AT_ONCE}
    )
    with found:
        yield from ((key, number, a, b) for key, number, a, b in found)
