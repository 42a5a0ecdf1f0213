"""Losses by which a certificate could be led astray: the risk is just above alpha, so any one is false."""

from collections.abc import Mapping
from typing import Literal

import numpy as np

from tests.benchmarks.errors.cells import Scene
from winnow.algorithms.certify.config import Rule
from winnow.algorithms.protocols import Batch
from winnow.algorithms.registry import create_selector

ALPHA, DELTA, LABELS, RATIO = 0.2, 0.1, 60, 4
ABOVE = 1e-6  # the risk is this much above alpha
SAFE = 0.02  # the risk of an arm that may be certified

AGREEMENT: Mapping[str, float] = {"useful": 0.95, "useless": 0.5, "adversarial": 0.05}
"""How often an autoevaluator's loss is the human's."""

MISSING = (0.0, 0.1, 0.2, 0.4)
"""Shares of the losses of 1 that are missing: human, autoevaluated and unlabelled ones."""

WORLDS: Mapping[str, tuple[float, ...]] = {
    "one arm": (ALPHA + ABOVE,),
    "three arms": (SAFE, ALPHA + ABOVE, ALPHA + ABOVE),
    "three arms, the first dropped": (SAFE, ALPHA + ABOVE, ALPHA + ABOVE),
}
"""The risks of the arms in testing order."""


def scene(
    world: str,
    quality: str,
    missing: float,
    betting: Rule,
    rng: np.random.Generator,
    *,
    procedure: Literal["fixed-sequence", "bonferroni"] = "fixed-sequence",
    selected: bool = False,
    left_out: bool = False,
) -> Scene:
    """Losses of a world, and r-autoeval-plus at its start.

    Args:
        world: A key of `WORLDS`.
        quality: A key of `AGREEMENT`.
        missing: See `MISSING`.
        betting: See `Setting`.
        rng: Not used: all is drawn as it is asked.
        procedure: See `Setting`.
        selected: Whether labels are bought where the losses are lower, on purpose.
        left_out: Whether only those examples are told whose losses are all known, on purpose.
    """
    risks = np.array(WORLDS[world])
    is_broken = np.arange(len(risks)) == (0 if "dropped" in world else -1)

    def losses(batch: Batch, rng: np.random.Generator) -> np.ndarray:
        chances = (risks[batch.arms] - 0.1 * selected)[:, np.newaxis]
        human = rng.random((len(batch), 1 + RATIO)) < chances
        auto = np.where(rng.random(human.shape) < AGREEMENT[quality], human, ~human)
        found = np.column_stack([human[:, 0], auto]).astype(float)  # human, autoevaluated, RATIO unlabelled
        is_lost = (found == 1.0) & (rng.random(found.shape) < missing)
        if left_out and (again := is_lost.any(axis=1)).any():
            told = _told(found)
            told[again] = losses(Batch(batch.arms[again], batch.examples[again]), rng)
            return told
        is_lost[:, 0] |= is_broken[batch.arms] & (rng.random(len(batch)) < 0.9)
        return _told(np.where(is_lost, np.nan, found))

    return Scene(
        create_selector(
            "r-autoeval-plus",
            n_arms=len(risks),
            n_examples=LABELS,
            batch_size=LABELS * len(risks),
            budget=LABELS,
            delta=DELTA,
            alpha=ALPHA,
            betting=betting,
            procedure=procedure,
            intervals=False,
            max_unscored=0.5 if is_broken.any() else 1.0,
        ),
        losses,
        lambda decision: any(
            status == "certified" and risk > ALPHA
            for status, risk in zip(decision.status, risks, strict=True)
        ),
    )


def _told(found: np.ndarray) -> np.ndarray:
    """What a selector is told, shape (B, 4): see `algorithms.certify.label_record`."""
    unlabelled = found[:, 2:]
    is_known = ~np.isnan(unlabelled)
    means = np.where(is_known, unlabelled, 0.0).sum(axis=1) / np.maximum(is_known.sum(axis=1), 1)
    shares = 1.0 - is_known.mean(axis=1)
    return np.column_stack([found[:, :2], np.where(shares < 1.0, means, np.nan), shares])
