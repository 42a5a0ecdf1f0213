"""A selector's decision: the best arm, each arm's estimate and status, why it stopped, and the claim."""

from collections.abc import Iterable
from dataclasses import dataclass, fields

import numpy as np

from winnow.algorithms.claims import NOTHING_CLAIMED, ArmStatus, Claim, Reason
from winnow.algorithms.state.arrays import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Differences:
    """Each arm's mean less that of one of them: estimates and intervals."""

    against: int
    """The arm that all others are compared with."""
    delta: float
    """Bound on the probability that any of the intervals is ever wrong; stopping is another matter."""
    estimates: FloatArray
    """Shape (K,), in [-1, 1]; NaN where unknown, and of `against` itself."""
    lower: FloatArray
    """Shape (K,), lower ends of intervals that all hold at once; NaN of `against` itself."""
    upper: FloatArray
    """Shape (K,), their upper ends."""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Differences):
            return NotImplemented
        return (self.against, self.delta) == (other.against, other.delta) and all(
            np.array_equal(mine, theirs, equal_nan=True)
            for mine, theirs in (
                (self.estimates, other.estimates),
                (self.lower, other.lower),
                (self.upper, other.upper),
            )
        )


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Bets:
    """The results of bets against each arm, and when they showed the arm to be out."""

    wealths: FloatArray
    """Shape (K,), of a stake of 1; before any test it may be the part of it alone that a race has won."""
    levels: FloatArray
    """Shape (K,), the wealth at which each arm is out; infinite where nothing can be proven."""
    out_in_round: IntArray
    """Shape (K,), the batch, counted from 0, after which each arm was out; -1 where it is not."""
    out_at: IntArray
    """Shape (K,), how many pairs of all arms had been told then; -1 where it is not."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Bets) and all(
            np.array_equal(getattr(self, each.name), getattr(other, each.name)) for each in fields(Bets)
        )


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Decision:
    """The decision of a selector after the outcomes it was told; equal when all fields are, bit for bit."""

    best: int | None
    """The arm to recommend; None while nothing is known or when no arm can be judged."""
    estimates: FloatArray
    """Shape (K,), estimates of what the intervals are of, and inside them; NaN where unknown."""
    lower: FloatArray
    """Shape (K,), lower ends of the intervals; NaN where the method has none."""
    upper: FloatArray
    """Shape (K,), upper ends of the intervals; NaN where the method has none."""
    status: tuple[ArmStatus, ...]
    """Length K, what is known of each arm."""
    stop: bool
    """Whether the selector wants no more outcomes."""
    reason: Reason
    """The reason why it stopped, or "running"."""
    claim: Claim = NOTHING_CLAIMED
    """The claim about `best` and `status`."""
    ranking: FloatArray | None = None
    """Shape (K,), the ranking score by which the method orders arms, where that is not `estimates`; NaN where
    unknown. It is made to find the best arm early, need not lie in the intervals, and is no estimate that
    could be shown with them."""
    differences: Differences | None = None
    """The differences of the others to one arm, where the method gives them: a baseline, or `best`."""
    bets: Bets | None = None
    """The bets against each arm, where the method rules arms out by them."""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Decision):
            return NotImplemented
        same_words = self._words == other._words and self.differences == other.differences
        return same_words and all(
            np.array_equal(mine, theirs, equal_nan=True)
            for mine, theirs in (
                (self.estimates, other.estimates),
                (self.lower, other.lower),
                (self.upper, other.upper),
                (self.ranked_by, other.ranked_by),
            )
        )

    @property
    def ranked_by(self) -> FloatArray:
        """Shape (K,), what arms are ordered by: `ranking`, or `estimates` where there is none."""
        return self.estimates if self.ranking is None else self.ranking

    @property
    def _words(self) -> tuple[object, ...]:
        return (self.best, self.stop, self.reason, self.status, self.claim, self.ranking is None, self.bets)


def statuses(n_arms: int, groups: Iterable[tuple[ArmStatus, BoolArray]]) -> tuple[ArmStatus, ...]:
    """The status of each arm: that of the last group that it is in, "active" where it is in none.

    Args:
        n_arms: K.
        groups: A status and which arms have it, shape (K,), each.
    """
    found: list[ArmStatus] = ["active"] * n_arms
    for status, members in groups:
        for arm in np.flatnonzero(members).tolist():
            found[arm] = status
    return tuple(found)
