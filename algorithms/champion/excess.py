"""Upper bound on how much better than the named arm another arm can be.

It is valid at any time. docs/how-much-better-another-can-be.md has the statement and its proof. Letters: a is
the named arm, x the excess, s the share of an arm's stake that is bet on not exceeding a by x. s equals v if
races bet within epsilon.

`PairBets` bets, in a race, that an arm does not exceed another arm by a margin, for any margin. Its letters
are those of `within_epsilon`, with the margin x instead of epsilon. The bets are stored with the columns and
do not depend on x, so a wealth does not decrease in x.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from winnow.algorithms.champion.elimination import TOLERANCE, Evidence
from winnow.algorithms.champion.race import BETS, FIRST_ADAPTIVE, LEAST_LEAD, Columns, log_growth
from winnow.algorithms.champion.wealth import HIGHEST_LOG
from winnow.algorithms.champion.within_epsilon import SHARE_OF_FIXED
from winnow.algorithms.decision import Excess
from winnow.algorithms.state.arrays import BoolArray, FloatArray, IntArray


class PairBets(NamedTuple):
    """Bets, on T columns, of the A arms that started a race, each against one of them."""

    arms: IntArray
    """Shape (A,), ascending."""
    lead: FloatArray
    """Shape (A, T), D; NaN on columns after the arm left the race."""
    before: FloatArray
    """Shape (A, T), weighted sums of D before each column."""
    left: FloatArray
    """Shape (T,), weight of the examples unobserved before each column."""
    adaptive: FloatArray
    """Shape (A, T), adaptive bets."""
    n_examples: int
    """N."""

    @classmethod
    def of(cls, told: list[Columns], other: int, n_examples: int, epsilon: float) -> "PairBets":
        """Create the bets of a race against one arm.

        They are made on the columns observed while that arm was in the race.

        Args:
            told: The columns, at least one batch; the arm is in the first.
            other: The arm a.
            n_examples: N.
            epsilon: Margin that the adaptive bets are fitted to; 0 fits them to the leads alone.
        """
        arms = told[0].arms
        batches = [each for each in told if (each.arms == other).any()]
        sizes = [len(each.weights) for each in batches]
        weights = np.concatenate([each.weights for each in batches])  # (T,)
        lead = np.full((len(arms), len(weights)), np.nan)
        for columns, end, size in zip(batches, np.cumsum(sizes).tolist(), sizes, strict=True):
            own = np.nan_to_num(columns.scores[columns.arms == other], nan=0.0)  # (1, B)
            theirs = np.nan_to_num(columns.scores, nan=1.0)
            lead[np.searchsorted(arms, columns.arms), end - size : end] = own - theirs
        worth = weights * np.nan_to_num(lead)
        left = np.maximum(n_examples - (weights.cumsum() - weights), weights)
        adaptive = _adaptive(np.nan_to_num(lead), np.array(sizes), n_examples / left, epsilon)
        return cls(arms, lead, worth.cumsum(axis=1) - worth, left, adaptive, n_examples)

    def wealths(self, rows: IntArray, margin: float) -> FloatArray:
        """Wealths of the arms in R rows for a margin, from a stake of 1, shape (R,)."""
        lead, adaptive = self.lead[rows], self.adaptive[rows]
        level = -(self.n_examples * margin + self.before[rows]) / self.left
        lead = np.where(np.isnan(lead), level, lead)  # gives a factor of 1
        logs = log_growth(lead, level, self.n_examples / self.left, adaptive)
        of_bets = np.exp(np.minimum(logs, HIGHEST_LOG))
        fixed = of_bets[:, : len(BETS)].mean(axis=1)
        return np.asarray(SHARE_OF_FIXED * fixed + (1.0 - SHARE_OF_FIXED) * of_bets[:, -1])


def _adaptive(lead: FloatArray, sizes: IntArray, grown: FloatArray, epsilon: float) -> FloatArray:
    """Adaptive bets on each column, shape (A, T), from the leads in earlier batches."""
    starts = sizes.cumsum() - sizes  # (S,) columns before each batch
    sums = np.pad((lead + epsilon).cumsum(axis=1), ((0, 0), (1, 0)))[:, starts]  # (A, S)
    squares = np.pad(((lead + epsilon) ** 2).cumsum(axis=1), ((0, 0), (1, 0)))[:, starts]
    moment, mean = (squares + 0.1) / (starts + 1), sums / np.maximum(starts, 1)
    if epsilon > 0.0:
        return np.repeat(np.maximum(mean, epsilon) / moment, sizes, axis=1)
    least = LEAST_LEAD * np.sqrt(moment / np.maximum(starts * grown[starts], 1.0))
    bets = np.where(starts > 0, np.maximum(mean, least) / moment, FIRST_ADAPTIVE)
    return np.asarray(np.repeat(bets, sizes, axis=1) * grown)


GROWTH = 1.02
"""Growth of the number of observed pairs after which the bound is recomputed."""
STEPS = 1000
"""Number of steps into which an excess between 0 and 1 is divided."""
SHARE, SHARE_OF_TWO = 0.4, 0.8
"""Share s of an arm's stake that is bet on the excess, if races do not bet within epsilon.
SHARE applies to races of three or more arms, SHARE_OF_TWO to races of two. Neither of two arms is eliminated
while they race."""


class ExcessBound:
    """Smallest excess proven so far for the arms that are compared now.

    Args:
        n_arms: K.
    """

    def __init__(self, n_arms: int) -> None:
        self.restart(n_arms)

    def restart(self, n_arms: int) -> None:
        """Discard the bound, because arms were added or dropped."""
        self.found: Excess | None = None
        """The proven bound; None until a bound is proven."""
        self._ends = np.ones(n_arms)  # (K,) highest possible mean of an arm, if it is among the best
        self._n_told = 0

    def look(self, evidence: Evidence, n_told: int, delta: float, *, is_last: bool) -> None:
        """Update the bound if enough pairs were observed since the last update.

        Args:
            evidence: The evidence from all observations.
            n_told: Number of observed pairs.
            delta: Upper bound of the probability that any statement is ever wrong.
            is_last: Whether no further pairs may be proposed; the bound is then updated after any new pair.
        """
        if n_told == self._n_told or (n_told < GROWTH * self._n_told and not is_last):
            return
        self._n_told = n_told
        look, below = _Look(evidence), STEPS if self.found is None else round(self.found.most * STEPS)
        found = look.by_race(below) if evidence.champion is None else look.by_tests(below, self._ends)
        if found is not None:
            arm, steps = found
            self.found = Excess(over=arm, most=steps / STEPS, delta=delta)


class _Look:
    """Bounds on the excess from the bets on the observations so far."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence, self._n = evidence, evidence.n_examples
        self._slack, self._most = TOLERANCE * self._n, evidence.most_sums
        self._share = _share(evidence)
        self._kept = (1.0 - self._share) / (1.0 - evidence.mode.within)
        self._shares_tests = self._share == evidence.mode.within  # so arms out by the tests are out here

    def by_race(self, below: int) -> tuple[int, int] | None:
        """The leading arm of a race and its excess, in steps.

        None unless the excess is below `below` steps. Requires that no row has been filled.
        """
        evidence = self._evidence
        arms = np.flatnonzero(evidence.alive & evidence.has_score)
        if self._share == 0.0 or not arms.size:
            return None
        arm = int(arms[evidence.race.low[arms].argmax()])
        may_exceed = evidence.active & ~(evidence.is_beaten & self._shares_tests)
        others = np.flatnonzero(may_exceed & (np.arange(evidence.n_arms) != arm))
        least, pairs = float(evidence.least_sums[arm]), self._pair_bets(arm)
        raced = np.zeros(evidence.n_arms)
        raced[others] = evidence.raced_wealths(others)

        def are_bounded(among: IntArray, steps: int) -> BoolArray:
            return self._pass(among, least, steps, pairs, raced)

        steps = _least_steps(others, below, are_bounded)
        return None if steps is None else (arm, steps)

    def by_tests(self, below: int, ends: FloatArray) -> tuple[int, int] | None:
        """The champion and its excess in steps.

        None unless the excess is below `below` steps.

        Args:
            below: Number of steps of the bound so far.
            ends: Shape (K,), highest possible mean of each arm if it is among the best; lowered in place.
        """
        evidence, arm = self._evidence, self._evidence.champion
        assert arm is not None
        least, pairs = float(evidence.least_sums[arm]), self._pair_bets(arm)
        is_other = evidence.active.copy()
        is_other[evidence.top if evidence.top_m > 1 else arm] = False
        np.minimum(ends, self._most / self._n, out=ends)
        if self._shares_tests:
            for are_out, total in ((evidence.is_out, evidence.total), (evidence.is_beaten, least)):
                ends[are_out & is_other] = np.minimum(ends[are_out & is_other], total / self._n)
        others = np.flatnonzero(is_other)

        def are_bounded(among: IntArray, steps: int) -> BoolArray:
            end = least / self._n + steps / STEPS
            open_ = among[ends[among] > end + TOLERANCE]
            bounded = open_[self._pass(open_, least, steps, pairs)]
            ends[bounded] = end
            return np.asarray(ends[among] <= end + TOLERANCE)

        steps = _least_steps(others, below, are_bounded)
        return None if steps is None else (arm, steps)

    def _pass(
        self,
        arms: IntArray,
        least: float,
        steps: int,
        pairs: PairBets | None,
        raced: FloatArray | None = None,
    ) -> BoolArray:
        """Which arms are shown not to exceed the named arm by an excess, shape (A,).

        Args:
            arms: Shape (A,), ascending.
            least: N mu_a, the sum of the named arm's scores, with unknown scores as 0.
            steps: The excess.
            pairs: The bets of a race against the named arm; None if there are no such bets.
            raced: Shape (K,), the wealths of the race if no row was filled yet; None otherwise.
        """
        evidence, margin = self._evidence, steps / STEPS
        total = least + margin * self._n
        bounded = self._most[arms] <= total + self._slack
        open_ = np.flatnonzero(~bounded)
        if open_.size:
            left = arms[open_]
            wealths = evidence.wealths_at(left, total) if raced is None else raced[left]
            wealths = self._kept * wealths + self._share * _pair_wealths(pairs, left, margin)
            levels = evidence.levels[left]
            bounded[open_] = np.isfinite(levels) & (wealths >= levels)
        return np.asarray(bounded)

    def _pair_bets(self, arm: int) -> PairBets | None:
        told = self._evidence.race.told
        if self._share == 0.0 or arm not in told[0].arms:
            return None
        epsilon = self._evidence.epsilon if self._evidence.mode.within > 0.0 else 0.0
        return PairBets.of(told, arm, self._n, epsilon)


def _share(evidence: Evidence) -> float:
    """The share s; it is fixed before the first score is known."""
    told, within = evidence.race.told, evidence.mode.within
    if within > 0.0 or not told:
        return within
    return SHARE_OF_TWO if len(told[0].arms) == 2 else SHARE


def _pair_wealths(pairs: PairBets | None, arms: IntArray, margin: float) -> FloatArray:
    """Wealths of the bets of some arms against the named arm, shape (A,).

    The stake is 1/(A - 1), with A the number of arms in `pairs`. The wealth of arms without such bets is 0.
    """
    found = np.zeros(len(arms))
    if pairs is not None:
        place = np.searchsorted(pairs.arms, arms).clip(max=len(pairs.arms) - 1)
        has_raced = pairs.arms[place] == arms
        found[has_raced] = pairs.wealths(place[has_raced], margin) / (len(pairs.arms) - 1)
    return found


def _least_steps(arms: IntArray, below: int, holds: Callable[[IntArray, int], BoolArray]) -> int | None:
    """Smallest number of steps at which all arms pass.

    None if it is not less than `below`. Most updates lower a bound by little or not at all, so the search
    starts at `below` and moves down in steps that double.

    Args:
        arms: The arms.
        below: Number of steps to improve on.
        holds: Which of some arms pass at a number of steps.
    """
    found, step, low = below, 1, 0
    while found > 0:
        tried = max(0, found - step)
        passed = holds(arms, tried)
        if not passed.all():
            low, arms = tried + 1, arms[~passed]
            break
        found, step = tried, 2 * step
    while low < found:
        middle = (low + found) // 2
        passed = holds(arms, middle)
        if passed.all():
            found = middle
        else:
            low, arms = middle + 1, arms[~passed]
    return found if found < below else None
