"""Records of deleted campaigns: their questions, and the examples that they used."""

from collections.abc import Collection, Mapping
from dataclasses import fields

from sqlalchemy import exists, select
from sqlalchemy.orm import Session

from winnow.storage.models import Decision, PrunedCampaign, Round
from winnow.storage.records import campaigns as campaign_records
from winnow.storage.records import canaries as canary_records
from winnow.storage.records.record_types import CampaignRecord, PrunedRecord
from winnow.storage.records.row_counts import add_to_count

_KEPT = tuple(field.name for field in fields(CampaignRecord) if field.name != "id")


def remember(session: Session, campaign: CampaignRecord, seen: Collection[int]) -> None:
    """Store what later answers need about a campaign before its deletion.

    The campaign must still have all its rows. `seen` are the positions of the examples with outcomes.
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
    add_to_count(session.connection(), "datasets", campaign.dataset_id, "pruned_campaigns", [campaign.id])


def pruned(session: Session) -> list[PrunedRecord]:
    """Deleted campaigns, oldest first."""
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
    """Whether a campaign, deleted or not, has an answer after any of its rounds."""
    if isinstance(campaign, PrunedRecord):
        return campaign.is_decided
    of_it = select(Decision.round_id).join(Round, Round.id == Decision.round_id)
    return bool(session.scalar(select(exists(of_it.where(Round.campaign_id == campaign.id)))))


def grown(session: Session) -> set[int]:
    """Ids of campaigns to which candidates were added after they began.

    Deleted campaigns are included.
    """
    ids = select(PrunedCampaign.campaign_id).where(PrunedCampaign.has_grown)
    return campaign_records.grown(session) | set(session.scalars(ids))


def epochs_met(session: Session, campaign: CampaignRecord) -> Mapping[str, tuple[int, int]]:
    """First and last epoch in which a campaign contacted each served model.

    The campaign may be deleted.
    """
    if isinstance(campaign, PrunedRecord):
        return campaign.met
    return canary_records.epochs(session, campaign.id)


def _runs(positions: Collection[int]) -> list[int]:
    """Positions compressed into ranges: first, one past the last, first, ..."""
    found: list[int] = []
    for each in sorted(positions):
        if found and found[-1] == each:
            found[-1] += 1
        else:
            found += [each, each + 1]
    return found
