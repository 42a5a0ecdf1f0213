"""Effects of a candidate's components on the scores.

The module also estimates interactions of two components. Notation: N scores, y (N,); F factors, each with L_f
levels, at least two; x (N, F) the level of each score's candidate; G examples. The model is

    y = m_example + sum_f b[f, x_f] + (for one pair of factors f, g) c[x_f, x_g] + noise

where effects sum to 0 over the levels of a factor, and interactions over the levels of either factor. The
mean level m of each example is removed first, so candidates need not be scored on the same examples. The
effects are then estimated by least squares, with a sandwich variance clustered by example (Liang & Zeger,
1986).

These are descriptions: 95% intervals by the normal approximation, for one look, assuming that the choice of
scored pairs did not depend on scores. An effect that the scores do not identify is NaN.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from winnow.algorithms.state.arrays import FloatArray, IntArray

REACH = 1.959964  # half-width of a 95% interval in standard errors
TOLERANCE = 1e-8  # relative eigenvalue below which a direction counts as absent from the data


@dataclass(frozen=True, slots=True)
class Effect:
    """An estimate with its 95% interval.

    All NaN if the scores do not identify the effect.
    """

    estimate: float
    lower: float
    upper: float


def main_effects(
    scores: FloatArray, levels: IntArray, examples: IntArray, n_levels: Sequence[int]
) -> list[list[Effect]]:
    """Effect of each level of each factor.

    An effect is the mean score of the level relative to the average over the factor's levels.

    Args:
        scores: y, shape (N,).
        levels: x, shape (N, F), in 0..L_f - 1.
        examples: Shape (N,), the example of each score; any integers.
        n_levels: L_f of each factor.

    Returns:
        For each factor, an effect for each level.
    """
    blocks = [_contrasts(levels[:, f], n) for f, n in enumerate(n_levels)]
    fit = _Fit(scores, np.hstack(blocks), examples)
    found, begin = [], 0
    for n in n_levels:
        found.append([fit.effect(begin, weights) for weights in _sum_to_zero(n)])
        begin += n - 1
    return found


def interactions(
    scores: FloatArray, levels: IntArray, examples: IntArray, n_levels: Sequence[int], pair: tuple[int, int]
) -> list[list[Effect]]:
    """Interactions of levels of two factors.

    The effect of a combination beyond the sum of its two main effects.

    Args:
        scores: y, shape (N,).
        levels: x, shape (N, F).
        examples: Shape (N,), the example of each score.
        n_levels: L_f of each factor.
        pair: f and g, two of the factors.

    Returns:
        For each level of f, an effect for each level of g.
    """
    f, g = pair
    blocks = [_contrasts(levels[:, each], n) for each, n in enumerate(n_levels)]
    both = blocks[f][:, :, None] * blocks[g][:, None, :]
    fit = _Fit(scores, np.hstack([*blocks, both.reshape(len(scores), -1)]), examples)
    begin = sum(n - 1 for n in n_levels)
    ours, theirs = _sum_to_zero(n_levels[f]), _sum_to_zero(n_levels[g])
    effects = [fit.effect(begin, np.outer(a, b).ravel()) for a, b in product(ours, theirs)]
    width = n_levels[g]
    return [effects[row * width : (row + 1) * width] for row in range(n_levels[f])]


class _Fit:
    """Least squares within examples, with a variance clustered by example.

    The mean of each example is removed first.
    """

    def __init__(self, scores: FloatArray, design: FloatArray, examples: IntArray) -> None:
        _, cluster = np.unique(examples, return_inverse=True)
        n_clusters = int(cluster.max(initial=-1)) + 1
        sizes = np.bincount(cluster, minlength=n_clusters)[:, None]

        def centred(values: FloatArray) -> FloatArray:
            sums = np.zeros((n_clusters, values.shape[1]))
            np.add.at(sums, cluster, values)
            found: FloatArray = values - (sums / sizes)[cluster]
            return found

        x, y = centred(design), centred(scores[:, None])[:, 0]
        gram = x.T @ x
        values, vectors = np.linalg.eigh(gram)
        seen = values > TOLERANCE * max(float(values.max(initial=0.0)), 1.0)
        inverse = (vectors[:, seen] / values[seen]) @ vectors[:, seen].T
        self._seen = vectors[:, seen] @ vectors[:, seen].T
        self._effects = inverse @ (x.T @ y)
        pulls = np.zeros((n_clusters, x.shape[1]))
        np.add.at(pulls, cluster, x * (y - x @ self._effects)[:, None])
        widened = n_clusters / max(n_clusters - 1, 1)
        self._covariance = widened * inverse @ (pulls.T @ pulls) @ inverse

    def effect(self, begin: int, weights: FloatArray) -> Effect:
        """Linear combination of coefficients.

        `weights` apply to the columns from `begin` on.
        """
        whole = np.zeros(len(self._effects))
        whole[begin : begin + len(weights)] = weights
        if np.linalg.norm(whole - self._seen @ whole) > 1e-6 * np.linalg.norm(whole):
            return Effect(math.nan, math.nan, math.nan)
        estimate = float(whole @ self._effects)
        reach = REACH * math.sqrt(max(float(whole @ self._covariance @ whole), 0.0))
        return Effect(estimate, estimate - reach, estimate + reach)


def _sum_to_zero(n: int) -> FloatArray:
    """Weights of each level on n - 1 columns, shape (n, n - 1).

    The last level is minus the sum of the others.
    """
    return np.vstack([np.eye(n - 1), -np.ones((1, n - 1))])


def _contrasts(levels: IntArray, n: int) -> FloatArray:
    """Columns of a factor in the design matrix, shape (N, n - 1)."""
    found: FloatArray = _sum_to_zero(n)[levels]
    return found
