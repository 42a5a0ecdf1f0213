"""How far people have come with what a campaign asks of them."""

from dataclasses import dataclass

from sqlalchemy.orm import Session

from winnow.storage.records.human import annotations
from winnow.storage.records.values import CampaignRecord
from winnow.tasks.spec.stored_spec import is_human


@dataclass(frozen=True, slots=True, kw_only=True)
class People:
    """Who judges a campaign, and what they are still asked."""

    annotators: int
    """How many different names have judged something."""
    wanted: int
    """Judgments that the planned round waits for."""


def people_of(session: Session, campaign: CampaignRecord) -> People | None:
    """How far people have come; None where they do not judge."""
    if not is_human(campaign.spec):
        return None
    return People(
        annotators=len(annotations.annotators(session, campaign.id)),
        wanted=annotations.lacking(session, campaign.id),
    )
