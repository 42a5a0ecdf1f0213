"""What a selector believes: the best arm, every arm's part, why it stopped, and what may be claimed of it."""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Literal

import numpy as np

from winnow.algorithms.errors import InvalidParameter
from winnow.algorithms.state.arrays import BoolArray, FloatArray, IntArray

Reason = Literal[
    "running",
    "confident",
    "certified",
    "none-certified",
    "budget",
    "exhausted",
    "all-dropped",
]
"""Why a selector stopped, or that it did not:

* running: it wants more outcomes.
* confident: the best arm is known at the asked error probability.
* certified: the tests are over, and at least one arm is certified.
* none-certified: the tests are over, and no arm is certified; that does not say that their risks are high.
* budget: the budget is spent and the question is open.
* exhausted: there is nothing left to ask.
* all-dropped: every arm has too many unscored pairs to be judged, so there is no best.
"""

ArmStatus = Literal[
    "active",
    "best",
    "top",
    "tied",
    "chosen",
    "eliminated",
    "not-better",
    "infeasible",
    "unfit",
    "certified",
    "refuted",
    "untested",
    "baseline",
    "no-worse",
    "better",
    "worse",
    "dropped",
    "removed",
]
"""What is known of an arm:

* active: still in question.
* best: shown to be the best of the arms that were not dropped; at most one arm.
* top: shown to be one of the m best of the arms that were not dropped, where m are looked for.
* tied: fully scored, and its mean is the highest, or within epsilon of the highest, as other arms' are; where
  the m best are looked for, its mean is that of the last of them, as that of an arm beyond them is.
* chosen: the cheapest arm that was shown to be within epsilon of the best, where it is not the best itself.
* eliminated: shown not to be the best, or not to be one of the m best.
* not-better: shown only to be no better than the best, or any of the m best, by more than epsilon; it may be
  worse, or as good. With constraints: to be no better by more than epsilon or not to meet them.
* infeasible: it cannot meet a constraint, whatever is not known.
* unfit: shown not to be the best of those that meet the constraints, by bets that it misses one; that it does
  is not shown of each such arm by itself.
* certified: shown to keep its risk below the limit.
* refuted: shown to have a risk above the limit.
* untested: its test was not begun, as an earlier one in the order ended the testing.
* baseline: what the others are held against; nothing is asked of it.
* no-worse: shown not to be below the baseline by more than epsilon.
* better: shown to be above the baseline, and so no worse.
* worse: shown to be below the baseline by more than epsilon.
* dropped: left out for good, as too many of its pairs are unscored; nothing is claimed of it.
* removed: taken out by the caller.
"""

ClaimKind = Literal["none", "exact", "proven", "heuristic"]

Assumption = Literal[
    "winner-exists",
    "bradley-terry",
    "missing-at-random",
    "random-labels",
    "unseen-labels",
    "random-prompts",
    "planned-additions",
]
"""What a claim takes for granted beside the design of the sampling:

* winner-exists: some arm beats or ties every other one; where arms were dropped, some arm of those that are
  left beats all others that are left.
* bradley-terry: the log-odds of a duel are linear in the difference of the arms' features.
* missing-at-random: which outcomes are missing has nothing to do with what they would have been.
* random-labels: the labelled examples, and the unlabelled ones, are drawn at random from those that matter.
* unseen-labels: nothing of the problem was chosen in sight of earlier outcomes by the same labels.
* random-prompts: the prompts so far were drawn at random from those that matter.
* planned-additions: how often arms were added does not depend on the outcomes; which ones may.
"""


Raise = Literal["dropped", "added"]
"""What makes an error more probable than was asked for:

* dropped: arms were dropped, so that which arm is the best of the rest is up to the outcomes.
* added: arms were added after outcomes had been seen, so that which arms there are is up to the outcomes.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What may be said of the answer: nothing yet, exact, proven up to a stated error, or a heuristic."""

    kind: ClaimKind = "none"
    delta: float | None = None
    """Bound on the probability that the answer is wrong, all that happened on the way reckoned in; None
    unless proven. It may be above the delta that was asked for, and then says so."""
    raised_by: tuple[Raise, ...] = ()
    """Why `delta` is above the one that was asked for; empty where it is not."""
    assumptions: tuple[Assumption, ...] = ()
    """What must hold for it, beside the sampling that Winnow does itself."""
    refuted: tuple[Assumption, ...] = ()
    """What the method took for granted until the outcomes refuted it: nothing that is said needs it."""

    def __post_init__(self) -> None:
        if (self.delta is not None) != (self.kind == "proven"):
            raise InvalidParameter("delta", self.delta, "given where the claim is proven, and only there")


NOTHING_CLAIMED = Claim()
EXACT = Claim(kind="exact")
HEURISTIC = Claim(kind="heuristic")


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Differences:
    """How much higher each arm's mean is than that of one of them."""

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
    """What bets against each arm have come to, and when it was shown by them to be out."""

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
    """What a selector believes after the outcomes it was told; equal when all fields are, bit for bit."""

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
    """Why it stopped, or "running"."""
    claim: Claim = NOTHING_CLAIMED
    """What may be said of `best` and of `status`."""
    ranking: FloatArray | None = None
    """Shape (K,), the ranking score by which the method orders arms, where that is not `estimates`; NaN where
    unknown. It is made to find the best arm early, need not lie in the intervals, and is no estimate that
    could be shown with them."""
    differences: Differences | None = None
    """How the others compare with one arm, where the method says so: a baseline, or `best`."""
    bets: Bets | None = None
    """What is known of each arm by bets, where the method rules arms out by them."""

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
