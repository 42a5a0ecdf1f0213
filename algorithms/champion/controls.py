"""What the scores of other arms say of an example before an arm is drawn on it.

Two features of an example: the score of the filled row on it, and how much better the arms told so far did on
it than they do on average. Both are known of all examples before a batch, so whatever weights the past gives
them, what they say of an example less their mean over those that the arm was not told has mean 0 for its next
draw. The weights decide only how much is saved.
"""

import numpy as np

from algorithms.arrays import BoolArray, FloatArray, IntArray
from algorithms.champion.draws import Draws, Grouped
from algorithms.growing import with_more

DOUBT = 1.0  # scores of an average example that stand beside those told of an example
POOLED_DRAWS = 20.0  # of all arms, that stand beside an arm's own in its weights
RIDGE, PRIOR = 0.1, np.array([0.3, 0.3])
"""The weights' prior, worth this much of variance summed over draws."""
LEAST_BOUND = 1e-9


class Controls:
    """The features of N examples and the weights of K arms."""

    def __init__(self, n_arms: int, n_examples: int) -> None:
        self._residuals = np.zeros(n_examples)  # (N,) summed over the arms told
        self._told = np.zeros(n_examples)  # (N,) how many arms were
        self._ease = np.zeros(n_examples)  # (N,) the second feature
        self._row: FloatArray = np.zeros(n_examples)  # (N,) the first one
        self._row_mean = 0.0
        self._sums = np.zeros((n_arms, 2))  # (K, 2) of the features over the draws
        self._products = np.zeros((n_arms, 2, 2))  # (K, 2, 2)
        self._with_scores = np.zeros((n_arms, 2))  # (K, 2)
        self.weights = np.zeros((n_arms, 2))  # (K, 2)
        self._explained = np.zeros(n_arms)  # (K,) of the squared deviations of the scores, summed
        self._known = np.zeros(n_arms, dtype=np.bool_)  # (K,) arms with the features of all their draws

    def add_arms(self, count: int) -> None:
        """Append arms without draws."""
        self._sums, self._products = with_more(self._sums, count), with_more(self._products, count)
        self._with_scores = with_more(self._with_scores, count)
        self.weights, self._known = with_more(self.weights, count), with_more(self._known, count)
        self._explained = with_more(self._explained, count)

    def before(self, batch: Grouped, untold: BoolArray) -> tuple[FloatArray, FloatArray]:
        """The controls of a batch and their bounds, shapes (B,) and (B,).

        Args:
            batch: Pairs of G arms.
            untold: Shape (G, N), of which examples each arm was not told before the batch.
        """
        control, most = np.zeros(len(batch.examples)), np.zeros(len(batch.examples))
        for arm, start, size, free in zip(batch.arms, batch.starts, batch.sizes, untold, strict=True):
            first, second = self.weights[arm]
            if first == 0.0 and second == 0.0:
                continue
            mine = slice(start, start + size)
            said = first * self._row + second * self._ease  # (N,)
            left = said[free]
            drawn = said[batch.examples[mine]]
            # What is left before each draw, the earlier ones of the batch being gone.
            sums = left.sum() - (drawn.cumsum() - drawn)
            means = sums / (len(left) - np.arange(size))
            control[mine] = drawn - means
            most[mine] = np.maximum(means - left.min(), 0.0) + LEAST_BOUND
        return control, most

    def learn(self, batch: Grouped, residuals: FloatArray) -> None:
        """Absorb how much better than its arm's mean each score is, shape (B,)."""
        np.add.at(self._residuals, batch.examples, residuals)
        np.add.at(self._told, batch.examples, 1.0)
        touched = batch.examples
        self._ease[touched] = self._residuals[touched] / (DOUBT + self._told[touched])

    def features_of(self, examples: IntArray) -> FloatArray:
        """Shape (B, 2)."""
        return np.column_stack([self._row[examples], self._ease[examples]])

    def add(self, batch: Grouped, features: FloatArray, draws: Draws) -> None:
        """Absorb features of a batch, shape (B, 2), as they were before it, after its draws were."""
        self._known[batch.arms] |= draws.count[batch.arms] == batch.sizes
        scores = np.where(np.isnan(batch.scores), 1.0, batch.scores)
        self._absorb(batch.arms, batch.starts, features, scores)
        self._weigh(batch.arms, draws)

    def fill(self, row: FloatArray, arms: IntArray, draws: Draws) -> None:
        """Take another filled row, shape (N,), and work out the features of all draws of some arms again."""
        self._row, self._row_mean = row, float(row.mean())
        self._known[arms] = True
        drawn = draws.history(arms)
        examples, starts, scores = drawn.examples, drawn.starts, drawn.played.scores
        others = np.maximum(self._told[examples] - 1.0, 0.0)
        ease = (self._residuals[examples] - drawn.residuals) / (DOUBT + others)
        features = np.column_stack([row[examples], ease])
        self._sums[arms] = self._products[arms] = self._with_scores[arms] = 0.0
        self._absorb(arms, starts, features, scores)
        self._weigh(arms, draws)

    def _absorb(self, arms: IntArray, starts: IntArray, features: FloatArray, scores: FloatArray) -> None:
        """Add the moments of draws, those of each arm in a row that begins at its start."""
        products = features[:, :, np.newaxis] * features[:, np.newaxis, :]
        self._sums[arms] += np.add.reduceat(features, starts)
        self._products[arms] += np.add.reduceat(products, starts)
        self._with_scores[arms] += np.add.reduceat(features * scores[:, np.newaxis], starts)

    def _weigh(self, arms: IntArray, draws: Draws) -> None:
        """Choose the weights of some arms by all that was told."""
        within, across = self._covariances(draws)
        arms = arms[self._known[arms]]
        share = POOLED_DRAWS / max(float(draws.count[self._known].sum()), 1.0)
        squares = within[arms] + share * within.sum(axis=0)
        squares[:, [0, 1], [0, 1]] += RIDGE
        wanted = across[arms] + share * across.sum(axis=0) + RIDGE * PRIOR
        self.weights[arms] = np.linalg.solve(squares, wanted[:, :, np.newaxis])[:, :, 0]
        weights = self.weights[arms]
        self._explained[arms] = (
            2.0 * (weights * across[arms]).sum(axis=1)
            - (weights[:, np.newaxis, :] @ within[arms] @ weights[:, :, np.newaxis])[:, 0, 0]
        )

    def _covariances(self, draws: Draws) -> tuple[FloatArray, FloatArray]:
        """Summed over each arm's draws: of the features, shape (K, 2, 2), and with the scores, (K, 2)."""
        counts = np.maximum(draws.count, 1)[:, np.newaxis]
        means = self._sums / counts
        within = self._products - means[:, :, np.newaxis] * self._sums[:, np.newaxis, :]
        across = self._with_scores - means * draws.high[:, np.newaxis]
        return np.where(self._known[:, np.newaxis, np.newaxis], within, 0.0), np.where(
            self._known[:, np.newaxis], across, 0.0
        )

    def estimates(self, draws: Draws, arms: IntArray) -> FloatArray:
        """Means of some arms with the features taken into account, shape (A,)."""
        counts = np.maximum(draws.count[arms], 1)
        overall = np.array([self._row_mean, self._ease.mean()])
        surplus = np.where(
            self._known[arms, np.newaxis], self._sums[arms] / counts[:, np.newaxis] - overall, 0.0
        )
        return np.asarray(draws.high[arms] / counts - (self.weights[arms] * surplus).sum(axis=1))

    def residual_squares(self, draws: Draws, arms: IntArray) -> FloatArray:
        """Squared deviations of the scores from what the features say, summed, shape (A,)."""
        deviations = draws.squares[arms] - draws.high[arms] ** 2 / np.maximum(draws.count[arms], 1)
        return np.asarray(np.maximum(deviations - self._explained[arms], 0.0))
