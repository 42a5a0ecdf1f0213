"""Draw a simulation's results: metrics against budgets, shares of candidates by type, stopping times."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from winnow.algorithms.bounds.binomial import proportion_interval
from winnow.algorithms.state.arrays import BoolArray, FloatArray
from winnow.tasks.plugins.library_settings import settle_libraries
from winnow.tasks.plugins.own_files import state_folder
from winnow.tasks.simulation.results import Curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999999")
"""Colours of Okabe and Ito, which colour-blind readers can distinguish."""
MARKERS = "osD^vPX*"


def empty_figure(size: tuple[float, float]) -> "Figure":
    """An empty figure of a width and height in inches, without a window or global state."""
    settle_libraries()
    os.environ.setdefault("MPLCONFIGDIR", str(state_folder() / "matplotlib"))  # for its cache of fonts
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
    """Draw averages over seeds as lines, with bands of one standard error on each side, to a PNG.

    Args:
        path: Path of the PNG.
        curves: One curve per selector.
        places: Positions of the T budgets on the horizontal axis, shape (T,).
        axis: Title of the horizontal axis.
        metric: Title of the vertical axis.
        limits: Lowest and highest possible value; None takes limits from the values.
        title: Title above the picture.
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


PANEL_WIDTH, PANEL_HEIGHT = 2.4, 1.9
"""Width and height of a panel, in inches."""


def save_picks(
    path: Path,
    shares: Mapping[str, FloatArray],
    until: Sequence[int],
    *,
    types: Sequence[str],
    candidates: Sequence[str],
) -> None:
    """Draw shares of candidates to a PNG: a row per selector, a panel per type, a line per candidate.

    Args:
        path: Path of the PNG.
        shares: Selector -> share of each type's prompts that were routed to each candidate, by part of the
            stream, shape (W, G, K); NaN if no prompt of a type occurred.
        until: End of each part, in prompts, shape (W,).
        types: Names of the G types.
        candidates: Names of the K candidates.
    """
    size = (PANEL_WIDTH * len(types) + 1.0, PANEL_HEIGHT * len(shares) + 0.3 * len(candidates) / 2 + 0.6)
    figure = empty_figure(size)
    panels = np.atleast_2d(figure.subplots(len(shares), len(types), sharex=True, sharey=True, squeeze=False))
    lines = []
    for row, (label, found) in zip(panels, shares.items(), strict=True):
        row[0].set_ylabel(_plain(label), fontsize="small")
        for column, axes in enumerate(row):
            lines = [
                axes.plot(
                    until,
                    found[:, column, arm],
                    color=COLOURS[arm % len(COLOURS)],
                    marker=MARKERS[(arm + arm // len(COLOURS)) % len(MARKERS)],
                    markersize=3,
                    linewidth=1.2,
                )[0]
                for arm in range(len(candidates))
            ]
            axes.set_ylim(-0.05, 1.05)
            axes.grid(alpha=0.3)
    for axes, name in zip(panels[0], types, strict=True):
        axes.set_title(_plain(name), fontsize="medium")
    for axes in panels[-1]:
        axes.set_xlabel("prompts seen", fontsize="small")
    figure.legend(
        lines,
        [_plain(name) for name in candidates],
        loc="outside lower center",
        ncols=2,
        frameon=False,
        fontsize="small",
    )
    figure.savefig(path, dpi=150)


def _plain(text: str) -> str:
    """Escape `$`, so that matplotlib does not render the text as a formula."""
    return text.replace("$", r"\$")


LEVEL = 0.05
"""One minus the confidence of an error rate's interval."""
BEHIND = {"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none"}
"""White box behind a text, so that lines do not cross the text."""
WIDTH, ROW, REST = 5.4, 0.62, 1.25
"""Width of the picture, height of a selector's row and height of the rest, in inches; fits a phone."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stops:
    """How the R runs of one selector ended."""

    label: str
    places: FloatArray
    """Position of each run's end on the horizontal axis, shape (R,)."""
    stopped: BoolArray
    """Whether each run stopped by itself with an answer, shape (R,)."""
    wrong: int
    """Number of stopped runs with a wrong answer."""

    @property
    def mean(self) -> float:
        """Mean of the positions; a lower bound if some runs did not stop by themselves."""
        return float(self.places.mean())

    @property
    def n_stopped(self) -> int:
        """Number of runs that stopped by themselves with an answer."""
        return int(self.stopped.sum())


def save_stops(path: Path, found: Sequence[Stops], *, axis: str, delta: float | None, title: str) -> None:
    """Draw stopping times and error rates to a PNG; see `draw_stops`."""
    draw_stops(found, axis=axis, delta=delta, title=title).savefig(path, dpi=150)


def draw_stops(found: Sequence[Stops], *, axis: str, delta: float | None, title: str) -> "Figure":
    """Draw stopping times and error rates: a row per selector, earliest mean stop first.

    Args:
        found: One per selector, each with at least one run.
        axis: Title of the axis of stopping times.
        delta: Requested error probability, drawn as a line; None draws no line.
        title: Title above the picture.
    """
    rows = sorted(found, key=lambda each: (not each.stopped.all(), each.mean))
    figure = empty_figure((WIDTH, ROW * len(rows) + REST))
    left, right = figure.subplots(1, 2, sharey=True, width_ratios=(3, 2))
    if delta is not None:
        right.axvline(delta, color="#444444", linestyle="--", linewidth=1.0)
        right.annotate(f"delta: {delta:g}", (delta, -0.68), (3, 0), textcoords="offset points", fontsize=8)
    for number, each in enumerate(rows):
        colour = COLOURS[number % len(COLOURS)]
        _draw_places(left, number, each, colour)
        _draw_errors(right, number, each, colour)
    left.set(xlabel=axis, xlim=(0.0, None), ylim=(len(rows) - 0.35, -0.75), yticks=[])
    right.set(xlabel=f"error rate, {1.0 - LEVEL:.0%} interval", xlim=(0.0, None), yticks=[])
    for axes in (left, right):
        axes.grid(axis="x", alpha=0.3)
        axes.spines[["top", "right", "left"]].set_visible(False)
    figure.suptitle(_plain(title), fontsize="medium", wrap=True)
    return figure


def _draw_places(axes: "Axes", row: int, each: Stops, colour: str) -> None:
    shift = np.linspace(-0.08, 0.08, len(each.places)) if len(each.places) > 1 else np.zeros(1)
    for are_stopped, fill in ((each.stopped, colour), (~each.stopped, "none")):
        axes.scatter(
            each.places[are_stopped],
            row + shift[are_stopped],
            s=14,
            facecolors=fill,
            edgecolors=colour,
            alpha=0.45,
            linewidths=0.8,
        )
    axes.plot([each.mean, each.mean], [row - 0.2, row + 0.2], color=colour, linewidth=2.5)
    number = f"{each.mean:.3g}"
    if not each.stopped.all():
        number = f"above {number} ({each.n_stopped} of {len(each.places)} stopped)"
    label = f"{_plain(each.label)}  {number}"
    axes.annotate(label, (0.0, row - 0.3), fontsize=9, annotation_clip=False, bbox=BEHIND)


def _draw_errors(axes: "Axes", row: int, each: Stops, colour: str) -> None:
    if not each.n_stopped:
        axes.annotate("none stopped", (0.0, row - 0.3), fontsize=9, bbox=BEHIND)
        return
    low, high = proportion_interval(each.wrong, each.n_stopped, LEVEL)
    axes.plot([low, high], [row, row], color=colour, linewidth=2.0, alpha=0.6)
    axes.plot(each.wrong / each.n_stopped, row, marker="o", color=colour, markersize=5, clip_on=False)
    axes.annotate(f"{each.wrong} of {each.n_stopped} wrong", (0.0, row - 0.3), fontsize=9, bbox=BEHIND)
