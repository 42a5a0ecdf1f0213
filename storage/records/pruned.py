"""Records of deleted campaigns: the questions that they asked, and the examples that they saw."""

from collections.abc import Collection, Mapping
from dataclasses import fields

from sqlalchemy import exists, select
from sqlalchemy.orm import Session

from winnow.storage.models import Decision, PrunedCampaign, Round
from winnow.storage.records import campaigns as campaign_records
from winnow.storage.records import canaries as canary_records
from winnow.storage.records.values import CampaignRecord, PrunedRecord

_KEPT = tuple(field.name for field in fields(CampaignRecord) if field.name != "id")


def remember(session: Session, campaign: CampaignRecord, seen: Collection[int]) -> None:
    """Store what later answers need to know of a campaign that is about to be deleted.

    Args:
        session: Writes.
        campaign: With all that belongs to it.
        seen: Positions of the examples that it had outcomes on.
    """
    session.add(
        PrunedCampaign(
            campaign_id=campaign.id,
            **{name: getattr(campaign, name) for name in _KEPT},
            seen=_runs(seen),
            is_decided=is_decided(session, campaign),
            has_grown=campaign.id in campaign_records.grown(session),
            met={model: list(met) for model, met in epochs_met(session, campaign).items()},
        )
    )
    session.flush()


def pruned(session: Session) -> list[PrunedRecord]:
    """The campaigns that were deleted, oldest first."""
    rows = session.scalars(select(PrunedCampaign).order_by(PrunedCampaign.campaign_id))
    return [
        PrunedRecord(
            id=row.campaign_id,
            **{name: getattr(row, name) for name in _KEPT},
            seen=row.seen,
            is_decided=row.is_decided,
            has_grown=row.has_grown,
            met={model: (first, last) for model, (first, last) in row.met.items()},
        )
        for row in rows
    ]


def is_decided(session: Session, campaign: CampaignRecord) -> bool:
    """Whether a campaign, deleted or not, has an answer, after whichever round."""
    if isinstance(campaign, PrunedRecord):
        return campaign.is_decided
    of_it = select(Decision.round_id).join(Round, Round.id == Decision.round_id)
    return bool(session.scalar(select(exists(of_it.where(Round.campaign_id == campaign.id)))))


def grown(session: Session) -> set[int]:
    """The ids of the campaigns, deleted ones among them, that candidates joined once they had begun."""
    ids = select(PrunedCampaign.campaign_id).where(PrunedCampaign.has_grown)
    return campaign_records.grown(session) | set(session.scalars(ids))


def epochs_met(session: Session, campaign: CampaignRecord) -> Mapping[str, tuple[int, int]]:
    """The first and the last epoch in which a campaign, deleted or not, met each served model."""
    if isinstance(campaign, PrunedRecord):
        return campaign.met
    return canary_records.epochs(session, campaign.id)


def _runs(positions: Collection[int]) -> list[int]:
    """The ends of the runs of neighbours among some positions: first, one past the last, first, ..."""
    found: list[int] = []
    for each in sorted(positions):
        if found and found[-1] == each:
            found[-1] += 1
        else:
            found += [each, each + 1]
    return found
