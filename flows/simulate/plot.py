"""A picture of a simulation: a metric against the budget, one line per selector."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from winnow.algorithms.state.arrays import FloatArray
from winnow.tasks.plugins.library_settings import settle_libraries
from winnow.tasks.plugins.own_files import state_folder
from winnow.tasks.simulation.results import Curve

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999999")
"""The colours of Okabe and Ito, which all kinds of colour vision distinguish."""
MARKERS = "osD^vPX*"


def empty_figure(size: tuple[float, float]) -> "Figure":
    """An empty picture of a width and height in inches, without a window or global state."""
    settle_libraries()
    os.environ.setdefault("MPLCONFIGDIR", str(state_folder() / "matplotlib"))  # gets its list of fonts
    from matplotlib.figure import Figure  # without pyplot

    return Figure(figsize=size, layout="constrained")


def save_plot(
    path: Path,
    curves: Sequence[Curve],
    places: FloatArray,
    *,
    axis: str,
    metric: str,
    limits: tuple[float, float] | None,
    title: str,
) -> None:
    """Write a PNG: averages over seeds as lines, with bands of one standard error on each side.

    Args:
        path: The file.
        curves: One per selector.
        places: Shape (T,), positions on the horizontal axis.
        axis: Name of the horizontal axis.
        metric: Name of the vertical axis.
        limits: Lowest and highest possible value; None for limits from the values.
        title: Above the picture.
    """
    figure = empty_figure((7.0, 4.5))
    axes = figure.add_subplot()
    for number, curve in enumerate(curves):
        colour, marker = COLOURS[number % len(COLOURS)], MARKERS[number % len(MARKERS)]
        axes.plot(places, curve.means, color=colour, marker=marker, markersize=4, label=curve.label)
        if curve.runs > 1:
            band = np.clip(
                [curve.means - curve.errors, curve.means + curve.errors], *(limits or (None, None))
            )
            axes.fill_between(places, *band, color=colour, alpha=0.15, linewidth=0)
    axes.set(xlabel=axis, ylabel=metric)
    if limits is not None:
        margin = 0.02 * (limits[1] - limits[0])
        axes.set_ylim(limits[0] - margin, limits[1] + margin)
    axes.set_title(title, fontsize="medium")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, fontsize="small")
    figure.savefig(path, dpi=150)
