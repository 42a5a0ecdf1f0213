"""Filled Subset: all arms on one random example, then on the next."""

import numpy as np
from numpy.typing import ArrayLike

from winnow.algorithms.best_mean.config import BestMeanConfig
from winnow.algorithms.best_mean.score_matrix import ScoreMatrix
from winnow.algorithms.best_mean.stopping import Stopping, Variant
from winnow.algorithms.decision import Decision
from winnow.algorithms.protocols import EMPTY_BATCH, Batch


class FilledSubset:
    """Propose all arms on the same random examples: the baseline that evaluates a smaller benchmark.

    A batch has as many whole examples as fit in `batch_size`, at least one: it is larger than `batch_size` if
    there are more arms than that. Only the budget can leave an example incomplete.

    With variant "mended" and `delta`, eliminated arms get no further examples.

    Args:
        config: The problem and the common parameters.
        variant: "mended" proposes and stops as docs/how-the-intervals-stop.md describes; "paper" as
            published.

    Source: Zhou et al. (2024), "On Speeding Up Language Model Evaluation", Algorithm 4 (Filled Subset).
    """

    def __init__(self, config: BestMeanConfig, *, variant: Variant = "mended") -> None:
        self._batch_size = config.batch_size
        self._matrix = ScoreMatrix(config)
        self._stopping = Stopping(config, self._matrix, variant)

    def ask(self, rng: np.random.Generator) -> Batch:
        """Propose all free pairs of one example or several, grouped by example."""
        matrix, room = self._matrix, self._stopping.room(max(self._batch_size, self._matrix.n_arms))
        # Arms that the budget excludes from the last example are chosen before it is drawn. Otherwise an arm
        # would get it only if earlier arms do not, and its examples would not be uniform draws.
        arms = np.flatnonzero(self._stopping.worth_asking & (matrix.free_of_arm > 0))[:room]
        if arms.size == 0:
            return EMPTY_BATCH
        examples = matrix.open_examples(arms)
        whole = max(1, min(self._batch_size, room) // len(arms))
        chosen = rng.choice(examples, size=min(whole, examples.size), replace=False)
        columns, places = np.nonzero(matrix.is_free(arms, chosen[:, np.newaxis]))
        return matrix.ask(arms[places], chosen[columns])

    def take_up(self, batch: Batch) -> None:
        """Register a batch as proposed and pending."""
        self._matrix.ask(batch.arms, batch.examples)

    def tell(self, batch: Batch, outcomes: ArrayLike) -> None:
        """Absorb scores in [0, 1], NaN if unscored."""
        self._stopping.tell(batch, self._matrix.tell(batch, outcomes))

    def decision(self) -> Decision:
        """Recommend the arm with the highest mean of those that can be the best."""
        return self._stopping.decision()
