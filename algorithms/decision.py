"""Decision of a selector.

It has the best arm, estimates, statuses, reason for stopping, and claim.
"""

from collections.abc import Iterable
from dataclasses import dataclass, fields

import numpy as np

from winnow.algorithms.claims import NOTHING_CLAIMED, ArmStatus, Claim, Reason
from winnow.algorithms.state.arrays import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Differences:
    """Differences of all arms' means from that of one arm: estimates and intervals."""

    against: int
    """The arm that all others are compared with."""
    delta: float
    """Upper bound of the probability that any of these intervals is ever wrong.
    It is separate from the error probability of the stopping rule."""
    estimates: FloatArray
    """Estimated differences, shape (K,), in [-1, 1]; NaN if unknown, and for `against` itself."""
    lower: FloatArray
    """Lower ends of simultaneous intervals, shape (K,); NaN for `against` itself."""
    upper: FloatArray
    """Upper ends of these intervals, shape (K,); NaN for `against` itself."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Excess:
    """Proof that no other arm is better than one arm by more than a margin.

    Dropped arms are excluded. The proof does not show how much worse the others are.
    """

    over: int
    """The arm.
    When looking for the m best arms: the last of the m, compared with the arms outside them."""
    most: float
    """The margin, in [0, 1).
    Rounded up; the smallest that was proven so far for these arms."""
    delta: float
    """Upper bound of the probability that any such statement is ever wrong."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Bets:
    """Wealth of the bets against each arm, and when they eliminated it."""

    wealths: FloatArray
    """Shape (K,), for a stake of 1.
    Before any test this can be only the part that a race has won."""
    levels: FloatArray
    """Wealth at which each arm is eliminated, shape (K,).
    Infinite if no elimination can be proven."""
    out_in_round: IntArray
    """Batch after which each arm was eliminated, counted from 0, shape (K,).
    -1 if the arm is not eliminated."""
    out_at: IntArray
    """Number of pairs of all arms observed until each arm was eliminated, shape (K,).
    -1 if the arm is not eliminated."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Bets) and all(
            np.array_equal(getattr(self, each.name), getattr(other, each.name)) for each in fields(Bets)
        )


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Decision:
    """Decision of a selector after the observed outcomes.

    Equal if all fields are equal, bit for bit.
    """

    best: int | None
    """Arm to recommend; None before the first score, or if no arm can be judged."""
    estimates: FloatArray
    """Shape (K,), estimates of the quantities that the intervals cover, inside them.
    NaN if unknown."""
    lower: FloatArray
    """Shape (K,), lower ends of the intervals; NaN if the method has none."""
    upper: FloatArray
    """Shape (K,), upper ends of the intervals; NaN if the method has none."""
    status: tuple[ArmStatus, ...]
    """Length K, status of each arm."""
    stop: bool
    """Whether the selector needs no more outcomes."""
    reason: Reason
    """Reason for stopping, or "running"."""
    claim: Claim = NOTHING_CLAIMED
    """Claim about `best` and `status`."""
    ranking: FloatArray | None = None
    """Shape (K,), score by which the method ranks arms; NaN if unknown.
    None if it ranks by `estimates`. The score helps to find the best arm early, can lie outside the
    intervals, and must not be shown as an estimate."""
    differences: Differences | None = None
    """Differences of the other arms from one arm, the baseline or `best`.
    None if the method has no differences."""
    bets: Bets | None = None
    """Bets against each arm; None if the method does not eliminate arms by bets."""
    excess: Excess | None = None
    """Upper bound on how much better another arm can be.
    None if the method proves no bound."""

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
        """Shape (K,), values that order the arms.

        `ranking`, or `estimates` if there is no ranking.
        """
        return self.estimates if self.ranking is None else self.ranking

    @property
    def _words(self) -> tuple[object, ...]:
        return (
            self.best,
            self.stop,
            self.reason,
            self.status,
            self.claim,
            self.ranking is None,
            self.bets,
            self.excess,
        )


def statuses(n_arms: int, groups: Iterable[tuple[ArmStatus, BoolArray]]) -> tuple[ArmStatus, ...]:
    """Status of each arm: that of the last group that contains it, or "active".

    Args:
        n_arms: K.
        groups: Pairs of a status and the mask of its arms, shape (K,).
    """
    found: list[ArmStatus] = ["active"] * n_arms
    for status, members in groups:
        for arm in np.flatnonzero(members).tolist():
            found[arm] = status
    return tuple(found)
