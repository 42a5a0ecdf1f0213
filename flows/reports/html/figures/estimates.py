"""Figures of candidates: estimates with intervals, and parallel coordinates of factors and means."""

import math
from collections.abc import Collection, Sequence

from plotly.graph_objects import Figure, Parcoords, Scatter

from winnow.flows.reports.html.figures.labels import as_label, name_axis, shortened_apart
from winnow.flows.reports.html.figures.theme import (
    BLUE,
    GREY,
    LEAST_HEIGHT,
    ORANGE,
    ROW_HEIGHT,
    ROWS,
    around_one_value,
    styled,
)
from winnow.storage.json_types import Row
from winnow.tasks.queries.factors import CandidateMean, Factor
from winnow.tasks.text.phrases import ends


def intervals(
    rows: Sequence[Row],
    *,
    title: str,
    value: str = "estimate",
    marked: Collection[str] = (),
    marked_as: str = "",
    line: float | None = None,
    line_as: str = "",
) -> Figure:
    """Dots of estimates with bars for their intervals, one row per candidate.

    Args:
        rows: One row per candidate, with `candidate`, the estimate, `lower` and `upper`. Candidates without
            an estimate are left out.
        title: Title of the horizontal axis.
        value: Key of the estimate in a row.
        marked: Names of the highlighted candidates.
        marked_as: Label of the highlighted candidates.
        line: Value with which estimates are compared, drawn as a line; None for no line.
        line_as: Label of the line.
    """
    known = [row for row in rows if row[value] is not None]
    figure = Figure()
    for is_marked, label in ((True, marked_as), (False, "others" if marked else "")):
        if own := [row for row in known if (row["candidate"] in marked) == is_marked]:
            figure.add_trace(_dots(own, value, label, is_marked))
    if line is not None:
        figure.add_vline(line, line={"color": ORANGE, "width": 1.5, "dash": "dash"})
        figure.add_annotation(
            x=line, y=1, yref="paper", yanchor="bottom", text=line_as, showarrow=False, font={"color": ORANGE}
        )
    shown = [line, *(row[key] for row in known for key in (value, "lower", "upper"))]
    return styled(
        figure,
        rows=len(known),
        meta=ROWS,
        xaxis={"title": title, "zeroline": False, **around_one_value(shown)},
        yaxis=name_axis([row["candidate"] for row in known], downwards=True),
        showlegend=bool(marked) and line is None,
    )


def _dots(rows: Sequence[Row], value: str, label: str, is_marked: bool) -> Scatter:
    colour = BLUE if is_marked else GREY
    return Scatter(
        x=[row[value] for row in rows],
        y=[as_label(row["candidate"]) for row in rows],
        error_x={
            "type": "data",
            "symmetric": False,
            "array": [reach(row["upper"], row[value]) for row in rows],
            "arrayminus": [reach(row[value], row["lower"]) for row in rows],
            "thickness": 2,
            "width": 0,
            "color": colour,
        },
        mode="markers",
        name=label,
        marker={
            "color": colour,
            "size": 11 if is_marked else 8,
            "symbol": "diamond" if is_marked else "circle",
        },
        customdata=[_ends(row["lower"], row["upper"]) for row in rows],
        hovertemplate="%{y}<br>%{x:.3f}, between %{customdata[0]} and %{customdata[1]}<extra></extra>",
    )


def reach(high: float | None, low: float | None) -> float | None:
    """Distance between two ends of an interval; None (no bar is drawn) if an end is unknown."""
    return None if high is None or low is None else high - low


def _ends(lower: float | None, upper: float | None) -> tuple[str, str]:
    return ("?", "?") if lower is None or upper is None else ends(lower, upper)


SCALE = ((0.0, "#b8860b"), (0.5, "#3a9d8f"), (1.0, "#0072b2"))
"""Colours from the lowest to the highest mean, visible on light and dark pages."""


LONGEST_LEVEL = 26
"""Maximum characters of a level's name, so that it fits between two axes."""
LETTER = 7
"""Width of a letter in pixels, rounded up; used to reserve space, because Plotly reserves none."""


def parallel(factors: Sequence[Factor], candidates: Sequence[CandidateMean]) -> Figure:
    """Parallel coordinates: an axis per factor, one for the mean, and a line per candidate.

    A reader can drag a range along an axis to keep only the lines through it.

    Args:
        factors: Factors with their levels.
        candidates: Candidates with their levels and means; at least one.
    """
    means = [each.mean for each in candidates]
    low, high = min(means), max(means)
    axes = [
        {
            "label": factor.name,
            "values": [each.levels[number] for each in candidates],
            "tickvals": list(range(len(factor.levels))),
            "ticktext": shortened_apart(factor.levels, LONGEST_LEVEL),
            "range": [-0.3, len(factor.levels) - 0.7],
        }
        for number, factor in enumerate(factors)
    ]
    margin = 0.05 * (high - low) or 0.01
    # The axis shows its ends, so they must be possible means.
    ends = [
        max(0.0, math.floor(100.0 * (low - margin)) / 100.0),
        min(1.0, math.ceil(100.0 * (high + margin)) / 100.0),
    ]
    score = {"label": "mean score", "values": means, "range": ends}
    lines = Parcoords(
        dimensions=[*axes, score],
        line={"color": means, "colorscale": SCALE, "cmin": ends[0], "cmax": ends[1]},
    )
    figure = styled(Figure([lines]))
    rows = max(len(factor.levels) for factor in factors)
    first = max((len(name) for name in shortened_apart(factors[0].levels, LONGEST_LEVEL)), default=0)
    # Leave space for names of levels left of the axes, and for names of axes above.
    return figure.update_layout(
        height=max(LEAST_HEIGHT + 120, 100 + ROW_HEIGHT * rows),
        margin={"l": 24 + LETTER * first, "r": 70, "t": 60, "b": 24},
    )
