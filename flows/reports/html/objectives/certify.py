"""Sections of the page of a certify campaign."""

import math

from winnow.flows.reports.html.figures.certificates import e_values as e_value_figure
from winnow.flows.reports.html.figures.certificates import weights as weight_figure
from winnow.flows.reports.html.figures.estimates import intervals
from winnow.flows.reports.html.model import Section, first_of
from winnow.flows.reports.html.sections import standard
from winnow.flows.reports.html.sections.standard import Builder, ReadOnce
from winnow.storage.json_types import JsonObject
from winnow.storage.records.record_types import CampaignRecord
from winnow.tasks.campaign.look import Look
from winnow.tasks.objectives.certify import evidence
from winnow.tasks.objectives.certify.certificate import losses_of
from winnow.tasks.queries.views import ask
from winnow.tasks.spec.selector_traits import TRUSTS_A_MEAN

SAMPLES = {"bad": "Highest losses", "good": "Lowest losses"}
"""Headings of the sample comparisons, by kind."""

MEASURED = "the answers to labelled examples"
"""The outputs that metrics score."""

DIAMONDS = (
    "Diamonds are certified: their intervals end at the line. If an interval begins at the line, the "
    "candidate's risk is shown to be above it."
)


def builders_of(campaign: CampaignRecord, read: ReadOnce) -> tuple[Builder, ...]:
    """Sections of the page, between the answer and those that every page has."""
    return (
        *_evidence_of(campaign),
        risks,
        standard.metrics,
        standard.curve("risk", "comparisons", read.points),
        standard.allocation("human labels of the candidate's test"),
    )


def _evidence_of(campaign: CampaignRecord) -> tuple[Builder, ...]:
    """The sections beside the risks; none if a plain mean is used."""
    return () if _trusts_a_mean(campaign) else (certificates, e_values, weights)


def certificates(look: Look) -> Section | None:
    """The section on which candidates are certified, with plain estimates for comparison."""
    rows = evidence.standings(look)
    if not any(row["labels"] for row in rows):
        return None
    return Section(
        name="certificates",
        title="Certificates",
        note="In testing order, most expensive first. A candidate is certified once its highest e-value "
        "reaches the level needed. The plain estimate guarantees nothing.",
        table=rows,
    )


def e_values(look: Look) -> Section | None:
    """The section on e-values against the number of labels."""
    rows = list(ask(look, "e-values"))
    if not rows:
        return None
    peaks: dict[str, float] = {}
    for row in rows:
        peaks[row["candidate"]] = max(row["log_e_value"], peaks.get(row["candidate"], -math.inf))
    names, cut = first_of(sorted(peaks, key=lambda name: -peaks[name]), look.record.name, "e-values")
    shown = [row for row in rows if row["candidate"] in names]
    tests = round(rows[0]["needed"] * look.record.spec["stopping"]["delta"])
    line = f"{'1' if tests == 1 else tests}/δ = {rows[0]['needed']:g}"
    return Section(
        name="e-values",
        title="Evidence against labels",
        note="Each candidate's e-value grows while its losses are below the allowed risk. Reaching the "
        f"line once (star) certifies it, whatever the e-value does later.{cut}",
        figure=e_value_figure(shown, certified=_certified(look), line_as=line),
    )


def weights(look: Look) -> Section | None:
    """The section on how far each candidate's bets rely on the autoevaluator."""
    rows = list(ask(look, "weights"))
    tested = {row["candidate"] for row in evidence.standings(look) if row["labels"]}
    own = [row for row in rows if row["candidate"] in tested]
    if len({row["rho"] for row in own}) < 2:
        return None
    names, cut = first_of(list(dict.fromkeys(row["candidate"] for row in own)), look.record.name, "weights")
    return Section(
        name="weights",
        title="Trust in the autoevaluator",
        note=f"Distribution of each candidate's bets over degrees of trust, after its last label.{cut}",
        figure=weight_figure([row for row in own if row["candidate"] in names]),
    )


def risks(look: Look) -> Section | None:
    """The section on risks with confidence intervals, and the highest permitted risk."""
    known = [row for row in ask(look, "leaderboard") if row["estimate"] is not None]
    if not known:
        return None
    rows, cut = first_of(known, look.record.name, "leaderboard")
    allowed, symbol = _allowed(look.record.spec["certify"])
    baseline = look.record.spec["certify"]["baseline"]
    certified = () if _trusts_a_mean(look.record) else _certified(look)
    return Section(
        name="risks",
        title="Risks",
        note=f"The {losses_of(look.record.spec['selector']['name'], baseline)}, lowest first, with "
        "intervals, and the highest allowed risk. "
        f"{DIAMONDS if certified else 'Nothing is certified.'}{cut}",
        figure=intervals(
            rows,
            title="risk (mean loss)" if baseline is None else "mean drop",
            marked=certified,
            marked_as="certified",
            line=allowed,
            line_as=f"{symbol} = {allowed:g}",
        ),
    )


def _certified(look: Look) -> set[str]:
    return {row["candidate"] for row in evidence.standings(look) if row["certified"]}


def _trusts_a_mean(campaign: CampaignRecord) -> bool:
    return campaign.spec["selector"]["name"] in TRUSTS_A_MEAN


def _allowed(section: JsonObject) -> tuple[float, str]:
    if section["alpha"] is None:
        return section["drop"], "allowed drop"
    return section["alpha"], "α"
