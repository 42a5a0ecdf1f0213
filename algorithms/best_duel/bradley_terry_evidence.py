"""What a record of duels says if the Bradley-Terry model with features holds."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from algorithms.arrays import BoolArray, FloatArray, IntArray
from algorithms.best_duel.bradley_terry import Fit, fit_bradley_terry
from algorithms.best_duel.duel_record import DuelRecord
from algorithms.best_duel.evidence import evidence_delta, worst_preferences
from algorithms.best_duel.feature_space import arm_points, differences
from algorithms.best_duel.setting import Setting
from algorithms.best_duel.structured_allocation import exploration_pairs
from algorithms.best_duel.structured_threshold import proven_threshold
from algorithms.decision import HEURISTIC, Claim
from algorithms.errors import InvalidParameter
from algorithms.low_rank.logistic import sigmoid

RADIUS = 10.0  # as |x_i - x_j| is at most 1, no pair's log-odds are believed to exceed it
LEAST_INFORMATION = 0.1  # c, in units of what one duel of each exploration pair gives


class BradleyTerryEvidence:
    """Preferences sigmoid(theta . (x_i - x_j)), with theta fitted to all duels, also those of arms set aside.

    Z is the least (theta . z)^2 / (2 z^T H^-1 z) over z = x_i - x_best: about what it costs in
    log-likelihood to let arm i reach the best one. The best arm is separated when Z is above the threshold
    and the duels inform about every direction in which active arms differ: lambda_min(V) >= c sqrt(t).
    Intervals of log-odds are theta . z plus or minus |z|_{H^-1} sqrt(2 threshold). With the threshold
    "proven" all of them hold at all times at once with probability at least 1 - delta, given what
    `proven_threshold` assumes; with "practical" they go as far as the stopping does, and that probability is
    not known. Ties are half a win for both arms.

    Args:
        setting: The problem, with features.
        record: Where the duels are told; `update` is to be called after each tell.

    Raises:
        InvalidParameter: If there are no features, or two arms have the same.

    Source: Hu et al. (2026), "Adaptive Simulation Experiment for Large Language Model Policy Optimization",
    equations (3) and (8).
    """

    def __init__(self, setting: Setting, record: DuelRecord) -> None:
        if setting.features is None:
            raise InvalidParameter("features", None, "given, a row of numbers for each arm")
        self.points = arm_points(setting.features)  # (K, r)
        self._delta = evidence_delta(setting)
        self._record = record
        self._cells = np.triu_indices(record.n_arms, 1)  # all pairs i < j, P of them
        self._z = differences(self.points, np.column_stack(self._cells))  # (P, r)
        self._theta = np.zeros(self.points.shape[1])
        self.update()

    def update(self) -> None:
        """Follow the record: a step or two from the last theta to the new one."""
        record = self._record
        counts = record.counts[self._cells]
        duelled = np.flatnonzero(counts)
        z, counts = self._z[duelled], counts[duelled]
        ridge = max(record.n_scored, 1) ** -0.5
        fit = fit_bradley_terry(
            z, record.wins[self._cells][duelled], counts, ridge=ridge, radius=RADIUS, start=self._theta
        )
        self._theta = fit.theta
        self._beliefs = _Beliefs(
            points=self.points,
            active=record.active.copy(),
            t=record.n_scored,
            z=z,
            counts=counts,
            fit=fit,
            ridge=ridge,
            delta=self._delta,
        )

    @property
    def scores(self) -> FloatArray:
        """The score theta . x of each arm, shape (K,)."""
        return self._beliefs.scores

    @property
    def preferences(self) -> FloatArray:
        """P(row is preferred to column), shape (K, K); NaN before the first scored duel."""
        return self._beliefs.preferences

    @property
    def estimates(self) -> FloatArray:
        """What each arm is ranked by, shape (K,)."""
        return self._beliefs.estimates

    @property
    def lower(self) -> FloatArray:
        """Lower ends of the intervals of the estimates, shape (K,)."""
        return self._beliefs.ends(-1.0)

    @property
    def upper(self) -> FloatArray:
        """Upper ends of the intervals of the estimates, shape (K,)."""
        return self._beliefs.ends(1.0)

    @property
    def best(self) -> int | None:
        """The active arm with the highest theta . x; None before the first scored duel."""
        return self._beliefs.best

    @property
    def statistic(self) -> float:
        """Z of equation (8), in nats; 0 where there is none."""
        return self._beliefs.statistic

    @property
    def is_separated(self) -> bool:
        """Whether the best arm is separated at the threshold of the setting."""
        return self._beliefs.is_separated

    @property
    def is_settled(self) -> bool:
        """False: duels under the model make nothing certain."""
        return False

    @property
    def beaten(self) -> BoolArray:
        """None, shape (K,)."""
        return np.zeros(self._record.n_arms, dtype=np.bool_)

    losers = tied = beaten

    @property
    def claim(self) -> Claim:
        """Nothing that is proven."""
        return HEURISTIC


@dataclass(frozen=True, kw_only=True, eq=False)
class _Beliefs:
    """What one fit says; each value is worked out when it is first looked at."""

    points: FloatArray  # (K, r)
    active: BoolArray  # (K,)
    t: int
    z: FloatArray  # (D, r), of the pairs that duelled
    counts: IntArray  # (D,)
    fit: Fit
    ridge: float
    delta: float

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
    def covariance(self) -> FloatArray:
        """H^-1, shape (r, r)."""
        return np.asarray(np.linalg.inv(self.fit.hessian), dtype=np.float64)

    @cached_property
    def statistic(self) -> float:
        rivals = self.active.copy()
        if self.best is None or rivals.sum() < 2:
            return 0.0
        rivals[self.best] = False
        spans = self.points[rivals] - self.points[self.best]  # (M, r)
        gaps = self.scores[self.best] - self.scores[rivals]  # (M,)
        return float((gaps**2 / (2.0 * ((spans @ self.covariance) * spans).sum(axis=1))).min())

    @cached_property
    def information(self) -> FloatArray:
        """V = sum N z z^T, shape (r, r)."""
        return (self.z.T * self.counts) @ self.z

    @cached_property
    def threshold(self) -> float:
        widths = np.sqrt(((self.z @ self.covariance) * self.z).sum(axis=1))
        return proven_threshold(
            self.fit,
            self.information,
            widths.max(initial=0.0),
            ridge=self.ridge,
            radius=RADIUS,
            delta=self.delta,
        )

    @cached_property
    def is_separated(self) -> bool:
        return self.statistic > 0.0 and self.statistic > self.threshold and self._is_informed()

    def _is_informed(self) -> bool:
        """lambda_min(V) >= c sqrt(t), on the differences of active arms."""
        pairs = np.argwhere(np.triu(np.outer(self.active, self.active), 1))
        explored = differences(self.points, pairs)
        explored = explored[exploration_pairs(explored)]  # (s, r), a basis
        basis, triangle = np.linalg.qr(explored.T)  # (r, s), (s, s)
        unit = np.linalg.eigvalsh(triangle @ triangle.T)[0]
        least = np.linalg.eigvalsh(basis.T @ self.information @ basis)[0]
        return bool(least >= LEAST_INFORMATION * unit * np.sqrt(self.t))

    def ends(self, side: float) -> FloatArray:
        """Lower (side -1) or upper (side 1) ends of the intervals of the estimates, shape (K,)."""
        if self.t == 0:
            return np.full(len(self.points), 0.5 + 0.5 * side)
        inner = self.points @ self.covariance @ self.points.T  # (K, K)
        norms = inner.diagonal()
        widths = np.sqrt(np.maximum(norms[:, np.newaxis] + norms - 2.0 * inner, 0.0))
        reach = side * widths * np.sqrt(2.0 * self.threshold)
        ends = sigmoid(self.scores[:, np.newaxis] - self.scores + reach)
        others = self.active & ~np.eye(len(self.points), dtype=np.bool_)
        worst: FloatArray = np.where(others, ends, 1.0).min(axis=1)
        return worst
