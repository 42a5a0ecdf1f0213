"""Sections of a route campaign's report in a terminal."""

from winnow.flows.reports.terminal.sections import TerminalSection, by_id
from winnow.storage.queries import campaign_views
from winnow.storage.records.record_types import CampaignRecord
from winnow.tasks.objectives.route import status


def sections_of(campaign: CampaignRecord) -> tuple[TerminalSection, ...]:
    """Sections between the answer and the coverage."""
    return (
        (
            "Leaderboard: mean scores of the prompts routed to each candidate",
            by_id(campaign_views.leaderboard),
        ),
        ("Shares of the last prompts, by type", status.shares),
    )
