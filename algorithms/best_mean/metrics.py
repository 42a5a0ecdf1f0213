"""Quality metrics of a best-mean selector, given the whole score matrix.

The selector saw only a part of this matrix. K arms, n examples, R runs, T budgets in increasing order. Scores
lie in [0, 1], higher is better; a missing score is NaN and left out. The metrics of the recommended arm all
measure how often it is in a set of arms that count as right: `best_arms`, `arms_within_gap` or
`arms_not_worse`.

Sources: Zhou et al. (2024), "On Speeding Up Language Model Evaluation", Section 4.2 (precision, NDCG) and
Corollary 1 (hardness); Tolochinsky et al., "Valid Best-Model Identification in LLM Evaluation via Low-Rank
Factorization" (PULSE), Section 4 (accuracy, budget to 95%).
"""

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import bdtr

from winnow.algorithms.best_mean.groups import Groups
from winnow.algorithms.errors import InvalidParameter
from winnow.algorithms.state.arrays import BoolArray, FloatArray

NOBODY = -1
"""Placeholder for the recommended arm of a run that recommends no arm.
Never counts as right."""


def true_means(scores: ArrayLike) -> FloatArray:
    """Mean of every arm over its present scores, shape (K,).

    Args:
        scores: Shape (K, n), NaN if missing.

    Raises:
        InvalidParameter: If the scores are not a matrix, or an arm has no score.
    """
    matrix = np.asarray(scores)
    if matrix.ndim != 2:
        raise InvalidParameter("scores", f"shape {matrix.shape}", "of shape (K, n)")
    present = ~np.isnan(matrix)
    counts = present.sum(axis=1)
    if not counts.all():
        raise InvalidParameter("scores", f"no score for arm {int(counts.argmin())}", "present for every arm")
    means: FloatArray = matrix.sum(axis=1, where=present, dtype=np.float64) / counts
    return means


def true_values(scores: ArrayLike, groups: Groups | None) -> FloatArray:
    """Value of every arm from its group means, shape (K,); without groups, its mean.

    Raises:
        InvalidParameter: Like `true_means`.
    """
    means, matrix = true_means(scores), np.asarray(scores)
    if groups is None:
        return means
    by_group = np.full((len(matrix), groups.n_groups), np.nan)
    for group in range(groups.n_groups):
        mine = matrix[:, groups.of_example == group]
        present = ~np.isnan(mine)
        counts = present.sum(axis=1)
        sums = mine.sum(axis=1, where=present, dtype=np.float64)
        np.divide(sums, counts, out=by_group[:, group], where=counts > 0)
    return groups.value(by_group)


def best_arms(means: ArrayLike) -> BoolArray:
    """Which arms have the highest mean, shape (K,); several if they tie exactly."""
    return arms_within_gap(means, 0.0)


def arms_within_gap(means: ArrayLike, gap: float) -> BoolArray:
    """Which arms have a mean at most `gap` below the highest, shape (K,).

    Args:
        means: Shape (K,), without NaN.
        gap: Non-negative, in score units; the paper uses 0.001 and 0.01.

    Raises:
        InvalidParameter: If the gap is negative or a mean is missing.

    Source: Zhou et al. (2024), Section 4.2, "performance gap epsilon".
    """
    given = _means(means)
    if not gap >= 0.0:
        raise InvalidParameter("gap", gap, "non-negative")
    within: BoolArray = given >= given.max() - gap
    return within


def arms_not_worse(scores: ArrayLike, level: float) -> BoolArray:
    """Arms that McNemar's exact test does not show to be worse than the best arm.

    An arm is compared with the arm of the highest mean (the first of several) on the examples on which both
    have a score and the scores differ. It is worse if it has the lower score on most of these, and if the
    two-sided probability of a split at least this uneven under fair coin flips is at most `level`. For scores
    of 0 and 1 this is McNemar's test. For other scores it is the sign test, of which McNemar's is a special
    case: it measures how often one arm beats the other, not by how much. Each arm is tested at `level`
    separately, as in the paper: there is no correction for the number of arms.

    Args:
        scores: Shape (K, n), NaN if missing.
        level: In (0, 1); the paper uses 0.01 and 0.1.

    Returns:
        Shape (K,); always includes the best arm.

    Raises:
        InvalidParameter: If the level is out of range, or an arm has no score.

    Source: McNemar (1947), Psychometrika 12(2), in its exact binomial form; Zhou et al. (2024), Section 4.2.
    """
    if not 0.0 < level < 1.0:
        raise InvalidParameter("level", level, "in (0, 1)")
    best = int(true_means(scores).argmax())
    matrix = np.asarray(scores)
    wins = (matrix > matrix[best]).sum(axis=1)  # (K,); a comparison with NaN is false
    losses = (matrix < matrix[best]).sum(axis=1)
    # Twice the lower tail, which is at least 1 for an arm with more wins than losses.
    p_values = np.minimum(1.0, 2.0 * bdtr(wins, wins + losses, 0.5))
    not_worse: BoolArray = p_values > level
    return not_worse


def hits(recommended: ArrayLike, right: BoolArray) -> BoolArray:
    """Whether each recommended arm is one that counts as right.

    The result has the shape of `recommended`.

    Args:
        recommended: Arms, any shape; `NOBODY` if a run recommends no arm.
        right: Shape (K,), from `best_arms`, `arms_within_gap` or `arms_not_worse`.
    """
    arms = np.asarray(recommended)
    found: BoolArray = (arms != NOBODY) & right[arms]
    return found


def ndcg(estimates: ArrayLike, means: ArrayLike, top: int = 10) -> float:
    """Normalised discounted cumulative gain of the first places of a ranking.

    The arm in place p = 1, 2, ... gains mean / log2(p + 1), summed over the first `top` places and divided by
    the gain of the best ranking. Arms with equal estimates share the gains of their places equally, as if
    averaged over all orders. Arms without an estimate come last and count as equal.

    Args:
        estimates: Shape (K,), by which arms are ranked; NaN if unknown.
        means: Shape (K,), the true means, non-negative.
        top: Number of places that count, at least 1.

    Returns:
        In [0, 1]; 1 if all means are 0, because then all rankings are equally good.

    Raises:
        InvalidParameter: If `top` is less than 1, a mean is negative or missing, or the shapes differ.

    Source: Järvelin & Kekäläinen (2002), ACM TOIS 20(4); ties as McSherry & Najork (2008), ECIR, Section 3.
    """
    truth = _means(means)
    guess = np.asarray(estimates, dtype=np.float64)
    if guess.shape != truth.shape:
        raise InvalidParameter("estimates", f"shape {guess.shape}", f"of the means' shape {truth.shape}")
    if truth.min() < 0.0:
        raise InvalidParameter("means", float(truth.min()), "non-negative")
    if top < 1:
        raise InvalidParameter("top", top, "at least 1")
    discounts = np.zeros(truth.size)  # (K,)
    places = np.arange(min(top, truth.size))
    discounts[places] = 1.0 / np.log2(places + 2.0)
    ideal = float(np.sort(truth)[::-1] @ discounts)
    if ideal == 0.0:
        return 1.0
    _, group, sizes = np.unique(
        -np.where(np.isnan(guess), -np.inf, guess), return_inverse=True, return_counts=True
    )
    ends = sizes.cumsum()
    earned = np.concatenate(([0.0], discounts.cumsum()))  # (K + 1,)
    shared = (earned[ends] - earned[ends - sizes]) / sizes  # discount of each member of a group of equals
    return float(truth @ shared[group]) / ideal


def hardness(means: ArrayLike) -> float:
    """Hardness H1 of finding the best arm.

    The sum of 1 / gap^2 over the arms below the best.

    Args:
        means: Shape (K,), without NaN.

    Returns:
        In score units to the power of -2. Arms that tie with the best are left out; 0 if all arms tie.

    Raises:
        InvalidParameter: If a mean is missing.

    Source: Audibert & Bubeck (2010), "Best Arm Identification in Multi-Armed Bandits", Section 2.
    """
    given = _means(means)
    gaps = given.max() - given
    return float((1.0 / gaps[gaps > 0.0] ** 2).sum())


def budget_to_reach(budgets: ArrayLike, accuracy: ArrayLike, level: float = 0.95) -> float:
    """The smallest budget at which an accuracy curve reaches a level.

    The first time counts, even if the curve falls below the level again later. With few runs, this is too
    optimistic: at a true accuracy of 0.9, the share among 20 runs is 0.95 or more with probability 0.39;
    among 500 runs, with probability 3e-5.

    Args:
        budgets: Shape (T,), increasing.
        accuracy: Shape (T,), in [0, 1].
        level: In [0, 1].

    Returns:
        One of the budgets; infinity if the curve never reaches the level.

    Raises:
        InvalidParameter: If the shapes differ or the budgets do not increase.

    Source: Tolochinsky et al., Section 4, "Performance metrics" (ii), with level = 0.95.
    """
    spent, shares = _curve(budgets, accuracy)
    reached = np.flatnonzero(shares >= level)
    return float(spent[reached[0]]) if reached.size else float("inf")


def _means(means: ArrayLike) -> FloatArray:
    given = np.asarray(means, dtype=np.float64)
    if given.ndim != 1 or given.size == 0 or np.isnan(given).any():
        raise InvalidParameter("means", f"shape {given.shape}", "of shape (K,) without NaN")
    return given


def _curve(budgets: ArrayLike, values: ArrayLike) -> tuple[FloatArray, FloatArray]:
    spent, shares = np.asarray(budgets, dtype=np.float64), np.asarray(values, dtype=np.float64)
    if spent.ndim != 1 or spent.shape != shares.shape:
        raise InvalidParameter("accuracy", f"shape {shares.shape}", f"of the budgets' shape {spent.shape}")
    if not (np.diff(spent) > 0.0).all():
        raise InvalidParameter("budgets", spent.tolist(), "increasing")
    return spent, shares
