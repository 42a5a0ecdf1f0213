"""Parallel coordinates: each candidate is a line through its choices to its mean score."""

import math
from collections.abc import Sequence

from plotly.graph_objects import Figure, Parcoords

from winnow.flows.reports.html.figures.labels import shortened_apart
from winnow.flows.reports.html.figures.theme import LEAST_HEIGHT, ROW_HEIGHT, dressed
from winnow.tasks.queries.factors import CandidateMean, Factor

SCALE = ((0.0, "#b8860b"), (0.5, "#3a9d8f"), (1.0, "#0072b2"))
"""Colours from the lowest mean to the highest, visible on light and dark pages."""


LONGEST_LEVEL = 26
"""Maximum characters of a level's name, in the space between two axes."""
LETTER = 7
"""Width of a letter in pixels, rounded up: the figure does not reserve the space itself."""


def parallel(factors: Sequence[Factor], candidates: Sequence[CandidateMean]) -> Figure:
    """One axis per factor, then one for the mean; a range dragged along an axis keeps the lines through it.

    Args:
        factors: With their levels.
        candidates: At least one.
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
    # The ends are written at the axis: none is a mean that there cannot be.
    ends = [
        max(0.0, math.floor(100.0 * (low - margin)) / 100.0),
        min(1.0, math.ceil(100.0 * (high + margin)) / 100.0),
    ]
    score = {"label": "mean score", "values": means, "range": ends}
    lines = Parcoords(
        dimensions=[*axes, score],
        line={"color": means, "colorscale": SCALE, "cmin": ends[0], "cmax": ends[1]},
    )
    figure = dressed(Figure([lines]))
    rows = max(len(factor.levels) for factor in factors)
    first = max((len(name) for name in shortened_apart(factors[0].levels, LONGEST_LEVEL)), default=0)
    # Names of levels stand beside their axes, and those of axes above.
    return figure.update_layout(
        height=max(LEAST_HEIGHT + 120, 100 + ROW_HEIGHT * rows),
        margin={"l": 24 + LETTER * first, "r": 70, "t": 60, "b": 24},
    )
