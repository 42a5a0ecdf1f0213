"""Base of the reliable methods, which certify arms by e-values of bets on their effective losses."""

import math

import numpy as np
from numpy.typing import ArrayLike

from winnow.algorithms.certify.config import CertifyConfig, Rule
from winnow.algorithms.certify.e_values import EValues
from winnow.algorithms.certify.intervals import UpperEnds
from winnow.algorithms.certify.label_record import (
    AUTOEVALUATED,
    HUMAN,
    UNLABELLED,
    LabelRecord,
    effective_losses,
)
from winnow.algorithms.certify.procedure import Findings, Procedure, by_arms
from winnow.algorithms.claims import Claim
from winnow.algorithms.decision import Decision
from winnow.algorithms.protocols import Batch
from winnow.algorithms.state.arrays import BoolArray, FloatArray, IntArray


class OneSidedTests:
    """Tests, one per arm, of the hypothesis that its mean is at least `bound`; passed once refuted.

    Args:
        config: The problem and the common parameters.
        factors: rho, shape (S,), in [0, 1].
        bound: In (0, 1).
        level: The error probability of each test.
        rule: Betting rule of each test.
    """

    def __init__(
        self, config: CertifyConfig, factors: FloatArray, bound: float, *, level: float, rule: Rule
    ) -> None:
        self.evidence = EValues(
            config.n_arms, factors, bound, betting=rule, level=level, horizon=config.n_labels
        )
        self._bound = bound
        self._bar = -np.log(level)
        self._ends = UpperEnds(config.n_arms, factors.size, bound, level) if config.intervals else None
        self._unknown = np.full(config.n_arms, np.nan)

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
        """Mask of the means shown to be below the bound, shape (K,)."""
        passed: BoolArray = self.evidence.log_peaks >= self._bar
        return passed

    @property
    def ends(self) -> FloatArray:
        """Upper ends of the means, shape (K,): the bound if the test passed; NaN without intervals."""
        if self._ends is None:
            return self._unknown
        # The test and its ends compute the same capital in two ways, which can differ by rounding.
        return np.where(self.passed, self._bound, self._ends.ends)


class BettingTest:
    """Certify an arm as soon as its e-value reaches 1 / delta, or K / delta for Bonferroni.

    The probability that it ever certifies an arm whose risk is above alpha is at most delta, under the
    assumptions of `EValues`, for an autoevaluator of any quality. Missing losses count at their worst, see
    `effective_losses`, so this holds whatever makes them missing; in exchange, they cost evidence.

    The same bets on mirrored losses refute arms, so that they get no further labels; see `Procedure`, which
    also states with which probability intervals hold.

    Estimates are the plain means of the human losses, without the missing ones, moved to the nearest end of
    the interval if they lie outside. With a good autoevaluator, the interval is more precise than the mean.

    Args:
        config: The problem and the common parameters.
        factors: rho, shape (S,), in [0, 1], increasing: how far each strategy relies on the autoevaluator.
    """

    def __init__(self, config: CertifyConfig, factors: FloatArray) -> None:
        columns = (HUMAN, AUTOEVALUATED, UNLABELLED) if factors.any() else (HUMAN,)
        self._record = LabelRecord(config, columns, estimated=HUMAN)
        claim = Claim(kind="proven", delta=config.delta, assumptions=("random-labels",))
        self._procedure = Procedure(config, self._record, claim)
        self._alpha = config.alpha
        self._low = OneSidedTests(config, factors, config.alpha, level=config.level, rule=config.rule)
        mirrored = min(1.0 - config.alpha, math.nextafter(1.0, 0.0))  # rounding can give 1
        # Bets without a horizon: a hopeless arm should be found early, not just in time.
        self._high = OneSidedTests(config, factors, mirrored, level=config.refutation_level, rule="up")
        self.factors = factors
        """rho, shape (S,)."""

    def ask(self, rng: np.random.Generator) -> Batch:
        """Propose labelled examples that the arms under test have not used, old labels before new ones.

        With a fixed sequence, a batch is empty while all pairs of the arm under test are in flight.
        """
        return self._procedure.ask(self._findings, rng)

    def tell(self, batch: Batch, outcomes: ArrayLike) -> None:
        """Absorb losses in [0, 1], shape (B, 3) or (B, 4), as in `label_record`, NaN if unscored."""
        for arms, losses in by_arms(batch, self._record.tell(batch, outcomes)):
            self._low.update(arms, effective_losses(losses, self.factors))
            self._high.update(arms, 1.0 - effective_losses(losses, self.factors, "best"))

    def decision(self) -> Decision:
        """Recommend the last certified arm, or none."""
        return self._procedure.decision(self._findings)

    @property
    def certified(self) -> BoolArray:
        """Mask of the certified arms, shape (K,)."""
        return self._procedure.certified(self._findings)

    @property
    def log_e_values(self) -> FloatArray:
        """Current log e-values of the arms, shape (K,); 0 before the first observation."""
        return self._low.evidence.logs.copy()

    @property
    def log_peaks(self) -> FloatArray:
        """Highest log e-values so far, shape (K,), by which arms are certified."""
        return self._low.evidence.log_peaks.copy()

    @property
    def weights(self) -> FloatArray:
        """Weight of each reliance factor for each arm, shape (K, S), rows summing to 1."""
        return self._low.evidence.weights

    @property
    def n_labels(self) -> int:
        """Number of used labels: examples observed for at least one arm."""
        return self._record.n_told

    @property
    def _findings(self) -> Findings:
        return Findings(
            passed=self._low.passed,
            refuted=self._high.passed,
            lower=np.minimum(1.0 - self._high.ends, self._alpha),
            upper=self._low.ends,
        )
