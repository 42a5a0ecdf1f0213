"""The stored state of a campaign in one transaction."""

from dataclasses import dataclass
from functools import cached_property

from sqlalchemy.orm import Session

from winnow.storage.records import campaigns as campaign_records
from winnow.storage.records import outcomes as outcome_records
from winnow.storage.records.record_types import CampaignRecord, DecisionRecord


@dataclass(frozen=True, eq=False)
class Look:
    """A campaign as one transaction reads it; values that were read are cached."""

    session: Session
    record: CampaignRecord

    @cached_property
    def names(self) -> list[str]:
        """Names of the candidates, by position."""
        return campaign_records.candidate_names(self.session, self.record.id)

    @cached_property
    def decision(self) -> DecisionRecord | None:
        """The latest decision; None before the first round is finished."""
        return outcome_records.latest_decision(self.session, self.record.id)

    def at(self, other: CampaignRecord) -> "Look":
        """The same view of another campaign in the same transaction."""
        return Look(self.session, other)
