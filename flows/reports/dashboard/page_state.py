"""A campaign's state after a round for the page, computed once for all readers."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from sqlalchemy.orm import Session

from winnow.flows.reports.dashboard.db import asking
from winnow.flows.reports.html.model import Section
from winnow.flows.reports.html.sections.sections import sections_of
from winnow.flows.reports.html.sections.standard import ReadOnce
from winnow.storage.json_types import Row
from winnow.storage.records import campaigns as campaign_records
from winnow.storage.records import leases
from winnow.storage.records import outcomes as outcome_records
from winnow.storage.records.record_types import CampaignRecord
from winnow.tasks.campaign.lease import now, seems_gone
from winnow.tasks.campaign.look import Look
from winnow.tasks.data.garbage_collection import not_collecting
from winnow.tasks.queries.status import CampaignStatus, campaign_status
from winnow.tasks.queries.views import ask

PATIENCE = 60.0
"""Seconds for computing a campaign's figures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """Identifies a campaign's state; equal versions show the same page."""

    campaign_id: int
    rounds: int
    """Number of finished rounds."""
    decided_at: dt.datetime | None
    is_live: bool
    """Whether a process runs it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Everything that the page of a campaign shows."""

    version: Version
    status: CampaignStatus
    leaderboard: Sequence[Row]
    sections: Sequence[Section]
    read: ReadOnce
    """Cached reads, continued by the same reader's next look."""


def look_at(name: str, last: Snapshot | None) -> Snapshot:
    """The campaign's current state; `last` itself if nothing has changed since.

    Everything is read from one state of the database, so that all parts of the page are consistent.

    Raises:
        StorageError: If the database cannot be read, or has no campaign of that name.
    """
    # Hundreds of thousands of rows are read of a large campaign, and kept: there is no garbage among them.
    with not_collecting(), asking(PATIENCE) as session:
        campaign = campaign_records.get_campaign(session, name)
        version = _version(session, campaign)
        if last is not None and last.version == version:
            return last
        read = ReadOnce() if last is None else last.read
        return Snapshot(
            version=version,
            status=campaign_status(Look(session, campaign), in_full=True),
            leaderboard=list(ask(Look(session, campaign), "leaderboard")),
            # Single comparisons have a page of their own.
            sections=sections_of(Look(session, campaign), with_samples=False, read=read),
            read=read,
        )


def _version(session: Session, campaign: CampaignRecord) -> Version:
    decision = outcome_records.latest_decision(session, campaign.id)
    lease = leases.find(session, campaign.id)
    return Version(
        campaign_id=campaign.id,
        rounds=decision.round_number + 1 if decision else 0,
        decided_at=decision.decided_at if decision else None,
        is_live=lease is not None and leases.is_live(lease, is_gone=partial(seems_gone, now=now())),
    )
