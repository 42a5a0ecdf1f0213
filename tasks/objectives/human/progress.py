"""Progress of the people who judge a campaign."""

from dataclasses import dataclass

from winnow.storage.records.human import annotations
from winnow.tasks.campaign.look import Look
from winnow.tasks.spec.judge_tree import is_human


@dataclass(frozen=True, slots=True, kw_only=True)
class People:
    """The number of people who judge a campaign, and of judgments that they are still asked."""

    annotators: int
    """Number of different names that have judged something."""
    wanted: int
    """Judgments that the planned round waits for."""


def people_of(look: Look) -> People | None:
    """The progress of the people who judge; None where nobody does."""
    if not is_human(look.record.spec):
        return None
    return People(
        annotators=len(annotations.annotators(look.session, look.record.id)),
        wanted=annotations.lacking(look.session, look.record.id),
    )
