"""Sections of a certify campaign's report in a terminal."""

from winnow.flows.reports.terminal.sections import TerminalSection, by_id
from winnow.storage.queries.objective import certify as certify_views
from winnow.storage.records.record_types import CampaignRecord
from winnow.tasks.objectives.certify import evidence
from winnow.tasks.objectives.certify.certificate import losses_of
from winnow.tasks.spec.selector_traits import TRUSTS_A_MEAN


def sections_of(campaign: CampaignRecord) -> tuple[TerminalSection, ...]:
    """Sections between the answer and the coverage."""
    baseline = campaign.spec["certify"]["baseline"]
    risk_table: TerminalSection = (
        f"Risks: {losses_of(campaign.spec['selector']['name'], baseline)}, lowest first, with intervals",
        by_id(certify_views.leaderboard),
    )
    if campaign.spec["selector"]["name"] in TRUSTS_A_MEAN:
        return (risk_table,)
    delta = campaign.spec["stopping"]["delta"]
    return (
        ("Certificates in testing order, most expensive first", evidence.standings),
        risk_table,
        (
            f"E-values against labels; a candidate must reach 1/delta = {1 / delta:g} once "
            "(with procedure bonferroni, times the number of candidates)",
            evidence.paths,
        ),
        ("Weights of bets by rho, the trust in the autoevaluator", evidence.weight_table),
    )
