"""Sections of a certify campaign's page, and their figures."""

import math
from collections.abc import Collection, Sequence

from plotly.graph_objects import Figure, Heatmap, Scatter

from winnow.flows.reports.html.figures.estimates import intervals
from winnow.flows.reports.html.figures.labels import as_label, name_axis, shortened
from winnow.flows.reports.html.figures.theme import GREY, LINES, ORANGE, ROWS, WEIGHTS, styled
from winnow.flows.reports.html.model import Section, first_of
from winnow.flows.reports.html.sections import standard
from winnow.flows.reports.html.sections.standard import Builder, PageCache
from winnow.storage.json_types import JsonObject, Row
from winnow.storage.records.record_types import CampaignRecord
from winnow.tasks.campaign.look import Look
from winnow.tasks.objectives.certify import evidence
from winnow.tasks.objectives.certify.certificate import losses_of
from winnow.tasks.queries.views import ask
from winnow.tasks.spec.selector_traits import TRUSTS_A_MEAN

SAMPLES = {"bad": "Highest losses", "good": "Lowest losses"}
"""Headings of the sample comparisons, by kind."""

MEASURED = "the answers to labelled examples"
"""Phrase in the note of the section "metrics": the outputs that the metrics score."""

DIAMONDS = (
    "Diamonds are certified candidates: their intervals end at the line. If an interval begins at the line, "
    "the candidate's risk is shown to be above it."
)


def builders_of(campaign: CampaignRecord, read: PageCache) -> tuple[Builder, ...]:
    """Builders of the sections between the answer and the sections of every page."""
    return (
        *_evidence_of(campaign),
        risks,
        standard.metrics,
        standard.curve("risk", "comparisons", read.points),
        standard.allocation("human labels of the candidate's test"),
    )


def _evidence_of(campaign: CampaignRecord) -> tuple[Builder, ...]:
    """Builders of the sections on evidence; empty for a selector that trusts a plain mean."""
    return () if _trusts_a_mean(campaign) else (certificates, e_values, weights)


def certificates(look: Look) -> Section | None:
    """The section "certificates": which candidates are certified, with plain estimates for comparison."""
    rows = evidence.standings(look)
    if not any(row["labels"] for row in rows):
        return None
    return Section(
        name="certificates",
        title="Certificates",
        note="In testing order, most expensive candidate first. A candidate is certified once its highest "
        "e-value reaches the needed level. The plain estimate has no guarantee.",
        table=rows,
    )


def e_values(look: Look) -> Section | None:
    """The section "e-values": each candidate's e-value against the number of labels."""
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
        note="A candidate's e-value grows while its losses are below the allowed risk. If it reaches the "
        f"line once (star), the candidate is certified, whatever its e-value is later.{cut}",
        figure=e_value_figure(shown, certified=_certified(look), line_as=line),
    )


def weights(look: Look) -> Section | None:
    """The section "weights": how much each candidate's bets rely on the autoevaluator."""
    rows = list(ask(look, "weights"))
    tested = {row["candidate"] for row in evidence.standings(look) if row["labels"]}
    own = [row for row in rows if row["candidate"] in tested]
    if len({row["rho"] for row in own}) < 2:
        return None
    names, cut = first_of(list(dict.fromkeys(row["candidate"] for row in own)), look.record.name, "weights")
    return Section(
        name="weights",
        title="Trust in the autoevaluator",
        note="Distribution of each candidate's bets over degrees of trust in the autoevaluator, after the "
        f"candidate's last label.{cut}",
        figure=weight_figure([row for row in own if row["candidate"] in names]),
    )


def risks(look: Look) -> Section | None:
    """The section "risks": risks with confidence intervals, and the highest allowed risk."""
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
        f"{DIAMONDS if certified else 'No candidate is certified.'}{cut}",
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


LARGEST_LOG = 690.0
"""Natural logarithm of the largest drawn e-value, about 10^300; the smallest is its inverse."""
LEAST_DECADE, MOST_DECADES = -3.0, 12.0
"""Lower limit of the view as a power of ten, and decades above the line, so that extremes do not flatten
the rest."""
MOST_TICKS = 8
LONGEST_IN_LEGEND = 26
"""Maximum characters of a name in the legend, so that name and outcome fit on a phone."""


def e_value_figure(rows: Sequence[Row], *, certified: Collection[str], line_as: str) -> Figure:
    """Lines of e-values against labels on a logarithmic axis, and the line to reach.

    Args:
        rows: One row per candidate and label, with `candidate`, `labels`, `log_e_value` and `needed`;
            candidates in testing order.
        certified: Names of the certified candidates; a star marks where each first reached the line.
        line_as: Label of the line.
    """
    figure = Figure()
    names = list(dict.fromkeys(row["candidate"] for row in rows))
    for number, name in enumerate(names):
        own = [row for row in rows if row["candidate"] == name]
        colour = LINES[number] if number < len(LINES) else GREY
        passed = _first_passing(own) if name in certified else None
        path = _path(own, colour, "certified" if name in certified else "not certified")
        is_coloured = number < len(LINES)
        figure.add_trace(path.update(showlegend=is_coloured, zorder=int(is_coloured)))
        if passed is not None:
            figure.add_trace(_star(passed, colour).update(zorder=int(is_coloured)))
    needed = rows[0]["needed"]
    low, high = _decades(rows)
    figure.add_hline(needed, line={"color": ORANGE, "width": 1.5, "dash": "dash"})
    figure.add_annotation(
        x=0,  # there, all e-values are below the line
        xref="paper",
        xanchor="left",
        y=math.log10(needed),
        yanchor="bottom",
        text=line_as,
        showarrow=False,
        font={"color": ORANGE},
    )
    return styled(
        figure,
        xaxis={"title": "human labels of the candidate's test", "rangemode": "tozero"},
        yaxis={
            "title": "e-value",
            "type": "log",
            "exponentformat": "power",
            # Values, not powers: Plotly ignores an end below 0 on a logarithmic axis.
            "autorangeoptions": {"clipmin": 10.0**low, "clipmax": 10.0**high},
            "dtick": math.ceil((high - low) / MOST_TICKS),
        },
        showlegend=True,
    ).update_layout(height=460)


def weight_figure(rows: Sequence[Row]) -> Figure:
    """Heat map: share of each candidate's bets at each factor rho, candidates in testing order.

    Args:
        rows: One row per candidate and factor, with `candidate`, `rho` in [0, 1] and `weight`.
    """
    names = list(dict.fromkeys(row["candidate"] for row in rows))
    factors = sorted({row["rho"] for row in rows})
    cells = {(row["candidate"], row["rho"]): row["weight"] for row in rows}
    figure = Figure(
        Heatmap(
            x=[f"{factor:.2f}" for factor in factors],
            y=[as_label(name) for name in names],
            z=[[cells.get((name, factor)) for factor in factors] for name in names],
            zmin=0.0,
            colorscale=WEIGHTS,
            xgap=2,
            ygap=2,
            colorbar={"title": "weight", "thickness": 12, "outlinewidth": 0},
            hovertemplate="%{y}<br>ρ = %{x}: weight %{z:.3f}<extra></extra>",
        )
    )
    return styled(
        figure,
        rows=len(names),
        meta=ROWS,
        xaxis={
            "title": "ρ: 0 = human labels alone,<br>1 = full trust and correction",
            "type": "category",
            "showgrid": False,
        },
        yaxis=name_axis(names, downwards=True),
    )


def _path(rows: Sequence[Row], colour: str, ending: str) -> Scatter:
    name = rows[0]["candidate"]
    return Scatter(
        x=[row["labels"] for row in rows],
        y=[_clipped_e_value(row) for row in rows],
        customdata=[row["log_e_value"] / math.log(10) for row in rows],
        mode="lines" if len(rows) > 1 else "markers",
        line={"color": colour, "width": 2, "dash": "solid" if ending == "certified" else "dot"},
        marker={"color": colour},
        name=f"{shortened(name, LONGEST_IN_LEGEND)}: {ending}",
        hovertemplate=f"{_literal(as_label(name))}<br>10^%{{customdata:.2f}} after %{{x}} labels"
        "<extra></extra>",
    )


def _star(row: Row, colour: str) -> Scatter:
    return Scatter(
        x=[row["labels"]],
        y=[_clipped_e_value(row)],
        mode="markers",
        marker={"symbol": "star", "size": 14, "color": colour},
        showlegend=False,
        hovertemplate=f"{_literal(as_label(row['candidate']))}<br>certified at label %{{x}}<extra></extra>",
    )


def _first_passing(rows: Sequence[Row]) -> Row | None:
    return next((row for row in rows if row["log_e_value"] >= math.log(row["needed"])), None)


def _clipped_e_value(row: Row) -> float:
    return math.exp(max(-LARGEST_LOG, min(LARGEST_LOG, row["log_e_value"])))


def _decades(rows: Sequence[Row]) -> tuple[float, float]:
    """Lower and upper limit of the view, as powers of ten."""
    logs = [row["log_e_value"] / math.log(10) for row in rows]
    line = math.log10(rows[0]["needed"])
    low = max(min(0.0, *logs), LEAST_DECADE)
    high = min(max(line, *logs), line + MOST_DECADES)
    return low - 0.2, high + 0.4


def _literal(text: str) -> str:
    """Escape text for a Plotly hover template, which replaces %{...} by a value."""
    return text.replace("%", "&#37;")
