"""Record of prompts proposed and observed, with their arms, and of sums per arm.

A round of B prompts costs O(B K). Memory grows with the number of observed pairs, not with the number of
possible prompts.
"""

import numpy as np
from numpy.typing import ArrayLike

from winnow.algorithms.claims import HEURISTIC, NOTHING_CLAIMED, Reason
from winnow.algorithms.decision import Decision, statuses
from winnow.algorithms.errors import (
    ArmRemoved,
    MalformedBatch,
    NoArmToRemove,
    OutcomeOutOfRange,
    PairAlreadyTold,
    PairOutsideGrid,
    PairRepeated,
    PromptTaken,
    UnusableContexts,
    at_bound,
)
from winnow.algorithms.protocols import Batch, frozen_integers
from winnow.algorithms.route.config import RouteConfig
from winnow.algorithms.route.protocol import RoutedBatch
from winnow.algorithms.state.arrays import BoolArray, FloatArray, IntArray
from winnow.algorithms.state.dropping import too_many_unscored
from winnow.algorithms.state.in_flight import InFlight

ROUNDING = 1e-9

Pair = tuple[int, int]


class RouteRecord:
    """Pairs of an arm and a prompt so far.

    Each pair, and each prompt proposed here, is observed once. An arm is dropped permanently as soon as
    `too_many_unscored` is true. A removed arm keeps its index and its scores.
    """

    def __init__(self, config: RouteConfig) -> None:
        self.n_arms = config.n_arms
        self._config = config
        self._told_pairs: set[Pair] = set()
        self.pending: dict[Pair, FloatArray] = {}
        """Contexts of the pending pairs, in the order of proposal."""
        self.in_flight = InFlight()
        self.n_known = self.n_arms
        """Number of arms when the last observed batch was proposed.
        0 if an arm was removed since, because its prompts are then missing from the batch."""
        self._changes = 0  # additions and removals of arms
        self._added_at = [0] * self.n_arms  # (K,) value of `changes` when each arm was added
        self._last_removal = 0  # value of `changes` at the last removal
        self._next = 0  # every prompt before this one is taken
        self._taken_later: set[int] = set()  # other taken prompts
        self.n_told = 0
        self._told = np.zeros(self.n_arms, dtype=np.int64)  # (K,) pairs observed, unscored ones included
        self._scored = np.zeros(self.n_arms, dtype=np.int64)  # (K,)
        self._sums = np.zeros(self.n_arms)  # (K,) of the scores
        self._asked = np.zeros(self.n_arms, dtype=np.int64)  # (K,) pending pairs
        self._removed = np.zeros(self.n_arms, dtype=np.bool_)  # (K,)
        self._dropped = np.zeros(self.n_arms, dtype=np.bool_)  # (K,)

    @property
    def eligible(self) -> BoolArray:
        """Arms that can be chosen, shape (K,): neither removed nor dropped."""
        return ~(self._removed | self._dropped)

    @property
    def untried(self) -> BoolArray:
        """Arms without observed or pending pairs, shape (K,)."""
        untried: BoolArray = (self._told == 0) & (self._asked == 0)
        return untried

    @property
    def means(self) -> FloatArray:
        """Mean score of each arm, shape (K,), NaN without a score."""
        means = np.full(self.n_arms, np.nan)
        np.divide(self._sums, self._scored, out=means, where=self._scored > 0)
        return means

    @property
    def room(self) -> int:
        """Number of prompts that can still be proposed."""
        if not self.eligible.any():
            return 0
        config = self._config
        free = config.n_examples - self._next - len(self._taken_later)
        budget = free if config.budget is None else config.budget - self.n_told - len(self.pending)
        return max(min(free, budget), 0)

    def next_examples(self, size: int) -> IntArray:
        """First free prompts, at most `size` of them, shape (B,)."""
        found: list[int] = []
        example = self._next
        for _ in range(min(size, self.room)):
            while example in self._taken_later:
                example += 1
            found.append(example)
            example += 1
        return np.array(found, dtype=np.int64)

    def free_examples(self, examples: ArrayLike | None, size: int) -> list[int]:
        """Prompts to propose, at most `size` and at most `room`.

        Args:
            examples: The prompts, shape (size,); None for the next free prompts.
            size: Number of prompts wanted.

        Raises:
            RefusedTell: If `examples` are not `size` different free prompts.
        """
        if examples is None:
            free: list[int] = self.next_examples(size).tolist()
            return free
        prompts = frozen_integers("examples", examples)
        if prompts.shape != (size,):
            raise MalformedBatch(
                "examples", f"of shape ({size},) like the contexts", f"shape {prompts.shape}"
            )
        seen: set[int] = set()
        for example in prompts.tolist():
            if not 0 <= example < self._config.n_examples:
                raise PairOutsideGrid(0, example, self.n_arms, self._config.n_examples)
            if example < self._next or example in self._taken_later or example in seen:
                raise PromptTaken(example)
            seen.add(example)
        listed: list[int] = prompts.tolist()
        return listed[: self.room]

    @property
    def changes(self) -> int:
        """Number of additions and removals of arms."""
        return self._changes

    def take(self, arm: int, example: int, context: FloatArray) -> None:
        """Record a pair as pending."""
        self.pending[arm, example] = context
        self._asked[arm] += 1
        self._take(example)

    def tell(self, batch: Batch, outcomes: ArrayLike) -> list[tuple[int, FloatArray, float]]:
        """Observe the outcomes of a batch, whether or not it was proposed here.

        Args:
            batch: A `RoutedBatch` of B pairs not observed before.
            outcomes: Shape (B,), in [-1, 1], NaN if unscored.

        Returns:
            Arm, context and score of each scored pair, in order.

        Raises:
            RefusedTell: If the batch or an outcome is invalid; the record is then unchanged.
        """
        contexts, scores = self._validate(batch, outcomes)
        asked = self.in_flight.take_first(batch)
        self.n_known = self._n_known(self._changes if asked.changes is None else asked.changes)
        scored = []
        for arm, example, context, score in zip(
            batch.arms.tolist(), batch.examples.tolist(), contexts, scores, strict=True
        ):
            if self.pending.pop((arm, example), None) is not None:
                self._asked[arm] -= 1
            self._told_pairs.add((arm, example))
            self._take(example)
            self._told[arm] += 1
            if score == score:  # not NaN
                self._scored[arm] += 1
                self._sums[arm] += score
                scored.append((arm, context, score))
        self.n_told += len(scores)
        self._dropped |= too_many_unscored(self._told, self._told - self._scored, self._config.max_unscored)
        return scored

    def add_arm(self) -> int:
        """Add an arm; return its index."""
        for name in ("_told", "_scored", "_sums", "_asked", "_removed", "_dropped"):
            column = getattr(self, name)
            setattr(self, name, np.append(column, column.dtype.type(0)))
        self.n_arms += 1
        self._changes += 1
        self._added_at.append(self._changes)
        return self.n_arms - 1

    def remove_arm(self, arm: int) -> None:
        """Stop choosing an arm, and free its pending prompts, which then use no budget.

        Raises:
            NoArmToRemove: If the arm does not exist, was removed before, or is the only one left.
        """
        if not 0 <= arm < self.n_arms:
            raise NoArmToRemove(arm, f"the arms are 0 to {self.n_arms - 1}")
        if self._removed[arm]:
            raise NoArmToRemove(arm, "it was removed before")
        if self._removed.sum() == self.n_arms - 1:
            raise NoArmToRemove(arm, "it is the only arm left: add another arm first")
        self._removed[arm] = True
        dropped = {example for owner, example in self.pending if owner == arm}
        everybody = range(self.n_arms)
        self._free({each for each in dropped if not any((i, each) in self._told_pairs for i in everybody)})
        self.pending = {pair: context for pair, context in self.pending.items() if pair[0] != arm}
        self.in_flight.remove_arm(arm)
        self._changes += 1
        self._last_removal = self._changes

    def decision(self) -> Decision:
        """Recommend the eligible arm with the best mean score.

        Stop if no prompt is left to propose.
        """
        means, eligible = self.means, self.eligible
        ranked = np.where(eligible & ~np.isnan(means), means, -np.inf)
        best = int(ranked.argmax()) if ranked.max() > -np.inf else None
        reason = self._reason(eligible)
        nothing = np.full(self.n_arms, np.nan)
        return Decision(
            best=best,
            estimates=means,
            lower=nothing,
            upper=nothing,
            status=statuses(self.n_arms, [("dropped", self._dropped), ("removed", self._removed)]),
            stop=reason != "running",
            reason=reason,
            claim=NOTHING_CLAIMED if reason in ("running", "all-dropped") else HEURISTIC,
        )

    def _reason(self, eligible: BoolArray) -> Reason:
        config = self._config
        if not eligible.any():
            return "all-dropped"
        if not self.pending and self._next + len(self._taken_later) >= config.n_examples:
            return "exhausted"
        if config.budget is not None and self.n_told >= config.budget:
            return "budget"
        return "running"

    def _n_known(self, changes: int) -> int:
        """Value of `n_known` for a batch that was proposed after this number of changes."""
        return 0 if changes < self._last_removal else sum(added <= changes for added in self._added_at)

    def _take(self, example: int) -> None:
        if example >= self._next:
            self._taken_later.add(example)
        while self._next in self._taken_later:
            self._taken_later.remove(self._next)
            self._next += 1

    def _free(self, examples: set[int]) -> None:
        """Make prompts available again."""
        first = min(examples, default=self._next)
        self._taken_later |= set(range(first, self._next))
        self._taken_later -= examples
        self._next = min(first, self._next)

    def _validate(self, batch: Batch, outcomes: ArrayLike) -> tuple[FloatArray, list[float]]:
        """Validate a batch; return its contexts and outcomes."""
        if not isinstance(batch, RoutedBatch):
            raise MalformedBatch("batch", "a RoutedBatch, which has contexts", f"a {type(batch).__name__}")
        if batch.arms.ndim != 1:
            raise MalformedBatch("arms", "of shape (B,)", f"shape {batch.arms.shape}")
        if batch.contexts.shape[1] != self._config.dim:
            raise UnusableContexts(None, f"of shape (B, {self._config.dim})", f"shape {batch.contexts.shape}")
        scores = np.array(outcomes, dtype=np.float64)
        if scores.shape != batch.arms.shape:
            raise MalformedBatch("outcomes", f"of shape {batch.arms.shape}", f"shape {scores.shape}")
        listed: list[float] = [at_bound(score, -1.0) for score in scores.tolist()]
        seen: set[Pair] = set()
        for arm, example, score in zip(batch.arms.tolist(), batch.examples.tolist(), listed, strict=True):
            if not (0 <= arm < self.n_arms and 0 <= example < self._config.n_examples):
                raise PairOutsideGrid(arm, example, self.n_arms, self._config.n_examples)
            if self._removed[arm]:
                raise ArmRemoved(arm, example)
            if (arm, example) in self._told_pairs:
                raise PairAlreadyTold(arm, example)
            if (arm, example) in seen:
                raise PairRepeated(arm, example)
            if score < -1.0 or score > 1.0:
                raise OutcomeOutOfRange(arm, example, score, "in [-1, 1]")
            seen.add((arm, example))
        self._check_propensities(batch)
        self.in_flight.check(batch)
        return batch.contexts, listed

    def _check_propensities(self, batch: RoutedBatch) -> None:
        if self._config.explore == 0.0 or len(batch) == 0:
            return
        least = self._config.explore / self.n_arms
        if batch.propensities is None:
            raise MalformedBatch("propensities", "an array, because explore is above 0", "None")
        if (batch.propensities < least * (1.0 - ROUNDING)).any():
            raise MalformedBatch("propensities", f"at least {least:g}", f"{batch.propensities.min():g}")
