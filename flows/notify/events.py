"""The events to tell of at the end of a run."""

from winnow.tasks.queries.schedule_history import is_another
from winnow.tasks.queries.status import CampaignStatus
from winnow.tasks.spec.sections.execution import Event

WITHOUT_ANSWER: dict[str | None, Event] = {"failed": "failed", "undecided": "undecided", "none": "undecided"}
"""The events of outcomes that are no answer."""


def events_of(status: CampaignStatus, before: CampaignStatus | None) -> tuple[Event, ...]:
    """The events, the most general first; none where somebody stopped a campaign that can go on.

    Args:
        status: The campaign's status at the end of a run.
        before: The last campaign of the same schedule that had a winner.
    """
    if not status.is_settled:
        return ()
    if status.state == "waiting":
        return ("waiting",)
    found: list[Event] = [WITHOUT_ANSWER.get(status.answer.outcome, "decided")]
    if before is not None and is_another(before.answer, status.answer):
        found.append("winner-changed")
    if status.answer.baseline is not None and status.answer.is_guaranteed and status.answer.named("worse"):
        found.append("regression")
    return tuple(found)
