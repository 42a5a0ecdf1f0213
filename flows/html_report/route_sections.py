"""Sections of campaigns that route: who was chosen over time, and for which prompts."""

from sqlalchemy.orm import Session

from winnow.flows.html_report.figures_routes import by_type
from winnow.flows.html_report.figures_routes import shares as share_figure
from winnow.flows.html_report.parts import Section, first_of
from winnow.storage.records import CampaignRecord
from winnow.tasks.routing import standing
from winnow.tasks.views import ask


def shares(session: Session, campaign: CampaignRecord) -> Section | None:
    """Shares of all prompts, over time."""
    rows = list(ask(session, campaign, "picks"))
    if not rows:
        return None
    return Section(
        name="shares",
        title="Who was chosen",
        note="Share of the prompts that each candidate was given, in each of up to ten windows of rounds.",
        figure=share_figure(rows),
    )


def late_shares(session: Session, campaign: CampaignRecord) -> Section | None:
    """Shares of the last prompts, by type."""
    found = standing.shares(session, campaign)
    if not found:
        return None
    rows, cut = first_of(found, "picks")
    return Section(
        name="types",
        title="Who was chosen for what",
        note=f"Shares of the last quarter of the prompts, by the type that each example names.{cut}",
        figure=by_type(rows),
    )
