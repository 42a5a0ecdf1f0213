"""Sentences on the best candidate, its results, and the runner-up."""

from winnow.storage.objectives import traits_of
from winnow.tasks.answer.model import Answer, CandidateStanding
from winnow.tasks.answer.sentences.clauses import (
    ALL_DROPPED,
    Claimed,
    Line,
    estimated,
    examples_of,
    interval_confidence,
    interval_words,
    is_mean_of_scored,
    on_scored,
    spent,
)
from winnow.tasks.answer.sentences.margin import differ_within_epsilon, leaves_margin
from winnow.tasks.text.phrases import amount, count_of, ends, list_of, percentage, points, rounded

WEIGHED = {"equal": "with equal weights", "size": "weighted by size", "given": "with the file's weights"}
"""The weights of groups, as the end of a sentence."""


def winner_lines(answer: Answer) -> list[Line]:
    """Lines on the best or tied candidates, a cheaper one, and their results."""
    return [*_who(answer), *_cheapest(answer), *_how_well(answer), *_groups(answer)]


def _who(answer: Answer) -> list[Line]:
    if answer.top or (answer.top_m > 1 and answer.tied):
        return _the_best(answer)
    if answer.outcome == "tied" and differ_within_epsilon(answer):
        means = {each.name: each.estimate for each in answer.candidates}
        named = [f"{name} ({rounded(means[name] or 0.0)})" for name in answer.tied]
        return [("winner", f"{list_of(named)}, within {points(answer.epsilon)} of the best")]
    if answer.outcome == "tied":
        return [("tied", list_of(answer.tied))]
    if answer.outcome == "none":
        left = " that was not dropped" if answer.dropped else ""
        if answer.constraints:
            return [("winner", f"none: no candidate{left} meets the constraints")]
        return [
            ("winner", f"none: every candidate{left} is beaten by another one"),
            ("closest", answer.best or "no candidate"),
        ]
    if answer.best is None:
        nothing = ALL_DROPPED if answer.outcome == "failed" else "nothing known yet"
        return [("winner", f"none: {nothing}")]
    first = list_of(answer.ranked[: answer.top_m], most=answer.top_m) if answer.top_m > 1 else answer.best
    return [("winner" if answer.outcome == "winner" else "leading", first)]


def _the_best(answer: Answer) -> list[Line]:
    """Lines on the m best with their means, and on those tied for the last places."""
    of = {each.name: each for each in answer.candidates}
    word = "winner" if leaves_margin(answer) else "best"
    lines = [(word, f"{name}: {_mean(answer, of[name])}") for name in answer.top]
    left = answer.top_m - len(answer.top)
    if answer.tied:
        places = "the last place" if left == 1 else f"the last {left} places"
        lines.append(("tied", f"{list_of(answer.tied)}, for {places}"))
    return lines


def _cheapest(answer: Answer) -> list[Line]:
    """The line on a cheaper candidate that is good enough, and on its saving."""
    costs, best, chosen = answer.costs, answer.best, answer.chosen
    if costs is None or best is None or not answer.is_guaranteed:
        return []
    if chosen is not None:
        mine, theirs = costs[chosen], costs[best]
        saved = f"{percentage(1.0 - mine / theirs, 0)} less"
        place = f"instead of {amount(theirs)} ({best})"
        return [("chosen", f"{chosen}: costs {amount(mine)} {place}, {saved}")]
    dropped = answer.named("dropped")
    if not any(costs[each.name] < costs[best] for each in answer.candidates if each.name not in dropped):
        left = " that was not dropped" if dropped else ""
        return [("chosen", f"{best}: no other candidate{left} costs less than {amount(costs[best])}")]
    if answer.reason == "budget" and not answer.only_held_out_left:
        return [("chosen", f"{best} so far; some cheaper candidates are not tested yet: {spent(answer)}")]
    nobody = f"no candidate that costs less than {amount(costs[best])} was shown to be at most"
    # The other half of epsilon is how far the best candidate itself can be below the highest mean.
    return [("chosen", f"{best}: {nobody} {answer.epsilon / 2.0:g} below it, which is half of epsilon")]


def _how_well(answer: Answer) -> list[Line]:
    best = answer.of_best
    if best is None or best.estimate is None or answer.top:
        return []
    if traits_of(answer.objective).compares_pairs:
        return _wins(answer, best)
    found = rounded(best.estimate)
    if answer.outcome == "tied" and answer.listed_estimate is None:  # within epsilon of each other
        tied = (each.estimate for each in answer.candidates if each.status == "tied")
        means = [mean for mean in tied if mean is not None]
        found = f"{rounded(min(means))} to {found}"
    elif best.lower is not None and best.upper is not None and not _is_exact(answer):
        if is_mean_of_scored(answer) and answer.scored is not None:
            found += f" on the {answer.scored[0]:,} scored"
        found += ", between {} and {}".format(*ends(best.lower, best.upper))
    of = "" if answer.groups is None else f" as {estimated(answer)}"
    whose = "" if answer.top_m == 1 or answer.tied else f"{best.name}: "  # several lead
    where = f"on the {examples_of(answer)}" if answer.judged is None else on_scored(answer)
    return [("mean", f"{whose}{found}{of} {where}{_confidence_of_best(answer)}")]


def _wins(answer: Answer, best: CandidateStanding) -> list[Line]:
    """The line on the best candidate's win rate against its strongest opponent."""
    by = ", as the Bradley-Terry model estimates it" if answer.intervals_if else ""
    said = f"{rounded(best.estimate or 0.0)} of its duels with its strongest opponent{by}"
    if best.lower is None or best.upper is None or _is_exact(answer):
        return [("wins", f"{said}{_confidence_of_best(answer)}")]
    sure = interval_words(answer, best.lower, best.upper, _wins_claimed(answer))
    return [("wins", f"{said}, {sure}")]


def _wins_claimed(answer: Answer) -> Claimed | None:
    """The claim about the best candidate's lowest win rate; None without a claim.

    Nothing is claimed with epsilon if a winner is assumed to exist: another candidate can be preferred over
    the best one then.
    """
    share = 0.5 - answer.epsilon
    is_of_all = not (answer.epsilon and "winner-exists" in answer.claim.assumptions)
    if not is_of_all or not answer.is_guaranteed or answer.outcome not in ("winner", "tied"):
        return None
    return Claimed(f"at least {share:g}", least=share)


def _groups(answer: Answer) -> list[Line]:
    """The line on the compared means of groups; empty without groups."""
    groups = answer.groups
    if groups is None:
        return []
    of_groups = "the lowest of a candidate's means on the groups of examples"
    if groups.objective == "mean":
        of_groups = f"the mean of a candidate's means on the groups of examples, {WEIGHED[groups.weights]}"
    query = f"winnow query {answer.campaign} tags"
    return [("groups", f"by {groups.by}; {groups.value}: {of_groups} ({query} shows them)")]


def _mean(answer: Answer, standing: CandidateStanding) -> str:
    """The mean of one of the m best, with its interval if it is not exact."""
    said = f"mean {rounded(standing.estimate or 0.0)} on the {examples_of(answer)}"
    if standing.lower is None or standing.upper is None:
        return said
    if standing.lower == standing.upper:
        return (
            f"{said} (known exactly)"
            if answer.is_known(standing.name)
            else f"{said}{interval_confidence(answer)}"
        )
    lower, upper = ends(standing.lower, standing.upper)
    return f"{said}, between {lower} and {upper}{interval_confidence(answer)}"


def runner_up_lines(answer: Answer) -> list[Line]:
    """The line on the runner-up and the lead over it; empty if it is unknown."""
    found = answer.runner_up
    if found is not None and traits_of(answer.objective).compares_pairs:
        return [("runner-up", _rival(answer, found.name))]
    if found is None or found.difference is None or found.difference.estimate is None:
        return []
    lead, difference, claimed = estimated_lead(answer), found.difference, _lead_claimed(answer)
    by = "an amount that has no good estimate"
    if lead is not None:
        by = rounded(abs(lead)) + ("" if answer.groups is None else f" in the {estimated(answer)}")
    is_behind = lead is not None and lead < 0.0  # by less than epsilon
    stands = "level with it" if lead == 0.0 else f"{'behind' if is_behind else 'ahead'} by {by}"
    said = f"{found.name}: {difference.against} is {stands} on the {examples_of(answer)}"
    if difference.lower is None or difference.upper is None:
        return [("runner-up", said)]
    if answer.is_known(found.name, difference.against):
        return [("runner-up", f"{said} (known exactly)")]
    least, most = 0.0 - difference.upper, 0.0 - difference.lower  # never -0.000
    link = "; its lead is " if is_behind else ", "
    return [("runner-up", f"{said}{link}{interval_words(answer, least, most, claimed)}")]


def _rival(answer: Answer, name: str) -> str:
    """Clause on the strongest opponent; with the best candidate's share of wins, if known."""
    tied = "apart from the tied candidates, " if answer.tied else ""
    said = f"{tied}{name} is the strongest opponent of {answer.best}"
    if answer.rival_share is None:
        return f"{said}, as the Bradley-Terry model estimates it"
    share, duels = answer.rival_share
    scored = count_of(duels, "scored duel")
    return f"{said}, which won {rounded(share)} of their {scored}"


def estimated_lead(answer: Answer) -> float | None:
    """The lead over the runner-up; None if unknown, or if the tests refute it."""
    found, claimed = answer.runner_up, _lead_claimed(answer)
    if found is None or found.difference is None or found.difference.estimate is None:
        return None
    lead = 0.0 - found.difference.estimate
    return None if claimed is not None and lead < claimed.least else lead


def _lead_claimed(answer: Answer) -> Claimed | None:
    """The claim about the best candidate's lead over another; None without a claim."""
    if not answer.is_guaranteed or answer.outcome not in ("winner", "tied"):
        return None
    behind = f"at most {points(answer.epsilon)} behind" if answer.epsilon else "not behind"
    return Claimed(behind, least=-answer.epsilon)


def _confidence_of_best(answer: Answer) -> str:
    """The confidence of the best candidate's interval; empty without an interval."""
    best = answer.of_best
    if best is None or best.lower is None:
        return ""
    return " (known exactly)" if _is_exact(answer) else interval_confidence(answer)


def _is_exact(answer: Answer) -> bool:
    """Whether the best candidate's estimate is exact."""
    return answer.best is not None and answer.is_known(answer.best)
