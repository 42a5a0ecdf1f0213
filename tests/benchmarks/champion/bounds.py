"""What no selector can do without, and what one could do that knew the answer beforehand.

Least: a selector that errs with probability at most delta on every table of scores in [0, 1]. Take an arm i
that is not best, F of its cells that each lack at least r to 1, and m such that m r is more than what i's
sum lacks to the best. In the table in which a random m of these F cells are 1, i alone is best. A run on
the table as it is that sees k of the F cells sees none of the m with probability g(k) = C(F - k, m) /
C(F, m), and is then the same run in the other table. So E[g(k); the answer is right] <= delta on average
over the m, and as g is convex and the answer is right with probability 1 - delta or more, E[k | right] is
at least where g, joined by straight lines, is delta / (1 - delta); and E[k] at least 1 - delta times that.
Each i has such a least number, of cells of its own, with the r that makes it largest. So has the best arm,
if there is but one, with cells that fall to 0.

Oracle: the best arm is known, and each other one is tested on pairs of its scores with the best one's on
the same examples, by bets of a constant size, the best for this arm and table, each test at delta. The best
arm is asked on as many examples as the longest of these tests takes.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

ORDERS = 20
"""In which the examples of a pair are drawn, for the oracle's mean."""
BET_SIZES = np.geomspace(0.02, 8.0, 30)
LEAST_GAP = 1e-9


class Limits(NamedTuple):
    """Percent of the grid."""

    oracle: float
    least: float


def limits_of(scores: np.ndarray, delta: float) -> Limits:
    """Of a table of scores in [0, 1], shape (K, N)."""
    return Limits(
        100.0 * oracle_share(scores, delta, np.random.default_rng(0)), 100.0 * least_share(scores, delta)
    )


def least_share(scores: np.ndarray, delta: float) -> float:
    """Of the grid; below it no mean number of comparisons can be. Scores of shape (K, N), in [0, 1]."""
    sums = scores.sum(axis=1)
    best = sums >= sums.max() - LEAST_GAP
    lacking = sums.max() - sums
    least = sum(_least(1.0 - scores[arm], lacking[arm], delta) for arm in np.flatnonzero(~best))
    if best.sum() == 1 and not best.all():
        least += _least(scores[best][0], lacking[~best].min(), delta)
    return least / scores.size


def _least(room: np.ndarray, lacking: float, delta: float) -> float:
    """Of an arm: by how much each cell can change, and by how much the sum must."""
    largest = np.sort(room)[::-1]
    found = 0.0
    for at_least in np.unique(largest[largest > 0.0]):
        n_cells = int(np.count_nonzero(largest >= at_least))
        moved = int(lacking / at_least + LEAST_GAP) + 1
        if moved <= n_cells:
            found = max(found, _seen(n_cells, moved, delta))
    return found


def _seen(n_cells: int, moved: int, delta: float) -> float:
    seen = np.arange(n_cells - moved + 2)
    left = n_cells - seen
    with np.errstate(invalid="ignore"):
        logs = gammaln(left + 1) - gammaln(np.maximum(left - moved, 0) + 1)
    missed = np.where(left >= moved, np.exp(logs - logs[0]), 0.0)  # g, which falls
    return (1.0 - delta) * float(np.interp(-delta / (1.0 - delta), -missed, seen))


def oracle_share(scores: np.ndarray, delta: float, rng: np.random.Generator) -> float:
    """Of the grid, the mean over random orders of the examples. Scores of shape (K, N), in [0, 1]."""
    n_arms, n_examples = scores.shape
    best = int(scores.sum(axis=1).argmax())
    orders = np.argsort(rng.random((ORDERS, n_examples)), axis=1)
    others = [arm for arm in range(n_arms) if arm != best]
    drawn = np.stack([_drawn((scores[best] - scores[arm])[orders], delta) for arm in others])
    return float((drawn.sum(axis=0) + drawn.max(axis=0)).mean() / scores.size)


def _drawn(leads: np.ndarray, delta: float) -> np.ndarray:
    """Draws until the leads of pairs, shape (orders, N), refute that their mean is 0 or less; by order."""
    n_examples = leads.shape[1]
    after = np.arange(n_examples - 1, -1, -1)  # examples left after each draw
    sums = leads.cumsum(axis=1)
    untold = (leads - sums) / (after + 1)  # the mean of the untold leads, if that of all is 0
    certain = _first(sums > after)
    found = np.full(len(leads), float(n_examples))
    for size in BET_SIZES:
        stakes = np.minimum(size, 0.98 / np.maximum(1.0 + untold, LEAST_GAP))
        logs = np.log1p(stakes * (leads - untold)).cumsum(axis=1)
        drawn = np.minimum(_first(logs >= np.log(1.0 / delta)), certain) + 1.0
        found = drawn if drawn.mean() < found.mean() else found
    return found


def _first(passed: np.ndarray) -> np.ndarray:
    """The place of the first truth of each row; the last place where there is none."""
    passed[:, -1] = True
    return passed.argmax(axis=1)
