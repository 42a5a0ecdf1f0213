"""Tests and intervals for the mean difference of two arms on new examples.

The benchmark's examples are independent draws from a population, and so are the score differences of two
arms on them. But which examples are scored for both arms depends on scores, and so does the time when a
campaign ends. A test at level l therefore combines three tests. By a union bound, its probability of ever
being wrong is at most l:

* one at level `SHARE_OF_COMPLETE` l, once both arms were evaluated on every example: a sample of fixed size;
* one at level `SHARE_OF_ORDER` l for each of the two arms, on the first T examples in the order of that arm's
  draws, on all of which the other arm was evaluated too. The order does not depend on scores. T can depend
  on them, so the test is valid for all T simultaneously. As long as both orders are the same, as in a race,
  these two are one test at twice the level.

docs/how-new-examples-are-judged.md has the proof.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from scipy.special import betainc, xlogy

from winnow.algorithms.bounds.averaged_bets import MOST_STAKED, average_capital, variances_before
from winnow.algorithms.bounds.half_mixture import HalfMixture
from winnow.algorithms.state.arrays import BoolArray, FloatArray, IntArray

SHARE_OF_COMPLETE = 0.5
SHARE_OF_ORDER = (1.0 - SHARE_OF_COMPLETE) / 2.0

HALVINGS = 40  # interval ends are exact to 1e-12, and rounded outward by that
# numbers of draws for which bets are tuned if the sample size is not fixed
FIRST_HORIZON, HORIZON_RATIO, N_HORIZONS = 16.0, 4.0, 6


@dataclass(frozen=True, slots=True)
class PairedSample:
    """Score differences of two arms, first minus second, in [-1, 1]."""

    complete: FloatArray | None
    """Differences on all examples, in an order that does not depend on scores.
    Differences without a score are omitted. None unless both arms were evaluated on every example."""
    begins_binary: bool
    """Whether both scores of the first difference in `complete` are 0 or 1.
    This selects the test of the remaining differences."""
    in_order: Sequence[FloatArray] = ()
    """At most two sequences of differences, one for each arm.
    Each is in the order of the arm's draws and ends before the first example on which the other arm was
    not evaluated."""
    n_common: int = 0
    """Number of differences from examples that both arms drew in the same order.
    They are at the start of each sequence."""
    sizes: IntArray | None = None
    """Shape (C,), number of examples of each cluster.
    None unless whole clusters of examples are drawn. `complete` then contains, for each cluster, the sum
    of its differences divided by the largest size."""

    @property
    def mean(self) -> float:
        """Mean difference over the examples of the largest random sample."""
        if self.complete is not None and self.sizes is not None:
            return float(self.complete.sum() * self.sizes.max() / self.sizes.sum())
        return float(self.largest.mean())

    @property
    def largest(self) -> FloatArray:
        """The largest random sample of differences, of examples or of clusters.

        Empty without any sample.
        """
        known = self.in_order if self.complete is None else [self.complete]
        return max(known, key=len, default=np.zeros(0))

    @property
    def n_examples(self) -> int:
        """Number of examples in the largest random sample."""
        return len(self.largest) if self.sizes is None else int(self.sizes.sum())

    @property
    def mirrored(self) -> "PairedSample":
        """The sample with the two arms exchanged."""
        complete = None if self.complete is None else -self.complete
        in_order = [-each for each in self.in_order]
        return replace(self, complete=complete, in_order=in_order)

    def levels(self, n: int, level: float) -> FloatArray:
        """Level of a test after each of n differences in an order, shape (n,)."""
        return np.where(np.arange(n) < self.n_common, 2.0, 1.0) * SHARE_OF_ORDER * level


@dataclass(frozen=True, slots=True)
class Row:
    """The draws of one arm."""

    order: IntArray
    """Examples in the order of their draws."""
    scores: FloatArray
    """Shape (N,), NaN if unscored or not drawn."""
    asked: BoolArray
    """Shape (N,), whether each example was drawn."""


def paired_sample(first: Row, second: Row, order: IntArray, *, are_drawn: bool) -> PairedSample:
    """Build the sample of score differences of two arms from their draws.

    Args:
        first: Row of the first arm.
        second: Row of the second arm.
        order: Shape (N,), all examples in an order that does not depend on scores.
        are_drawn: Whether every example was drawn uniformly from those not yet drawn for its arm.
    """
    differences = first.scores - second.scores
    complete, begins_binary = None, False
    if first.asked.all() and second.asked.all():
        known = order[~np.isnan(differences[order])]
        complete = differences[known]
        begins_binary = bool(np.isin([each.scores[known[:1]] for each in (first, second)], (0.0, 1.0)).all())
    shared = min(len(first.order), len(second.order))
    is_common = first.order[:shared] == second.order[:shared]
    common = first.order[: shared if is_common.all() else int(is_common.argmin())]
    in_order = []
    for row, other in ((first, second), (second, first)) if are_drawn else ():
        is_shared = other.asked[row.order]
        until = len(is_shared) if is_shared.all() else int(is_shared.argmin())
        drawn = differences[row.order[:until]]
        in_order.append(drawn[~np.isnan(drawn)])
    n_common = int((~np.isnan(differences[common])).sum())
    return PairedSample(complete, begins_binary, in_order, n_common)


NOTHING = PairedSample(None, begins_binary=False)
"""A sample without any score difference."""


def clustered_sample(differences: FloatArray, cluster_of: IntArray, order: IntArray) -> PairedSample:
    """Build the sample of whole clusters for two fully evaluated arms.

    Args:
        differences: Shape (N,), NaN if unscored.
        cluster_of: Shape (N,), the cluster of each example, from 0 to C - 1.
        order: Shape (C,), all clusters in an order that depends neither on scores nor on sizes.
    """
    known = ~np.isnan(differences)
    sizes = np.bincount(cluster_of[known], minlength=len(order))[order]
    sums = np.bincount(cluster_of[known], weights=differences[known], minlength=len(order))[order]
    is_there = sizes > 0
    if not is_there.any():
        return NOTHING
    return PairedSample(sums[is_there] / sizes.max(), begins_binary=False, sizes=sizes[is_there])


def is_higher(sample: PairedSample, level: float) -> bool:
    """Whether the first arm is shown to have the higher mean on new examples.

    If its mean is not higher, the probability that this is ever true is at most `level`.
    """
    complete = sample.complete
    if complete is not None and len(complete) > 1:
        rest, own = complete[1:], SHARE_OF_COMPLETE * level
        if sample.begins_binary and sign_test(rest) <= own:
            return True
        if not sample.begins_binary and average_capital(_as_scores(rest), 0.5, own) >= 1.0 / own:
            return True
    return any(_ever_higher(each, sample.levels(len(each), level)) for each in sample.in_order)


def sign_test(differences: FloatArray) -> float:
    """One-sided p-value of McNemar's exact test.

    The hypothesis is "the mean difference is at most 0". A gain is a difference of 1, a loss is any negative
    difference, and all others are left out. So the test is valid for all differences in [-1, 1]; for 0/1
    scores it is McNemar's test.

    Source: McNemar (1947), "Note on the sampling error of the difference between correlated proportions or
    percentages", Psychometrika 12(2).
    """
    gains, losses = int((differences >= 1.0).sum()), int((differences < 0.0).sum())
    # The probability of at least so many gains is an incomplete beta function; scipy.stats loads slowly.
    return float(betainc(gains, losses + 1, 0.5)) if gains else 1.0


def difference_interval(sample: PairedSample, alpha: float) -> tuple[float, float] | None:
    """Interval for the mean difference, at confidence 1 - alpha.

    Each end has half of alpha. None if no example is scored for both arms.
    """
    known = [*sample.in_order] if sample.complete is None else [sample.complete, *sample.in_order]
    if not any(len(each) for each in known):
        return None
    lower = _lower_end(sample, alpha / 2.0)
    return lower, -_lower_end(sample.mirrored, alpha / 2.0)


def _lower_end(sample: PairedSample, level: float) -> float:
    """Lower end of the interval at a level, by bisection of `is_above`.

    If `is_above` is false for a mean, it is false for all larger means.
    """
    low, high = -1.0, 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2.0
        low, high = (middle, high) if is_above(sample, middle, level) else (low, middle)
    return low


def is_above(sample: PairedSample, mean: float, level: float) -> bool:
    """Whether bets show that the mean difference on new examples is above `mean`.

    Bets use the complete sample, or the orders of the draws while there is no complete sample. If the mean
    difference is at most `mean`, the probability that this is ever true is at most `level`.

    Args:
        sample: Differences of two arms.
        mean: In (-1, 1).
        level: In (0, 1).
    """
    tested = (mean + 1.0) / 2.0
    if sample.complete is not None and len(sample.complete):
        own = SHARE_OF_COMPLETE * level
        values = _as_scores(sample.complete)
        return average_capital(values, tested, own, sample.sizes) >= 1.0 / own
    return any(
        _ever_above(_as_scores(each), tested, sample.levels(len(each), level)) for each in sample.in_order
    )


def _as_scores(differences: FloatArray) -> FloatArray:
    return (differences + 1.0) / 2.0


def _ever_higher(differences: FloatArray, levels: FloatArray) -> bool:
    """Whether the e-value of the sign test ever reached 1 / level.

    It is computed after each difference, in order.

    Args:
        differences: Shape (n,); zeros are ignored, because the mean of the others has the same sign.
        levels: Shape (n,), level after each difference.
    """
    counted = differences != 0.0
    gains, wanted = _as_scores(differences[counted]), -np.log(levels[counted])
    won = gains.cumsum()
    counts = np.arange(1, len(won) + 1)
    shares = won / counts
    # No mixture exceeds the likelihood ratio of the observed share: skip places where that is too small.
    most = counts * (xlogy(shares, 2.0 * shares) + xlogy(1.0 - shares, 2.0 * (1.0 - shares)))
    places = np.flatnonzero((shares > 0.5) & (most >= wanted))
    values = _half_mixture().log_value(won[places], (counts - won)[places])
    return bool((values >= wanted[places]).any())


@cache
def _half_mixture() -> HalfMixture:
    return HalfMixture(0.5)


def _ever_above(values: FloatArray, mean: float, levels: FloatArray) -> bool:
    """Whether the capital of bets on the values ever reached 1 / level.

    The values are in order. The capital is averaged over bet sizes. Each size is tuned for another number of
    values; none depends on the actual number.
    """
    if len(values) == 0:
        return False
    horizons = FIRST_HORIZON * HORIZON_RATIO ** np.arange(N_HORIZONS)
    scales = np.sqrt(-2.0 * math.log(levels[0]) / horizons)[:, np.newaxis]
    bets = np.minimum(scales / np.sqrt(variances_before(values[np.newaxis])), MOST_STAKED / mean)  # (J, n)
    with np.errstate(over="ignore"):
        capital = np.exp(np.log(1.0 + bets * (values - mean)).cumsum(axis=1)).mean(axis=0)
    return bool((capital >= 1.0 / levels).any())


@dataclass(frozen=True, slots=True)
class BestThere:
    """Which arms could be the best on new examples."""

    candidates: tuple[int, ...]
    """Arms that no other arm is shown to exceed, in ascending order.

    With probability at least 1 - alpha, an arm with the highest mean is among them.
    """
    is_better: bool
    """Whether one candidate remains and is shown to be better than all other arms.
    If another arm has a mean at least as high, the probability that this is true is at most alpha."""


def best_there(
    n_arms: int,
    excluders: Sequence[int],
    silent: frozenset[int],
    alpha: float,
    is_higher: Callable[[int, int, float], bool],
) -> BestThere:
    """Exclude every arm that is shown to be worse than one of `excluders`.

    Args:
        n_arms: K, at least 2.
        excluders: Arms to compare the others with, the most promising first; any choice is valid.
        silent: Arms about which nothing can be shown: they exclude no arm and are never excluded.
        alpha: Error probability of each statement.
        is_higher: For two arms and a level, whether the first arm is shown to have the higher mean on new
            examples. If its mean is not higher, this must be true with probability at most the level.
    """
    level = alpha / (n_arms - 1)
    spoken = [arm for arm in excluders if arm not in silent]
    left = tuple(
        arm
        for arm in range(n_arms)
        if arm in silent or not any(other != arm and is_higher(other, arm, level) for other in spoken)
    )
    if len(left) != 1 or silent:
        return BestThere(left, is_better=False)
    others = [arm for arm in range(n_arms) if arm != left[0]]
    return BestThere(left, is_better=all(is_higher(left[0], arm, alpha / n_arms) for arm in others))


def least_difference(n_examples: int, n_arms: int, alpha: float, disagreement: float) -> float | None:
    """Smallest difference that excludes the worse of two arms as the best.

    Best means best on new examples. Both arms are scored on every example, and their scores are 0 or 1. Then
    `is_higher` is McNemar's exact test, at `SHARE_OF_COMPLETE` of the level alpha / (K - 1) of an exclusion.
    The first example only selects the test, so one example fewer counts.

    Args:
        n_examples: n, at least 1.
        n_arms: K, at least 2.
        alpha: Error probability of the statement on all arms, in (0, 1).
        disagreement: Share of the examples on which exactly one of the two arms is right, in [0, 1].

    Returns:
        The difference of the means; None if the examples on which the arms disagree are too few for any
        difference to be shown.
    """
    level = SHARE_OF_COMPLETE * alpha / (n_arms - 1)
    count = min(round(disagreement * n_examples), n_examples - 1)
    gains = np.arange(math.ceil(count / 2), count + 1)
    # As in `sign_test`: without any gain the p-value is 1.
    p_values = np.where(gains > 0, betainc(np.maximum(gains, 1), count - gains + 1, 0.5), 1.0)
    found = gains[p_values <= level]
    return None if not len(found) else float(2 * found[0] - count) / n_examples


MOST_EXAMPLES = 10_000_000


def examples_needed(difference: float, n_arms: int, alpha: float, disagreement: float) -> int | None:
    """Approximate number of examples that suffice to show a difference.

    Found by doubling, then bisection to 0.1%. The test is discrete, so a slightly smaller number can suffice.

    Args:
        difference: In (0, disagreement].
        n_arms: See `least_difference`.
        alpha: See `least_difference`.
        disagreement: See `least_difference`.

    Returns:
        The number of examples; None if it exceeds `MOST_EXAMPLES`.
    """

    def is_shown(n_examples: int) -> bool:
        least = least_difference(n_examples, n_arms, alpha, disagreement)
        return least is not None and least <= difference

    high = 1
    while not is_shown(high):
        if (high := 2 * high) > MOST_EXAMPLES:
            return None
    low = high // 2
    while high - low > max(1, low // 1000):
        middle = (low + high) // 2
        low, high = (low, middle) if is_shown(middle) else (middle, high)
    return high
