"""Sections of the report of a best-mean campaign in a terminal."""

from winnow.flows.reports.terminal.sections import ELIMINATIONS, LEADERBOARD, TerminalSection
from winnow.storage.records.record_types import CampaignRecord
from winnow.tasks.queries.breakdowns import tags
from winnow.tasks.spec.stored_spec import grouping_of


def sections_of(campaign: CampaignRecord) -> tuple[TerminalSection, ...]:
    """Sections of the report in a terminal, between the answer and the coverage."""
    groups = grouping_of(campaign.spec)
    if groups is None:
        return (LEADERBOARD, ELIMINATIONS)
    title = f"Leaderboard: what is estimated is the {groups.value}, by {groups.by}"
    by_group = f"Means by {groups.by}, 95% intervals, each on its own, not certified"
    return ((title, LEADERBOARD[1]), ELIMINATIONS, (by_group, tags))
