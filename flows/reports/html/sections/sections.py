"""The sections of the page, by objective: rows are asked for, figures are made of them."""

from collections.abc import Callable

from sqlalchemy.orm import Session

from winnow.flows.reports.html.model import Section
from winnow.flows.reports.html.sections import by_objective, common
from winnow.flows.reports.html.sections.common import Builder, ReadOnce
from winnow.storage.records.values import CampaignRecord
from winnow.tasks.spec.stored_spec import grouping_of


def _of_scores(campaign: CampaignRecord, read: ReadOnce) -> tuple[Builder, ...]:
    groups = grouping_of(campaign.spec)
    axis = "mean score" if groups is None else groups.value
    return (
        common.estimates("Estimates", axis),
        common.eliminations,
        common.curve(axis, "comparisons", read.points),
        common.pareto,
        common.metrics,
        common.tags(read.counts),
        common.allocation("comparisons"),
    )


def _of_duels(campaign: CampaignRecord, read: ReadOnce) -> tuple[Builder, ...]:
    return (
        common.estimates("Estimates", "win rate against the candidate that does best against it"),
        by_objective.head_to_head,
        by_objective.strengths,
        by_objective.judges,
        common.curve("win rate", "duels", read.points),
        common.allocation("duels"),
    )


def _of_certificates(campaign: CampaignRecord, read: ReadOnce) -> tuple[Builder, ...]:
    return (
        *by_objective.evidence_of(campaign),
        by_objective.risks,
        common.metrics,
        common.curve("risk", "comparisons", read.points),
        common.allocation("human labels of the candidate's test"),
    )


def _of_routes(campaign: CampaignRecord, read: ReadOnce) -> tuple[Builder, ...]:
    return (
        by_objective.shares,
        by_objective.late_shares,
        common.estimates(
            "Means",
            "mean score of the prompts that the candidate was given",
            "Best first. Each candidate was given the prompts that it was thought good at, so that its mean "
            "says nothing of others.",
        ),
        common.metrics,
        common.allocation("prompts"),
    )


PAGES: dict[str, Callable[[CampaignRecord, ReadOnce], tuple[Builder, ...]]] = {
    "best-mean": _of_scores,
    "best-duel": _of_duels,
    "certify": _of_certificates,
    "route": _of_routes,
}
"""The sections between the answer and those that every page has, by objective."""

SAMPLES = {
    "best-mean": {"good": "Highest scores", "bad": "Lowest scores"},
    "best-duel": {"good": "Won", "bad": "Lost", "even": "Tied"},
    "certify": {"bad": "Highest losses", "good": "Lowest losses"},
    "route": {"good": "Highest scores", "bad": "Lowest scores"},
}
"""The headings of comparisons to read, by objective and kind."""


def sections_of(
    session: Session,
    campaign: CampaignRecord,
    *,
    with_samples: bool = True,
    read: ReadOnce | None = None,
) -> list[Section]:
    """All sections of a campaign's page that have something to show, in order.

    Args:
        session: Reads the results.
        campaign: The campaign.
        with_samples: Whether comparisons to read are among them.
        read: Data that an earlier look has read, if there was one.
    """
    own = PAGES[campaign.objective](campaign, read or ReadOnce())
    samples = [common.samples(SAMPLES[campaign.objective])] if with_samples else []
    builders = (*own, *samples, *common.CLOSING)
    return [section for build in builders if (section := build(session, campaign)) is not None]
