"""LLM-PO with features: duels in the proportions that separate the best arm in the Bradley-Terry model."""

import numpy as np
from numpy.typing import ArrayLike

from winnow.algorithms.best_duel.config import BestDuelConfig
from winnow.algorithms.best_duel.llm_po import LlmPo
from winnow.algorithms.errors import InvalidParameter
from winnow.algorithms.papers.bradley_terry.allocation import (
    Allocation,
    allocate,
    exploration_pairs,
    instance,
)
from winnow.algorithms.papers.bradley_terry.evidence import BradleyTerryEvidence
from winnow.algorithms.papers.bradley_terry.feature_space import differences
from winnow.algorithms.protocols import EMPTY_BATCH, Batch
from winnow.algorithms.state.arrays import FloatArray, IntArray

GROWTH = 1.05  # an allocation is used until there are 5% more duels: theta changes little meanwhile
TOLERANCE = 0.02  # loss in needed duels from stopping the search early
MOST_SWEEPS = 100
# of all duels: pairs this close count as equal, so that last bits of floating point decide nothing
LEVEL = 1e-9


class LlmPoBt(LlmPo):
    """Follow the optimal shares at the fitted theta, with a minimum for the pairs that span all features.

    The next pair is the one with the fewest duels among the spanning pairs, if these are fewer than `n0` or
    than `exploration` times the root of all duels so far; else the pair that is furthest behind its share,
    or, before the first scored duel, the pair with the fewest proposed duels. Ties go to the first. Shares
    are recomputed when the best arm changes, an arm is dropped, or there are 5% more duels than last time;
    theta is updated with every tell. Within a batch, and while others are in flight, proposed duels count as
    observed and the shares stay, so a batch of B is spread over pairs like B single duels; a batch of 1 is
    the published method. A tie is half a win for each arm, and unscored duels count as proposed.

    It stops by `BradleyTerryEvidence`, which also checks the model. Once the duels refute it, `is_refuted`,
    it continues as `LlmPo` with its defaults, whose statements do not require the model.

    Args:
        config: The problem and the common parameters; needs `features`, different for any two arms.
        exploration: c' of the paper, which gives no value; positive.
        n0: Duels of every spanning pair before shares are followed, at least 1.
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
            raise InvalidParameter("features", None, "given, a row of numbers for each arm")
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
        """Whether the duels have permanently refuted the Bradley-Terry model with these features.

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
        """Absorb outcomes in [0, 1] in favour of the first arm, NaN if unscored."""
        super().tell(batch, outcomes)
        if not self.is_refuted and self._stopping.record.n_active >= 2:
            self._allocate()

    def _allocate(self) -> None:
        """Recompute the shares if it is due."""
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
        """Choose pairs one after another, by the duels proposed for each, shape (P,).

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
