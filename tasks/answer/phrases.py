"""What sentences about answers are put together from."""

from collections.abc import Sequence

from algorithms.decision import Assumption
from tasks.answer.model import Answer, AnswerClaim, Unscored

Line = tuple[str, str]
"""A word for what is told, and the sentence."""

MOST_NAMES = 5

MIXED = "a served model changed on the way, so that one candidate stands for two models"
NOBODY = "nothing is claimed: no candidate could be judged"

ESTIMATED = {"best-mean": "mean", "best-duel": "worst preference", "certify": "risk", "route": "mean"}
"""What the estimates of an objective are of."""

IF: dict[Assumption, str] = {
    "winner-exists": "some candidate is preferred over, or even with, every other",
    "bradley-terry": "the duels follow the Bradley-Terry model on the features of the candidates",
    "missing-at-random": "which comparisons have no outcome has nothing to do with what it would have been",
    "random-labels": "the labelled examples were drawn at random from those that matter",
    "random-prompts": "the prompts so far were drawn at random from those that matter",
}
"""What a claim takes for granted, as the end of a sentence that begins with "if"."""


def assumed(claim: AnswerClaim) -> str:
    """All that a claim takes for granted, as the end of a sentence; empty where that is nothing."""
    return ", if " + " and ".join(IF[each] for each in claim.assumptions) if claim.assumptions else ""


def spent(answer: Answer) -> str:
    """Which limit ended a campaign, and how it goes on."""
    return (
        f"{answer.ended_by or 'the budget is spent'}; go on with winnow run SPEC --set {answer.more_by}=MORE"
    )


def dropped_lines(answer: Answer) -> list[Line]:
    """A line for every candidate that was dropped: what it lacks, and what is known all the same."""
    return [("dropped", _dropped(each, answer)) for each in answer.dropped]


def _dropped(dropped: Unscored, answer: Answer) -> str:
    standing = next(each for each in answer.candidates if each.name == dropped.name)
    why = f" ({dropped.reason})" if dropped.reason else ""
    said = f"{dropped.name}: {dropped.unscored} of its {dropped.told} comparisons have no outcome{why}"
    if standing.lower is None or standing.upper is None:
        return said
    what = ESTIMATED[answer.objective]
    return f"{said}; its {what} lies between {standing.lower:.3f} and {standing.upper:.3f}"


def list_of(names: Sequence[str], most: int = MOST_NAMES) -> str:
    """Names in a sentence, the last of many as a number."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")
