"""Which campaigns could not be gone on with if others were deleted."""

from collections.abc import Collection

from sqlalchemy.orm import Session

from winnow.storage.records import campaigns as campaign_records
from winnow.tasks.data.score_tables import CAMPAIGN
from winnow.tasks.queries.status import campaign_status


def taking_history(session: Session, leaving: Collection[str]) -> dict[str, str]:
    """By campaign that is to be deleted, one that stays, has not ended, and takes its history from it."""
    found = {}
    for each in campaign_records.campaigns(session):
        sources = {source.removeprefix(CAMPAIGN) for source in each.spec.get("history") or ()}
        needed = sources & {*leaving} if each.name not in leaving else set()
        if needed and campaign_status(session, each).state != "ended":
            found.update(dict.fromkeys(needed, each.name))
    return found
