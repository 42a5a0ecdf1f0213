"""Quality metrics of a router, round by round.

They need the expected scores of all arms. Letters: T rounds, K arms, G types of prompts.
"""

import numpy as np

from winnow.algorithms.errors import InvalidParameter
from winnow.algorithms.state.arrays import BoolArray, FloatArray, IntArray


def outscore_the_best(scores: FloatArray, expected: FloatArray) -> FloatArray:
    """Mean score so far minus that of the best single arm, shape (T,).

    The second term is the expected score of the arm that is best over all prompts. An oracle that always uses
    this arm has 0 on average; a router has more if the best arm depends on the prompt. NaN before the first
    score.

    Args:
        scores: Shape (T,), received scores, NaN if unscored; unscored rounds are left out of the mean.
        expected: Shape (T, K), the expected score of every arm on the prompt of each round.

    Raises:
        InvalidParameter: If the shapes do not match.

    Source: Hu, Leung & Farnia (2025), Section 6, with the arm that is best over all T rounds.
    """
    _check("scores", scores, expected)
    is_scored = ~np.isnan(scores)
    counts = np.cumsum(is_scored)
    sums = np.cumsum(np.where(is_scored, scores, 0.0))
    means = np.full(len(scores), np.nan)
    np.divide(sums, counts, out=means, where=counts > 0)
    lead: FloatArray = means - expected.mean(axis=0).max()
    return lead


def is_optimal(arms: IntArray, expected: FloatArray) -> BoolArray:
    """Whether each chosen arm is the best on its prompt, shape (T,).

    Tied arms all count as best.
    """
    _check("arms", arms, expected)
    best: BoolArray = expected[np.arange(len(arms)), arms] >= expected.max(axis=1)
    return best


def optimal_pick_ratio(arms: IntArray, expected: FloatArray) -> FloatArray:
    """Share of rounds so far whose arm is the best on its prompt, shape (T,).

    The share is in [0, 1].

    Args:
        arms: Shape (T,), chosen arms.
        expected: Shape (T, K), the expected score of every arm on the prompt of each round.

    Raises:
        InvalidParameter: If the shapes do not match.

    Source: Hu, Leung & Farnia (2025), Section 6, where the expected score is a mean of five answers.
    """
    return np.cumsum(is_optimal(arms, expected)) / np.arange(1, len(arms) + 1)


def cumulative_regret(arms: IntArray, expected: FloatArray) -> FloatArray:
    """Cumulative expected loss against the best arm on each prompt, shape (T,).

    Args:
        arms: Shape (T,), chosen arms.
        expected: Shape (T, K), the expected score of every arm on the prompt of each round.

    Raises:
        InvalidParameter: If the shapes do not match.

    Source: Hu, Leung & Farnia (2025), Section 4.
    """
    _check("arms", arms, expected)
    return np.cumsum(expected.max(axis=1) - expected[np.arange(len(arms)), arms])


def pick_shares(arms: IntArray, types: IntArray, n_arms: int, window: int) -> FloatArray:
    """Share of the prompts of each type that each arm received, per window of rounds.

    Args:
        arms: Shape (T,), chosen arms.
        types: Shape (T,), the type of the prompt of each round, 0..G-1.
        n_arms: K.
        window: Number of rounds in a window, at least 1; the last window can be shorter.

    Returns:
        Shape (ceil(T / window), G, K); NaN if a type did not occur in a window.

    Raises:
        InvalidParameter: If the window is below 1 or the shapes differ.
    """
    if window < 1:
        raise InvalidParameter("window", window, "at least 1")
    if arms.shape != types.shape:
        raise InvalidParameter("types", types.shape, f"of shape {arms.shape}, one type for each round")
    n_windows = -(-len(arms) // window)
    counts = np.zeros((n_windows, int(types.max(initial=-1)) + 1, n_arms))
    np.add.at(counts, (np.arange(len(arms)) // window, types, arms), 1.0)
    totals = counts.sum(axis=2, keepdims=True)
    shares = np.full(counts.shape, np.nan)
    np.divide(counts, totals, out=shares, where=totals > 0)
    return shares


def _check(name: str, values: IntArray | FloatArray, expected: FloatArray) -> None:
    if expected.ndim != 2 or values.shape != expected.shape[:1]:
        shapes = f"of shape (T,) with expected scores of shape (T, K), whose shape is {expected.shape}"
        raise InvalidParameter(name, values.shape, shapes)
