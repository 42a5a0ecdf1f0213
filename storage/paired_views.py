"""Two candidates on the examples that both were scored on, one number an example, by position."""

from sqlalchemy import ScalarSelect, case, func, or_, select
from sqlalchemy.orm import Session, aliased

from storage.models import Candidate, Comparison, Example


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
    ours, theirs = _candidate_id(campaign_id, first), _candidate_id(campaign_id, second)
    is_ours = (Comparison.candidate_a_id == ours) & (Comparison.candidate_b_id == theirs)
    is_theirs = (Comparison.candidate_a_id == theirs) & (Comparison.candidate_b_id == ours)
    rows = (
        select(func.avg(case((is_ours, Comparison.outcome), else_=1.0 - Comparison.outcome)))
        .join(Example, Example.id == Comparison.example_id)
        .where(or_(is_ours, is_theirs), Comparison.outcome.is_not(None))
        .group_by(Example.position)
        .order_by(Example.position)
    )
    return list(session.scalars(rows))


def _candidate_id(campaign_id: int, name: str) -> ScalarSelect[int]:
    return (
        select(Candidate.id)
        .where(Candidate.campaign_id == campaign_id, Candidate.name == name)
        .scalar_subquery()
    )
