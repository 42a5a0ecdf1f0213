"""Tests of whether arms cheaper than the best one are good enough, on unobserved examples.

Letters: L the best arm, whose row is full, with a mean from low_L to high_L, because its unscored examples
count as 0 or 1; margin half of epsilon; low_L + margin a bound on all other means. An arm is good enough if
its mean is at least low_L - margin and high_L - 2 margin. t_1 is the time at which L is known. For an arm
with n examples observed by then, the scores on them are known, and the other N - n are a finite population,
of which every later draw is a uniform one. The tests bet on those alone. docs/how-the-cheapest-is-chosen.md
has the proof.
"""

import math
from typing import Literal, NamedTuple

import numpy as np

from winnow.algorithms.best_mean.config import BestMeanConfig
from winnow.algorithms.bounds.wealth import Wealth
from winnow.algorithms.errors import InvalidParameter
from winnow.algorithms.protocols import Batch
from winnow.algorithms.state.arrays import BoolArray, FloatArray, IntArray

ALL = slice(None)
HOPELESS = 2.0  # standard errors below good enough: such arms are not tested
FUTILITY = 0.1  # an arm is abandoned when bets that it is not good enough reach the inverse


Prefer = Literal["mean", "cost"]
"""Kind of answer: the best arm, or the best and the cheapest that is good enough."""


def thrift_of(config: BestMeanConfig, costs: FloatArray | None) -> "Thrift":
    """Create the search for a cheap arm with half of `delta` and of `epsilon`.

    Raises:
        InvalidParameter: If `delta`, `epsilon` or the cost of an arm is missing.
    """
    if config.delta is None:
        raise InvalidParameter("delta", None, "given to prefer the cheaper")
    if config.epsilon == 0.0:
        raise InvalidParameter("epsilon", 0.0, "above 0 to prefer the cheaper")
    if costs is None:
        raise InvalidParameter("costs", None, "given to prefer the cheaper")
    costs = np.asarray(costs, dtype=np.float64)
    if costs.shape != (config.n_arms,) or not (np.isfinite(costs) & (costs >= 0.0)).all():
        raise InvalidParameter("costs", costs.tolist(), f"{config.n_arms} finite numbers of at least 0")
    return Thrift(config.n_examples, costs, config.epsilon / 2.0, config.delta / 2.0)


class CandidateTests(NamedTuple):
    """Tests of one arm: that its mean is high enough, and that it is not."""

    is_enough: Wealth
    is_less: Wealth


class Thrift:
    """Arms cheaper than the best one, tested from the cheapest on.

    Args:
        n_examples: N.
        costs: Shape (K,), cost of each arm, fixed before any score is observed.
        margin: Largest amount by which the chosen arm's mean can lie below the best arm's.
        delta: Upper bound of the probability that the chosen arm's mean lies lower.
    """

    def __init__(self, n_examples: int, costs: FloatArray, margin: float, delta: float) -> None:
        self._n_examples = n_examples
        self._costs, self._margin, self.delta = costs, margin, delta
        self._told: list[list[tuple[IntArray, FloatArray]]] = [[] for _ in costs]  # by arm
        self._row: FloatArray = np.zeros(n_examples)  # (N,) scores of the best arm, unscored as 0
        self._least = -margin  # smallest difference of an arm's mean from low_L that is good enough
        self._order: list[int] = []  # arms to test, cheapest first
        self._tests: dict[int, CandidateTests] = {}
        self._level = np.inf
        self.has_begun = False
        """Whether the best arm is known."""
        self.n_dropped = 0
        """Number of arms dropped before the best one was known."""
        self.chosen: int | None = None
        """The cheapest arm shown to be good enough."""
        self.given_up = np.zeros(len(costs), dtype=np.bool_)
        """Shape (K,), arms no longer tested."""

    @property
    def next_arm(self) -> int | None:
        """The arm under test; None if no arm is left to test, or one is chosen."""
        if self.chosen is not None:
            return None
        return next((arm for arm in self._order if not self.given_up[arm]), None)

    @property
    def goes_on(self) -> bool:
        """Whether an arm is under test, or tests have not begun because the best arm is not known yet."""
        return not self.has_begun or self.next_arm is not None

    def begin(self, best: int, active: BoolArray, *, may_choose: bool = True) -> None:
        """Fix the best arm, whose row is full, and the arms to test against it.

        Args:
            best: L.
            active: Shape (K,), arms not dropped.
            may_choose: Whether a cheaper arm may be chosen at all; if not, no arm is tested.
        """
        self.has_begun, self.n_dropped = True, int(np.count_nonzero(~active))
        self._row = self._scores_of(best, 0.0)
        n_unscored = float(self._scores_of(best, 1.0).sum() - self._row.sum())
        self._least = max(-self._margin, n_unscored / self._n_examples - 2.0 * self._margin)
        cheaper = np.flatnonzero(active & (self._costs < self._costs[best]) & may_choose)
        differences = {int(arm): self._differences(int(arm)) for arm in cheaper}
        hopeful = [arm for arm in differences if self._is_hopeful(differences[arm])]
        means = {arm: found.mean() if len(found := differences[arm]) else 0.0 for arm in hopeful}
        self._order = sorted(hopeful, key=lambda arm: (self._costs[arm], -means[arm], arm))
        if hopeful:
            self._level = len(hopeful) / self.delta
        for arm in self._order:
            self._begin_test(arm, differences[arm])
        self._choose()

    def tell(self, batch: Batch, scores: FloatArray, active: BoolArray) -> None:
        """Absorb scores, shape (B,), NaN if unscored; `active`, (K,), are the arms not dropped."""
        for arm in np.unique(batch.arms).tolist():
            mine = batch.arms == arm
            examples, own = batch.examples[mine], scores[mine]
            self._told[arm].append((examples, own))
            if arm in self._tests and not self.given_up[arm]:
                self._bet(arm, examples, own)
        if self.has_begun:
            self.given_up |= ~active
            if self.chosen is not None and not active[self.chosen]:  # dropped by rounds that were in flight
                self.chosen = None
            self._choose()

    def _scores_of(self, arm: int, unscored: float) -> FloatArray:
        """Scores of an arm by example, shape (N,); 0 if unobserved."""
        row = np.zeros(self._n_examples)
        for examples, scores in self._told[arm]:
            row[examples] = np.nan_to_num(scores, nan=unscored)
        return row

    def _differences(self, arm: int) -> FloatArray:
        """Scores less those of the best arm on the same examples, unscored as 0, shape (n,)."""
        found = [np.nan_to_num(scores, nan=0.0) - self._row[examples] for examples, scores in self._told[arm]]
        return np.concatenate(found) if found else np.zeros(0)

    def _is_hopeful(self, differences: FloatArray) -> bool:
        """Whether an arm is worth testing; this affects only the cost, because t_1 precedes all tests."""
        n = len(differences)
        if n == 0:
            return True
        spread = math.sqrt((((differences - differences.mean()) ** 2).sum() + 0.25) / (n + 1))
        return bool(differences.mean() >= self._least - HOPELESS * spread / math.sqrt(n))

    def _begin_test(self, arm: int, differences: FloatArray) -> None:
        left = self._n_examples - len(differences)
        if left == 0:
            return
        # Mean of the remaining examples if the arm's row were exactly good enough; then scaled to [0, 1].
        least = (self._least * self._n_examples - differences.sum()) / left
        grid = np.array([(1.0 + least) / 2.0])
        self._tests[arm] = CandidateTests(
            Wealth(1, left, 1.0 / self._level, grid), Wealth(1, left, FUTILITY, 1.0 - grid)
        )

    def _bet(self, arm: int, examples: IntArray, scores: FloatArray) -> None:
        test, theirs = self._tests[arm], self._row[examples]
        test.is_enough.bet(0, (1.0 + np.nan_to_num(scores, nan=0.0) - theirs) / 2.0, ALL)
        test.is_less.bet(0, (1.0 - np.nan_to_num(scores, nan=1.0) + theirs) / 2.0, ALL)

    def _choose(self) -> None:
        """Go through the arms from the cheapest on, until one is good enough or needs more tests."""
        while (arm := self.next_arm) is not None:
            if self._is_enough(arm):
                self.chosen = arm
            elif self._is_in_vain(arm):
                self.given_up[arm] = True
            else:
                return

    def _is_enough(self, arm: int) -> bool:
        total = float(self._differences(arm).sum()) - self._row_untold(arm)
        if total >= (self._least - 1e-9) * self._n_examples:
            return True  # certain for any values of the unobserved scores
        return arm in self._tests and bool(self._tests[arm].is_enough.capital(0)[0] >= self._level)

    def _is_in_vain(self, arm: int) -> bool:
        told = sum(len(examples) for examples, _ in self._told[arm])
        if told == self._n_examples:
            return True
        return bool(self._tests[arm].is_less.capital(0)[0] >= 1.0 / FUTILITY)

    def _row_untold(self, arm: int) -> float:
        """Sum of the best arm's scores on examples unobserved for the arm."""
        told = [examples for examples, _ in self._told[arm]]
        return float(self._row.sum() - sum(self._row[examples].sum() for examples in told))
