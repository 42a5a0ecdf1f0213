"""Sections of a route campaign's page, and their figures."""

from collections import Counter
from collections.abc import Sequence

from plotly.graph_objects import Figure, Heatmap, Scatter

from winnow.flows.reports.html.figures.labels import as_label, name_axis, shortened
from winnow.flows.reports.html.figures.theme import GREY, LINES, WEIGHTS, styled
from winnow.flows.reports.html.model import Section, first_of
from winnow.flows.reports.html.sections import standard
from winnow.flows.reports.html.sections.standard import Builder, PageCache
from winnow.storage.json_types import Row
from winnow.storage.records.record_types import CampaignRecord
from winnow.tasks.campaign.look import Look
from winnow.tasks.objectives.route import status
from winnow.tasks.queries.views import ask

SAMPLES = {"good": "Highest scores", "bad": "Lowest scores"}
"""Headings of the sample comparisons, by kind."""

MEASURED = "the outputs for the prompts routed to each candidate, which differ between candidates"
"""Phrase in the note of the section "metrics": the outputs that the metrics score."""


def builders_of(campaign: CampaignRecord, read: PageCache) -> tuple[Builder, ...]:
    """Builders of the sections between the answer and the sections of every page."""
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
    """The section "shares": share of prompts routed to each candidate, over time."""
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
    """The section "types": each candidate's share of the last prompts, by type of prompt."""
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


def share_figure(rows: Sequence[Row]) -> Figure:
    """Lines: share of prompts routed to each candidate, by window; the most frequent candidates in colour.

    Args:
        rows: One row per window, type of prompt and candidate, with `until`, `candidate` and `picks`.
    """
    windows = sorted({row["until"] for row in rows})
    picks = Counter[tuple[int, str]]()
    totals, overall = Counter[int](), Counter[str]()
    for row in rows:
        picks[row["until"], row["candidate"]] += row["picks"]
        totals[row["until"]] += row["picks"]
        overall[row["candidate"]] += row["picks"]
    figure = Figure()
    for number, (name, _) in enumerate(overall.most_common()):
        figure.add_trace(
            Scatter(
                x=windows,
                y=[picks[until, name] / totals[until] for until in windows],
                customdata=[as_label(name)] * len(windows),
                mode="lines+markers",
                line={"color": LINES[number] if number < len(LINES) else GREY, "width": 2},
                name=shortened(name),
                showlegend=number < len(LINES),
                zorder=int(number < len(LINES)),
                hovertemplate="%{customdata}<br>%{y:.1%} of the prompts up to %{x:,}<extra></extra>",
            )
        )
    return styled(
        figure,
        xaxis={"title": "prompts answered", "rangemode": "tozero"},
        yaxis={"title": "share of the window's prompts", "tickformat": ".0%", "rangemode": "tozero"},
        showlegend=True,
    )


def by_type(rows: Sequence[Row]) -> Figure:
    """Heat map: share of each prompt type routed to each candidate.

    Args:
        rows: One row per candidate, with `candidate` and, under each type's name, its share in [0, 1].
    """
    names = [row["candidate"] for row in rows]
    types = [key for key in rows[0] if key != "candidate"]
    figure = Figure(
        Heatmap(
            x=[as_label(kind) for kind in types],
            y=[as_label(name) for name in names],
            z=[[row[kind] for kind in types] for row in rows],
            zmin=0.0,
            zmax=1.0,
            colorscale=WEIGHTS,
            xgap=2,
            ygap=2,
            texttemplate="%{z:.0%}",
            colorbar={"title": "share", "thickness": 12, "outlinewidth": 0, "tickformat": ".0%"},
            hovertemplate="%{y}<br>%{x}: %{z:.1%}<extra></extra>",
        )
    )
    return styled(
        figure,
        rows=len(names),
        xaxis=name_axis(types) | {"title": "type of prompt"},
        yaxis=name_axis(names, downwards=True),
    )
