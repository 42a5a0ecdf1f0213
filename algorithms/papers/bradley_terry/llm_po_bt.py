"""LLM-PO with features: duels that separate the best arm fastest.

The proportions of the duels follow from the Bradley-Terry model. Letters as in Hu et al. (2026), section 4.2:
omega (P,) are shares that sum to 1. For each of M other arms i, y_i = x_i - x_best and a_i = |theta . y_i|.
H(omega) = sum omega_p w_p z_p z_p^T with w = sigmoid'(theta . z); f_i(omega) = a_i^2 / (2 y_i^T H(omega)^-1
y_i), and Psi = min f_i. Every f_i is concave and homogeneous of degree 1.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import qr

from winnow.algorithms.best_duel.config import BestDuelConfig
from winnow.algorithms.best_duel.llm_po import LlmPo
from winnow.algorithms.errors import InvalidParameter
from winnow.algorithms.low_rank.factor_model import sigmoid
from winnow.algorithms.papers.bradley_terry.evidence import BradleyTerryEvidence
from winnow.algorithms.papers.bradley_terry.feature_space import SMALLEST_SHARE, differences
from winnow.algorithms.protocols import EMPTY_BATCH, Batch
from winnow.algorithms.state.arrays import FloatArray, IntArray

GROWTH = 1.05  # an allocation is used until there are 5% more duels, because theta changes little until then
TOLERANCE = 0.02  # share of additional duels that stopping the search early can cost
MOST_SWEEPS = 100
# share of all duels within which pairs count as equal, so that floating-point rounding decides nothing
LEVEL = 1e-9


class LlmPoBt(LlmPo):
    """Follow the optimal shares at the fitted theta, with a minimum for the pairs that span all features.

    The next pair is the one with the fewest duels among the spanning pairs, if it has fewer than `n0` or than
    `exploration` times the square root of the number of all duels so far. Otherwise it is the pair that is
    furthest behind its share or, before the first scored duel, the pair with the fewest proposed duels. Ties
    go to the first. Shares are recomputed when the best arm changes, when an arm is dropped, or when there
    are 5% more duels than last time; theta is updated with every tell. Within a batch, and while others are
    in flight, proposed duels count as observed and the shares stay the same, so a batch of B is spread over
    pairs like B single duels. A batch of 1 is the published method. A tie is half a win for each arm, and
    unscored duels count as proposed.

    It stops by `BradleyTerryEvidence`, which also checks the model. Once the duels refute the model
    (`is_refuted`), it continues as `LlmPo` with its defaults, whose statements do not require the model.

    Args:
        config: The problem and the common parameters; needs `features`, different for any two arms.
        exploration: c' of the paper, which states no value; positive.
        n0: Number of duels of every spanning pair before shares are followed, at least 1.
        penalty: The penalty on uneven shares is this times t^(-1/8), non-negative; `allocate` describes the
            departure from the paper.

    Source: Hu et al. (2026), "Adaptive Simulation Experiment for Large Language Model Policy Optimization",
    Section 4.2, equations (5) and (6), structured policy space.
    """

    def __init__(
        self, config: BestDuelConfig, *, exploration: float = 0.5, n0: int = 1, penalty: float = 4.0
    ) -> None:
        if not 0.0 < exploration < np.inf:
            raise InvalidParameter("exploration", exploration, "positive and finite")
        if n0 < 1:
            raise InvalidParameter("n0", n0, "at least 1")
        if not 0.0 <= penalty < np.inf:
            raise InvalidParameter("penalty", penalty, "non-negative and finite")
        super().__init__(config)
        evidence = self._stopping.evidence
        if not isinstance(evidence, BradleyTerryEvidence):
            raise InvalidParameter("features", None, "an array with a row of numbers for each arm")
        self._floor_rate, self._floor_start = exploration, n0
        self._penalty = penalty
        self._model = evidence
        self._pairs = self._stopping.record.pairs
        self._floor = exploration_pairs(differences(evidence.points, self._pairs))
        self._allocation: Allocation | None = None
        self._best: int | None = None
        self._due = 1.0  # number of duels at which shares are next recomputed

    @property
    def is_refuted(self) -> bool:
        """Whether the duels have permanently refuted the model with these features.

        If the model holds, this happens with probability at most a tenth of delta.
        """
        return self._model.is_refuted

    def ask(self, rng: np.random.Generator) -> Batch:
        """Propose duels of the pairs that are furthest behind their shares."""
        if self.is_refuted:
            return super().ask(rng)
        room = self._stopping.room()
        if room == 0:
            return EMPTY_BATCH
        record = self._stopping.record
        asked = (record.told + record.pending)[self._pairs[:, 0], self._pairs[:, 1]]
        chosen = self._follow_allocation(asked, record.n_told + record.n_pending, room)
        return record.ask(self._pairs[chosen], rng)

    def tell(self, batch: Batch, outcomes: ArrayLike) -> None:
        """Observe outcomes in [0, 1] in favour of the first arm, NaN if unscored."""
        super().tell(batch, outcomes)
        if not self.is_refuted and self._stopping.record.n_active >= 2:
            self._allocate()

    def _allocate(self) -> None:
        """Recompute the shares if that is due."""
        record, model = self._stopping.record, self._model
        is_new = self._pairs is not record.pairs
        if is_new:
            self._pairs = record.pairs
            self._floor = exploration_pairs(differences(model.points, self._pairs))
        moved = model.best != self._best
        if model.best is None or not (is_new or moved or record.n_told >= self._due):
            return
        start = None if is_new else self._allocation
        if start is not None and moved:
            start = start._replace(rivals=np.full(len(start.rivals), 1.0 / len(start.rivals)))
        self._allocation = allocate(
            instance(model.points, model.scores, self._pairs, np.flatnonzero(record.active)),
            penalty=self._penalty * record.n_told**-0.125,
            tolerance=TOLERANCE,
            most_sweeps=MOST_SWEEPS,
            start=start,
        )
        self._best = model.best
        self._due = GROWTH * record.n_told

    def _follow_allocation(self, asked: IntArray, t: int, size: int) -> IntArray:
        """Choose pairs one after another, by their shares and numbers of proposed duels.

        Args:
            asked: Shape (P,), number of duels proposed for each pair.
            t: Number of all duels proposed so far.
            size: Number of pairs to choose.

        Returns:
            Shape (size,), indices of the pairs.
        """
        asked = asked.copy()
        chosen = np.empty(size, dtype=np.int64)
        shares: FloatArray = np.zeros(len(asked)) if self._allocation is None else self._allocation.weights
        for place in range(size):
            now = t + place
            floor = asked[self._floor]
            least = max(self._floor_start, self._floor_rate * np.sqrt(now))
            if floor.min() < least:
                pick = self._floor[floor.argmin()]
            elif self._allocation is None:
                pick = asked.argmin()
            else:
                behind = now * shares - asked
                pick = (behind >= behind.max() - LEVEL * now).argmax()
            asked[pick] += 1
            chosen[place] = pick
        return chosen


SMALLEST_GAP = 1e-3  # relative to the largest: otherwise an arm tied with the best would get all duels
STEADINESS = 1e-12  # of the trace, added to H: without duels of some pairs, H is singular
FRESH = 0.01  # uniform part of a warm start, because a share of 0 could never grow again
WEIGHT_RATE = 0.9
RIVAL_RATE = 0.3  # slower than `WEIGHT_RATE`, otherwise shares and rivals oscillate


class Allocation(NamedTuple):
    """Shares of the duels, with their quality."""

    weights: FloatArray
    """omega, shape (P,)."""
    rivals: FloatArray
    """Weight of each other arm in limiting the value, shape (M,).
    The weights sum to 1."""
    value: float
    """Psi(omega), nats per duel."""
    gap: float
    """Upper bound of the distance to the optimum.
    The optimum is the highest log Psi(omega) - penalty |omega|^2 / 2."""


class Instance(NamedTuple):
    """Allocation problem at one theta."""

    z: FloatArray
    """Shape (P, r), differences of the possible pairs."""
    curvature: FloatArray
    """w, shape (P,), positive."""
    rivals: FloatArray
    """y, shape (M, r)."""
    gaps: FloatArray
    """a, shape (M,), non-negative."""


def instance(points: FloatArray, scores: FloatArray, pairs: IntArray, active: IntArray) -> Instance:
    """Create the allocation problem at one theta.

    Args:
        points: Shape (K, r), as `arm_points` returns them.
        scores: Shape (K,), theta . x.
        pairs: Shape (P, 2), the possible pairs.
        active: The arms to choose from, at least two.
    """
    best = active[scores[active].argmax()]
    others = active[active != best]
    chances = sigmoid(scores[pairs[:, 0]] - scores[pairs[:, 1]])
    return Instance(
        differences(points, pairs),
        chances * (1.0 - chances),
        points[others] - points[best],
        scores[best] - scores[others],
    )


def allocate(
    problem: Instance,
    *,
    penalty: float,
    tolerance: float,
    most_sweeps: int,
    start: Allocation | None = None,
    smallest_gap: float = SMALLEST_GAP,
) -> Allocation:
    """Maximise log Psi(omega) - penalty |omega|^2 / 2 over the simplex.

    The paper's program (5) has Psi instead of its logarithm. Psi is the inverse of a number of duels, often
    below 1/500; relative to it the paper's penalty of t^(-1/8) is so large that all shares become nearly
    equal. The logarithm makes the penalty relative. Psi converges to a positive number, so a vanishing
    penalty keeps its role.

    The problem is solved as a game between omega and the weights of the rivals, both by multiplicative
    updates. The rivals' updates are optimistic (they follow twice the last loss minus the one before), so
    that the strategies converge and not only their averages. Any state gives an upper bound, since f_i(other)
    is at most the gradient of f_i at omega times other. The search ends when the best omega is within
    `tolerance` of that bound.

    Args:
        problem: The pairs and rivals.
        penalty: gamma, non-negative.
        tolerance: The gap to stop at.
        most_sweeps: Maximum number of updates; one costs O((P + M) r^2).
        start: An allocation of the same pairs and rivals; None to start from equal shares.
        smallest_gap: Lower limit of the gaps, relative to the largest gap.
    """
    weights, rivals = _start(problem, start)
    problem = _whiten(problem._replace(gaps=_bound_gaps(problem.gaps, smallest_gap)))
    best, highest, ceiling = weights, -np.inf, np.inf
    last_loss = np.zeros(len(rivals))
    for _ in range(most_sweeps):
        view = _look(problem, weights, rivals)
        crowding = penalty * weights
        objective = np.log(view.value) - 0.5 * crowding @ weights
        ceiling = min(ceiling, objective - 1.0 + (view.slopes - crowding).max() + crowding @ weights)
        if objective > highest:
            best, highest = weights, objective
        if ceiling - highest <= tolerance:
            break
        push = view.slopes / (view.slopes @ weights) - crowding + penalty
        weights = _normalise(weights * push**WEIGHT_RATE)
        rivals = _normalise(rivals * np.exp(RIVAL_RATE * (2.0 * view.loss - last_loss)))
        last_loss = view.loss
    value = float(np.exp(highest + 0.5 * penalty * best @ best))
    return Allocation(best, rivals, value, float(ceiling - highest))


def exploration_pairs(z: FloatArray) -> IntArray:
    """A0: a minimal set of pairs with the span of all pairs.

    Each pair is the furthest from the span of the earlier ones.

    Args:
        z: Shape (P, r), differences of the pairs.

    Returns:
        Indices in z, as many as the rank of z.
    """
    triangle, order = qr(z.T, mode="r", pivoting=True)
    sizes = np.abs(np.diagonal(triangle))
    chosen: IntArray = order[: int((sizes > SMALLEST_SHARE * sizes[0]).sum())].astype(np.int64)
    return chosen


class _View(NamedTuple):
    """Value, slopes and losses at one pair of mixed strategies."""

    value: float
    """Psi(omega)."""
    slopes: FloatArray
    """Shape (P,), gradient of a mean of the f_i, divided by Psi."""
    loss: FloatArray
    """Shape (M,), log(Psi / f_i); 0 for the rivals that limit the value."""


def _look(problem: Instance, weights: FloatArray, rivals: FloatArray) -> _View:
    z, curvature, spans, gaps = problem
    hessian = (z.T * (weights * curvature)) @ z
    hessian += STEADINESS * hessian.trace() * np.eye(z.shape[1])
    solved = np.linalg.solve(hessian, spans.T)  # (r, M)
    cost = 2.0 * (spans * solved.T).sum(axis=1) / gaps**2  # (M,) 1/f
    value = 1.0 / cost.max()
    # The mean has weights proportional to rivals / f^2, so the slopes are those of -sum rivals / f. The sum
    # over rivals of c_m (z . s_m)^2 is z^T Q z with Q = sum c_m s_m s_m^T, so no P x M table is needed.
    pooled = (solved * (rivals * 2.0 / gaps**2)) @ solved.T  # (r, r)
    slopes = curvature * ((z @ pooled) * z).sum(axis=1) / (rivals @ cost**2 * value)
    return _View(float(value), slopes, np.log(cost * value))


def _start(problem: Instance, start: Allocation | None) -> tuple[FloatArray, FloatArray]:
    n_pairs, n_rivals = len(problem.z), len(problem.rivals)
    weights, rivals = np.full(n_pairs, 1.0 / n_pairs), np.full(n_rivals, 1.0 / n_rivals)
    if start is None:
        return weights, rivals
    return (1.0 - FRESH) * start.weights + FRESH * weights, (1.0 - FRESH) * start.rivals + FRESH * rivals


def _whiten(problem: Instance) -> Instance:
    """The same problem in coordinates with H = 1 for equal shares.

    No f_i changes. In coordinates with very unequal directions, `STEADINESS` would not be small relative to
    H.
    """
    scaled = problem.z * np.sqrt(problem.curvature / len(problem.z))[:, np.newaxis]  # (P, r)
    _, sizes, directions = np.linalg.svd(scaled, full_matrices=False)
    rounding = directions.T / np.maximum(sizes, SMALLEST_SHARE * sizes[0])  # (r, r)
    return problem._replace(z=problem.z @ rounding, rivals=problem.rivals @ rounding)


def _bound_gaps(gaps: FloatArray, smallest: float) -> FloatArray:
    widest = gaps.max()
    return np.maximum(gaps, smallest * widest) if widest > 0.0 else np.ones_like(gaps)


def _normalise(shares: FloatArray) -> FloatArray:
    normalised: FloatArray = shares / shares.sum()
    return normalised
