"""The sentences that may be said of an answer, made of its outcome, its claim and its statuses alone."""

import re

from winnow.algorithms.claims import Raise
from winnow.tasks.answer.beyond import LEVEL
from winnow.tasks.answer.beyond_sentences import beyond_lines, held_out_lines
from winnow.tasks.answer.constraint_sentences import constraint_lines, what_is_met
from winnow.tasks.answer.gate_sentences import gate_headline, gate_lines
from winnow.tasks.answer.model import Answer, CandidateStanding
from winnow.tasks.answer.objective_sentences import certificate_lines, policy_lines
from winnow.tasks.answer.phrases import (
    ABOUT_ALL,
    IF,
    MIXED,
    NOBODY,
    RAISES,
    Claimed,
    Line,
    added_lines,
    assumed,
    dropped_lines,
    estimated,
    held,
    interval_words,
    list_of,
    out_lines,
    rounded,
    spent,
)
from winnow.tasks.campaign.budget import amount, count_of, percentage

AS_BESIDE_SURE = ", given what the line sure assumes"


def people_lines(answer: Answer) -> list[Line]:
    """Whose judgments everything is claimed of, and how many are wanted; nothing where no person judges."""
    people = answer.people
    if people is None:
        return []
    lines = []
    if people.annotators:
        whose = "one person" if people.annotators == 1 else f"{people.annotators} people"
        what = "every preference is" if answer.objective == "best-duel" else "every score is"
        alike = "the same from the first to the last, whoever of them was asked"
        lines.append(
            (
                "judge",
                f"{what} that of the people who labelled ({whose}); what is claimed is claimed of their "
                f"judgments, and takes these to be {alike}",
            )
        )
    if people.wanted:
        wanted = count_of(people.wanted, "judgment")
        lines.append(("waiting", f"for {wanted} of people"))
    return lines


WEIGHED = {"equal": "all counting alike", "size": "weighted by size", "given": "weighted as the file says"}
"""How groups count, as the end of a sentence."""


def headline(answer: Answer, state: str) -> str:
    """How a campaign stands in a few words, such as "winner, proven"."""
    found = badge(answer)
    return outcome_words(answer, state) + ("" if found is None else f", {found}")


def outcome_words(answer: Answer, state: str) -> str:
    """How a campaign ended, or its state where it has not."""
    if answer.outcome is None:
        return state
    if answer.outcome == "decided":
        return gate_headline(answer)
    if answer.outcome == "winner" and answer.top_m > 1 and answer.is_guaranteed:
        left = sum(each.status != "dropped" for each in answer.candidates)
        return "the best" if min(answer.top_m, left) == 1 else f"the {min(answer.top_m, left)} best"
    return answer.outcome


def badge(answer: Answer) -> str | None:
    """The kind of what is claimed of an outcome that is an answer; None of others."""
    return answer.claim.kind if answer.outcome in ("winner", "tied", "policy", "decided") else None


def subject(answer: Answer) -> str:
    """Who a headline is about: the best so far, or the baseline that others are held against."""
    if answer.baseline is not None:
        return f"against {answer.baseline}"
    return list_of(answer.top) or answer.best or "nothing known"


def answer_lines(answer: Answer) -> list[Line]:
    """Who it is, how well they do, how sure that is, whom it leaves out, and what follows beyond."""
    lines = [*_lines(answer), *_judge_lines(answer), *people_lines(answer), *_stored_lines(answer)]
    return _assumed_once(_said_once(lines, answer), answer)


def _lines(answer: Answer) -> list[Line]:
    if answer.certificate is not None:
        return certificate_lines(answer, answer.certificate)
    if answer.standing is not None:
        return policy_lines(answer, answer.standing)
    if answer.baseline is not None:
        return [*gate_lines(answer), *beyond_lines(answer)]
    lines = [
        *_who(answer),
        *_cheapest(answer),
        *_how_well(answer),
        *_groups(answer),
        *constraint_lines(answer),
        *_runner_up(answer),
        *held_out_lines(answer),
        ("sure", certainty(answer)),
        *_refuted(answer),
        *_open(answer),
        *_next(answer),
    ]
    lines += [*out_lines(answer), *added_lines(answer), *dropped_lines(answer)]
    return [*lines, *beyond_lines(answer)]


def _judge_lines(answer: Answer) -> list[Line]:
    """What a score is where a model gives it: all that is claimed is claimed of these scores."""
    if not answer.judges:
        return []
    said = f"what {list_of(answer.judges)} said of an output, asked as the file says"
    return [
        (
            "judge",
            f"scores come from rules and from {said}" if answer.judged_in_part else f"every score is {said}",
        )
    ]


def _stored_lines(answer: Answer) -> list[Line]:
    """What an answer covers that rests on stored texts alone."""
    if answer.stored_texts is None:
        return []
    had, asked = answer.stored_texts
    if had == asked:
        return [("texts", f"all {asked} comparisons are of stored texts, and none was made")]
    return [
        (
            "texts",
            f"stored ones alone: {asked - had} of {asked} comparisons have none. What these would have "
            "scored is taken to be whatever is worst for the claim; who has texts follows from scores that "
            "another judge gave, so that a mean over them is no estimate of the mean on all examples",
        )
    ]


def _said_once(lines: list[Line], answer: Answer) -> list[Line]:
    """The lines, with how surely all intervals hold told beside the first of them alone."""
    phrase = held(answer)
    first = next((number for number, (_, sentence) in enumerate(lines) if phrase in sentence), 0)
    if ABOUT_ALL not in phrase:  # it is about one interval
        return lines
    return [
        (word, sentence if number <= first else sentence.replace(phrase, ""))
        for number, (word, sentence) in enumerate(lines)
    ]


def _assumed_once(lines: list[Line], answer: Answer) -> list[Line]:
    """The lines of a certificate, with what the claim takes for granted told in full beside it alone.

    It is long, and stands behind three sentences there.
    """
    phrase = "" if answer.certificate is None else assumed(answer, answer.intervals_if)
    whole = re.compile(re.escape(phrase) + "(?! and )")  # where nothing more is taken for granted
    if not phrase or not any(word == "sure" and whole.search(sentence) for word, sentence in lines):
        return lines
    return [
        (word, sentence if word == "sure" else whole.sub(AS_BESIDE_SURE, sentence))
        for word, sentence in lines
    ]


def certainty(answer: Answer) -> str:
    """What is claimed of the answer, with all that it takes for granted."""
    match answer.outcome:
        case None:
            return "not yet: the campaign has not ended"
        case "waiting":
            return "no answer is claimed yet: it waits for people"
        case "failed":
            return NOBODY
        case "undecided":
            return _undecided(answer)
        case "none" if answer.constraints:
            here = f"on these {_examples(answer)}"
            return _bounded(f"{here} no candidate{_whom(answer)} meets the constraints", answer)
        case "none":
            return _bounded(
                "no candidate" + _whom(answer) + " is preferred over, or even with, every other", answer
            )
        case _:
            return _claimed(answer)


def _the_best(answer: Answer) -> list[Line]:
    """The m best with their means, then who shares the last places."""
    of = {each.name: each for each in answer.candidates}
    lines = [("best", f"{name}: {_mean(answer, of[name])}") for name in answer.top]
    left = answer.top_m - len(answer.top)
    if answer.tied:
        places = "the last place" if left == 1 else f"the last {left} places"
        lines.append(("tied", f"{list_of(answer.tied)}, for {places}"))
    return lines


def _who(answer: Answer) -> list[Line]:
    if answer.top or (answer.top_m > 1 and answer.tied):
        return _the_best(answer)
    if answer.outcome == "tied":
        return [("tied", list_of(answer.tied))]
    if answer.outcome == "none":
        left = " that was not dropped" if answer.dropped else ""
        if answer.constraints:
            return [("winner", f"none: no candidate{left} meets the constraints")]
        return [
            ("winner", f"none: every candidate{left} is beaten by another one"),
            ("closest", answer.best or "nobody"),
        ]
    if answer.best is None:
        nothing = "no candidate could be judged" if answer.outcome == "failed" else "nothing known yet"
        return [("winner", f"none: {nothing}")]
    first = list_of(answer.contenders[: answer.top_m], most=answer.top_m) if answer.top_m > 1 else answer.best
    return [("winner" if answer.outcome == "winner" else "leading", first)]


def _cheapest(answer: Answer) -> list[Line]:
    """Who is cheaper and good enough, and what that saves."""
    costs, best, chosen = answer.costs, answer.best, answer.chosen
    if costs is None or best is None or not answer.is_guaranteed:
        return []
    if chosen is not None:
        mine, theirs = costs[chosen], costs[best]
        saved = f"{percentage(1.0 - mine / theirs, 0)} less"
        place = f"in the place of the {amount(theirs)} of {best}"
        return [("chosen", f"{chosen}: cost {amount(mine)} {place}, {saved}")]
    if answer.reason == "budget":
        return [("chosen", f"{best} so far; not all that are cheaper were tested yet: {spent(answer)}")]
    nobody = f"nobody that costs less than {amount(costs[best])} was shown to be at most"
    # The other half is how far the best one itself may be from the best mean.
    return [("chosen", f"{best}: {nobody} {answer.epsilon / 2.0:g} below it, which is half of epsilon")]


def _how_well(answer: Answer) -> list[Line]:
    best = answer.of_best
    if best is None or best.estimate is None or answer.top:
        return []
    if answer.objective == "best-duel":
        return _wins(answer, best)
    found = rounded(best.estimate)
    if answer.outcome == "tied" and answer.listed_estimate is None:  # within epsilon of each other
        tied = (each.estimate for each in answer.candidates if each.name in answer.tied)
        means = [mean for mean in tied if mean is not None]
        found = f"{rounded(min(means))} to {found}"
    elif best.lower is not None and best.upper is not None and not _is_exact(answer):
        found += f", between {rounded(best.lower)} and {rounded(best.upper)}"
    of = "" if answer.groups is None else f" as {estimated(answer)}"
    whose = "" if answer.top_m == 1 or answer.tied else f"{best.name}: "  # several lead
    return [("mean", f"{whose}{found}{of} on the {_examples(answer)}{_held(answer)}")]


def _wins(answer: Answer, best: CandidateStanding) -> list[Line]:
    """How often the best candidate wins against whoever does best against it."""
    by = ", as the Bradley-Terry model estimates it" if answer.intervals_if else ""
    said = f"{rounded(best.estimate or 0.0)} of its duels with the candidate that does best against it{by}"
    if best.lower is None or best.upper is None or _is_exact(answer):
        return [("wins", f"{said}{_held(answer)}")]
    sure = interval_words(answer, best.lower, best.upper, _wins_claimed(answer))
    return [("wins", f"{said}, {sure}")]


def _wins_claimed(answer: Answer) -> Claimed | None:
    """What is claimed of the least share of duels that the best candidate wins; None where nothing is.

    Within epsilon of a winner that is taken to exist, another candidate may be preferred over it.
    """
    share = 0.5 - answer.epsilon
    is_of_all = not (answer.epsilon and "winner-exists" in answer.claim.assumptions)
    if not is_of_all or not answer.is_guaranteed or answer.outcome not in ("winner", "tied"):
        return None
    return Claimed(f"it is at least {share:g}", least=share)


def _groups(answer: Answer) -> list[Line]:
    """What is compared, where that is no plain mean."""
    groups = answer.groups
    if groups is None:
        return []
    of_groups = "the lowest of a candidate's means on the groups of examples"
    if groups.objective == "mean":
        of_groups = f"the mean of a candidate's means on the groups of examples, {WEIGHED[groups.weights]}"
    return [("groups", f"by {groups.by}; {groups.value}: {of_groups} (winnow query NAME tags has these)")]


def _mean(answer: Answer, standing: CandidateStanding) -> str:
    """The mean of a candidate that is one of the m best, with its interval where it is not known."""
    said = f"mean {rounded(standing.estimate or 0.0)} on the {_examples(answer)}"
    if standing.lower is None or standing.upper is None:
        return said
    if standing.lower == standing.upper:
        return f"{said} (known exactly)" if answer.is_known(standing.name) else f"{said}{held(answer)}"
    return f"{said}, between {rounded(standing.lower)} and {rounded(standing.upper)}{held(answer)}"


def _runner_up(answer: Answer) -> list[Line]:
    """Who comes next to the best, and by how much."""
    found = answer.runner_up
    if found is not None and answer.objective == "best-duel":
        return [("runner-up", _rival(answer, found.name))]
    if found is None or found.difference is None or found.difference.estimate is None:
        return []
    lead, difference, claimed = estimated_lead(answer), found.difference, _lead_claimed(answer)
    by = "an amount that has no good estimate"
    if lead is not None:
        by = rounded(abs(lead)) + ("" if answer.groups is None else f" in the {estimated(answer)}")
    is_behind = lead is not None and lead < 0.0  # by less than epsilon
    stands = "behind" if is_behind else "ahead"
    said = f"{found.name}: {difference.against} is {stands} by {by} on the {_examples(answer)}"
    if difference.lower is None or difference.upper is None:
        return [("runner-up", said)]
    if answer.is_known(found.name, difference.against):
        return [("runner-up", f"{said} (known exactly)")]
    least, most = 0.0 - difference.upper, 0.0 - difference.lower  # never -0.000
    link = "; its lead is " if is_behind else ", "
    return [("runner-up", f"{said}{link}{interval_words(answer, least, most, claimed)}")]


def _rival(answer: Answer, name: str) -> str:
    """Who does best against the best candidate, and in how many duels."""
    said = f"{name} does best against {answer.best}"
    if answer.rival_share is None:
        return f"{said}, as the Bradley-Terry model estimates it"
    share, duels = answer.rival_share
    scored = count_of(duels, "scored duel")
    return f"{said}, which won {rounded(share)} of their {scored}"


def estimated_lead(answer: Answer) -> float | None:
    """How far the runner-up is behind; None without one, and where the tests refute the estimate."""
    found, claimed = answer.runner_up, _lead_claimed(answer)
    if found is None or found.difference is None or found.difference.estimate is None:
        return None
    lead = 0.0 - found.difference.estimate
    return None if claimed is not None and lead < claimed.least else lead


def _lead_claimed(answer: Answer) -> Claimed | None:
    """What is claimed of how far the best is ahead of another one; None where nothing is."""
    if not answer.is_guaranteed or answer.outcome not in ("winner", "tied"):
        return None
    behind = f"behind by at most {answer.epsilon:g}" if answer.epsilon else "not behind"
    return Claimed(f"it is {behind}", least=-answer.epsilon)


def _examples(answer: Answer) -> str:
    """Those that a mean and a claim are about."""
    of_selection = "" if answer.held_out is None else " of selection"
    return count_of(answer.n_examples, "example") + of_selection


def _held(answer: Answer) -> str:
    """How surely the interval of the best candidate holds, where it has one."""
    best = answer.of_best
    if best is None or best.lower is None:
        return ""
    return " (known exactly)" if _is_exact(answer) else held(answer)


def _is_exact(answer: Answer) -> bool:
    """Whether the best candidate's estimate has no error."""
    return answer.best is not None and answer.is_known(answer.best)


def _refuted(answer: Answer) -> list[Line]:
    """What the method took for granted and found to be wrong."""
    sure = LEVEL if answer.delta is None else answer.delta
    return [
        (
            "model",
            f"refuted: it was found, at error probability {sure:g}, not to be so that {IF[each]}; what is "
            "said here does not take it for granted",
        )
        for each in answer.refuted
    ]


def _claimed(answer: Answer) -> str:
    """The claim of a winner, or of several that share the first place."""
    claim = answer.claim
    if answer.mixed is not None:
        return f"heuristic: {MIXED}"
    if claim.kind == "heuristic":
        why = answer.limit.sentence if answer.limit else "nothing more was to be asked"
        asked = (
            "" if answer.delta is not None else ", and no error probability (stopping.delta) was asked for"
        )
        return f"heuristic: {why}{asked}"
    return _bounded(_what(answer), answer)


def _bounded(said: str, answer: Answer) -> str:
    """What is exact, or proven up to a probability of error."""
    claim = answer.claim
    if claim.kind == "exact":
        return f"exact: {said}"
    bound = f"{said}; the chance that this is wrong is at most {claim.delta:g}"
    if answer.delta is not None and claim.delta is not None and claim.delta > answer.delta:
        dropped: tuple[Raise, ...] = ("dropped",) if answer.dropped else ()  # not all selectors say it
        raisers = " and ".join(RAISES[each] for each in claim.raised_by or dropped)
        why = f"; {raisers} raise it" if raisers else ""
        bound += f" ({answer.delta:g} was asked for{why})"
    return bound + assumed(answer, claim.assumptions)


def _what(answer: Answer) -> str:
    """What is claimed, without how sure it is."""
    whom = _whom(answer)
    within = f" by more than {answer.epsilon:g}" if answer.epsilon else ""
    if answer.constraints:
        return what_is_met(answer, whom, within)
    if len(answer.candidates) == len(answer.dropped) + 1:
        return "every other candidate was dropped, so there is none to compare it with"
    if answer.objective == "best-duel":
        if answer.outcome == "tied":
            return f"no candidate{whom} is preferred over these{within}"
        if answer.epsilon and "winner-exists" in answer.claim.assumptions:
            said = f"the candidate that none is preferred over is not preferred over {answer.best}{within}"
            return f"of all{whom} {said}" if whom else said
        return f"no candidate{whom} is preferred over {answer.best}{within}"
    than = f" than that of {answer.best} or of {answer.chosen}" if answer.chosen else ""
    here = f"on {'these' if answer.held_out is None else 'the'} {_examples(answer)}"
    if answer.top_m > 1:
        return f"{here} no other candidate{whom} has a mean that is higher than that of any of these{within}"
    mean = estimated(answer)
    if answer.outcome == "tied":
        means = mean.replace("mean", "means", 1)
        equal = f"{means} within {answer.epsilon:g} of the highest" if answer.epsilon else f"the same {mean}"
        others = f"no other candidate{whom} has one that is higher{within}"
        return f"{here} the tied candidates have {equal}, and {others}"
    return f"{here} no candidate{whom} has a {mean} that is higher{than}{within}"


def _whom(answer: Answer) -> str:
    """Whom a claim covers, where that is not every candidate."""
    n = len(answer.dropped)
    if not n:
        return ""
    return f" but the {n} that {'was' if n == 1 else 'were'} dropped, of which nothing is claimed,"


def _undecided(answer: Answer) -> str:
    if answer.reason == "budget":
        asked = "" if answer.delta is None else f" at error probability {answer.delta:g}"
        return f"undecided{asked}: {spent(answer)}"
    if answer.reason == "exhausted":
        lacks = [f"{each.name} lacks {each.unscored:,}" for each in answer.lacking if each.unscored]
        if answer.constraints:
            scores = f", or scores ({list_of(lacks)}; winnow query NAME coverage)" if lacks else ""
            return (
                "undecided: nothing is left to ask, and values that metrics lack (winnow query NAME metrics)"
                f"{scores} could still change who is best of those that meet the constraints"
            )
        return (
            "undecided: nothing is left to ask, and comparisons without an outcome could still change who is "
            f"best ({list_of(lacks)}); winnow query NAME coverage says why"
        )
    return "undecided: the campaign ended without an answer"


def _open(answer: Answer) -> list[Line]:
    """Who may still be the best, where that is not settled."""
    if answer.is_guaranteed or answer.outcome == "policy" or len(answer.contenders) < 2:
        return []
    return [("open", f"between {list_of(answer.contenders)}")]


def _next(answer: Answer) -> list[Line]:
    """What would probably settle it, where that can be reckoned from the observed gap."""
    found = answer.next_step
    if found is None:
        return []
    pair = f"{found.leading} and {found.rival}"
    return [
        (
            "next",
            f"about {amount(found.comparisons)} more comparisons of {pair} would separate the two, if their "
            f"difference stays at {rounded(found.gap)} (an estimate from what was observed, not a claim)",
        )
    ]
