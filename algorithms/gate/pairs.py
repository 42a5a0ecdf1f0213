"""The scores of arms beside that of the baseline on the same example."""

from collections import defaultdict

import numpy as np

from winnow.algorithms.protocols import Batch
from winnow.algorithms.state.arrays import FloatArray

Pair = tuple[float, float]
"""The arm's score and the baseline's, NaN where unscored."""


class Pairs:
    """Keeps scores until the other one of their pair is told."""

    def __init__(self, baseline: int) -> None:
        self._baseline = baseline
        self._of_baseline: dict[int, float] = {}  # by example
        self._waiting: dict[int, list[tuple[int, float]]] = {}  # by example, of which the baseline is untold

    def tell(self, batch: Batch, scores: FloatArray) -> dict[int, FloatArray]:
        """Absorb scores, shape (B,), NaN where unscored.

        Returns:
            By arm, the pairs that are now complete, shape (P, 2), in the order in which they became so: the
            arm's score, then the baseline's.
        """
        found: dict[int, list[Pair]] = defaultdict(list)
        told = zip(batch.arms.tolist(), batch.examples.tolist(), scores.tolist(), strict=True)
        for arm, example, score in told:
            if arm == self._baseline:
                self._of_baseline[example] = score
                for other, waiting in self._waiting.pop(example, []):
                    found[other].append((waiting, score))
            elif example in self._of_baseline:
                found[arm].append((score, self._of_baseline[example]))
            else:
                self._waiting.setdefault(example, []).append((arm, score))
        return {arm: np.array(pairs) for arm, pairs in found.items()}
