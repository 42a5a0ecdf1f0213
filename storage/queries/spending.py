"""What a campaign has spent, round by round, from what its rounds paid for."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from winnow.storage.models import CampaignStats, CostStats, Decision, Generation, Round
from winnow.storage.records.rounds import last_told


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
    """Of all finished rounds with a number above `after`; of all of them what was added as they were told."""
    if after < 0:
        return _of_all_rounds(session, campaign_id)
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


def _of_all_rounds(session: Session, campaign_id: int) -> RoundsSpent:
    told = session.execute(
        select(
            last_told(campaign_id),
            CampaignStats.answered,
            CampaignStats.input_tokens + CampaignStats.output_tokens,
        ).where(CampaignStats.campaign_id == campaign_id)
    ).one_or_none()
    last, comparisons, tokens = told or (-1, 0, 0)
    return RoundsSpent(last=last, comparisons=comparisons, tokens=tokens)


def of_models(session: Session, campaign_id: int, *, after: int = -1) -> Sequence[ModelSpent]:
    """Of all finished rounds with a number above `after`, by model."""
    texts: type[CostStats | Generation] = CostStats if after < 0 else Generation
    spent = select(
        texts.model,
        func.sum(texts.input_tokens),
        func.sum(texts.output_tokens),
        func.sum(texts.seconds),
    )
    if after < 0:
        spent = spent.where(CostStats.campaign_id == campaign_id)
    else:
        spent = (
            spent.join(Round, Round.id == Generation.round_id)
            .join(Decision, Decision.round_id == Round.id)
            .where(Round.campaign_id == campaign_id, Round.number > after)
        )
    rows = session.execute(spent.group_by(texts.model).order_by(texts.model))
    return [
        ModelSpent(model=model, input_tokens=int(shown), output_tokens=int(made), seconds=seconds)
        for model, shown, made, seconds in rows
    ]
