"""The sentences that may be said of an answer that certifies, and of one that routes prompts."""

from typing import TYPE_CHECKING

from winnow.tasks.answer.earlier import Earlier
from winnow.tasks.answer.model import Answer
from winnow.tasks.answer.phrases import (
    MIXED,
    NOBODY,
    Line,
    assumed,
    dropped_lines,
    held,
    list_of,
    percent,
    rounded,
    spent,
)
from winnow.tasks.campaign.budget import amount
from winnow.tasks.objectives.certify.certificate import Certificate

if TYPE_CHECKING:
    from winnow.tasks.objectives.route.status import Standing

COSTS = {
    "size": "its checkpoint has {} bytes of weights",
    "prompt-length": "its prompts have {} characters on average",
    "price": "its price is {} as certify.costs counts it",
    "custom": "its cost is {} as certify.costs counts it",
}
"""What a cost says, by `certify.cost`."""


def certificate_lines(answer: Answer, certificate: Certificate) -> list[Line]:
    """What is certified and how surely, and what a plain estimate would have said."""
    lines = [("certified", _certified(answer, certificate)), *_risk(answer, certificate)]
    lines += [("sure", _certainty(answer, certificate)), ("plain", _plain(certificate))]
    if refuted := answer.named("refuted"):
        lines.append(("refuted", f"{list_of(refuted)}: {_too_much(certificate)}{_refuted(answer)}"))
    if answer.earlier is not None:
        lines.append(("seen", _seen(answer.earlier)))
    lines += dropped_lines(answer)
    if answer.limit is not None and answer.outcome is not None:
        lines.append(("ended", spent(answer)))
    if certificate.waits_for:
        keys = list_of(certificate.waits_for, most=8)
        lines.append(("waiting", f"for human labels of {len(certificate.waits_for)} examples: {keys}"))
    return lines


def _refuted(answer: Answer) -> str:
    if answer.mixed is not None:
        return f" (this guarantees nothing: {MIXED})"
    sure = f"the chance that this is wrong of any of them is at most {answer.delta:g}"
    return f" ({sure}{assumed(answer.intervals_if)})"


def _seen(earlier: Earlier) -> str:
    """What an earlier campaign showed, which no test here can make up for."""
    labels = f"{earlier.examples} of the {earlier.of} labels that count here"
    return (
        f"campaign {earlier.campaign}, with other candidates or another test, has outcomes by {labels}; "
        "where candidates were changed, or chosen among many, in sight of these, nothing is certified"
    )


def _allowed(certificate: Certificate) -> str:
    if certificate.baseline is None:
        return f"a risk of at most {certificate.risk:g}"
    return f"a mean drop of at most {certificate.risk:g} below {certificate.baseline}"


def _too_much(certificate: Certificate) -> str:
    """What is shown of who is refuted."""
    if certificate.baseline is None:
        return f"a risk above {certificate.risk:g}"
    return f"a mean drop of more than {certificate.risk:g} below {certificate.baseline}"


def _certified(answer: Answer, certificate: Certificate) -> str:
    allowed = _allowed(certificate)
    if answer.best is not None:
        so_far = "" if answer.outcome == "winner" else " so far"
        cost = COSTS[certificate.cost].format(amount(certificate.costs[answer.best]))
        is_shown = certificate.is_reliable and answer.mixed is None
        has = "that was shown to have" if is_shown else "that seems to have"
        return f"{answer.best}, the cheapest candidate{so_far} {has} {allowed}; {cost}"
    if answer.outcome == "none":
        others = " of those that are not refuted" if answer.named("refuted") else ""
        return (
            f"none: {allowed} was shown of no candidate with these labels, which does not say that the "
            f"risks{others} are higher"
        )
    if answer.outcome == "failed":
        return "none: no candidate could be judged"
    return f"none yet: {allowed} is asked for"


def _risk(answer: Answer, certificate: Certificate) -> list[Line]:
    best = answer.of_best
    if best is None or best.estimate is None:
        return []
    between = sure = ""
    if best.lower is not None and best.upper is not None:
        between, sure = f", between {rounded(best.lower)} and {rounded(best.upper)}", held(answer)
    is_moved = best.estimate in (best.lower, best.upper)
    what = "the value in its interval that is nearest to its " if is_moved else "its "
    return [("risk", f"{rounded(best.estimate)}{between}: {what}{certificate.losses}{sure}")]


def _certainty(answer: Answer, certificate: Certificate) -> str:
    if not certificate.is_reliable:
        return f"heuristic: {certificate.selector} trusts a plain mean and guarantees nothing"
    if answer.mixed is not None:
        return f"heuristic: {MIXED}"
    if answer.best is None:
        return NOBODY if answer.outcome == "failed" else "nothing is claimed"
    delta = answer.delta if answer.claim.delta is None else answer.claim.delta
    higher = "higher risk" if certificate.baseline is None else "larger mean drop"
    # It holds at every moment, also before a campaign ends and claims it.
    return (
        f"the chance that any certified candidate has a {higher} is at most {delta:g}, whatever the "
        f"autoevaluator is worth{assumed(answer.intervals_if)}"
    )


def _plain(certificate: Certificate) -> str:
    if certificate.plain is None:
        return "the plain mean of human losses would certify none"
    return (
        f"the plain mean of human losses would say {certificate.plain} ({certificate.plain_mean:.3f}), "
        "without any guarantee"
    )


def _pays(answer: Answer, standing: "Standing") -> str:
    """Whether routing was shown to score more than the best single candidate, whichever that is."""
    found = standing.advantage
    if found is None:
        return "not known: whether routing scores more than one candidate needs selector.params.explore"
    between = f"{found.estimate:+.3f}, between {found.lower:.3f} and {found.upper:.3f}"
    of_left = " of those that were not dropped" if answer.dropped else ""
    late = "; who joined later is compared on the prompts since then" if standing.has_late else ""
    said = (
        f"on these prompts routing scores {between}, against the best single candidate{of_left}, whichever "
        f"that is (by its estimate {standing.single}){late}"
    )
    sure = f"with probability {percent(found.delta)}, at every round at once"
    if found.lower > 0.0:
        return f"yes: {said}, {sure}"
    return f"{'no' if found.upper < 0.0 else 'not shown'}: {said}, {sure}"


def policy_lines(answer: Answer, standing: "Standing") -> list[Line]:
    """How well choosing a candidate for each prompt does, beside the best single one."""
    if answer.outcome == "failed":
        return [("routes", "nothing"), ("sure", NOBODY), *dropped_lines(answer)]
    if standing.mean is None:
        return [("routes", "nothing known yet")]
    late = f"{standing.late_mean or 0.0:.3f} of the last {standing.late_scored}"
    lines = [("routes", f"{standing.mean:.3f} mean score of {standing.scored} prompts so far; {late}")]
    best = answer.of_best
    if best is not None and best.estimate is not None:
        given = f"{best.estimate:.3f} of the {standing.single_scored} prompts that it was given"
        lines.append(("single", f"{best.name} has the best mean of its own, {given}"))
    lines.append(("pays", _pays(answer, standing)))
    why = "prompts are given to whoever is thought good at them, so that means say nothing of other prompts"
    lines.append(("sure", f"heuristic: {why}"))
    lines += dropped_lines(answer)
    if answer.limit is not None and answer.outcome is not None:
        lines.append(("ended", spent(answer)))
    return lines
