"""Progress of the people who judge a campaign."""

from dataclasses import dataclass

from sqlalchemy.orm import Session

from winnow.storage.records.human import annotations
from winnow.storage.records.values import CampaignRecord
from winnow.tasks.spec.judge_tree import is_human


@dataclass(frozen=True, slots=True, kw_only=True)
class People:
    """The number of people who judge a campaign, and of judgments that they are still asked."""

    annotators: int
    """Number of different names that have judged something."""
    wanted: int
    """Judgments that the planned round waits for."""


def people_of(session: Session, campaign: CampaignRecord) -> People | None:
    """The progress of the people who judge; None where nobody does."""
    if not is_human(campaign.spec):
        return None
    return People(
        annotators=len(annotations.annotators(session, campaign.id)),
        wanted=annotations.lacking(session, campaign.id),
    )
