"""Evidence in a record of duels under the Bradley-Terry model.

It uses features of the arms, and the duels can refute it. **Refutation.** Letters as in `bradley_terry`. Two
mixtures of the likelihood of the duels have equal weights. The first is over a separate strength of each arm;
it is the `mixture` for arms without common features. The second is over a separate preference q of each pair:
the product over pairs of B(W + 1/2, N - W + 1/2) / B(1/2, 1/2), which is the mean of q^W (1 - q)^(N - W) for
q from Beta(1/2, 1/2). The first soon detects interactions of factors, the second detects cycles.

If theta* is the truth, the ratio of each to exp(l(theta*)) is a non-negative supermartingale that starts at
1, by the proof in `mixture` with log q in place of log sigmoid(theta . z). Because l(theta*) is at most the
supremum of l, the ratio to that supremum ever reaches 1/delta with probability at most delta.

Unscored duels take their worst case, as there: the product is the smallest over any outcomes of them. Because
log B(a, b) is convex in a for a given a + b and symmetric, that is at the W closest to N / 2. Unscored duels
would lower l, so its value without them is an upper bound. So a model is not refuted because the judge fails
more often when it would prefer one side.

Source: Krichevsky and Trofimov (1981), "The Performance of Universal Encoding", for the mixture over a pair's
preference; Wasserman, Ramdas and Balakrishnan (2020), "Universal Inference", for a maximised likelihood in
the denominator.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import null_space
from scipy.special import betaln

from winnow.algorithms.best_duel.bradley_terry import Fit, Tally, fit_bradley_terry, log_likelihood
from winnow.algorithms.best_duel.config import BestDuelConfig, evidence_delta
from winnow.algorithms.best_duel.count_evidence import CountEvidence
from winnow.algorithms.best_duel.duel_record import DuelRecord
from winnow.algorithms.best_duel.win_tables import worst_preferences
from winnow.algorithms.claims import Claim
from winnow.algorithms.errors import InvalidParameter
from winnow.algorithms.low_rank.factor_model import sigmoid
from winnow.algorithms.papers.bradley_terry.bounds import (
    half_space_suprema,
    nearest_in_planes,
    supremum,
)
from winnow.algorithms.papers.bradley_terry.feature_space import arm_points, differences
from winnow.algorithms.papers.bradley_terry.intervals import extreme_log_odds
from winnow.algorithms.papers.bradley_terry.mixture import (
    LateStarts,
    Part,
    Pooled,
    laplace_log_integral,
    laplace_log_mixture,
    log_mixture,
    pool,
)
from winnow.algorithms.state.arrays import BoolArray, FloatArray

MISFIT_SHARE = 0.1  # share of delta for wrongly refuting the model; the rest is for naming a wrong arm
GROWTH = 1.02  # the fit is tested again after 2% more duels
LAPLACE_ERROR = 2.0  # nats by which Laplace's method can be too low; a larger error would only delay stopping


class BradleyTerryEvidence:
    """Evidence about the best arm under a Bradley-Terry model with features.

    Model: arm i is preferred to arm j with probability sigmoid(theta . (x_i - x_j)). theta is fitted to all
    duels, including those of dropped arms. Dropping arms does not change the true theta*, so it does not
    raise the error probability. The best arm is the best of the active arms.

    Letters: l(theta) is the log-likelihood of the duels, some of them with lower weights. L is the logarithm
    of mixtures of it; l and L are l_q and L_q of `mixture`. d is 0.9 delta.

    * Confidence set: all theta with l(theta) > L - log(1 / d). If the model holds, the set contains theta* at
      every look with probability at least 1 - d.
    * Best arm: known once no theta of the set makes another active arm as good or, with epsilon, preferred to
      the best arm by epsilon. That is, L exceeds the supremum of l over each half-space
      theta . (x_i - x_best) >= log-odds of 1/2 + epsilon by log(1 / d).
    * Interval of an estimate: the values of the estimate over the set.
    * Refutation of the model: `is_misfit`, with error probability 0.1 delta, or an empty set, whose error is
      part of d. The best arm is not known from an empty set.

    So if the model holds, a campaign names a wrong arm or leaves the model with probability at most delta,
    whatever follows. Once the model is refuted, the duels count as in `CountEvidence`, at delta. That proof
    does not use the model, so the two error probabilities do not add up.

    In addition, the best arm is not considered known while the mixture without the features explains the
    scored duels better than the mixture with them. This is no guarantee, but with incomplete features few
    wrong arms are named before the duels refute the features.

    The theta used for estimates and sampling has a ridge of t^(-1/2) in standardised columns. Ties are half a
    win for both arms. Unscored duels count at their worst; estimates leave them out.

    Further assumption: examples are drawn with replacement, so the mean outcome of a duel is independent of
    the past.

    Args:
        config: The problem, with features.
        record: The record of the duels, empty; call `update` after each tell.

    Raises:
        InvalidParameter: If the config has no features, or two arms have the same features.

    Source: Hu et al. (2026), "Adaptive Simulation Experiment for Large Language Model Policy Optimization",
    Section 4.1, for the model and the estimate.
    """

    def __init__(self, config: BestDuelConfig, record: DuelRecord) -> None:
        if config.features is None:
            raise InvalidParameter("features", None, "an array with a row of numbers for each arm")
        self.points = arm_points(config.features)  # (K, r)
        self.is_refuted = False
        self.by_counts = CountEvidence(config, record)
        self._delta = evidence_delta(config)
        self._lead = math.log((0.5 + config.epsilon) / (0.5 - config.epsilon))
        self._record = record
        self._cells = np.triu_indices(record.n_arms, 1)  # all P pairs i < j
        self._z = differences(self.points, np.column_stack(self._cells))  # (P, r)
        self._strength_z = differences(strength_points(record.n_arms), np.column_stack(self._cells))
        self._theta = np.zeros(self.points.shape[1])
        self._late_starts = LateStarts(self.points.shape[1])
        self._due = 1.0  # number of duels at the next test of the fit
        self._follow()

    def update(self) -> None:
        """Update from the record, by a step or two from the last theta.

        Once refuted, update only counts.
        """
        self.by_counts.update()
        if not self.is_refuted:
            self._follow()

    @property
    def scores(self) -> FloatArray:
        """Score theta . x of each arm, shape (K,)."""
        return self._beliefs.scores

    @property
    def in_force(self) -> "BradleyTerryEvidence | CountEvidence":
        """This evidence, or the evidence by counts once the duels refute the model."""
        return self.by_counts if self.is_refuted else self

    @property
    def preferences(self) -> FloatArray:
        """P(row is preferred to column), shape (K, K); NaN before the first scored duel."""
        return self._beliefs.preferences

    @property
    def estimates(self) -> FloatArray:
        """Values by which the arms are ranked, shape (K,)."""
        return self._beliefs.estimates

    @property
    def lower(self) -> FloatArray:
        """Lower ends of the intervals of the estimates, shape (K,)."""
        return self._beliefs.intervals[0]

    @property
    def upper(self) -> FloatArray:
        """Upper ends of the intervals of the estimates, shape (K,)."""
        return self._beliefs.intervals[1]

    @property
    def best(self) -> int | None:
        """The active arm with the highest theta . x; None before the first scored duel."""
        return self._beliefs.best

    @property
    def statistic(self) -> float:
        """Evidence for the best arm: L minus the highest l that contradicts it, in nats.

        The theta of that l makes another active arm as good as the best. 0 if there is no other active arm.
        """
        return self._beliefs.statistic

    @property
    def is_separated(self) -> bool:
        """Whether the best arm is known with the config's error probability.

        This holds if the model holds.
        """
        return self._beliefs.is_separated

    @property
    def is_settled(self) -> bool:
        """False, because duels on examples drawn with replacement make nothing certain."""
        return False

    @property
    def beaten(self) -> BoolArray:
        """Active arms that another arm beats for every theta of the set, shape (K,).

        The set is the confidence set.
        """
        beaten: BoolArray = self._record.active & (self.upper < 0.5)
        return beaten

    @property
    def losers(self) -> BoolArray:
        """All False, shape (K,), because nothing is certain under the model."""
        return np.zeros(self._record.n_arms, dtype=np.bool_)

    @property
    def tied(self) -> BoolArray:
        """All False, shape (K,), because nothing is certain under the model."""
        return np.zeros(self._record.n_arms, dtype=np.bool_)

    @property
    def claim(self) -> Claim:
        """Claim once the best arm is separated; dropped arms do not change it."""
        return Claim(kind="proven", delta=self._delta, assumptions=("bradley-terry",))

    def _follow(self) -> None:
        record = self._record
        told, counts = record.told[self._cells], record.counts[self._cells]
        everything = Tally(self._z, record.wins[self._cells], counts.astype(np.float64), told - counts)
        is_there = told > 0
        tally = everything.rows(is_there)
        fit = fit_bradley_terry(*tally[:3], ridge=self._ridge, start=self._theta)
        self._theta = fit.theta
        self._beliefs = _Beliefs(
            points=self.points,
            active=record.active.copy(),
            parts=[part.of(is_there) for part in self._late_starts.parts(everything)],
            strength_z=self._strength_z[is_there],
            fit=fit,
            ridge=self._ridge,
            t=record.n_scored,
            price=math.log(1.0 / ((1.0 - MISFIT_SHARE) * self._delta)),
            lead=self._lead,
        )
        if record.n_told >= self._due:
            without = log_unstructured_mixture(tally, self._beliefs.strength_z)
            is_misfit_by_mixture = is_misfit(tally, without, fit, MISFIT_SHARE * self._delta)
            self.is_refuted = is_misfit_by_mixture or self._beliefs.is_set_empty
            self._due = GROWTH * record.n_told
        self._late_starts.begin(everything, fit)

    @property
    def _ridge(self) -> float:
        return float(max(self._record.n_scored, 1) ** -0.5)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Beliefs:
    """Conclusions from one fit; each value is computed when it is first read."""

    points: FloatArray  # (K, r)
    active: BoolArray  # (K,)
    parts: list[Part]  # duels that each mixture counts; the first part has all duels
    strength_z: FloatArray  # (P, K - 1)
    fit: Fit  # to all duels
    ridge: float
    t: int
    price: float  # log(1 / d)
    lead: float  # log-odds by which another arm can be better

    @property
    def tally(self) -> Tally:
        """Tally of all duels."""
        return self.parts[0].tally

    @cached_property
    def scores(self) -> FloatArray:
        scores: FloatArray = self.points @ self.fit.theta
        return scores

    @cached_property
    def best(self) -> int | None:
        if self.t == 0 and self.active.sum() != 1:
            return None
        return int(np.where(self.active, self.scores, -np.inf).argmax()) if self.active.any() else None

    @cached_property
    def preferences(self) -> FloatArray:
        if self.t == 0:
            nothing = np.full((len(self.points), len(self.points)), np.nan)
            np.fill_diagonal(nothing, 0.5)
            return nothing
        return np.asarray(sigmoid(self.scores[:, np.newaxis] - self.scores), dtype=np.float64)

    @cached_property
    def estimates(self) -> FloatArray:
        return worst_preferences(self.preferences, self.active)

    @cached_property
    def rivals(self) -> FloatArray:
        """Differences x_i - x_best of the other active arms, shape (M, r)."""
        others = self.active.copy()
        if self.best is None:
            return np.empty((0, self.points.shape[1]))
        others[self.best] = False
        rivals: FloatArray = self.points[others] - self.points[self.best]
        return rivals

    @cached_property
    def turns(self) -> FloatArray:
        """Theta at which each other arm equals the best arm, shape (M, r).

        Near the fitted theta.
        """
        return nearest_in_planes(self.rivals, self.lead, self.fit)

    @cached_property
    def pooled(self) -> Pooled:
        """L and l with shares that separate the best arm well from the other arms."""
        there = self.turns if len(self.rivals) else self.fit.theta[np.newaxis]
        return pool(self.parts, self.fit.theta, there)

    @cached_property
    def pooled_fit(self) -> Fit:
        """Fit to the weighted duels of l."""
        if len(self.parts) == 1:
            return self.fit
        return fit_bradley_terry(*self.pooled.tally[:3], ridge=self.ridge, start=self.fit.theta)

    @cached_property
    def is_set_empty(self) -> bool:
        """Whether the confidence set is empty.

        Never for a single mixture, which is at most the supremum.
        """
        if len(self.parts) == 1:
            return False
        level, tally, fit = self.pooled.log_mixture - self.price, self.pooled.tally, self.pooled_fit
        # Check one theta first: it is much cheaper, and the supremum is at least this value.
        return bool(level >= log_likelihood(tally, fit.theta)) and level >= supremum(tally, fit)

    @cached_property
    def statistic(self) -> float:
        if len(self.rivals) == 0:
            return 0.0
        suprema = half_space_suprema(self.pooled.tally, self.rivals, self.lead, self.pooled_fit)
        return self.pooled.log_mixture - float(suprema.max())

    @cached_property
    def is_separated(self) -> bool:
        if len(self.rivals) == 0 or not self._may_be_separated():
            return False
        return self.statistic >= self.price and not self.is_set_empty and not self._is_doubted()

    def _is_doubted(self) -> bool:
        """Whether the scored duels are more likely without the features.

        Always False for two arms.
        """
        if len(self.points) == 2:
            return False
        scored = self.tally._replace(unscored=np.zeros_like(self.tally.unscored))
        without = log_unstructured_mixture(scored, self.strength_z)
        return without > log_mixture(scored, self.fit.theta)

    def _may_be_separated(self) -> bool:
        """Whether the statistic is worth computing.

        The answer is by a quick approximation of the statistic, which is seldom much lower.
        """
        statistics = [
            part.log_weight + self._approximate(part) - float(log_likelihood(part.tally, self.turns).max())
            for part in self.parts
        ]
        return float(np.logaddexp.reduce(statistics)) >= self.price - LAPLACE_ERROR

    def _approximate(self, part: Part) -> float:
        if part.prior is None:
            return laplace_log_mixture(float(log_likelihood(part.tally, self.fit.theta)), self.fit)
        return laplace_log_integral(part, self.fit.theta)

    @cached_property
    def intervals(self) -> tuple[FloatArray, FloatArray]:
        """Lower and upper ends of the intervals of the estimates, shape (K,) each."""
        if self.is_set_empty:
            return np.zeros(len(self.points)), np.ones(len(self.points))
        others = self.active & ~np.eye(len(self.points), dtype=np.bool_)  # (K, K)
        level = self.pooled.log_mixture - self.price
        lowest, highest = extreme_log_odds(self.pooled.tally, self.points, others, self.pooled_fit, level)
        known = np.where(np.isnan(self.estimates), 0.5, self.estimates)
        # Without rounding, a noticeable ridge and omitted duels, the fitted theta would be in the set.
        return np.minimum(sigmoid(lowest), known), np.maximum(sigmoid(highest), known)


def strength_points(n_arms: int) -> FloatArray:
    """Points of K arms that give each arm a separate strength, shape (K, K - 1).

    See `feature_space`.
    """
    return np.asarray(null_space(np.ones((1, n_arms))), dtype=np.float64)


def log_unstructured_mixture(tally: Tally, strength_z: FloatArray) -> float:
    """Lower bound of the log mixture without features, in nats; 0 without any duel.

    Args:
        tally: P pairs.
        strength_z: Shape (P, K - 1), differences of the pairs in `strength_points`.
    """
    strengths = log_mixture(tally._replace(z=strength_z), np.zeros(strength_z.shape[1]))
    return float(np.logaddexp(strengths, log_saturated_mixture(tally)) - np.log(2.0))


def log_saturated_mixture(tally: Tally) -> float:
    """Logarithm of the product over pairs, in nats; 0 without any duel."""
    _, wins, counts, unscored = tally
    all_counts = counts + unscored
    least = np.clip(0.5 * all_counts, wins, wins + unscored)
    return float((betaln(least + 0.5, all_counts - least + 0.5) - np.log(np.pi)).sum())


def is_misfit(tally: Tally, log_unstructured: float, fit: Fit, delta: float) -> bool:
    """Whether the duels refute the model.

    If the model holds, the probability that this is ever true is at most delta.

    Args:
        tally: P pairs.
        log_unstructured: The value of `log_unstructured_mixture` for these pairs, in nats.
        fit: A fit at any theta; a theta near the maximiser makes the test sharp.
        delta: Error probability, in (0, 1).
    """
    least = log_unstructured + np.log(delta)
    # Check one theta first: it is much cheaper, and the supremum is at least this value.
    return bool(least >= log_likelihood(tally, fit.theta)) and least >= supremum(tally, fit)
