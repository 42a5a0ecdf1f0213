"""A picture of a simulation: a metric against the budget, one line per selector."""

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tasks.simulation_results import Curve

CACHE = Path(".winnow") / "cache" / "matplotlib"
"""Where matplotlib keeps its list of fonts, which it would otherwise put in the home folder."""

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999999")
"""Okabe and Ito's colours, told apart by all kinds of colour vision."""
MARKERS = "osD^vPX*"


def save_plot(
    path: Path, curves: Sequence[Curve], budgets: Sequence[int], *, grid: int | None, metric: str, title: str
) -> None:
    """Write a PNG: averages over seeds as lines, one standard error to either side as bands.

    Args:
        path: Where to.
        curves: One per selector.
        budgets: Shape (T,), comparisons.
        grid: Comparisons in the whole table, of which the axis shows shares; None for an axis of counts.
        metric: Name of the vertical axis.
        title: Above the picture.
    """
    os.environ.setdefault("MPLCONFIGDIR", str(CACHE.absolute()))
    # Figure without pyplot: no window, no global state.
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.0, 4.5), layout="constrained")
    axes = figure.add_subplot()
    places = np.asarray(budgets) if grid is None else 100.0 * np.asarray(budgets) / grid
    for number, curve in enumerate(curves):
        colour, marker = COLOURS[number % len(COLOURS)], MARKERS[number % len(MARKERS)]
        axes.plot(places, curve.means, color=colour, marker=marker, markersize=4, label=curve.label)
        if curve.runs > 1:
            low, high = curve.means - curve.errors, curve.means + curve.errors
            axes.fill_between(
                places, low.clip(0.0), high.clip(max=1.0), color=colour, alpha=0.15, linewidth=0
            )
    label = "budget, duels" if grid is None else "budget, % of all pairs"
    axes.set(xlabel=label, ylabel=metric, ylim=(-0.02, 1.02))
    axes.set_title(title, fontsize="medium")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, fontsize="small")
    figure.savefig(path, dpi=150)
