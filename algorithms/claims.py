"""Words for what may be said of arms and of an answer, and for why a selector stopped, without arrays."""

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
"""The reason why a selector stopped, or that it did not:

* running: it wants more outcomes.
* confident: the best arm is known at the asked error probability.
* certified: the tests are over, and at least one arm is certified.
* passed: the tests are over, and at least one arm passed, by a rule that shows nothing.
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
"""The status of an arm:

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
* passed: a mean of its losses is at most the limit; nothing is shown of its risk.
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
    "unseen-draws",
    "random-prompts",
    "planned-additions",
]
"""An assumption of a claim beside the design of the sampling:

* winner-exists: some arm beats or ties every other one; where arms were dropped, some arm of those that are
  left beats all others that are left.
* bradley-terry: the log-odds of a duel are linear in the difference of the arms' features.
* missing-at-random: which outcomes are missing has nothing to do with what they would have been.
* random-labels: the labelled examples, and the unlabelled ones, are drawn at random from those that matter.
* unseen-labels: nothing of the problem was chosen in sight of earlier outcomes by the same labels.
* unseen-draws: no arm was changed in sight of earlier outcomes on the same draws.
* random-prompts: the prompts so far were drawn at random from those that matter.
* planned-additions: how often arms were added does not depend on the outcomes; which ones may.
"""


Raise = Literal["dropped", "added"]
"""A cause that makes an error more probable than was asked for:

* dropped: arms were dropped, so that which arm is the best of the rest is up to the outcomes.
* added: arms were added after outcomes had been seen, so that which arms there are is up to the outcomes.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The claim about an answer: nothing yet, exact, proven up to a stated error, or a heuristic."""

    kind: ClaimKind = "none"
    delta: float | None = None
    """Bound on the probability that the answer is wrong, all that happened on the way reckoned in; None
    unless proven. It may be above the delta that was asked for, and then says so."""
    raised_by: tuple[Raise, ...] = ()
    """Causes that put `delta` above the one that was asked for; empty where it is not."""
    assumptions: tuple[Assumption, ...] = ()
    """Assumptions that must hold for the claim, beside the sampling that Winnow does itself."""
    refuted: tuple[Assumption, ...] = ()
    """Assumptions that the method made until the outcomes refuted them: nothing that is said needs them."""

    def __post_init__(self) -> None:
        if (self.delta is not None) != (self.kind == "proven"):
            raise InvalidParameter("delta", self.delta, "given where the claim is proven, and only there")


NOTHING_CLAIMED = Claim()
EXACT = Claim(kind="exact")
HEURISTIC = Claim(kind="heuristic")
