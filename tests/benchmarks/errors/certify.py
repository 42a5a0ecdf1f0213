"""Losses by which a certificate could be led astray: the risk is alpha, so that any certificate is false."""

from collections.abc import Callable, Iterator

import numpy as np

from algorithms.protocols import Batch
from algorithms.registry import create_selector
from tests.benchmarks.errors.cells import Cell, Scene

ALPHA, DELTA, LABELS, RATIO = 0.2, 0.1, 60, 4
ABOVE = 1e-6  # the risk is this much above alpha

AGREEMENT = {"useful": 0.95, "useless": 0.5, "adversarial": 0.05}
"""How often an autoevaluator's loss is the human's."""


def cells(runs: int) -> Iterator[Cell]:
    """Every bet with every autoevaluator, losses missing or not; and labels that are no random sample."""
    for betting in ("star", "up", "wsr"):
        for quality, agreement in AGREEMENT.items():
            for missing in (0.0, 0.1):
                yield Cell(
                    name=f"certify, {betting}, {quality} autoevaluator, {missing:.0%} missing",
                    build=_scenes("r-autoeval-plus", agreement, missing, betting=betting),
                    runs=runs,
                    delta=DELTA,
                )
    yield Cell(
        name="certify, star, labels that show a lower risk (assumption false)",
        build=_scenes("r-autoeval-plus", 0.95, 0.0, betting="star", biased=True),
        runs=runs // 10,
        delta=DELTA,
        expected="broken",
    )


def _scenes(
    selector: str, agreement: float, missing: float, *, biased: bool = False, **params: object
) -> Callable[[np.random.Generator], Scene]:
    risk = ALPHA + ABOVE - (0.1 if biased else 0.0)  # what the labels show; the population's is above alpha

    def losses(batch: Batch, rng: np.random.Generator) -> np.ndarray:
        human = rng.random((len(batch), 1 + RATIO)) < risk
        auto = np.where(rng.random(human.shape) < agreement, human, ~human)
        told = np.column_stack([human[:, 0], auto[:, 0], auto[:, 1:].mean(axis=1)]).astype(float)
        told[(rng.random(len(batch)) < missing) & (human[:, 0]), 0] = np.nan  # missing where it was wrong
        return told

    def scene(rng: np.random.Generator) -> Scene:
        return Scene(
            create_selector(
                selector,
                n_arms=1,
                n_examples=LABELS,
                batch_size=LABELS,
                budget=LABELS,
                delta=DELTA,
                alpha=ALPHA,
                intervals=False,
                max_unscored=1.0,
                **params,
            ),
            losses,
            lambda decision: "certified" in decision.status,
        )

    return scene
