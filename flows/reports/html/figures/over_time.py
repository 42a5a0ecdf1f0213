"""Figures of several campaigns on the same question: estimates over time, and costs."""

from collections.abc import Mapping, Sequence

from plotly.graph_objects import Bar, Figure, Scatter

from winnow.flows.reports.html.figures.estimates import reach
from winnow.flows.reports.html.figures.labels import as_label, shortened
from winnow.flows.reports.html.figures.theme import BLUE, GREY, LINES, ORANGE, around_one_value, styled
from winnow.storage.json_types import JsonView

APART = 0.12
"""Horizontal distance between candidates of one campaign; the distance between campaigns is 1."""
MOST_TICKS = 8
LONGEST_TICK = 16
"""Maximum characters of a campaign's name below its marks."""
COST_HEIGHT = 260
"""Height of the figure of costs, in pixels."""


def estimates_over_time(
    tracks: Mapping[str, Sequence[JsonView]],
    winners: Sequence[JsonView],
    *,
    title: str,
    are_repeated: bool = True,
) -> Figure:
    """A mark with an interval per candidate and campaign, and a diamond around each campaign's leader.

    Candidates are drawn side by side within a campaign, so that their intervals do not hide each other.

    Args:
        tracks: Candidate -> its rows, with `campaign`, `estimate`, `lower` and `upper`.
        winners: One row per campaign, oldest first, with `campaign`, `created_at`, `best` and `estimate`.
        title: Title of the vertical axis.
        are_repeated: Whether the campaigns are repetitions, so that lines join the marks of a candidate.
    """
    places = {row["campaign"]: number for number, row in enumerate(winners)}
    shifts = {name: APART * (number - (len(tracks) - 1) / 2) for number, name in enumerate(tracks)}
    figure = Figure()
    for number, (name, rows) in enumerate(tracks.items()):
        at = [places[row["campaign"]] + shifts[name] for row in rows]
        track = _track(name, rows, at, LINES[number % len(LINES)])
        figure.add_trace(track.update(mode="lines+markers" if are_repeated else "markers"))
    led = [row for row in winners if row["best"] is not None and row["estimate"] is not None]
    figure.add_trace(_leaders(led, [places[row["campaign"]] + shifts.get(row["best"], 0.0) for row in led]))
    shown = [row[key] for rows in tracks.values() for row in rows for key in ("estimate", "lower", "upper")]
    values = [*shown, *(row["estimate"] for row in led)]
    step = -(-len(winners) // MOST_TICKS)
    return styled(
        figure,
        xaxis={
            "title": "begun" if are_repeated else "campaign",
            "tickmode": "array",
            "tickvals": list(places.values())[::step],
            "ticktext": [
                f"{row['created_at']:%b} {row['created_at'].day}"
                if are_repeated
                else shortened(row["campaign"], LONGEST_TICK)
                for row in winners[::step]
            ],
            "range": [-0.5, len(winners) - 0.5],
            "showgrid": False,
            "zeroline": False,
        },
        yaxis={"title": title, "zeroline": False, **around_one_value(values)},
        showlegend=True,
    )


def costs_over_time(rows: Sequence[JsonView]) -> Figure:
    """Bars of the numbers of new and reused outputs of each campaign.

    Args:
        rows: One row per campaign, with `campaign`, `generated` and `reused`.
    """
    names = [as_label(row["campaign"]) for row in rows]
    figure = Figure(
        [
            Bar(x=names, y=[row[key] for row in rows], name=label, marker={"color": colour})
            for key, label, colour in (("generated", "new", BLUE), ("reused", "reused", GREY))
            if key == "generated" or any(row[key] for row in rows)
        ]
    )
    return styled(
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
        yaxis={"title": "outputs", "rangemode": "tozero"},
        showlegend=len(figure.data) > 1,
    ).update_layout(height=COST_HEIGHT)


def _track(name: str, rows: Sequence[JsonView], at: Sequence[float], colour: str) -> Scatter:
    return Scatter(
        x=at,
        y=[row["estimate"] for row in rows],
        error_y={
            "type": "data",
            "symmetric": False,
            "array": [reach(row["upper"], row["estimate"]) for row in rows],
            "arrayminus": [reach(row["estimate"], row["lower"]) for row in rows],
            "thickness": 2,
            "width": 0,
            "color": colour,
        },
        customdata=[as_label(row["campaign"]) for row in rows],
        line={"color": colour, "width": 1},
        marker={"size": 7, "color": colour},
        name=shortened(name),
        hovertemplate=f"{as_label(name)}<br>%{{y:.3f}} in %{{customdata}}<extra></extra>",
    )


def _leaders(rows: Sequence[JsonView], at: Sequence[float]) -> Scatter:
    return Scatter(
        x=at,
        y=[row["estimate"] for row in rows],
        customdata=[as_label(row["best"]) for row in rows],
        mode="markers",
        marker={"color": ORANGE, "size": 13, "symbol": "diamond-open", "line": {"width": 2}},
        name="leads",
        hovertemplate="%{customdata} leads with %{y:.3f}<extra></extra>",
    )
