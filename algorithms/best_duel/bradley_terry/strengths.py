"""One number for each arm from duels of all pairs: the Bradley-Terry model without features."""

from typing import NamedTuple

import numpy as np
from scipy.linalg import null_space
from scipy.stats import norm

from winnow.algorithms.best_duel.bradley_terry.model import fit_bradley_terry
from winnow.algorithms.state.arrays import FloatArray, IntArray

RIDGE = 0.01  # hardly felt, but keeps an arm that never lost from being infinitely strong
LEVEL = 0.95


class Strengths(NamedTuple):
    """Log-odds of beating the average arm, and their intervals, each of shape (K,)."""

    values: FloatArray
    lower: FloatArray
    upper: FloatArray


def bradley_terry_strengths(wins: FloatArray, counts: IntArray) -> Strengths:
    """The strengths s that fit P(i is preferred to j) = sigmoid(s_i - s_j) best; their sum is 0.

    The intervals are Wald's at 95%, each for itself: a description for one look at duels that were chosen
    without regard to their outcomes, and no guarantee for a campaign's adaptive choices.

    Args:
        wins: Shape (K, K), outcomes in favour of the row; a tie is 1/2 for both.
        counts: Shape (K, K), scored duels, symmetric.

    Returns:
        All of it; NaN for arms without a scored duel.

    Source: Bradley & Terry (1952), "Rank analysis of incomplete block designs: I", Biometrika 39.
    """
    met = counts.sum(axis=1) > 0
    strengths = Strengths(*(np.full(len(met), np.nan) for _ in range(3)))
    n_met = int(met.sum())
    if n_met < 2:
        return strengths
    basis = null_space(np.ones((1, n_met)))  # (M, M - 1), strengths that add up to 0
    wins, counts = wins[np.ix_(met, met)], counts[np.ix_(met, met)]
    first, second = np.nonzero(np.triu(counts, 1))
    z = basis[first] - basis[second]  # (P, M - 1)
    start = np.zeros(n_met - 1)
    fit = fit_bradley_terry(z, wins[first, second], counts[first, second], ridge=RIDGE, start=start)
    variances = ((basis @ np.linalg.inv(fit.hessian)) * basis).sum(axis=1)
    halves = norm.isf((1.0 - LEVEL) / 2.0) * np.sqrt(variances)
    values = basis @ fit.theta
    for ends, found in zip(strengths, (values, values - halves, values + halves), strict=True):
        ends[met] = found
    return strengths
