"""Evidence on the difference between each arm's mean and the baseline's, with intervals.

Letters: d the mean over all N examples of an arm's score less the baseline's, in [-1, 1]; y = (1 + d) / 2 the
same in [0, 1], as `confidence_sequences` bets on it; s = delta / (K - 1) the error probability of each of the
K - 1 arms.
"""

from collections import defaultdict
from collections.abc import Mapping
from typing import Literal

import numpy as np

from winnow.algorithms.best_mean.config import BestMeanConfig
from winnow.algorithms.best_mean.stopping import interval_alpha
from winnow.algorithms.bounds.confidence_sequences import FinitePopulationIntervals
from winnow.algorithms.bounds.wealth import Wealth
from winnow.algorithms.decision import Differences
from winnow.algorithms.protocols import Batch
from winnow.algorithms.state.arrays import BoolArray, FloatArray

Pair = tuple[float, float]
"""The arm's score and the baseline's, NaN if unscored."""


class Pairs:
    """Keep scores until the other one of their pair is observed."""

    def __init__(self, baseline: int) -> None:
        self._baseline = baseline
        self._of_baseline: dict[int, float] = {}  # by example
        # by example, until the baseline is observed on it
        self._waiting: dict[int, list[tuple[int, float]]] = {}

    def tell(self, batch: Batch, scores: FloatArray) -> dict[int, FloatArray]:
        """Absorb scores, shape (B,), NaN if unscored.

        Returns:
            The pairs that are now complete, by arm, shape (P, 2), in the order of completion: the arm's
            score, then the baseline's.
        """
        found: dict[int, list[Pair]] = defaultdict(list)
        told = zip(batch.arms.tolist(), batch.examples.tolist(), scores.tolist(), strict=True)
        for arm, example, score in told:
            if arm == self._baseline:
                self._of_baseline[example] = score
                for other, waiting in self._waiting.pop(example, []):
                    found[other].append((waiting, score))
            elif example in self._of_baseline:
                found[arm].append((score, self._of_baseline[example]))
            else:
                self._waiting.setdefault(example, []).append((arm, score))
        return {arm: np.array(pairs) for arm, pairs in found.items()}


ALL = slice(None)

Until = Literal["no-worse", "better"]
"""Goal for an arm: to show that it is no worse, or then also whether it is better."""


class Evidence:
    """Bets on the paired differences of K - 1 arms, each against one baseline.

    Three properties of an arm can be shown, each by a wealth that starts at 1:

    * no worse, d >= -epsilon: betting against d < -epsilon made 1 / s.
    * better, d > 0: the same bets, evaluated against d <= 0, made 2 / s.
    * worse, d < -epsilon: betting against d >= -epsilon made 2 / s.

    The probability that any property shown of any arm is ever wrong is at most delta. A missing score takes
    its worst value for the property, so this holds for any true values. docs/how-a-gate-decides.md has the
    proof.

    Args:
        config: The config of K arms; without `delta` bets show nothing.
        baseline: The arm that the others are compared with.
        until: The property to show.
    """

    def __init__(self, config: BestMeanConfig, baseline: int, until: Until = "no-worse") -> None:
        self._config, self._baseline, self._until = config, baseline, until
        self._delta = interval_alpha(config)
        self._share = self._delta / (config.n_arms - 1)
        sizes = (config.n_arms, config.n_examples)
        epsilon = config.epsilon
        # On the scale [0, 1], a difference of -epsilon is (1 - epsilon) / 2, and one minus that for the
        # mirrored bets.
        self._up = Wealth(*sizes, self._share, np.array([(1.0 - epsilon) / 2.0, 0.5]))
        self._down = Wealth(*sizes, self._share / 2.0, np.array([(1.0 + epsilon) / 2.0, 0.5]))
        self.is_no_worse = np.zeros(config.n_arms, dtype=np.bool_)
        """Shape (K,), arms whose d is at least -epsilon."""
        self.is_better = np.zeros(config.n_arms, dtype=np.bool_)
        """Shape (K,), arms whose d is above 0; each is also no worse."""
        self.is_worse = np.zeros(config.n_arms, dtype=np.bool_)
        """Shape (K,), arms whose d is below -epsilon."""
        # (K,) where showing d > 0 is hopeless; no statement depends on it
        self._seems_not_better = np.zeros(config.n_arms, dtype=np.bool_)
        self._intervals: FinitePopulationIntervals | None = None
        if config.intervals:
            self._intervals = FinitePopulationIntervals(config.n_arms - 1, config.n_examples, self._delta)

    @property
    def is_settled(self) -> BoolArray:
        """Arms with nothing more to show, shape (K,)."""
        no_worse_is_enough = self._seems_not_better | (self._until == "no-worse")
        return self.is_better | self.is_worse | (self.is_no_worse & no_worse_is_enough)

    def tell(self, pairs: Mapping[int, FloatArray]) -> None:
        """Bet on pairs of scores, by arm, shape (P, 2) each; see `Pairs.tell`."""
        for arm, scores in pairs.items():
            if self._intervals is not None:
                middle = (1.0 + scores[:, 0] - scores[:, 1]) / 2.0
                row = np.full(len(scores), self._row(arm))
                self._intervals.update(row, middle)
            if self._config.delta is not None and not self.is_settled[arm]:
                self._bet(arm, scores)

    def differences(self) -> Differences | None:
        """Differences with simultaneous intervals; None if the config wants no intervals."""
        intervals = self._intervals
        if intervals is None:
            return None
        estimates, lower, upper = (
            np.insert(2.0 * ends - 1.0, self._baseline, np.nan)
            for ends in (intervals.estimates, intervals.lower, intervals.upper)
        )
        return Differences(
            against=self._baseline, delta=self._delta, estimates=estimates, lower=lower, upper=upper
        )

    def _row(self, arm: int) -> int:
        """Row of an arm in the intervals, which exclude the baseline."""
        return arm - (arm > self._baseline)

    def _bet(self, arm: int, scores: FloatArray) -> None:
        # Missing scores at their worst: 0 for the arm that should be high, 1 for the other.
        low = np.nan_to_num(scores[:, 0], nan=0.0) - np.nan_to_num(scores[:, 1], nan=1.0)
        high = np.nan_to_num(scores[:, 0], nan=1.0) - np.nan_to_num(scores[:, 1], nan=0.0)
        self._up.bet(arm, (1.0 + low) / 2.0, ALL)
        self._down.bet(arm, (1.0 - high) / 2.0, ALL)
        no_worse, better = self._up.capital(arm)
        worse, not_better = self._down.capital(arm)
        is_better = better >= 2.0 / self._share
        is_no_worse = is_better or no_worse >= 1.0 / self._share
        if not self.is_no_worse[arm]:
            is_worse = worse >= 2.0 / self._share
            if is_no_worse and is_worse:  # a contradiction: nothing is concluded
                return
            self.is_no_worse[arm], self.is_worse[arm] = is_no_worse, is_worse
        self.is_better[arm] = is_better
        self._seems_not_better[arm] = not_better >= 1.0 / self._share
