"""Sections of a best-mean campaign's report in a terminal."""

from winnow.flows.reports.terminal.sections import ELIMINATIONS, LEADERBOARD, TerminalSection
from winnow.storage.records.record_types import CampaignRecord
from winnow.tasks.queries.breakdowns import tags
from winnow.tasks.spec.stored_spec import grouping_of


def sections_of(campaign: CampaignRecord) -> tuple[TerminalSection, ...]:
    """Sections between the answer and the coverage."""
    groups = grouping_of(campaign.spec)
    if groups is None:
        return (LEADERBOARD, ELIMINATIONS)
    title = f"Leaderboard: estimates are of the {groups.value}, by {groups.by}"
    by_group = f"Means by {groups.by} with 95% intervals, which hold one at a time and are not certified"
    return ((title, LEADERBOARD[1]), ELIMINATIONS, (by_group, tags))
