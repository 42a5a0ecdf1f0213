"""Sections of a best-mean campaign's page."""

from winnow.flows.reports.html.sections import standard
from winnow.flows.reports.html.sections.standard import Builder, PageCache
from winnow.storage.records.record_types import CampaignRecord
from winnow.tasks.spec.stored_spec import grouping_of

SAMPLES = {"good": "Highest scores", "bad": "Lowest scores"}
"""Headings of the sample comparisons, by kind."""

MEASURED = "the same outputs"
"""Phrase in the note of the section "metrics": the outputs that the metrics score."""


def builders_of(campaign: CampaignRecord, read: PageCache) -> tuple[Builder, ...]:
    """Builders of the sections between the answer and the sections of every page."""
    groups = grouping_of(campaign.spec)
    axis = "mean score" if groups is None else groups.value
    return (
        standard.lead(axis),
        standard.estimates("Estimates", axis),
        standard.eliminations,
        standard.curve(axis, "comparisons", read.points),
        standard.excess,
        standard.pareto,
        standard.metrics,
        standard.tags(read.counts),
        standard.allocation("comparisons"),
    )
