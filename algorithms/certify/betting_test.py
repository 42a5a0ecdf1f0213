"""What the reliable methods share: arms are certified by e-values of bets on their effective losses."""

import numpy as np
from numpy.typing import ArrayLike

from algorithms.arrays import BoolArray, FloatArray
from algorithms.certify.e_values import EValues
from algorithms.certify.intervals import RiskIntervals
from algorithms.certify.label_record import LabelRecord
from algorithms.certify.losses import AUTOEVALUATED, HUMAN, UNLABELLED, effective_losses
from algorithms.certify.procedure import Procedure, by_arms
from algorithms.certify.setting import Setting
from algorithms.decision import Decision
from algorithms.protocols import Batch


class BettingTest:
    """A selector that certifies an arm as soon as its e-value reaches 1 / delta, K / delta for Bonferroni.

    The probability that it ever certifies an arm whose risk is above alpha is at most delta, under the
    assumptions of `EValues`, whatever the autoevaluator is worth. Unscored losses count as `effective_losses`
    says, at their worst, so this holds for every way of losing losses; in exchange, they cost evidence.

    Estimates are the plain means of the human losses, those that are missing left out: with a capable
    autoevaluator the intervals know more, and need not be centred on them.

    Args:
        setting: The problem and the common parameters.
        factors: rho, shape (S,), in [0, 1], increasing: how far each strategy relies on the autoevaluator.
    """

    def __init__(self, setting: Setting, factors: FloatArray) -> None:
        columns = (HUMAN, AUTOEVALUATED, UNLABELLED) if factors.any() else (HUMAN,)
        self._record = LabelRecord(setting, columns, estimated=HUMAN)
        self._procedure = Procedure(setting, self._record)
        self._bar = -np.log(setting.level)
        self._evidence = EValues(
            setting.n_arms,
            factors,
            setting.alpha,
            betting=setting.betting,
            level=setting.level,
            horizon=setting.n_labels,
        )
        self._intervals = (
            RiskIntervals(setting.n_arms, factors, setting.delta, setting.n_labels)
            if setting.intervals
            else None
        )
        self._unknown = np.full(setting.n_arms, np.nan)
        self.factors = factors
        """rho, shape (S,)."""

    def ask(self, rng: np.random.Generator) -> Batch:
        """Propose labelled examples that the arms under test have not seen, old labels before new ones.

        With a fixed sequence, a batch is empty as long as all pairs of the arm under test are in flight.
        """
        return self._procedure.ask(self._passed, rng)

    def tell(self, batch: Batch, outcomes: ArrayLike) -> None:
        """Absorb human, autoevaluated and unlabelled losses in [0, 1], shape (B, 3), NaN where unscored."""
        for arms, losses in by_arms(batch, self._record.tell(batch, outcomes)):
            self._evidence.update(arms, effective_losses(losses, self.factors))
            if self._intervals is not None:
                for arm, own in zip(arms.tolist(), losses, strict=True):
                    self._intervals.update(arm, own)

    def decision(self) -> Decision:
        """Recommend the last certified arm, or none."""
        intervals = self._intervals
        return self._procedure.decision(
            self._passed,
            self._unknown if intervals is None else intervals.lower,
            self._unknown if intervals is None else intervals.upper,
        )

    @property
    def certified(self) -> BoolArray:
        """Which arms are certified, shape (K,)."""
        return self._procedure.certified(self._passed)

    @property
    def log_e_values(self) -> FloatArray:
        """The logarithms of the arms' e-values now, shape (K,); 0 where nothing was told."""
        return self._evidence.logs.copy()

    @property
    def log_peaks(self) -> FloatArray:
        """The logarithms of the highest e-values so far, shape (K,), by which arms are certified."""
        return self._evidence.log_peaks.copy()

    @property
    def weights(self) -> FloatArray:
        """How much each reliance factor counts for each arm, shape (K, S), rows summing to 1."""
        return self._evidence.weights

    @property
    def n_labels(self) -> int:
        """Labels that were used: examples that at least one arm was told of."""
        return self._record.n_told

    @property
    def _passed(self) -> BoolArray:
        passed: BoolArray = self._evidence.log_peaks >= self._bar
        return passed
