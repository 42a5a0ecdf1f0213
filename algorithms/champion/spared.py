"""Account for examples not scored because all arms in question are equal.

They have the same output there. These arms share one score on the example, which is counted as 0. This
subtracts the same number from all of them, so no difference between two of them changes. An arm that was not
in question then has a score between -1 and 1 on that example. docs/how-equal-outputs-are-spared.md has the
proof.
"""

import numpy as np
from numpy.typing import ArrayLike

from winnow.algorithms.errors import MalformedBatch
from winnow.algorithms.protocols import SPARED, Batch
from winnow.algorithms.state.arrays import FloatArray, IntArray


class Spared:
    """Per arm: numbers of scored and spared examples, and sum of the scores.

    A spared example is unscored because all arms in question are equal on it.

    Args:
        n_arms: K.
    """

    def __init__(self, n_arms: int) -> None:
        self.n_examples = 0
        """Number of spared examples."""
        self.of_arm: IntArray = np.zeros(n_arms, dtype=np.int64)
        """Shape (K,), number of spared examples on which each arm was in question."""
        self._scored: IntArray = np.zeros(n_arms, dtype=np.int64)
        self._sums: FloatArray = np.zeros(n_arms)

    @property
    def means(self) -> FloatArray:
        """Mean of the known scores of each arm, shape (K,).

        NaN for an arm without a score.
        """
        means = np.full(len(self._sums), np.nan)
        np.divide(self._sums, self._scored, out=means, where=self._scored > 0)
        return means

    def tell(self, batch: Batch, outcomes: ArrayLike, *, are_common: bool) -> FloatArray:
        """Count the outcomes of a batch and return them, with `SPARED` replaced by 0.

        Args:
            batch: B pairs.
            outcomes: Shape (B,), scores, NaN if unscored, or `SPARED`; not validated otherwise.
            are_common: Whether the batch has common examples of all arms in question.

        Raises:
            RefusedTell: If an example is spared for only some of its pairs, or if the batch has spared pairs
                but not common examples of all arms in question.
        """
        given = np.array(outcomes, dtype=np.float64)
        is_spared = given == SPARED
        if given.shape != batch.examples.shape or not is_spared.any():
            self._count(batch, given)
            return given
        examples = np.unique(batch.examples[is_spared])
        is_whole = np.array_equal(np.isin(batch.examples, examples), is_spared)
        if not (are_common and is_whole):
            expected = "spared for all arms in question on an example, or for no arm"
            raise MalformedBatch("outcomes", expected, f"{int(is_spared.sum())} spared pairs of some arms")
        self.n_examples += len(examples)
        self.of_arm += np.bincount(batch.arms[is_spared], minlength=len(self.of_arm))
        self._count(batch, np.where(is_spared, np.nan, given))
        return np.where(is_spared, 0.0, given)

    def _count(self, batch: Batch, scores: FloatArray) -> None:
        is_scored = ~np.isnan(scores)
        arms = batch.arms[is_scored]
        self._scored += np.bincount(arms, minlength=len(self._scored))
        self._sums += np.bincount(arms, weights=scores[is_scored], minlength=len(self._sums))
