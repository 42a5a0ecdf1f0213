"""What stands on the page, by objective: rows are asked for, figures are made of them."""

from collections.abc import Callable

from sqlalchemy.orm import Session

from winnow.flows.reports.html.model import SpecModel
from winnow.flows.reports.html.sections import certify, common, duels, route
from winnow.storage.records.values import CampaignRecord
from winnow.tasks.objectives.best_mean.groups import grouping_of

Builder = Callable[[Session, CampaignRecord], SpecModel | None]
"""Makes a section, or none where there is nothing to show yet."""


def _of_scores(campaign: CampaignRecord) -> tuple[Builder, ...]:
    groups = grouping_of(campaign.spec)
    axis = "mean score" if groups is None else groups.value
    return (
        common.estimates("Estimates", axis),
        common.eliminations,
        common.curve(axis, "comparisons"),
        common.pareto,
        common.metrics,
        common.tags,
        common.allocation("comparisons"),
        common.samples({"good": "Highest scores", "bad": "Lowest scores"}),
    )


def _of_duels(campaign: CampaignRecord) -> tuple[Builder, ...]:
    return (
        common.estimates("Estimates", "win rate against the candidate that does best against it"),
        duels.head_to_head,
        duels.strengths,
        duels.judges,
        common.curve("win rate", "duels"),
        common.allocation("duels"),
        common.samples({"good": "Won", "bad": "Lost", "even": "Tied"}),
    )


def _of_certificates(campaign: CampaignRecord) -> tuple[Builder, ...]:
    return (
        *certify.evidence_of(campaign),
        certify.risks,
        common.curve("risk", "comparisons"),
        common.allocation("human labels of the candidate's test"),
        common.samples({"bad": "Highest losses", "good": "Lowest losses"}),
    )


def _of_routes(campaign: CampaignRecord) -> tuple[Builder, ...]:
    return (
        route.shares,
        route.late_shares,
        common.estimates(
            "Means",
            "mean score of the prompts that the candidate was given",
            "Best first. Each candidate was given the prompts that it was thought good at, so that its mean "
            "says nothing of others.",
        ),
        common.allocation("prompts"),
        common.samples({"good": "Highest scores", "bad": "Lowest scores"}),
    )


PAGES: dict[str, Callable[[CampaignRecord], tuple[Builder, ...]]] = {
    "best-mean": _of_scores,
    "best-duel": _of_duels,
    "certify": _of_certificates,
    "route": _of_routes,
}
"""What stands between the answer and what is on every page, by objective."""


def sections_of(session: Session, campaign: CampaignRecord) -> list[SpecModel]:
    """All sections of a campaign's page that have something to show, in order."""
    own = PAGES[campaign.objective](campaign)
    builders = (*own, *common.CLOSING)
    return [section for build in builders if (section := build(session, campaign)) is not None]
