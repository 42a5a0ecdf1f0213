"""How the answer grew surer: the leader of each round and its interval against what was spent."""

from collections.abc import Mapping, Sequence
from typing import Any

from plotly.graph_objects import Figure, Scatter

from winnow.flows.reports.html.figures.labels import as_label, shortened
from winnow.flows.reports.html.figures.theme import BLUE, ORANGE, dressed

Row = Mapping[str, Any]

LEAST_GAP = 0.25
"""Of the figure's width, between two names; leaders whose name has no room are named when pointed at."""


def curve(rows: Sequence[Row], *, title: str, unit: str) -> Figure:
    """The leader's estimate and interval, and where the lead changed.

    Args:
        rows: One per finished round, with `comparisons`, `best`, `estimate`, `lower` and `upper`; rounds
            without a leader leave a gap.
        title: Of the vertical axis.
        unit: What a comparison is called on the axis.
    """
    figure = Figure([_edge(rows, "upper", None), _edge(rows, "lower", "tonexty"), _line(rows)])
    if changes := _changes(rows):
        figure.add_trace(_new_leaders(changes, spent=rows[-1]["comparisons"]))
    return dressed(
        figure,
        xaxis={"title": unit, "rangemode": "tozero"},
        yaxis={"title": title, "zeroline": False},
        showlegend=True,
    )


def _edge(rows: Sequence[Row], end: str, fill: str | None) -> Scatter:
    return Scatter(
        x=[row["comparisons"] for row in rows],
        y=[row[end] for row in rows],
        mode="lines",
        line={"width": 0, "shape": "hv", "color": BLUE},
        fill=fill,
        fillcolor="rgba(0, 114, 178, 0.18)",
        name="interval",
        showlegend=fill is not None,
        hoverinfo="skip",
    )


def _line(rows: Sequence[Row]) -> Scatter:
    return Scatter(
        x=[row["comparisons"] for row in rows],
        y=[row["estimate"] for row in rows],
        customdata=[as_label(row["best"] or "") for row in rows],
        mode="lines+markers" if len(rows) < 2 else "lines",
        line={"color": BLUE, "width": 2, "shape": "hv"},
        name="estimate of the leader",
        hovertemplate="%{customdata}<br>%{y:.3f} after %{x:,}<extra></extra>",
    )


def _changes(rows: Sequence[Row]) -> list[Row]:
    """The rounds whose leader is another than that of the round before."""
    leaders = [None, *(row["best"] for row in rows)]
    return [
        row
        for row, before in zip(rows, leaders[:-1], strict=True)
        if row["best"] is not None and row["best"] != before
    ]


def _new_leaders(rows: Sequence[Row], *, spent: int) -> Scatter:
    named = _with_room([row["comparisons"] / max(spent, 1) for row in rows])
    return Scatter(
        x=[row["comparisons"] for row in rows],
        y=[row["estimate"] for row in rows],
        customdata=[as_label(row["best"]) for row in rows],
        text=[shortened(row["best"]) if number in named else "" for number, row in enumerate(rows)],
        mode="markers+text",
        textposition=[f"top {'right' if row['comparisons'] < spent / 2 else 'left'}" for row in rows],
        marker={"color": ORANGE, "size": 8},
        name="new leader",
        hovertemplate="%{customdata} leads<br>%{y:.3f} after %{x:,}<extra></extra>",
    )


def _with_room(places: Sequence[float]) -> set[int]:
    """Which of the names at these shares of the width can be written: the last one, and others beside it."""
    kept: list[int] = []
    for number in reversed(range(len(places))):
        if not kept or places[kept[-1]] - places[number] >= LEAST_GAP:
            kept.append(number)
    return set(kept)
