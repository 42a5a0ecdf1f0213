"""What a campaign has spent, round by round, from what its rounds paid for."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from winnow.storage.models import Decision, Generation, Round


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundsSpent:
    """What some finished rounds add up to."""

    last: int
    """Number of the last of them; -1 where there is none."""
    comparisons: int
    """Those whose texts could be made."""
    tokens: int
    """Input and output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpent:
    """What some finished rounds paid for texts of one model."""

    model: str
    input_tokens: int
    output_tokens: int
    seconds: float
    """Of its engine."""


def of_rounds(session: Session, campaign_id: int, *, after: int = -1) -> RoundsSpent:
    """Of all finished rounds with a number above `after`."""
    last, comparisons, tokens = session.execute(
        select(
            func.coalesce(func.max(Round.number), -1),
            func.coalesce(func.sum(Decision.answered), 0),
            func.coalesce(func.sum(Decision.input_tokens + Decision.output_tokens), 0),
        )
        .join(Decision, Decision.round_id == Round.id)
        .where(Round.campaign_id == campaign_id, Round.number > after)
    ).one()
    return RoundsSpent(last=max(last, after), comparisons=int(comparisons), tokens=int(tokens))


def of_models(session: Session, campaign_id: int, *, after: int = -1) -> Sequence[ModelSpent]:
    """Of all finished rounds with a number above `after`, by model."""
    rows = session.execute(
        select(
            Generation.model,
            func.sum(Generation.input_tokens),
            func.sum(Generation.output_tokens),
            func.sum(Generation.seconds),
        )
        .join(Round, Round.id == Generation.round_id)
        .join(Decision, Decision.round_id == Round.id)
        .where(Round.campaign_id == campaign_id, Round.number > after)
        .group_by(Generation.model)
        .order_by(Generation.model)
    )
    return [
        ModelSpent(model=model, input_tokens=int(shown), output_tokens=int(made), seconds=seconds)
        for model, shown, made, seconds in rows
    ]
