"""Campaigns on the same question: candidates' estimates over time, and the cost of each campaign."""

from collections.abc import Mapping, Sequence

from plotly.graph_objects import Bar, Figure, Scatter

from winnow.flows.reports.html.figures.estimates import reach
from winnow.flows.reports.html.figures.labels import as_label, shortened
from winnow.flows.reports.html.figures.theme import BLUE, GREY, LINES, ORANGE, around_one_value, dressed
from winnow.storage.json_types import JsonView


def estimates_over_time(
    tracks: Mapping[str, Sequence[JsonView]], winners: Sequence[JsonView], *, title: str
) -> Figure:
    """One line per candidate, with its interval in each campaign, and a diamond where it led.

    Args:
        tracks: Rows by candidate, with `campaign`, `at`, `estimate`, `lower` and `upper`.
        winners: One per campaign, with `created_at`, `best` and `estimate`.
        title: Title of the vertical axis.
    """
    figure = Figure()
    for number, (name, rows) in enumerate(tracks.items()):
        colour = LINES[number % len(LINES)]
        figure.add_trace(_track(name, rows, colour))
    led = [row for row in winners if row["best"] is not None and row["estimate"] is not None]
    figure.add_trace(_leaders(led))
    shown = [row[key] for rows in tracks.values() for row in rows for key in ("estimate", "lower", "upper")]
    values = [*shown, *(row["estimate"] for row in led)]
    return dressed(
        figure,
        xaxis={"title": "begun", "type": "date"},
        yaxis={"title": title, "zeroline": False, **around_one_value(values)},
        showlegend=True,
    ).update_layout(legend={"y": -0.25, "yanchor": "top"})


def costs_over_time(rows: Sequence[JsonView]) -> Figure:
    """New and reused outputs of each campaign.

    Args:
        rows: One per campaign, with `campaign`, `generated` and `reused`.
    """
    names = [as_label(row["campaign"]) for row in rows]
    figure = Figure(
        [
            Bar(x=names, y=[row[key] for row in rows], name=label, marker={"color": colour})
            for key, label, colour in (
                ("generated", "new", BLUE),
                ("reused", "reused", GREY),
            )
        ]
    )
    return dressed(
        figure,
        barmode="stack",
        bargap=0.3,
        xaxis={
            "type": "category",
            "tickmode": "array",
            "tickvals": names,
            "ticktext": [shortened(row["campaign"]) for row in rows],
            "showgrid": False,
        },
        yaxis={"title": "texts", "rangemode": "tozero"},
        showlegend=True,
    )


def _track(name: str, rows: Sequence[JsonView], colour: str) -> Scatter:
    return Scatter(
        x=[row["at"] for row in rows],
        y=[row["estimate"] for row in rows],
        error_y={
            "type": "data",
            "symmetric": False,
            "array": [reach(row["upper"], row["estimate"]) for row in rows],
            "arrayminus": [reach(row["estimate"], row["lower"]) for row in rows],
            "thickness": 1.5,
            "width": 3,
            "color": colour,
        },
        customdata=[as_label(row["campaign"]) for row in rows],
        mode="lines+markers",
        line={"color": colour, "width": 2},
        marker={"size": 7},
        name=shortened(name),
        hovertemplate=f"{as_label(name)}<br>%{{y:.3f}} in %{{customdata}}<extra></extra>",
    )


def _leaders(rows: Sequence[JsonView]) -> Scatter:
    return Scatter(
        x=[row["created_at"] for row in rows],
        y=[row["estimate"] for row in rows],
        customdata=[as_label(row["best"]) for row in rows],
        mode="markers",
        marker={"color": ORANGE, "size": 13, "symbol": "diamond-open", "line": {"width": 2}},
        name="leads",
        hovertemplate="%{customdata} leads with %{y:.3f}<extra></extra>",
    )
