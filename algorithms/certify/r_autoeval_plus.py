"""Selectors that certify: R-AutoEval+ and its weaker relatives.

Two of the selectors are baselines without a guarantee.
"""

import math
from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import ArrayLike

from winnow.algorithms.certify.config import CertifyConfig, Rule
from winnow.algorithms.certify.e_values import EValues, UpperEnds
from winnow.algorithms.certify.label_record import (
    AUTOEVALUATED,
    HUMAN,
    UNLABELLED,
    LabelRecord,
    effective_losses,
)
from winnow.algorithms.certify.procedure import Findings, Procedure, by_arms
from winnow.algorithms.claims import HEURISTIC, Claim
from winnow.algorithms.decision import Decision
from winnow.algorithms.errors import InvalidParameter
from winnow.algorithms.protocols import Batch
from winnow.algorithms.state.arrays import BoolArray, FloatArray, IntArray


class OneSidedTests:
    """Tests, one per arm, of the hypothesis "the mean loss is at least `bound`".

    An arm passes once its hypothesis is rejected.

    Args:
        config: The problem and the common parameters.
        factors: Reliance factors rho, shape (S,), in [0, 1].
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
        """Observe the next losses of some arms, in the order of the draws.

        The losses have shape (A, B, S).
        """
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
        """Upper ends of the means, shape (K,): the bound if the test passed.

        NaN without intervals.
        """
        if self._ends is None:
            return self._unknown
        # The test and its ends compute the same capital in two ways, which can differ by rounding.
        return np.where(self.passed, self._bound, self._ends.ends)


class _LabelTest(ABC):
    """Base class of all certify methods.

    A `Procedure` proposes labels and certifies arms by their test results.
    """

    _record: LabelRecord
    _procedure: Procedure

    def ask(self, rng: np.random.Generator) -> Batch:
        """Propose labelled examples that the arms under test have not used.

        Old labels come before new ones. With a fixed sequence, a batch is empty while all pairs of the arm
        under test are in flight.
        """
        return self._procedure.ask(self._findings, rng)

    def decision(self) -> Decision:
        """Recommend the last arm that is certified or passed.

        No arm is recommended if none is certified or passed.
        """
        return self._procedure.decision(self._findings)

    @property
    def certified(self) -> BoolArray:
        """Which arms are certified, or passed, shape (K,)."""
        return self._procedure.certified(self._findings)

    @property
    def n_labels(self) -> int:
        """Number of used labels: examples observed for at least one arm."""
        return self._record.n_told

    @property
    @abstractmethod
    def _findings(self) -> Findings: ...


class BettingTest(_LabelTest):
    """Certify an arm as soon as its e-value reaches 1 / delta, or K / delta for Bonferroni.

    The probability that it ever certifies an arm whose risk is above alpha is at most delta, under the
    assumptions of `EValues`, for an autoevaluator of any quality. Missing losses count at their worst, see
    `effective_losses`, so this holds for any cause of missing losses; in exchange, they cost evidence.

    The same bets on mirrored losses refute arms, so that they get no further labels; see `Procedure`, which
    also states the probability with which intervals hold.

    Estimates are the plain means of the human losses, without the missing ones, moved to the nearest end of
    the interval if they lie outside. With a good autoevaluator, the interval is more precise than the mean.

    Args:
        config: The problem and the common parameters.
        factors: Reliance factors rho, shape (S,), in [0, 1], increasing: how far each strategy relies on
            the autoevaluator.
    """

    def __init__(self, config: CertifyConfig, factors: FloatArray) -> None:
        columns = (HUMAN, AUTOEVALUATED, UNLABELLED) if factors.any() else (HUMAN,)
        self._record = LabelRecord(config, columns, estimated=HUMAN)
        claim = Claim(kind="proven", delta=config.delta, assumptions=("random-labels",))
        self._procedure = Procedure(config, self._record, claim)
        self._alpha = config.alpha
        self._low = OneSidedTests(config, factors, config.alpha, level=config.level, rule=config.rule)
        mirrored = min(1.0 - config.alpha, math.nextafter(1.0, 0.0))  # rounding can give 1
        # Bets without a horizon find a hopeless arm early, not only at the last label.
        self._high = OneSidedTests(config, factors, mirrored, level=config.refutation_level, rule="up")
        self.factors = factors
        """Reliance factors rho, shape (S,)."""

    def tell(self, batch: Batch, outcomes: ArrayLike) -> None:
        """Observe losses in [0, 1], NaN if unscored.

        Shape (B, 3) or (B, 4), with columns as in `label_record`.
        """
        for arms, losses in by_arms(batch, self._record.tell(batch, outcomes)):
            self._low.update(arms, effective_losses(losses, self.factors))
            self._high.update(arms, 1.0 - effective_losses(losses, self.factors, "best"))

    @property
    def log_e_values(self) -> FloatArray:
        """Current log e-values of the arms, shape (K,); 0 before the first observation."""
        return self._low.evidence.logs.copy()

    @property
    def log_peaks(self) -> FloatArray:
        """Highest log e-values so far, shape (K,); they decide which arms are certified."""
        return self._low.evidence.log_peaks.copy()

    @property
    def weights(self) -> FloatArray:
        """Weight of each reliance factor for each arm, shape (K, S), rows summing to 1."""
        return self._low.evidence.weights

    @property
    def _findings(self) -> Findings:
        return Findings(
            passed=self._low.passed,
            refuted=self._high.passed,
            lower=np.minimum(1.0 - self._high.ends, self._alpha),
            upper=self._low.ends,
        )


ROUNDING = 1e-9  # sums of the same losses in another order can differ by this much


class MeanTest(_LabelTest):
    """Pass or fail an arm by the mean of its losses, once all its labels are observed.

    A baseline without a guarantee, whatever delta is. Missing losses are left out.

    Args:
        config: The problem and the common parameters; delta and the betting rule are not used.
        column: Column of the loss whose mean is used, as in `label_record`.
    """

    def __init__(self, config: CertifyConfig, column: int) -> None:
        self._alpha = config.alpha
        self._record = LabelRecord(config, (column,), estimated=column)
        self._procedure = Procedure(config, self._record, HEURISTIC)
        self._nowhere = np.zeros(config.n_arms, dtype=np.bool_)
        self._unknown = np.full(config.n_arms, np.nan)

    def tell(self, batch: Batch, outcomes: ArrayLike) -> None:
        """Observe losses in [0, 1], NaN if unscored.

        Shape (B, 3) or (B, 4), with columns as in `label_record`.
        """
        self._record.tell(batch, outcomes)

    @property
    def _findings(self) -> Findings:
        return Findings(
            passed=self._record.has_all & (self._record.means <= self._alpha + ROUNDING),
            refuted=self._nowhere,
            lower=self._unknown,
            upper=self._unknown,
        )


class RAutoEvalPlus(BettingTest):
    """Certify by the average capital of strategies with reliance on the autoevaluator from none to full.

    Their reliance factors are evenly spaced from 0 to 1. The average is never below 1 / S of the best
    strategy's capital. So not knowing which strategy is best costs at most log(S) of evidence, a few labels.

    Args:
        config: The problem and the common parameters.
        strategies: S, the number of reliance factors, at least 2.

    Source: Park et al. (2025), "Adaptive Prediction-Powered AutoEval with Reliability and Efficiency
    Guarantees", Algorithm 1.
    """

    def __init__(self, config: CertifyConfig, *, strategies: int = 10) -> None:
        if strategies < 2:
            raise InvalidParameter("strategies", strategies, "at least 2 (the factors 0 and 1)")
        super().__init__(config, np.linspace(0.0, 1.0, strategies))


class RAutoEval(BettingTest):
    """Certify by bets on human losses with the full correction by the autoevaluator (rho = 1).

    With a poor autoevaluator it needs more labels than `r-eval`, with the same guarantee.

    Source: Einbinder, Ringel, Romano (2024), "Semi-supervised Risk Control via Prediction-Powered Inference",
    as stated by Park et al. (2025), equation (8).
    """

    def __init__(self, config: CertifyConfig) -> None:
        super().__init__(config, np.ones(1))


class REval(BettingTest):
    """Certify by bets on human losses alone (rho = 0).

    Autoevaluated and unlabelled losses can be missing.

    Source: Waudby-Smith & Ramdas (2024), "Estimating means of bounded random variables by betting", JRSS B
    86(1), as stated by Park et al. (2025), Section 2.
    """

    def __init__(self, config: CertifyConfig) -> None:
        super().__init__(config, np.zeros(1))


class Eval(MeanTest):
    """Pass an arm if the mean of its human losses is at most alpha, without any guarantee.

    Source: Park et al. (2025), Section 1.2.1, for comparison.
    """

    def __init__(self, config: CertifyConfig) -> None:
        super().__init__(config, HUMAN)


class AutoEval(MeanTest):
    """Pass an arm if its mean autoevaluated loss is at most alpha, without any guarantee.

    It reads the losses on unlabelled examples only. Estimates are their means.

    Source: Park et al. (2025), Section 1.2.1, for comparison.
    """

    def __init__(self, config: CertifyConfig) -> None:
        super().__init__(config, UNLABELLED)
