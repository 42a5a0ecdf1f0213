"""A picture of the candidates' shares by type of prompt: a row of panels per selector, one per type."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from winnow.algorithms.state.arrays import FloatArray
from winnow.flows.simulate.plot import COLOURS, MARKERS, empty_figure

WIDTH, HEIGHT = 2.4, 1.9
"""Width and height of a panel, in inches."""


def save_picks(
    path: Path,
    shares: Mapping[str, FloatArray],
    until: Sequence[int],
    *,
    types: Sequence[str],
    candidates: Sequence[str],
) -> None:
    """Write the picture as a PNG.

    Args:
        path: The file.
        shares: For each selector, the share of each type's prompts that went to each candidate, part by part
            of the stream, shape (W, G, K); NaN if no prompt of a type occurred.
        until: Shape (W,), end of each part, in prompts.
        types: G names.
        candidates: K names.
    """
    size = (WIDTH * len(types) + 1.0, HEIGHT * len(shares) + 0.3 * len(candidates) / 2 + 0.6)
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
    """Text that matplotlib does not read as a formula."""
    return text.replace("$", r"\$")
