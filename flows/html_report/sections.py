"""What stands on the page, by objective: rows are asked for, figures are made of them."""

from collections.abc import Callable

from sqlalchemy.orm import Session

from winnow.flows.html_report import certify_sections, common_sections, duel_sections, route_sections
from winnow.flows.html_report.parts import Section
from winnow.storage.records import CampaignRecord

Builder = Callable[[Session, CampaignRecord], Section | None]
"""Makes a section, or none where there is nothing to show yet."""


def _of_scores(campaign: CampaignRecord) -> tuple[Builder, ...]:
    return (
        common_sections.estimates("Estimates", "mean score"),
        common_sections.eliminations,
        common_sections.curve("mean score", "comparisons"),
        common_sections.allocation("comparisons"),
        common_sections.samples({"good": "Highest scores", "bad": "Lowest scores"}),
    )


def _of_duels(campaign: CampaignRecord) -> tuple[Builder, ...]:
    return (
        common_sections.estimates("Estimates", "win rate against the candidate that does best against it"),
        duel_sections.head_to_head,
        duel_sections.strengths,
        duel_sections.judges,
        common_sections.curve("win rate", "duels"),
        common_sections.allocation("duels"),
        common_sections.samples({"good": "Won", "bad": "Lost", "even": "Tied"}),
    )


def _of_certificates(campaign: CampaignRecord) -> tuple[Builder, ...]:
    return (
        *certify_sections.evidence_of(campaign),
        certify_sections.risks,
        common_sections.curve("risk", "comparisons"),
        common_sections.allocation("human labels of the candidate's test"),
        common_sections.samples({"bad": "Highest losses", "good": "Lowest losses"}),
    )


def _of_routes(campaign: CampaignRecord) -> tuple[Builder, ...]:
    return (
        route_sections.shares,
        route_sections.late_shares,
        common_sections.estimates(
            "Means",
            "mean score of the prompts that the candidate was given",
            "Best first. Each candidate was given the prompts that it was thought good at, so that its mean "
            "says nothing of others.",
        ),
        common_sections.allocation("prompts"),
        common_sections.samples({"good": "Highest scores", "bad": "Lowest scores"}),
    )


PAGES: dict[str, Callable[[CampaignRecord], tuple[Builder, ...]]] = {
    "best-mean": _of_scores,
    "best-duel": _of_duels,
    "certify": _of_certificates,
    "route": _of_routes,
}
"""What stands between the answer and what is on every page, by objective."""


def sections_of(session: Session, campaign: CampaignRecord) -> list[Section]:
    """All sections of a campaign's page that have something to show, in order."""
    own = PAGES[campaign.objective](campaign)
    builders = (*own, *common_sections.CLOSING)
    return [section for build in builders if (section := build(session, campaign)) is not None]
