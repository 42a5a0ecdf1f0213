"""Names of statuses, claims and reasons for stopping; no arrays."""

from dataclasses import dataclass
from typing import Literal

from winnow.algorithms.errors import InvalidParameter

Reason = Literal[
    "running",
    "confident",
    "certified",
    "passed",
    "none-certified",
    "budget",
    "exhausted",
    "all-dropped",
]
"""Reason why a selector stopped, or "running":

* running: the selector needs more outcomes.
* confident: the best arm is known at the requested error probability.
* certified: the tests are over, and at least one arm is certified.
* passed: the tests are over, and at least one arm passed, by a rule that proves nothing.
* none-certified: the tests are over, and no arm is certified; their risks are not necessarily high.
* budget: the budget is spent and the question is open.
* exhausted: no pair is left to propose.
* all-dropped: every arm has too many unscored pairs to be judged, so there is no best arm.
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
    "passed",
    "refuted",
    "untested",
    "baseline",
    "no-worse",
    "better",
    "worse",
    "dropped",
    "removed",
]
"""Status of an arm:

* active: still in question.
* best: shown to be the best of the arms that were not dropped; at most one arm.
* top: when looking for the m best arms: shown to be one of the m best that were not dropped.
* tied: fully scored; its mean is the highest or within epsilon of the highest, and other arms are too.
  When looking for the m best: its mean equals that of the last of them and that of an arm outside them.
* chosen: the cheapest arm shown to be within epsilon of the best, if it is not the best itself.
* eliminated: shown not to be the best, or not to be one of the m best.
* not-better: shown only to be no better than the best, or any of the m best, by more than epsilon; it can be
  worse or equally good. With constraints: no better by more than epsilon, or not feasible.
* infeasible: it cannot meet a constraint, for any values of the missing scores.
* unfit: shown not to be the best of the feasible arms, by bets that it misses a constraint. A violation of
  the constraint is not shown for each such arm individually.
* certified: its risk is shown to be below the limit.
* passed: a mean of its losses is at most the limit; nothing is shown about its risk.
* refuted: its risk is shown to be above the limit.
* untested: its test did not begin, because an earlier one in the order ended the testing.
* baseline: the arm that the others are compared with; nothing is tested about it.
* no-worse: shown not to be below the baseline by more than epsilon.
* better: shown to be above the baseline, and so no worse.
* worse: shown to be below the baseline by more than epsilon.
* dropped: excluded permanently because too many of its pairs are unscored; no claim covers it.
* removed: removed by the caller.
"""

ClaimKind = Literal["none", "exact", "proven", "heuristic"]

Assumption = Literal[
    "winner-exists",
    "bradley-terry",
    "missing-at-random",
    "random-labels",
    "unseen-labels",
    "unseen-draws",
    "random-prompts",
    "planned-additions",
]
"""An assumption of a claim in addition to the sampling design:

* winner-exists: some arm beats or ties every other one; if arms were dropped, some remaining arm beats all
  other remaining arms.
* bradley-terry: the log-odds of a duel are linear in the difference of the arms' features.
* missing-at-random: which outcomes are missing is independent of their values.
* random-labels: the labelled examples, and the unlabelled ones, are random draws from the target population.
* unseen-labels: no part of the problem was chosen after seeing earlier outcomes on the same labels.
* unseen-draws: no arm was changed after seeing earlier outcomes on the same draws.
* random-prompts: the prompts so far were drawn at random from the target population.
* planned-additions: how often arms were added does not depend on the outcomes; which arms were added can.
"""


Raise = Literal["dropped", "added"]
"""A cause that raises the error probability above the requested one:

* dropped: arms were dropped, so which arm is the best of the rest depends on the outcomes.
* added: arms were added after outcomes were observed, so the set of arms depends on the outcomes.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """Claim about an answer: none yet, exact, proven up to an error, or heuristic."""

    kind: ClaimKind = "none"
    delta: float | None = None
    """Upper bound of the probability that the answer is wrong.
    Includes the effect of dropped and added arms. None unless the claim is proven. It can exceed the
    requested delta."""
    raised_by: tuple[Raise, ...] = ()
    """Causes that raised `delta` above the requested value.
    Empty if `delta` is the requested value."""
    assumptions: tuple[Assumption, ...] = ()
    """Assumptions that the claim requires, in addition to Winnow's own sampling."""
    refuted: tuple[Assumption, ...] = ()
    """Assumptions that the method made until the outcomes refuted them.
    No statement depends on them."""

    def __post_init__(self) -> None:
        if (self.delta is not None) != (self.kind == "proven"):
            raise InvalidParameter("delta", self.delta, "a number for a proven claim and None for any other")


NOTHING_CLAIMED = Claim()
EXACT = Claim(kind="exact")
HEURISTIC = Claim(kind="heuristic")
