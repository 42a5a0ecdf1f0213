"""Figures of routing: the candidates' shares of prompts over time, and by type of prompt."""

from collections import Counter
from collections.abc import Sequence

from plotly.graph_objects import Figure, Heatmap, Scatter

from winnow.flows.reports.html.figures.labels import as_label, name_axis, shortened
from winnow.flows.reports.html.figures.theme import GREY, LINES, WEIGHTS, dressed
from winnow.storage.json_types import Row


def shares(rows: Sequence[Row]) -> Figure:
    """Share of prompts routed to each candidate, by window; the most frequent ones in colour.

    Args:
        rows: One per window, type of prompt and candidate, with `until`, `candidate` and `picks`.
    """
    windows = sorted({row["until"] for row in rows})
    given = Counter[tuple[int, str]]()
    totals, overall = Counter[int](), Counter[str]()
    for row in rows:
        given[row["until"], row["candidate"]] += row["picks"]
        totals[row["until"]] += row["picks"]
        overall[row["candidate"]] += row["picks"]
    figure = Figure()
    for number, (name, _) in enumerate(overall.most_common()):
        figure.add_trace(
            Scatter(
                x=windows,
                y=[given[until, name] / totals[until] for until in windows],
                customdata=[as_label(name)] * len(windows),
                mode="lines+markers",
                line={"color": LINES[number] if number < len(LINES) else GREY, "width": 2},
                name=shortened(name),
                showlegend=number < len(LINES),
                zorder=int(number < len(LINES)),
                hovertemplate="%{customdata}<br>%{y:.1%} of the prompts up to %{x:,}<extra></extra>",
            )
        )
    return dressed(
        figure,
        xaxis={"title": "prompts answered", "rangemode": "tozero"},
        yaxis={"title": "share of the window's prompts", "tickformat": ".0%", "rangemode": "tozero"},
        showlegend=True,
    )


def by_type(rows: Sequence[Row]) -> Figure:
    """Share of each prompt type routed to each candidate.

    Args:
        rows: One per candidate, with `candidate` and its share in [0, 1] under the name of each type.
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
    return dressed(
        figure,
        rows=len(names),
        xaxis=name_axis(types) | {"title": "type of prompt"},
        yaxis=name_axis(names, downwards=True),
    )
