"""Sample comparisons of each kind of outcome.

Each has the beginnings of its outputs.
"""

from sqlalchemy import ColumnElement, case, func, or_, select
from sqlalchemy.orm import Session

from winnow.storage.json_types import Row
from winnow.storage.models import Candidate, Comparison, Decision, Example, Round
from winnow.storage.queries.comparison_joins import (
    EXAMPLE,
    INPUT,
    PLACE,
    PROMPT_A,
    PROMPT_B,
    TEXT_A,
    TEXT_B,
    A,
    B,
    is_last,
    joined,
)

GOOD, BAD, EVEN, UNSCORED = "good", "bad", "even", "unscored"
"""Kinds of outcomes: high, low, ties of duels, and missing."""


LOOKED_THROUGH = 20_000
"""Number of newest comparisons from which duels are chosen.
No index has the duels of one candidate."""


def samples(
    session: Session,
    campaign_id: int,
    kind: str,
    *,
    candidate: str | None,
    most: int,
    characters: int,
    are_duels: bool = False,
) -> list[Row]:
    """Select comparisons of one kind, clearest first, then in planned order.

    Texts are cut off in the database, so little of long outputs is read.

    Args:
        session: Reads the results.
        campaign_id: The campaign.
        kind: GOOD, BAD, EVEN or UNSCORED.
        candidate: Only comparisons of this candidate, from its side; None for all, from the first side.
        most: Maximum number of rows.
        characters: Maximum number of characters of each text; `text_length` etc. are the full lengths.
        are_duels: Whether the campaign's comparisons have two sides. For duels, and without a candidate, only
            the newest `LOOKED_THROUGH` comparisons are searched.
    """
    worth = _worth(candidate)
    conditions, order = _chosen(kind, worth)
    in_order = (*order, Round.number, Comparison.position)
    # Selected before the joins, which would otherwise read the outputs of all comparisons of this kind.
    chosen = (
        select(Comparison.id)
        .join(Round, Round.id == Comparison.round_id)
        .join(A, A.id == Comparison.candidate_a_id)
        .outerjoin(B, B.id == Comparison.candidate_b_id)
        .where(
            Round.campaign_id == campaign_id,
            *conditions,
            *_among(campaign_id, kind, candidate, most=most, are_duels=are_duels),
        )
        .order_by(*in_order)
        .limit(most)
        .subquery()
    )
    rows = session.execute(
        joined(
            select(
                *PLACE,
                *EXAMPLE,
                Example.targets,
                Comparison.outcome,
                Comparison.reason,
                Comparison.human_loss,
                Comparison.judge,
                *_beginnings(characters),
            )
        )
        .where(Comparison.id.in_(chosen.select()))
        .order_by(*in_order)
    )
    return [dict(row) for row in rows.mappings()]


def _among(
    campaign_id: int, kind: str, candidate: str | None, *, most: int, are_duels: bool
) -> list[ColumnElement[bool]]:
    """Conditions that avoid reading millions of comparisons that cannot be selected."""
    if kind == UNSCORED and candidate is None:
        lacking = (
            select(Round.id)
            .join(Decision, Decision.round_id == Round.id)
            .where(
                Round.campaign_id == campaign_id,
                or_(Decision.scored < Decision.comparisons, Decision.comparisons == 0),
            )
            .order_by(Round.number)
            .limit(most)
        )
        return [Comparison.round_id.in_(lacking.subquery().select())]
    sides = [] if candidate is None else [or_(A.name == candidate, B.name == candidate)]
    if candidate is not None and not are_duels:
        own = select(Candidate.id).where(Candidate.campaign_id == campaign_id, Candidate.name == candidate)
        return [Comparison.candidate_a_id == own.scalar_subquery(), Comparison.candidate_b_id.is_(None)]
    newest = (
        select(Comparison.id)
        .join(Round, Round.id == Comparison.round_id)
        .where(Round.campaign_id == campaign_id)
        .order_by(Round.number.desc(), Comparison.position.desc())
        .limit(LOOKED_THROUGH)
    )
    return [Comparison.id.in_(newest.subquery().select()), *sides]


def _worth(candidate: str | None) -> ColumnElement[object]:
    """Value by which samples of comparisons are ordered.

    It is 1 minus the human loss, or the outcome from a candidate's side.
    """
    reversed_ = [] if candidate is None else [(B.name == candidate, 1.0 - Comparison.outcome)]
    return case(
        (Comparison.human_loss.is_not(None), 1.0 - Comparison.human_loss),
        *reversed_,
        else_=Comparison.outcome,
    )


def _chosen(
    kind: str, worth: ColumnElement[object]
) -> tuple[list[ColumnElement[bool]], list[ColumnElement[object]]]:
    if kind == UNSCORED:
        return [Comparison.outcome.is_(None), is_last()], []
    if kind == EVEN:
        return [Comparison.outcome == 0.5], []
    sign = 1 if kind == GOOD else -1
    is_duel = Comparison.candidate_b_id.is_not(None)
    # A good duel was won and a bad one lost; a score of any value can be among the highest or lowest.
    decided = case((is_duel, sign * (worth - 0.5)), else_=1.0) > 0.0
    return [worth.is_not(None), decided], [-sign * worth]


def _beginnings(characters: int) -> list[ColumnElement[object]]:
    texts = {
        "input": INPUT,
        "detail": Comparison.detail,
        "answer": Comparison.answer,
        "prompt": PROMPT_A.text,
        "text": TEXT_A.text,
        "prompt_b": PROMPT_B.text,
        "text_b": TEXT_B.text,
    }
    return [
        column
        for name, text in texts.items()
        for column in (
            func.substr(text, 1, characters).label(name),
            func.length(text).label(f"{name}_length"),
        )
    ]
