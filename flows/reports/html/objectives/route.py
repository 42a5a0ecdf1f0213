"""Sections of the page of a route campaign."""

from winnow.flows.reports.html.figures.routes import by_type
from winnow.flows.reports.html.figures.routes import shares as share_figure
from winnow.flows.reports.html.model import Section, first_of
from winnow.flows.reports.html.sections import standard
from winnow.flows.reports.html.sections.standard import Builder, ReadOnce
from winnow.storage.records.record_types import CampaignRecord
from winnow.tasks.campaign.look import Look
from winnow.tasks.objectives.route import status
from winnow.tasks.queries.views import ask

SAMPLES = {"good": "Highest scores", "bad": "Lowest scores"}
"""Headings of the sample comparisons, by kind."""

MEASURED = "the outputs for the prompts routed to each candidate, which differ between candidates"
"""The outputs that metrics score."""


def builders_of(campaign: CampaignRecord, read: ReadOnce) -> tuple[Builder, ...]:
    """Sections of the page, between the answer and those that every page has."""
    return (
        shares,
        late_shares,
        standard.estimates(
            "Means",
            "mean score of the prompts routed to the candidate",
            "Best first. Prompts are routed to the candidate expected to do best, so these means do not "
            "generalise to other prompts.",
        ),
        standard.metrics,
        standard.allocation("prompts"),
    )


def shares(look: Look) -> Section | None:
    """The section on each candidate's share of all prompts over time."""
    rows = list(ask(look, "picks"))
    if not rows:
        return None
    return Section(
        name="shares",
        title="Chosen candidates",
        note="Share of the prompts routed to each candidate, in up to ten windows of rounds.",
        figure=share_figure(rows),
    )


def late_shares(look: Look) -> Section | None:
    """The section on each candidate's share of the last prompts, by type."""
    found = status.shares(look)
    if not found:
        return None
    rows, cut = first_of(found, look.record.name, "picks")
    return Section(
        name="types",
        title="Candidates chosen by type",
        note=f"Shares of the last quarter of the prompts, by type of example.{cut}",
        figure=by_type(rows),
    )
