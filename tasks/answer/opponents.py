"""The opponent that an answer compares the best candidate with."""

from dataclasses import replace

from winnow.algorithms.state.plugin_registry import object_at
from winnow.storage.objectives import traits_of
from winnow.tasks.answer.model import Answer, CandidateStanding
from winnow.tasks.campaign.look import Look

SHARES = "winnow.storage.queries.objective.duels:shares_of"
"""Import path of the function, so that only campaigns of duels import it."""


def with_rival(look: Look, answer: Answer) -> Answer:
    """Add the best candidate's strongest opponent to an answer, if duels show it.

    If a model estimates the preferences, the opponent is the candidate with the next highest estimate. A pair
    without duels counts as even, as in the estimates. If a candidate without duels would be the strongest, no
    opponent is added.
    """
    if not traits_of(answer.objective).compares_pairs or answer.best is None or answer.outcome == "none":
        return answer
    others = [
        each
        for each in answer.candidates
        if each.name != answer.best and each.status not in ("dropped", "tied")
    ]
    if "bradley-terry" in answer.intervals_if:
        known = [each for each in others if each.estimate is not None]
        ahead = max(known, key=lambda each: each.estimate or 0.0, default=None)
        return answer if ahead is None else replace(answer, rival=ahead.name)
    met: dict[str, tuple[float, int]] = object_at(SHARES)(look.session, look.record.id, answer.best)
    shares = {each.name: met.get(each.name, (0.5, 0)) for each in others}
    name = min(shares, key=lambda each: shares[each][0], default=None)
    if name is None or not shares[name][1]:
        return answer
    return replace(answer, rival=name, rival_share=shares[name])


def closest_pair(answer: Answer) -> tuple[str, str] | None:
    """Names of the answer's first candidate and its closest opponent, if known.

    The opponent is a tied candidate, else the runner-up. With `top_m`, the pair is at the boundary of the m
    best: two of the candidates tied for the last places. If the places are not settled, it is the last of the
    m best and the first of those in question, by estimate. Without known differences, the candidate with the
    highest estimate is the closest.
    """
    if answer.baseline is not None:
        return _pair_of_gate(answer, answer.baseline)
    if answer.top_m > 1 and not answer.top and not answer.tied:
        last = answer.ranked[answer.top_m - 1 : answer.top_m + 1]
        return last if len(last) == 2 else None
    if answer.top and answer.tied:  # the candidates of `top` are proven to be ahead of the tied ones
        return answer.tied[0], answer.tied[1]
    runner_up, others = answer.runner_up, _estimated(answer, answer.best)
    tied = [each for each in others if each.status == "tied"]
    closest = max(tied or others, key=lambda each: each.estimate or 0.0, default=None)
    if closest is None or answer.best is None:
        return None
    if not tied and runner_up is not None:
        against = None if runner_up.difference is None else runner_up.difference.against
        return against or answer.best, runner_up.name
    return answer.best, closest.name


def _pair_of_gate(answer: Answer, baseline: str) -> tuple[str, str] | None:
    """The candidate with the highest estimate, and the baseline.

    Candidates shown to be worse come last. None if all were dropped.
    """
    if answer.outcome == "failed":
        return None
    others = _estimated(answer, baseline)
    first = max(others, key=lambda each: (each.status != "worse", each.estimate or 0.0), default=None)
    return None if first is None else (first.name, baseline)


def _estimated(answer: Answer, but: str | None) -> list[CandidateStanding]:
    """Candidates that have an estimate and were not dropped, except the named one."""
    return [
        each
        for each in answer.candidates
        if each.name != but and each.status != "dropped" and each.estimate is not None
    ]
