"""Choice of arms by their bounds in a round, and the number of pulls of each."""

from collections.abc import Callable

import numpy as np

from winnow.algorithms.best_mean.config import BestMeanConfig
from winnow.algorithms.best_mean.score_matrix import ScoreMatrix, highest
from winnow.algorithms.best_mean.stopping import Stopping, Variant
from winnow.algorithms.errors import InvalidParameter
from winnow.algorithms.protocols import EMPTY_BATCH, Batch
from winnow.algorithms.state.arrays import FloatArray, IntArray

PULL = 8  # examples: fewer are hardly better, and many on an arm that is soon eliminated are wasted


class Pulls:
    """Rounds of pulls: each pull proposes a few random examples of the arm with the highest bound.

    For "mended", a round of `batch_size` pairs is filled with pulls of arms that are in question. A pull
    counts immediately as observed, so the bound of its arm is narrower for the next one: the leading arm can
    get several pulls, and others the rest. For "paper", a round is one pull of `batch_size` pairs.

    Args:
        config: The problem and the common parameters.
        matrix: The scores.
        stopping: Limits the number of pairs and the arms.
        variant: See `Variant`.
        first_pull: Examples of the first pull of an arm, at least 1; None for 8.
        pull: Examples of each later one, at least 1; None for 8.
    """

    def __init__(
        self,
        config: BestMeanConfig,
        matrix: ScoreMatrix,
        stopping: Stopping,
        variant: Variant,
        first_pull: int | None,
        pull: int | None,
    ) -> None:
        for name, size in (("first_pull", first_pull), ("pull", pull)):
            if size is not None and variant == "paper":
                raise InvalidParameter(name, size, "left out with variant: paper, which pulls batch_size")
            if size is not None and size < 1:
                raise InvalidParameter(name, size, "at least 1 or None")
        self._matrix = matrix
        self._stopping = stopping
        self._is_mended = variant == "mended"
        self._batch_size = config.batch_size
        self._first_pull = PULL if first_pull is None else first_pull
        self._pull = PULL if pull is None else pull

    def ask(self, bounds: Callable[[IntArray], FloatArray], rng: np.random.Generator) -> Batch:
        """Propose a round.

        Args:
            bounds: Maps the numbers of proposed pairs, shape (K,), to the bounds of all arms, shape (K,),
                infinite for an arm without a score.
            rng: See `round_rng`.
        """
        matrix, room = self._matrix, self._stopping.room(self._batch_size)
        if room == 0:
            return EMPTY_BATCH
        if self._is_mended:
            return self._ask_pulls(self._plan(bounds, room, rng), rng)
        if not matrix.free_of_arm.any():
            return EMPTY_BATCH
        arm = highest(bounds(matrix.told), matrix.free_of_arm, matrix.pending, rng)
        return matrix.ask(arm, matrix.draw(arm, room, rng))

    def _plan(
        self, bounds: Callable[[IntArray], FloatArray], room: int, rng: np.random.Generator
    ) -> dict[int, int]:
        """Number of pairs to propose for each chosen arm, in the order of choice."""
        matrix, sizes = self._matrix, dict[int, int]()
        free = np.where(self._stopping.worth_asking, matrix.free_of_arm, 0)  # (K,)
        pending = matrix.pending.copy()  # (K,)
        while room > 0 and free.any():
            asked = matrix.told + pending
            arm = highest(bounds(asked), free, pending, rng)
            wanted = self._first_pull if asked[arm] == 0 else self._pull
            size = min(wanted, room, int(free[arm]))
            sizes[arm] = sizes.get(arm, 0) + size
            free[arm] -= size
            pending[arm] += size
            room -= size
        return sizes

    def _ask_pulls(self, sizes: dict[int, int], rng: np.random.Generator) -> Batch:
        if not sizes:
            return EMPTY_BATCH
        examples = [self._matrix.draw(arm, size, rng) for arm, size in sizes.items()]
        return self._matrix.ask(np.repeat(list(sizes), list(sizes.values())), np.concatenate(examples))
