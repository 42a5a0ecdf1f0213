"""Two candidates on the examples that both were scored on, one number an example, by position."""

from sqlalchemy import ColumnElement, ScalarSelect, and_, case, func, or_, select
from sqlalchemy.orm import Session, aliased

from winnow.storage.models import Candidate, Comparison, Example


def outcomes(session: Session, campaign_id: int, name: str) -> dict[str, float | None]:
    """A candidate's outcomes by the key of the example, None where there is none; for benchmarks."""
    rows = (
        select(Example.key, Comparison.outcome)
        .join(Example, Example.id == Comparison.example_id)
        .where(
            Comparison.candidate_a_id == _candidate_id(campaign_id, name),
            Comparison.candidate_b_id.is_(None),
        )
    )
    return {key: outcome for key, outcome in session.execute(rows)}


def score_differences(session: Session, campaign_id: int, first: str, second: str) -> list[float]:
    """Score of the first candidate less that of the second, of each example scored for both."""
    ours, theirs = aliased(Comparison), aliased(Comparison)
    rows = (
        select(ours.outcome - theirs.outcome)
        .join(theirs, theirs.example_id == ours.example_id)
        .join(Example, Example.id == ours.example_id)
        .where(
            ours.candidate_a_id == _candidate_id(campaign_id, first),
            theirs.candidate_a_id == _candidate_id(campaign_id, second),
            ours.outcome.is_not(None),
            theirs.outcome.is_not(None),
        )
        .order_by(Example.position)
    )
    return list(session.scalars(rows))


def duel_outcomes(session: Session, campaign_id: int, first: str, second: str) -> list[float]:
    """Share of their scored duels that the first candidate won on each example; a tie is half a win."""
    is_ours, is_theirs = _is_duel(campaign_id, first, second), _is_duel(campaign_id, second, first)
    rows = (
        select(func.avg(case((is_ours, Comparison.outcome), else_=1.0 - Comparison.outcome)))
        .join(Example, Example.id == Comparison.example_id)
        .where(or_(is_ours, is_theirs), Comparison.outcome.is_not(None))
        .group_by(Example.position)
        .order_by(Example.position)
    )
    return list(session.scalars(rows))


def unscored(session: Session, campaign_id: int, first: str, second: str, *, duels: bool) -> int:
    """Comparisons of two candidates without an outcome: their own each, or their duels with each other."""
    if duels:
        are_theirs = or_(_is_duel(campaign_id, first, second), _is_duel(campaign_id, second, first))
    else:
        ids = [_candidate_id(campaign_id, name) for name in (first, second)]
        are_theirs = Comparison.candidate_a_id.in_(ids) & Comparison.candidate_b_id.is_(None)
    found = select(func.count()).select_from(Comparison).where(are_theirs, Comparison.outcome.is_(None))
    return session.scalars(found).one()


def scored_examples(session: Session, campaign_id: int, name: str) -> dict[str | None, int]:
    """How many different examples a candidate was scored on, by its rival, who is None but in duels."""
    own, rival = _candidate_id(campaign_id, name), aliased(Candidate)
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
