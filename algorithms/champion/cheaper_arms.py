"""Test whether arms cheaper than the best arm are good enough.

The tests use unobserved examples. Letters: L is the best arm, whose row is full; its mean is between low_L
and high_L, because its unscored examples count as 0 or as 1. The margin is half of epsilon, and low_L +
margin bounds all other means. An arm is good enough if its mean is at least low_L - margin and at least
high_L - 2 margin. t_1 is the time at which L becomes known. For an arm with n examples observed before t_1,
the scores on these are known. The other N - n form a finite population from which every later draw is
uniform; the tests bet only on those draws. docs/how-the-cheapest-is-chosen.md has the proof.
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
HOPELESS = 2.0  # arms more than this many standard errors below good enough are not tested
FUTILITY = 0.1  # an arm is abandoned when bets that it is not good enough reach 1 / FUTILITY


Prefer = Literal["mean", "cost"]
"""Which arm to recommend.
"mean": the best arm. "cost": the cheapest arm that is good enough."""


def thrift_of(config: BestMeanConfig, costs: FloatArray | None) -> "Thrift":
    """Create the search for a cheap arm.

    It gets half of `delta` and half of `epsilon`.

    Raises:
        InvalidParameter: If `delta` or `costs` is None, `epsilon` is 0, or the costs are invalid.
    """
    if config.delta is None:
        raise InvalidParameter("delta", None, "set if prefer is 'cost'")
    if config.epsilon == 0.0:
        raise InvalidParameter("epsilon", 0.0, "above 0 if prefer is 'cost'")
    if costs is None:
        raise InvalidParameter("costs", None, "set if prefer is 'cost'")
    costs = np.asarray(costs, dtype=np.float64)
    if costs.shape != (config.n_arms,) or not (np.isfinite(costs) & (costs >= 0.0)).all():
        raise InvalidParameter("costs", costs.tolist(), f"{config.n_arms} finite numbers of at least 0")
    return Thrift(config.n_examples, costs, config.epsilon / 2.0, config.delta / 2.0)


class CandidateTests(NamedTuple):
    """Two tests of one arm: that its mean is high enough, and that it is not."""

    is_enough: Wealth
    is_less: Wealth


class Thrift:
    """Search for an arm that is cheaper than the best and good enough.

    The cheapest arm is tested first.

    Args:
        n_examples: N.
        costs: Shape (K,), cost of each arm, fixed before any score is observed.
        margin: Largest amount by which the chosen arm's mean can be below the best arm's.
        delta: Upper bound of the probability that the chosen arm's mean is lower than that.
    """

    def __init__(self, n_examples: int, costs: FloatArray, margin: float, delta: float) -> None:
        self._n_examples = n_examples
        self._costs, self._margin, self.delta = costs, margin, delta
        self._told: list[list[tuple[IntArray, FloatArray]]] = [[] for _ in costs]  # by arm
        self._row: FloatArray = np.zeros(n_examples)  # (N,) scores of the best arm, unscored as 0
        self._least = -margin  # an arm is good enough if its mean less low_L is at least this
        self._order: list[int] = []  # arms to test, cheapest first
        self._tests: dict[int, CandidateTests] = {}
        self._level = np.inf
        self.has_begun = False
        """Whether the best arm is known."""
        self.n_dropped = 0
        """Number of arms dropped before the best arm was known."""
        self.chosen: int | None = None
        """The cheapest arm shown to be good enough; None if no arm was shown to be."""
        self.given_up = np.zeros(len(costs), dtype=np.bool_)
        """Shape (K,), arms whose tests were abandoned."""

    @property
    def next_arm(self) -> int | None:
        """The arm under test; None if no arm is left to test, or an arm is already chosen."""
        if self.chosen is not None:
            return None
        return next((arm for arm in self._order if not self.given_up[arm]), None)

    @property
    def goes_on(self) -> bool:
        """Whether the search needs more outcomes.

        True if an arm is under test, or if tests have not begun because the best arm is not known yet.
        """
        return not self.has_begun or self.next_arm is not None

    def begin(self, best: int, active: BoolArray, *, may_choose: bool = True) -> None:
        """Fix the best arm, whose row is full, and the arms to test against it.

        Args:
            best: L.
            active: Shape (K,), arms not dropped.
            may_choose: Whether a cheaper arm may be chosen; if false, no arm is tested.
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
        """Observe scores and continue the tests.

        Args:
            batch: B pairs.
            scores: Shape (B,), NaN if unscored.
            active: Shape (K,), arms not dropped.
        """
        for arm in np.unique(batch.arms).tolist():
            mine = batch.arms == arm
            examples, own = batch.examples[mine], scores[mine]
            self._told[arm].append((examples, own))
            if arm in self._tests and not self.given_up[arm]:
                self._bet(arm, examples, own)
        if self.has_begun:
            self.given_up |= ~active
            if self.chosen is not None and not active[self.chosen]:  # rounds in flight made it dropped
                self.chosen = None
            self._choose()

    def _scores_of(self, arm: int, unscored: float) -> FloatArray:
        """Scores of an arm by example, shape (N,).

        Args:
            arm: The arm.
            unscored: Value of examples that were observed without a score; unobserved examples are 0.
        """
        row = np.zeros(self._n_examples)
        for examples, scores in self._told[arm]:
            row[examples] = np.nan_to_num(scores, nan=unscored)
        return row

    def _differences(self, arm: int) -> FloatArray:
        """Scores of an arm minus those of the best arm on the same examples, shape (n,).

        Unscored counts as 0.
        """
        found = [np.nan_to_num(scores, nan=0.0) - self._row[examples] for examples, scores in self._told[arm]]
        return np.concatenate(found) if found else np.zeros(0)

    def _is_hopeful(self, differences: FloatArray) -> bool:
        """Whether an arm is worth testing.

        The answer affects only the cost: it uses observations before t_1 alone, and the tests bet on later
        ones.
        """
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
        """Go through the arms until one is good enough or needs more tests.

        The cheapest arm comes first.
        """
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
        """Sum of the best arm's scores on the examples that were not observed for the arm."""
        told = [examples for examples, _ in self._told[arm]]
        return float(self._row.sum() - sum(self._row[examples].sum() for examples in told))
