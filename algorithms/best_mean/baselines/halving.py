"""Sequential halving and successive rejects on shared examples.

Both spend the whole budget. Successive Rejects with A arms left, t common examples each, and a budget of B
more pairs: with j arms left, the worst arm is rejected after m_j = max(t, 1, min(n, ceil(c / j))) examples
each, for j = A, ..., 2. c is the largest integer whose cost, the sum over j of j (m_j - m_{j+1}) with m_{A+1}
= t, is at most B. The published value is c = (T - K) / (1/2 + 1/2 + ... + 1/K) for K arms and T pairs, which
can leave some of the budget unspent, or exceed the n examples. If m_j is capped at n, the saved pairs go to
the other phases, as in the authors' program.
"""

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from winnow.algorithms.best_mean.config import BestMeanConfig
from winnow.algorithms.best_mean.score_matrix import ScoreMatrix
from winnow.algorithms.best_mean.stopping import StoppedSelector, Stopping
from winnow.algorithms.protocols import EMPTY_BATCH, Batch
from winnow.algorithms.state.arrays import BoolArray, FloatArray, IntArray

Schedule = Literal["halving", "rejects"]
"""End of a phase in `Halving`: keep the better half, or reject the worst arm."""


def rejection_target(n_arms: int, told: int, n_examples: int, left: int) -> int:
    """Number of common examples per arm after which the first of A arms is rejected.

    Args:
        n_arms: A, at least 2.
        told: t, the number of common examples already observed for each arm.
        n_examples: n.
        left: B, number of pairs that can still be proposed.
    """
    low, high = 0, n_arms * n_examples  # bisection: the cost of `low` is affordable, that of `high` is not
    if _cost(high, n_arms, told, n_examples) <= left:
        return n_examples
    while high - low > 1:
        middle = (low + high) // 2
        if _cost(middle, n_arms, told, n_examples) <= left:
            low = middle
        else:
            high = middle
    return int(_targets(low, n_arms, told, n_examples)[0])


def schedule_for(n_arms: int, n_examples: int, budget: int | None) -> Schedule:
    """Schedule with the lower error rate for a budget.

    "rejects" is chosen if the budget suffices to complete the rows of the last two arms, or is unlimited.
    With a smaller budget, halving spends more on the last arms and finds the best arm more often. With a
    larger one, halving has too few phases. docs/selectors.md has the measurements.
    """
    needed = _cost(2 * n_examples - 1, n_arms, 0, n_examples)
    return "rejects" if budget is None or budget >= needed else "halving"


def _targets(c: int, n_arms: int, told: int, n_examples: int) -> IntArray:
    """m_j for j = A, ..., 2, shape (A - 1,)."""
    sizes = np.arange(n_arms, 1, -1)
    found: IntArray = np.maximum(max(told, 1), np.minimum(n_examples, -(-c // sizes)))
    return found


def _cost(c: int, n_arms: int, told: int, n_examples: int) -> int:
    """Number of pairs that the remaining phases use."""
    added = np.diff(_targets(c, n_arms, told, n_examples), prepend=told)
    return int((np.arange(n_arms, 1, -1) * added).sum())


class Halving(StoppedSelector):
    """Give all arms the same random examples, keep the better half, and repeat until one is left.

    For a budget without `delta`: it finds the best arm early without a guarantee, so its answer is a
    heuristic unless the scores or the intervals happen to prove more. Arms that survive longer rank higher,
    whatever their means.

    "halving": with A arms left, the remaining budget is divided by the number of remaining halvings,
    ceil(log2 A), and by A. This many common examples are proposed, at least one. Then the ceil(A / 2) arms
    with the highest means survive; among equal means, those listed first. "rejects": after the number of
    examples that `rejection_target` returns, the arm with the lowest mean is rejected; among equal means, the
    one listed last.

    A batch has as many whole examples as fit in `batch_size`, at least one, as in `FilledSubset`. With
    several batches in flight, a phase can use more examples than planned. The budget that remains after the
    last phase is spent on the arms that survived longest. Without a budget, the whole matrix is the budget.
    With `delta`, it stops like other selectors, and eliminated arms get no further examples.

    Args:
        config: The problem and the common parameters.
        schedule: "halving", "rejects", or "auto" for the choice of `schedule_for`. A campaign keeps the
            schedule with which it began.

    Source: Karnin, Koren & Somekh (2013), "Almost Optimal Exploration in Multi-Armed Bandits", ICML,
    Algorithm 1 (Sequential Halving). Departures: examples are shared and drawn without replacement; means use
    all observations, not only those of the last phase; what a phase does not spend is redistributed. Rejects:
    Lyu, Nejma, Wegel, Yang & Dorner (2026), "Cutting LLM Evaluation Costs with SySRs: A Bandit Algorithm that
    Provably Exploits Model Similarity", ICML, arXiv:2606.07726 (Synchronized Successive Rejects).
    """

    def __init__(self, config: BestMeanConfig, *, schedule: Schedule | Literal["auto"] = "auto") -> None:
        self._batch_size = config.batch_size
        self._budget = config.n_arms * config.n_examples if config.budget is None else config.budget
        self.schedule: Schedule = (
            schedule_for(config.n_arms, config.n_examples, config.budget) if schedule == "auto" else schedule
        )
        """The schedule, with "auto" resolved."""
        self._matrix = ScoreMatrix(config)
        self._stopping = Stopping(config, self._matrix, "mended")
        self._survived = np.zeros(config.n_arms, dtype=np.int64)  # (K,) phases survived
        self._phases = 0
        self._target = self._next_target()  # examples per arm at the end of this phase

    def ask(self, rng: np.random.Generator) -> Batch:
        """Propose common examples of all remaining arms.

        Once fewer than two arms remain, or these have no free pair: free pairs of the arms that survived
        longest.
        """
        matrix, room = self._matrix, self._stopping.room(self._batch_size)
        if room == 0:
            return EMPTY_BATCH
        is_in = self._is_in
        # If the budget excludes arms from the last example, choose them before the example is drawn; see
        # `FilledSubset`.
        most = self._stopping.room(max(self._batch_size, matrix.n_arms))
        arms = np.flatnonzero(is_in & (matrix.free_of_arm > 0))[:most]
        if is_in.sum() < 2 or arms.size == 0:
            return matrix.ask_uniformly(room, rng, self._longest_survivors)
        examples = matrix.open_examples(arms)
        asked = int((matrix.told + matrix.pending)[is_in].min())
        planned = self._target - asked if asked < self._target else examples.size
        columns = min(max(1, min(self._batch_size, most) // len(arms)), planned, examples.size)
        chosen = rng.choice(examples, size=columns, replace=False)
        places, members = np.nonzero(matrix.is_free(arms, chosen[:, np.newaxis]))
        return matrix.ask(arms[members], chosen[places])

    def tell(self, batch: Batch, outcomes: ArrayLike) -> None:
        """Observe scores in [0, 1], NaN if unscored."""
        super().tell(batch, outcomes)
        while (is_in := self._is_in).sum() > 1 and self._matrix.told[is_in].min() >= self._target:
            self._end_phase(is_in)

    def _ranking(self) -> FloatArray:
        """Number of phases that each arm survived, plus its mean, shape (K,)."""
        return np.asarray(self._survived + self._matrix.means)

    @property
    def _is_in(self) -> BoolArray:
        """Arms that survived every phase and can still be proposed, shape (K,)."""
        return np.asarray(self._stopping.in_question & (self._survived == self._phases))

    @property
    def _longest_survivors(self) -> BoolArray:
        """Mask of the arms with free pairs that survived most phases, shape (K,)."""
        has_free = self._stopping.in_question & (self._matrix.free_of_arm > 0)
        longest = self._survived.max(initial=0, where=has_free)
        return np.asarray(has_free & (self._survived == longest))

    def _end_phase(self, is_in: BoolArray) -> None:
        arms = np.flatnonzero(is_in)
        means: FloatArray = np.nan_to_num(self._matrix.means[arms], nan=-1.0)
        n_kept = (len(arms) + 1) // 2 if self.schedule == "halving" else len(arms) - 1
        best = arms[np.argsort(-means, kind="stable")[:n_kept]]
        self._phases += 1
        self._survived[best] = self._phases
        self._target = self._next_target()

    def _next_target(self) -> int:
        """Number of examples per remaining arm after which the current phase ends."""
        is_in = self._is_in
        n_arms, told, n_examples = int(is_in.sum()), self._matrix.told, self._matrix.n_examples
        if n_arms < 2:
            return n_examples
        left, fewest = max(0, self._budget - int(told.sum())), int(told[is_in].min())
        if self.schedule == "rejects":
            return rejection_target(n_arms, fewest, n_examples, left)
        more = max(1, left // (n_arms * (n_arms - 1).bit_length()))
        return min(n_examples, fewest + more)
