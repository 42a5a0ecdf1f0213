"""Tests of whether means are as high as a bound, one per arm, with upper ends of the means that agree."""

import numpy as np

from winnow.algorithms.certify.e_values import EValues
from winnow.algorithms.certify.intervals import UpperEnds
from winnow.algorithms.certify.setting import Rule, Setting
from winnow.algorithms.state.arrays import BoolArray, FloatArray, IntArray


class OneSidedTests:
    """Per arm, the test that its mean is `bound` or more; it passes once that is refuted.

    Args:
        setting: The problem and the common parameters.
        factors: rho, shape (S,), in [0, 1].
        bound: In (0, 1).
        level: The error probability of each test.
        rule: How it bets.
    """

    def __init__(
        self, setting: Setting, factors: FloatArray, bound: float, *, level: float, rule: Rule
    ) -> None:
        self.evidence = EValues(
            setting.n_arms, factors, bound, betting=rule, level=level, horizon=setting.n_labels
        )
        self._bound = bound
        self._bar = -np.log(level)
        self._ends = UpperEnds(setting.n_arms, factors.size, bound, level) if setting.intervals else None
        self._unknown = np.full(setting.n_arms, np.nan)

    def update(self, arms: IntArray, losses: FloatArray) -> None:
        """Absorb the next losses of some arms, shape (A, B, S), in the order they were drawn."""
        if self._ends is None:
            self.evidence.update(arms, losses)
            return
        bets = np.empty_like(losses)
        self.evidence.update(arms, losses, bets)
        for arm, own, made in zip(arms.tolist(), losses, bets, strict=True):
            self._ends.update(arm, own, made)

    @property
    def passed(self) -> BoolArray:
        """Which means are shown to be below the bound, shape (K,)."""
        passed: BoolArray = self.evidence.log_peaks >= self._bar
        return passed

    @property
    def ends(self) -> FloatArray:
        """What the means are at most, shape (K,): the bound where the test passed; NaN without intervals."""
        if self._ends is None:
            return self._unknown
        # The test and its ends reckon one capital in two ways, which a rounding error may tell apart.
        return np.where(self.passed, self._bound, self._ends.ends)
