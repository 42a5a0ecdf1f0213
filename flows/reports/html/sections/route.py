"""Sections of campaigns that route: who was chosen over time, and for which prompts."""

from sqlalchemy.orm import Session

from winnow.flows.reports.html.figures.routes import by_type
from winnow.flows.reports.html.figures.routes import shares as share_figure
from winnow.flows.reports.html.model import SpecModel, first_of
from winnow.storage.records.values import CampaignRecord
from winnow.tasks.objectives.route import status
from winnow.tasks.queries.views import ask


def shares(session: Session, campaign: CampaignRecord) -> SpecModel | None:
    """Shares of all prompts, over time."""
    rows = list(ask(session, campaign, "picks"))
    if not rows:
        return None
    return SpecModel(
        name="shares",
        title="Who was chosen",
        note="Share of the prompts that each candidate was given, in each of up to ten windows of rounds.",
        figure=share_figure(rows),
    )


def late_shares(session: Session, campaign: CampaignRecord) -> SpecModel | None:
    """Shares of the last prompts, by type."""
    found = status.shares(session, campaign)
    if not found:
        return None
    rows, cut = first_of(found, "picks")
    return SpecModel(
        name="types",
        title="Who was chosen for what",
        note=f"Shares of the last quarter of the prompts, by the type that each example names.{cut}",
        figure=by_type(rows),
    )
