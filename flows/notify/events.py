"""What there is to tell of the end of a run."""

from sqlalchemy.orm import Session

from winnow.storage.records import campaigns as campaign_records
from winnow.storage.records.values import CampaignRecord
from winnow.tasks.queries.status import CampaignStatus, campaign_status
from winnow.tasks.spec.sections.execution import Event

WITHOUT_ANSWER: dict[str | None, Event] = {"failed": "failed", "undecided": "undecided", "none": "undecided"}
"""The events of outcomes that are no answer."""


def events_of(status: CampaignStatus, before: CampaignStatus | None) -> tuple[Event, ...]:
    """What happened, the most general first; nothing where somebody stopped a campaign that can go on.

    Args:
        status: Where the campaign stands at the end of a run.
        before: The last campaign of the same schedule that had a winner.
    """
    if not status.is_settled:
        return ()
    if status.state == "waiting":
        return ("waiting",)
    found: list[Event] = [WITHOUT_ANSWER.get(status.answer.outcome, "decided")]
    if before is not None and is_another(winners(before), winners(status)):
        found.append("winner-changed")
    if status.answer.baseline is not None and status.answer.is_guaranteed and status.answer.named("worse"):
        found.append("regression")
    return tuple(found)


def winners(status: CampaignStatus) -> frozenset[str]:
    """Who won: one candidate, those that tied, or the m best; nobody where the question is open."""
    answer = status.answer
    if answer.outcome not in ("winner", "tied"):
        return frozenset()
    if answer.tied or answer.top:
        return frozenset(answer.tied + answer.top)
    best = answer.chosen or answer.best
    return frozenset() if best is None else frozenset((best,))


def is_another(before: frozenset[str], now: frozenset[str]) -> bool:
    """Whether whoever took a winner of before would take another one now.

    One who shares the first place now, or shared it then, has won both times.
    """
    return bool(before and now) and not (before <= now or now <= before)


def previous_winner(session: Session, campaign: CampaignRecord) -> CampaignStatus | None:
    """The last campaign of the same schedule, begun before this one, that ended with a winner."""
    if campaign.series is None:
        return None
    earlier = [
        record
        for record in campaign_records.campaigns(session)
        if record.series == campaign.series
        and (record.created_at, record.id) < (campaign.created_at, campaign.id)
    ]
    statuses = (campaign_status(session, record) for record in reversed(earlier))
    return next((status for status in statuses if winners(status)), None)
