"""Clauses that sentences about answers are composed of."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from winnow.algorithms.claims import Assumption, Raise
from winnow.storage.json_types import JsonView
from winnow.storage.objectives import traits_of
from winnow.storage.records.record_types import SET_ASIDE, THE_ANSWER, is_out
from winnow.tasks.answer.model import Answer, Unscored
from winnow.tasks.answer.new_examples import LEVEL
from winnow.tasks.spec.stored_spec import estimated_value
from winnow.tasks.text.phrases import amount, count_of, ends, list_of, percent, rounded, span

Line = tuple[str, str]
"""A label and a sentence."""

MIXED = "a served model changed during the campaign, so one candidate stands for two models"
ALL_DROPPED = "every candidate was dropped"
NOBODY = f"nothing is claimed: {ALL_DROPPED}"

ABOUT_ALL = " and rounds together"
"""Part of the result of `held` that occurs only if it is about all intervals."""

IF: dict[Assumption, str] = {
    "winner-exists": "some candidate is preferred over, or even with, every other",
    "bradley-terry": "the duels follow the Bradley-Terry model on the features of the candidates",
    "missing-at-random": "the outcome that a comparison would have had does not affect whether it is missing",
    "random-labels": (
        "the labelled examples were drawn at random from the examples that you will see in production"
    ),
    "unseen-labels": (
        "nothing in this campaign was chosen after seeing an earlier campaign's results on these labels"
    ),
    "unseen-draws": (
        "the served models were not changed after seeing the examples that an earlier campaign drew"
    ),
    "planned-additions": "how often candidates were added did not depend on the scores",
    "random-prompts": (
        "the prompts so far were drawn at random from the prompts that you will see in production"
    ),
}
"""Assumptions of a claim, each as the end of a sentence that begins with "if"."""


RAISES: dict[Raise, str] = {
    "dropped": "candidates that were dropped during the campaign",
    "added": "candidates that were added after scores had been seen",
}
"""Causes that raise the error probability above the requested one."""


WINNER_OF_THE_REST = "some candidate that was not dropped is preferred over every other such one"
"""The assumption "winner-exists" after candidates were dropped: one of them may have been the winner, and the
preferences among the rest may be cyclic.
"""


def estimated(answer: Answer) -> str:
    """The value that an answer estimates, as a noun."""
    return estimated_value(answer.objective, answer.groups)


UNLABELLED_TOO = (
    "the labelled examples and those that the autoevaluator alone answers were drawn at random from the "
    "examples that you will see in production"
)
"""The assumption "random-labels" with an autoevaluator: its losses on unlabelled examples represent those on
labelled ones. This fails for examples from another source.
"""


def assumed(answer: Answer, assumptions: Sequence[Assumption]) -> str:
    """The assumptions of a claim as the end of a sentence; empty without assumptions."""
    found = dict(IF)
    if answer.dropped:
        found["winner-exists"] = WINNER_OF_THE_REST
    if answer.certificate is not None and answer.certificate.reads_autoevaluator:
        found["random-labels"] = UNLABELLED_TOO
    return ", if " + " and ".join(found[each] for each in assumptions) if assumptions else ""


def interval_confidence(answer: Answer) -> str:
    """The confidence of intervals, with its conditions, as the end of a sentence."""
    if answer.is_mixed:
        return f"; it guarantees nothing: {MIXED}"
    assumptions, error = answer.intervals_if, LEVEL if answer.delta is None else answer.delta
    if answer.additions and not answer.expects_additions:
        error *= 1 + len(answer.additions)  # each addition has its own set of intervals
        assumptions = (*assumptions, "planned-additions")
    if_what = assumed(answer, assumptions)
    if error >= 1.0:
        return "; it guarantees nothing: candidates were added too often"
    sure = percent(error)
    if traits_of(answer.objective).measures_risk:
        # Upper ends and lower ends each have this error probability; both together have twice that.
        return (
            f" ({sure} confidence for all upper ends{ABOUT_ALL}, and {sure} for all lower ends{ABOUT_ALL}"
            f"{if_what})"
        )
    return f" ({sure} confidence for all intervals{ABOUT_ALL}{if_what})"


class Claimed(NamedTuple):
    """A claim about a number that also has an interval."""

    words: str
    """The claim, as the end of a sentence that begins with "Proven only"."""
    least: float = -math.inf
    most: float = math.inf


def interval_words(
    answer: Answer, lower: float, upper: float, claimed: Claimed | None, sign: str = ""
) -> str:
    """An interval and its confidence, as the end of a sentence.

    The tests behind a claim are sharper for one number than the intervals, which hold for all candidates at
    once. If an end of the interval contradicts the claim, the claim replaces that end. The sentence then has
    two parts: the other end, with the confidence of the intervals, and the claim, with its own.
    docs/how-differences-are-bounded.md derives the confidence of both together.
    """
    least, most = ends(lower, upper, sign)
    between, sure = f"between {least} and {most}", interval_confidence(answer)
    if claimed is None or (claimed.least <= lower and upper <= claimed.most):
        return between + sure
    what = f"{'Known' if answer.claim.kind == 'exact' else 'Proven'} only: {claimed.words}"
    what += assumed(answer, answer.claim.assumptions)
    if lower > claimed.most or upper < claimed.least:
        return f"{between}{sure}. {what}. One of the two is wrong; each has its own error probability"
    end = f"at most {most}" if lower < claimed.least else f"at least {least}"
    return f"{end}{sure}. {what}"


def which_is_open(lower: float | None, upper: float | None, even: float = 0.0) -> str:
    """Clause for an interval on new examples that contains a tie; else empty."""
    if lower is None or upper is None or not lower <= even <= upper:
        return ""
    return ", so which of the two is better there is not shown"


def spent(answer: Answer) -> str:
    """Sentence on the limit that ended a campaign, and on how to continue."""
    if answer.limit is None:
        # No limit counts as spent, because a part of it is reserved for finalists, which may not be known.
        rest = "" if answer.held_out is None else " except for the part reserved for held-out examples"
        return f"the budget is spent{rest}; {_going_on(answer, 'stopping.budget')}"
    if answer.limit.kind == "human_labels":
        return (
            f"{answer.limit.sentence}; {more_labels(answer)}: winnow run SPEC --fork NEW_NAME --set "
            f"{answer.limit.key}=MORE{adding_up(answer)}"
        )
    all_spent = (answer.limit, *answer.also_spent)
    said = " and ".join(each.sentence for each in all_spent)
    return f"{said}; {_going_on(answer, *(each.key for each in all_spent))}"


def _going_on(answer: Answer, *keys: str) -> str:
    if answer.is_of_program:
        return "call winnow.select with a larger budget in the program that has its function"
    if answer.named_by_program is not None:
        return f"call winnow.run with a larger budget in the program in which {answer.named_by_program}"
    raised = " ".join(f"--set {key}=MORE" for key in keys)
    return f"continue with winnow resume {answer.campaign} {raised}"


def more_labels(answer: Answer) -> str:
    """Clause on why labels cannot be added to an ended campaign."""
    bets = answer.certificate is None or answer.certificate.is_reliable
    why = "the tests depend on the number of labels" if bets else "a mean is read only once, with all labels"
    return f"{why}, so more labels need a new campaign"


def adding_up(answer: Answer) -> str:
    """Clause on the error probability of a further campaign with more labels.

    Empty for a plain mean, which has no error probability.
    """
    if answer.certificate is not None and not answer.certificate.is_reliable:
        return ""
    return " (the error probabilities of the two campaigns add up if nothing else differs)"


def added_lines(answer: Answer) -> list[Line]:
    """A line for each group of candidates that joined after the campaign had begun."""
    return [
        ("added", f"{list_of(each.names)} joined after {rounds(each.rounds)}") for each in answer.additions
    ]


def left_out_lines(answer: Answer) -> list[Line]:
    """The line on models that were unreachable at the start; empty without any."""
    if not answer.left_out:
        return []
    names = " and ".join(f"{name} ({why})" for name, why in answer.left_out.items())
    them = "it" if len(answer.left_out) == 1 else "them"
    return [
        (
            "left out",
            f"{names}: the campaign began without {them}, and claims nothing about {them}; winnow run SPEC "
            f"lets {them} join later, if the selector accepts more candidates, and winnow run SPEC --fork "
            f"NEW_NAME starts a new campaign with {them}",
        )
    ]


def rounds(count: int) -> str:
    """A number of rounds in words."""
    return count_of(count, "round")


def out_since(row: JsonView) -> str:
    """When a candidate was eliminated, or why it was not although the evidence reached its level; else empty.

    Args:
        row: A row of `campaign_views.eliminations`.
    """
    round_, comparisons, status = row["out_in_round"], row["out_at"], row["status"]
    if round_ is not None and comparisons is not None:
        but = " (up to epsilon)" if status == "active" else ""
        return f"eliminated in round {round_ + 1}, after {amount(comparisons)} comparisons{but}"
    if status in THE_ANSWER and has_reached_level(row):
        return f"not eliminated: part of the answer ({status})"
    return ""


def has_reached_level(row: JsonView) -> bool:
    """Whether the evidence of a row of `campaign_views.eliminations` has reached the level."""
    return None not in (row["wealth"], row["level"]) and bool(row["wealth"] >= row["level"])


def out_lines(answer: Answer) -> list[Line]:
    """The line on eliminated candidates; for bets, also on the last elimination.

    A chosen cheaper candidate does not count: it is eliminated as the best, but it is the answer.
    """
    all_ = [each for each in answer.candidates if is_out(each.status, each.out_in_round)]
    out = [each for each in all_ if each.out_in_round is not None]
    if not out:
        return _eliminated_lines(answer)
    last = max(out, key=lambda each: each.out_in_round or 0)
    when = f"{rounds((last.out_in_round or 0) + 1)} and {amount(last.out_at or 0)} comparisons"
    when += ", including those without an output" if answer.lacks_texts or answer.without_text else ""
    all_ = [each for each in all_ if each in out or each.status not in SET_ASIDE]
    by_bets = "the last" if len(all_) == len(out) else f"{len(out)} of them by bets, the last of these"
    said = f"{len(all_)} of {len(answer.candidates)} candidates, {by_bets} ({last.name}) after {when}"
    # Tables show these as active: bets eliminated them only up to epsilon.
    if within := [each.name for each in out if each.status == "active"]:
        said += (
            f"; {list_of(within)} can still be the best, by at most {answer.epsilon:g}, and "
            f"{'is' if len(within) == 1 else 'are'} active in tables"
        )
    return [("eliminated", said)]


def _eliminated_lines(answer: Answer) -> list[Line]:
    out = answer.named("eliminated")
    if not out or not answer.is_guaranteed or answer.outcome not in ("winner", "tied"):
        return []
    best = "the best" if answer.top_m == 1 else f"one of the {answer.top_m} best"
    return [("eliminated", f"{len(out)} of {len(answer.candidates)} candidates, shown not to be {best}")]


def dropped_lines(answer: Answer) -> list[Line]:
    """A line for each dropped candidate: its missing outcomes and remaining results."""
    return [("dropped", _dropped(each, answer)) for each in answer.dropped]


def _dropped(dropped: Unscored, answer: Answer) -> str:
    standing = next(each for each in answer.candidates if each.name == dropped.name)
    why = f" ({dropped.reason})" if dropped.reason else ""
    lack = "have no outcome" if answer.certificate is None else "lack a loss"
    said = f"{dropped.name}: {dropped.unscored:,} of its {dropped.told:,} comparisons {lack}{why}"
    if dropped.left_out_in is not None:
        said = (
            f"{dropped.name}: excluded by a user in round {dropped.left_out_in}, after reading its "
            "outputs; it is not compared with the others"
        )
    if standing.lower is None or standing.upper is None or answer.baseline is not None:
        return said  # a gate's simultaneous intervals are those of differences, not of means
    found = f"the interval of its {estimated(answer)} is {span(standing.lower, standing.upper)}"
    return f"{said}; {found}{interval_confidence(answer)}"


def on_examples(answer: Answer) -> str:
    """The examples on which a claim holds, in words."""
    which = "these" if answer.held_out is None and answer.n_examples != 1 else "the"
    return f"on {which} {examples_of(answer)}"


def on_scored(answer: Answer) -> str:
    """The examples that a mean is computed over, in words."""
    if answer.judged is None:
        return on_examples(answer)
    return f"on the {count_of(answer.judged, 'example')} whose outputs differ"


def on_part(answer: Answer, estimate: float, between: str) -> str:
    """The best candidate's mean if only a part of the examples is scored for it, with its interval.

    An estimate that is not the plain mean of the scored examples, such as one that a selector corrects by the
    scores of other candidates, is called an estimate.
    """
    scored = answer.scored[0] if answer.scored is not None else 0
    all_, value = on_examples(answer).removeprefix("on "), estimated(answer)
    if scored >= answer.n_examples:
        return f"{value} {rounded(estimate)} ({between}) on {all_}"
    if is_mean_of_scored(answer):
        return f"{value} {rounded(estimate)} on the {scored:,} scored of {all_} ({between} on all of them)"
    return f"estimated {value} {rounded(estimate)} on {all_} ({between}), {scored:,} of them scored"


def is_mean_of_scored(answer: Answer) -> bool:
    """Whether the best candidate's estimate is the plain mean of its scored examples, which are not all."""
    best = answer.of_best
    if best is None or best.estimate is None or answer.scored is None:
        return False
    scored, mean = answer.scored
    return scored < answer.n_examples and math.isclose(mean, best.estimate, abs_tol=1e-9)


def examples_of(answer: Answer) -> str:
    """The number of examples that a mean and a claim are about, in words."""
    of_selection = "" if answer.held_out is None else " of selection"
    return count_of(answer.n_examples, "example") + of_selection


def asking_again(answer: Answer) -> str:
    """Remedy for comparisons without an outcome, as the end of a sentence."""
    if answer.is_of_program:
        return "; fix the function so that it scores them, and run it under another campaign name"
    if answer.lacks_texts:
        return "; use reuse: all, which generates the missing outputs, in a new campaign"
    fork = "winnow run SPEC --fork NEW_NAME"
    if answer.baseline is not None:
        fork = f"winnow gate SPEC --baseline {answer.baseline} --fork NEW_NAME"
    return f"; fix the cause, then run {fork}, which repeats these and reuses all stored outputs"
