"""The claim of an answer as a sentence: its confidence and its assumptions."""

from winnow.algorithms.claims import Raise
from winnow.storage.objectives import traits_of
from winnow.tasks.answer.model import Answer
from winnow.tasks.answer.sentences.clauses import (
    MIXED,
    NOBODY,
    RAISES,
    asking_again,
    assumed,
    estimated,
    on_examples,
    spent,
)
from winnow.tasks.answer.sentences.constraints import what_is_met
from winnow.tasks.answer.sentences.margin import differ_within_epsilon
from winnow.tasks.text.phrases import list_of, risk_of


def certainty(answer: Answer) -> str:
    """The claim of an answer as a sentence, with all its assumptions."""
    match answer.outcome:
        case None:
            return "not yet: the campaign has not ended"
        case "waiting":
            return "no answer is claimed yet: the campaign waits for annotators"
        case "failed":
            return NOBODY
        case "undecided":
            return _undecided(answer)
        case "none" if answer.constraints:
            return _bounded(
                f"{on_examples(answer)} no candidate{_whom(answer)} meets the constraints", answer
            )
        case "none":
            none = f"no candidate{_whom(answer)} is preferred over, or even with, every other"
            return _bounded(f"{on_examples(answer)} {none}", answer)
        case _:
            return _claimed(answer)


def _claimed(answer: Answer) -> str:
    """The claim about a winner, or about candidates tied for first place."""
    claim = answer.claim
    if answer.is_mixed:
        return f"heuristic: {MIXED}"
    if claim.kind == "heuristic":
        if len(answer.candidates) == len(answer.dropped) + 1 > 1:
            return "heuristic: every other candidate was dropped, so there is no candidate to compare it with"
        why = answer.limit.sentence if answer.limit else "the selector proposed no further comparison"
        asked = (
            "" if answer.delta is not None else ", and no error probability (stopping.delta) was requested"
        )
        return f"heuristic: {why}{asked}"
    return _bounded(_what(answer) + _open_ties(answer), answer)


MOST_NAMED = 3
"""Maximum number of candidates named in a sentence; for more, their number is given."""


def with_open_ties(answer: Answer) -> tuple[str, ...]:
    """Candidates that can have the mean of the best one, or of the last of the m best."""
    if answer.epsilon or traits_of(answer.objective).compares_pairs:
        return ()
    return answer.named("not-better")


def _open_ties(answer: Answer) -> str:
    """Clause on the candidates with open ties; empty without open ties."""
    if not (names := with_open_ties(answer)):
        return ""
    which = list_of(names) if len(names) <= MOST_NAMED else f"{len(names)} candidates"
    whose = "the last of these" if answer.top_m > 1 else str(answer.best)
    return f", and ties are open: {which} could have the same mean as {whose}"


def _bounded(said: str, answer: Answer) -> str:
    """Add the certainty to a claim: exact, or proven up to an error probability."""
    claim = answer.claim
    if claim.kind == "exact":
        return f"exact: {said}"
    bound = f"{said} (at most {risk_of(claim.delta or 0.0)}"
    if answer.delta is not None and claim.delta is not None and claim.delta > answer.delta:
        dropped: tuple[Raise, ...] = ("dropped",) if answer.dropped else ()  # not all selectors report it
        raisers = " and ".join(RAISES[each] for each in claim.raised_by or dropped)
        why = f"; {raisers} increase it" if raisers else ""
        bound += f"; a {risk_of(answer.delta)} was requested{why}"
    return f"{bound}){assumed(answer, claim.assumptions)}"


def _what(answer: Answer) -> str:
    """The claim, without its confidence."""
    whom = _whom(answer)
    within = f" by more than {answer.epsilon:g}" if answer.epsilon else ""
    if answer.constraints:
        return what_is_met(answer, whom, within)
    here = on_examples(answer)
    if traits_of(answer.objective).compares_pairs:
        if answer.outcome == "tied":
            return f"{here} no candidate{whom} is preferred over the tied ones{within}"
        if answer.epsilon and "winner-exists" in answer.claim.assumptions:
            said = (
                f"the candidate over which no other is preferred is not preferred over {answer.best}{within}"
            )
            return f"{here}, of all{whom} {said}" if whom else f"{here} {said}"
        return f"{here} no candidate{whom} is preferred over {answer.best}{within}"
    than = f" than that of {answer.best} or of {answer.chosen}" if answer.chosen else ""
    if answer.top_m > 1:
        return f"{here} no other candidate{whom} has a mean that is higher than that of any of these{within}"
    mean = estimated(answer)
    if answer.outcome == "tied":
        means = mean.replace("mean", "means", 1)
        equal = f"{means} within {answer.epsilon:g} of the highest" if answer.epsilon else f"the same {mean}"
        others = f"no other candidate{whom} has one that is higher{within}"
        cheaper = f" and {answer.chosen}" if answer.chosen else ""
        named = list_of(answer.tied) if differ_within_epsilon(answer) else "the tied candidates"
        return f"{here} {named}{cheaper} have {equal}, and {others}"
    return f"{here} no candidate{whom} has a {mean} that is higher{than}{within}"


def _whom(answer: Answer) -> str:
    """Words that exclude dropped candidates from a claim; empty without dropped ones."""
    n = len(answer.dropped)
    if not n:
        return ""
    return f" except the {n} that {'was' if n == 1 else 'were'} dropped, about which nothing is claimed,"


def _undecided(answer: Answer) -> str:
    if answer.reason == "budget" and not answer.lacking:
        asked = "" if answer.delta is None else f" at error probability {answer.delta:g}"
        return f"undecided{asked}: {spent(answer)}"
    if answer.reason == "exhausted" or answer.lacking:
        lacks = [f"{each.name} lacks {each.unscored:,}" for each in answer.lacking if each.unscored]
        if answer.constraints:
            asks = f"winnow query {answer.campaign} coverage"
            scores = f", or scores ({list_of(lacks)}; {asks})" if lacks else ""
            return (
                "undecided: no comparison is left, and missing values of metrics "
                f"(winnow query {answer.campaign} metrics)"
                f"{scores} could still change which candidate is best under the constraints"
                f"{asking_again(answer)}"
            )
        return (
            "undecided: no comparison is left, and comparisons without an outcome could still change "
            f"which candidate is best ({list_of(lacks)}); winnow query {answer.campaign} coverage says "
            f"why{asking_again(answer)}"
        )
    return "undecided: the campaign ended without an answer"
