"""RUCB: an arm that can still beat every other, against the opponent most likely to beat it."""

import math

import numpy as np
from numpy.typing import ArrayLike

from winnow.algorithms.best_duel.config import BestDuelConfig
from winnow.algorithms.best_duel.stopping import Stopping
from winnow.algorithms.decision import Decision
from winnow.algorithms.errors import InvalidParameter
from winnow.algorithms.protocols import EMPTY_BATCH, Batch
from winnow.algorithms.state.arrays import BoolArray, FloatArray, IntArray


class Rucb:
    """Propose an arm whose upper bounds all reach 1/2 against the opponent with the highest upper bound.

    The bound of a pair is its preference plus sqrt(alpha log t / duels), 1 without duels, 1/2 for one never
    scored. The opponent's bound is that over this arm. Of several possible winners, the one that was the only
    one before is taken half of the time. Ties are broken at random. Within a batch, and while others are in
    flight, proposed duels narrow the bounds and the preferences stay, so a batch is spread over pairs. An arm
    is never compared with itself, because that gives no information on the best arm; the published method,
    which minimises regret, can do so. A tie is half a win for each arm.

    Args:
        config: The problem and the common parameters.
        alpha: Weight of uncertainty, above 1/2.

    Source: Zoghi et al. (2014), "Relative Upper Confidence Bound for the K-Armed Dueling Bandit Problem",
    Algorithm 1, with alpha = 0.51 as in its experiments; Hu et al. (2026), Section 5 (RUCB).
    """

    def __init__(self, config: BestDuelConfig, *, alpha: float = 0.51) -> None:
        if not 0.5 < alpha < np.inf:
            raise InvalidParameter("alpha", alpha, "above 1/2 and finite")
        self._alpha = alpha
        self._stopping = Stopping(config)
        self._favourite: int | None = None
        self._told = self._bounds(self._stopping.record.told, 0)

    def ask(self, rng: np.random.Generator) -> Batch:
        """Propose a batch of duels of possible winners."""
        room = self._stopping.room()
        if room == 0:
            return EMPTY_BATCH
        record = self._stopping.record
        asked = record.told + record.pending
        duels = np.empty((room, 2), dtype=np.int64)
        for place in range(room):
            t = record.n_told + record.n_pending + place
            upper, possible = self._told if t == record.n_told else self._bounds(asked, t)
            first = self._champion(possible, rng)
            second = self._challenger(upper[:, first], first, rng)
            duels[place] = first, second
            asked[first, second] += 1
            asked[second, first] += 1
        return record.ask(duels, rng)

    def tell(self, batch: Batch, outcomes: ArrayLike) -> None:
        """Absorb outcomes in [0, 1] in favour of the first arm, NaN if unscored."""
        self._stopping.tell(batch, outcomes)
        record = self._stopping.record
        self._told = self._bounds(record.told, record.n_told)
        _, possible = self._told
        if np.count_nonzero(possible) == 1:
            self._favourite = int(possible.argmax())
        elif self._favourite is not None and not possible[self._favourite]:
            self._favourite = None

    def decision(self) -> Decision:
        """Recommend the arm whose worst preference is highest."""
        return self._stopping.decision()

    def _bounds(self, duels: IntArray, t: int) -> tuple[FloatArray, BoolArray]:
        """Upper bounds of the preferences, and which active arms can beat every other active one.

        Returns:
            Shape (K, K), at most 1, and shape (K,).
        """
        preferences, active = self._stopping.evidence.preferences, self._stopping.record.active
        width = np.sqrt(self._alpha * math.log(max(t, 1)) / np.maximum(duels, 1))
        upper = np.where(np.isnan(preferences), 0.5, preferences) + width
        upper[duels == 0] = 1.0
        upper.flat[:: len(upper) + 1] = 0.5
        return np.minimum(upper, 1.0), active & ((upper >= 0.5) | ~active).all(axis=1)

    def _champion(self, possible: BoolArray, rng: np.random.Generator) -> int:
        """Choose one of the possible winners, a mask of shape (K,)."""
        arms = np.flatnonzero(possible)
        if self._favourite is not None and possible[self._favourite]:
            if len(arms) == 1 or rng.random() < 0.5:
                return self._favourite
            arms = arms[arms != self._favourite]
        return _one_of(arms if len(arms) else np.flatnonzero(self._stopping.record.active), rng)

    def _challenger(self, upper: FloatArray, champion: int, rng: np.random.Generator) -> int:
        """Choose the opponent with the highest upper bound, of shape (K,), over the champion."""
        eligible = np.where(self._stopping.record.active, upper, -np.inf)
        eligible[champion] = -np.inf
        return _one_of(np.flatnonzero(eligible == eligible[eligible.argmax()]), rng)


def _one_of(arms: IntArray, rng: np.random.Generator) -> int:
    return int(arms[0] if len(arms) == 1 else arms[rng.integers(len(arms))])
