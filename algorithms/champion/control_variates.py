"""Control variates: predictions of an arm's score from other arms' scores.

An example has up to three features: the score of the filled row; the mean residual of the observed arms, each
relative to its own average; and, with a history, the mean residual of earlier rows. All features are known
for all examples before a batch. A prediction minus its mean over the arm's unobserved examples therefore has
mean 0 for the next draw, for any weights that depend only on the past. The weights affect only the savings.
"""

from typing import NamedTuple

import numpy as np

from winnow.algorithms.best_mean.groups import Groups
from winnow.algorithms.champion.draw_order import DrawHistory, Draws, Grouped
from winnow.algorithms.low_rank.factor_model import Floats
from winnow.algorithms.state.arrays import BoolArray, FloatArray, IntArray, with_more

BEST_ROWS = 100  # candidates are probably similar to the rows that do well, so only these are used
DOUBT = 1.0  # pseudo-observations of an average example, or of an average row


def past_ease(history: Floats) -> FloatArray:
    """How easy each example is for the best rows of a history, shape (N,), in [-1, 1].

    The mean, over these rows, of a row's score on the example minus the row's own average; 0 if no row has a
    score.

    Args:
        history: Shape (M, N), scores in [0, 1], NaN if missing.
    """
    is_there = ~np.isnan(history)
    scores = np.where(is_there, history, np.float32(0.0))
    n_scores = is_there.sum(axis=1)  # (M,)
    usual = (scores.sum(axis=0, dtype=np.float64) + DOUBT * scores.sum() / n_scores.sum()) / (
        is_there.sum(axis=0) + DOUBT
    )  # (N,)
    expected = np.where(is_there, usual.astype(np.float32), 0.0).sum(axis=1, dtype=np.float64)  # (M,)
    lead = (scores.sum(axis=1, dtype=np.float64) - expected) / (n_scores + DOUBT)
    best = np.argsort(-lead, kind="stable")[:BEST_ROWS]
    means = scores[best].sum(axis=1, dtype=np.float64) / np.maximum(n_scores[best], 1)
    surplus = np.where(is_there[best], scores[best] - means[:, np.newaxis], 0.0).sum(axis=0)
    return np.asarray(surplus / (is_there[best].sum(axis=0) + DOUBT))


ROW, EASE, PAST = 0, 1, 2
"""Indices of the features: filled row, observed arms, and history.
The history has a feature only if one was passed."""
POOLED_DRAWS = 20.0  # number of draws that the pooled draws of all arms count as, beside an arm's own
RIDGE, PRIOR = 0.1, np.array([0.3, 0.3, 0.0])
"""Strength and mean of the prior of the weights.
The strength is a sum of squares of each feature. The weight of a history starts at 0."""
LEAST_BOUND = 1e-9


class Band(NamedTuple):
    """Controls of B draws with bounds.

    Each control has mean 0 over the examples left before its draw.
    """

    values: FloatArray
    """Controls, shape (B,)."""
    below: FloatArray
    """Minus the smallest possible value of each control, non-negative, shape (B,)."""
    above: FloatArray
    """Largest possible value of each control, non-negative, shape (B,)."""


class Controls:
    """Features of N examples, and their weights for K arms or for their rows.

    See `draw_order`.

    Args:
        n_arms: K.
        groups: Groups of the examples.
        past: Shape (N,), the history's feature of the examples; None without a history.
    """

    def __init__(self, n_arms: int, groups: Groups, past: FloatArray | None) -> None:
        self._groups = groups
        n_examples, n_arms = len(groups.weights), n_arms * groups.n_parts
        self._residuals = np.zeros(n_examples)  # (N,) summed over the observed arms
        self._told = np.zeros(n_examples)  # (N,) number of observed arms
        fixed = [] if past is None else [past]
        self._features = np.stack([*np.zeros((PAST, n_examples)), *fixed])  # (F, N)
        n_features = len(self._features)
        self._sums = np.zeros((n_arms, n_features))  # (K, F) of the features over the draws
        self._products = np.zeros((n_arms, n_features, n_features))  # (K, F, F)
        self._with_scores = np.zeros((n_arms, n_features))  # (K, F)
        self.weights = np.zeros((n_arms, n_features))  # (K, F)
        self._within = np.zeros((n_arms, n_features, n_features))  # (K, F, F) summed covariances
        self._across = np.zeros((n_arms, n_features))  # (K, F) with the scores
        self._all_within = np.zeros((n_features, n_features))  # summed over the arms
        self._all_across = np.zeros(n_features)
        self._explained = np.zeros(n_arms)  # (K,) sum of the explained squared deviations of the scores

    def add_arms(self, count: int) -> None:
        """Append arms without draws."""
        count *= self._groups.n_parts
        self._sums, self._products = with_more(self._sums, count), with_more(self._products, count)
        self._with_scores = with_more(self._with_scores, count)
        self._within, self._across = with_more(self._within, count), with_more(self._across, count)
        self.weights, self._explained = with_more(self.weights, count), with_more(self._explained, count)

    def before(self, batch: Grouped, untold: BoolArray) -> Band:
        """Controls of a batch, with bounds, from observations before the batch.

        Args:
            batch: Pairs of G arms.
            untold: Shape (G, N), examples not observed for each arm before the batch.
        """
        band = Band(*np.zeros((3, len(batch.examples))))
        for arm, start, size, free in zip(batch.arms, batch.starts, batch.sizes, untold, strict=True):
            weights = self.weights[arm]
            if not weights.any():
                continue
            mine = slice(start, start + size)
            # Not a matrix product, because its rounding can depend on the number of threads.
            said = weights[0] * self._features[0]
            for weight, of_feature in zip(weights[1:], self._features[1:], strict=True):
                said += weight * of_feature
            left = said[free]
            drawn = said[batch.examples[mine]]
            means = self._means_left(left, drawn, free, batch.examples[mine])
            band.values[mine] = drawn - means
            band.below[mine] = np.maximum(means - left.min(), 0.0) + LEAST_BOUND
            band.above[mine] = np.maximum(left.max() - means, 0.0) + LEAST_BOUND
        return band

    def _means_left(
        self, left: FloatArray, drawn: FloatArray, free: BoolArray, examples: IntArray
    ) -> FloatArray:
        """Mean control over the examples left before each draw of a row, shape (B,).

        Args:
            left: Weighted sums of the features of the examples in `free`.
            drawn: Shape (B,), the same for the drawn examples.
            free: Shape (N,), examples left before the first draw.
            examples: Shape (B,), drawn examples.
        """
        if self._groups.are_alike:
            return np.asarray((left.sum() - (drawn.cumsum() - drawn)) / (len(left) - np.arange(len(drawn))))
        of_left, of_drawn = self._groups.weights[free], self._groups.weights[examples]
        gone = of_drawn * drawn
        rest = np.maximum(of_left.sum() - (of_drawn.cumsum() - of_drawn), of_drawn)
        return np.asarray(((of_left * left).sum() - (gone.cumsum() - gone)) / rest)

    def features_of(self, examples: IntArray) -> FloatArray:
        """Features of some examples, shape (B, F)."""
        return self._features[:, examples].T

    def residuals(self, batch: Grouped, features: FloatArray, scores: FloatArray, draws: Draws) -> FloatArray:
        """Residuals of the scores of a batch, shape (B,).

        A residual is the score minus the part that the arm's mean and the history explain.

        Args:
            batch: Pairs that were not yet appended to `draws`.
            features: Shape (B, F), features before the batch.
            scores: Shape (B,), unscored as 1.
            draws: All draws before the batch.
        """
        counts = (draws.count[batch.arms] + batch.sizes)[:, np.newaxis]
        sums = draws.sums[batch.arms] + np.add.reduceat(scores, batch.starts)
        residuals = scores - (sums / counts[:, 0])[batch.group]
        past = features[:, PAST:]
        if past.shape[1] > 0:
            means = (self._sums[batch.arms, PAST:] + np.add.reduceat(past, batch.starts)) / counts
            weights = self.weights[batch.arms, PAST:]
            residuals -= ((past - means[batch.group]) * weights[batch.group]).sum(axis=1)
        return np.asarray(residuals)

    def learn(self, batch: Grouped, residuals: FloatArray) -> None:
        """Update the ease of examples from residuals of scores, shape (B,).

        See `residuals`.
        """
        np.add.at(self._residuals, batch.examples, residuals)
        np.add.at(self._told, batch.examples, 1.0)
        touched = batch.examples
        self._features[EASE, touched] = self._residuals[touched] / (DOUBT + self._told[touched])

    def relearn(self, examples: IntArray, changes: FloatArray) -> None:
        """Update the ease feature after changes of residuals that it has learned; both of shape (B,)."""
        np.add.at(self._residuals, examples, changes)
        self._features[EASE, examples] = self._residuals[examples] / (DOUBT + self._told[examples])

    def add(self, batch: Grouped, features: FloatArray, scores: FloatArray, draws: Draws) -> None:
        """Add the features and scores of a batch to the moments of the regression.

        Args:
            batch: Pairs that were already appended to `draws`.
            features: Shape (B, F), features before the batch.
            scores: Shape (B,), unscored as 1.
            draws: All draws, including those of the batch.
        """
        self._absorb(batch.arms, batch.starts, features, scores, draws)

    def fill(self, row: FloatArray, arms: IntArray, drawn: DrawHistory, draws: Draws) -> None:
        """Replace the filled row, and recompute the features of all draws of some arms.

        Args:
            row: Shape (N,), scores of the new filled row.
            arms: Shape (A,).
            drawn: The history of the draws of these arms.
            draws: All draws.
        """
        self._features[ROW] = row
        self.refit(arms, drawn, draws)

    def refit(self, arms: IntArray, drawn: DrawHistory, draws: Draws) -> None:
        """Recompute the features of all draws of some arms, and their weights; see `fill`."""
        examples, starts, scores = drawn.examples, drawn.starts, drawn.played.scores
        features = self.features_of(examples).copy()
        others = np.maximum(self._told[examples] - 1.0, 0.0)
        features[:, EASE] = (self._residuals[examples] - drawn.residuals) / (DOUBT + others)
        self._sums[arms] = self._products[arms] = self._with_scores[arms] = 0.0
        self._absorb(arms, starts, features, scores, draws)
        self.weigh(arms, draws)

    def weigh(self, arms: IntArray, draws: Draws) -> None:
        """Fit the weights of some arms to all observations."""
        within, across = self._within[arms], self._across[arms]
        # If all arms were observed on the same few examples, they inform the others only as much as this
        # number of draws.
        pooled = min(POOLED_DRAWS, float(np.count_nonzero(self._told)))
        share = pooled / max(float(draws.count.sum()), 1.0)
        squares = within + share * self._all_within + RIDGE * np.eye(within.shape[1])
        wanted = across + share * self._all_across + RIDGE * PRIOR[: within.shape[1]]
        weights = np.linalg.solve(squares, wanted[:, :, np.newaxis])[:, :, 0]
        self.weights[arms] = weights
        squared = (weights[:, np.newaxis, :] @ within @ weights[:, :, np.newaxis])[:, 0, 0]
        self._explained[arms] = 2.0 * (weights * across).sum(axis=1) - squared

    def _absorb(
        self, arms: IntArray, starts: IntArray, features: FloatArray, scores: FloatArray, draws: Draws
    ) -> None:
        """Add the moments of draws.

        Args:
            arms: Shape (A,).
            starts: Shape (A,), index of each arm's first draw; an arm's draws are contiguous.
            features: Shape (B, F).
            scores: Shape (B,), unscored as 1.
            draws: All draws, including these.
        """
        products = features[:, :, np.newaxis] * features[:, np.newaxis, :]
        self._sums[arms] += np.add.reduceat(features, starts)
        self._products[arms] += np.add.reduceat(products, starts)
        self._with_scores[arms] += np.add.reduceat(features * scores[:, np.newaxis], starts)
        sums = self._sums[arms]
        means = sums / draws.count[arms, np.newaxis]
        within = self._products[arms] - means[:, :, np.newaxis] * sums[:, np.newaxis, :]
        across = self._with_scores[arms] - means * draws.sums[arms, np.newaxis]
        self._all_within += (within - self._within[arms]).sum(axis=0)
        self._all_across += (across - self._across[arms]).sum(axis=0)
        self._within[arms], self._across[arms] = within, across

    def estimates(self, draws: Draws, arms: IntArray) -> FloatArray:
        """Means of some arms over all examples, adjusted by the features, shape (A,)."""
        counts, groups = np.maximum(draws.count[arms], 1), self._groups
        surplus = self._sums[arms] / counts[:, np.newaxis] - self._means[arms % groups.n_parts]
        means = draws.sums[arms] / counts
        if not groups.are_alike:  # late draws are from other groups than early ones
            means = (draws.high[arms] + draws.left[arms] * means) / draws.totals[arms]
        return np.asarray(means - (self.weights[arms] * surplus).sum(axis=1))

    @property
    def _means(self) -> FloatArray:
        """Means of the features over the examples of each part, shape (P, F)."""
        groups = self._groups
        if groups.n_parts == 1:
            weighted = self._features if groups.are_alike else self._features * groups.weights
            return np.asarray(weighted.mean(axis=1)[np.newaxis])
        sums = [np.bincount(groups.part_of, weights=feature) for feature in self._features]
        return np.asarray(np.stack(sums, axis=1) / groups.totals[:, np.newaxis])

    def residual_squares(self, draws: Draws, arms: IntArray) -> FloatArray:
        """Sums of squared deviations of the scores from their predictions, shape (A,)."""
        deviations = draws.squares[arms] - draws.sums[arms] ** 2 / np.maximum(draws.count[arms], 1)
        return np.asarray(np.maximum(deviations - self._explained[arms], 0.0))
