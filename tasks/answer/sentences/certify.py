"""Sentences about the answer of a certify campaign."""

from collections.abc import Sequence

from winnow.tasks.answer.earlier_campaigns import Earlier
from winnow.tasks.answer.model import Answer
from winnow.tasks.answer.sentences.clauses import (
    ALL_DROPPED,
    MIXED,
    NOBODY,
    Line,
    adding_up,
    assumed,
    dropped_lines,
    interval_confidence,
    more_labels,
    spent,
)
from winnow.tasks.objectives.certify.certificate import ROUNDING, Certificate
from winnow.tasks.text.phrases import amount, count_of, ends, list_of, rounded

COSTS = {
    "size": "its checkpoint has {} bytes of weights",
    "prompt-length": "its prompts have {} characters on average",
    "price": "its price is {} (certify.costs)",
    "custom": "its cost is {} (certify.costs)",
}
"""A candidate's cost in words, by `certify.cost`."""
LOSS_OF_1 = "each counts as a loss of 1 in all risks shown here"
DROP_OF_0 = "its drop below itself is 0"
GIVEN = ("price", "custom")
"""Kinds of cost whose values are in the campaign's file."""


def lines_of(answer: Answer) -> list[Line]:
    """Lines on certified candidates, confidence, and the choice of a plain mean."""
    certificate = answer.certificate
    assert certificate is not None
    word = "certified" if _is_shown(answer, certificate) else "passed"
    lines = [(word, _certified(answer, certificate)), *_risk(answer, certificate)]
    lines += [("confidence", _certainty(answer, certificate)), ("plain", _plain(certificate))]
    lines += _passed_over(certificate)
    if refuted := answer.named("refuted"):
        lines.append(("refuted", f"{list_of(refuted)}: {_too_much(certificate)}{_refuted(answer)}"))
    lines += [*_unsettled(answer, certificate), *_untested(answer, certificate)]
    if answer.earlier is not None:
        lines.append(("seen", _earlier_results(answer.earlier, certificate)))
    lines += [*dropped_lines(answer), *_ended(answer, certificate)]
    if certificate.waits_for:
        keys = list_of(certificate.waits_for, most=8)
        examples = count_of(len(certificate.waits_for), "example")
        lines.append(("waiting", f"for human labels of {examples}: {keys}"))
    return lines


def headline_of(answer: Answer) -> tuple[str, str]:
    """The certified candidates, and the confidence, as two sentences."""
    certificate = answer.certificate
    assert certificate is not None
    if answer.outcome in (None, "waiting") and certificate.waits_for:
        first = f"Waiting for human labels of {count_of(len(certificate.waits_for), 'example')}"
    else:
        first = f"{'Use ' if answer.outcome == 'winner' else ''}{_certified(answer, certificate)}"
    sure = _certainty(answer, certificate).replace("heuristic: ", "not proven: ", 1)
    return first, sure[:1].upper() + sure[1:]


def _is_shown(answer: Answer, certificate: Certificate) -> bool:
    """Whether statements about risks are proven instead of only estimated."""
    return certificate.is_reliable and not answer.is_mixed


def _passed_over(certificate: Certificate) -> list[Line]:
    """Lines on outputs and labels that count as a loss of 1.

    These are unanswerable or unreadable labels and unclear outputs.
    """
    lines = []
    n, unclear = certificate.unanswerable, certificate.unclear
    own = _own(certificate)
    if n:
        says = "marks its example as unanswerable" if n == 1 else ("mark their examples as unanswerable")
        what = f"{count_of(n, 'label')} of the {amount(certificate.labels_used)} used {says}"
        lines.append(("skipped", f"{what}: {LOSS_OF_1}, whatever a candidate answers{own}"))
    if certificate.unreadable:
        are = "is" if certificate.unreadable == 1 else "are"
        what = f"{count_of(certificate.unreadable, 'label')} {are} not readable by the judge"
        lines.append(("labels", f"{what}: {LOSS_OF_1}, whatever a candidate answers{own}"))
    if unclear:
        what = f"annotators marked {count_of(unclear, 'output')} as unclear"
        against = "" if certificate.baseline is None else f", whatever the baseline scores{own}"
        lines.append(("unclear", f"{what}: {LOSS_OF_1}{against}"))
    return lines


def _own(certificate: Certificate) -> str:
    """The end of a sentence on losses of 1, which excludes the baseline.

    The baseline's drop below itself is always 0.
    """
    baseline = certificate.baseline
    return "" if baseline is None else f", except for {baseline}, whose drop below itself is 0"


def _unsettled(answer: Answer, certificate: Certificate) -> list[Line]:
    """The line on candidates whose risk was neither shown to be allowed nor refuted."""
    if not answer.unsettled:
        return []
    others, baseline = _apart(answer.unsettled, certificate)
    if not others:
        return [("open", f"{baseline}: {DROP_OF_0}, which its test did not show with the labels so far")]
    what = f"{_allowed(certificate)} was neither shown nor ruled out with the labels so far"
    too = f"; it was not shown for {baseline} either, although {DROP_OF_0}" if baseline else ""
    return [("open", f"{list_of(others)}: {what}{too}")]


def _apart(names: Sequence[str], certificate: Certificate) -> tuple[list[str], str | None]:
    """Split names into those of other candidates and the baseline; None if it is not included.

    The baseline is separate because its drop below itself is known exactly.
    """
    others = [name for name in names if name != certificate.baseline]
    return others, None if len(others) == len(names) else certificate.baseline


def _untested(answer: Answer, certificate: Certificate) -> list[Line]:
    """The line on untested candidates, about whose risks nothing is claimed."""
    untested = answer.named("untested")
    if not untested:
        return []
    passed = answer.named("certified", "passed")
    first = next(each.name for each in answer.candidates if each.name not in passed)
    why = ""
    if certificate.in_sequence:
        fails = "is not certified" if certificate.is_reliable else "does not pass"
        why = (
            ", because the tests go from the most expensive to the cheapest candidate and end at the first "
            f"that {fails}: {first}"
        )
    others, baseline = _apart(untested, certificate)
    if not others:
        return [("untested", f"{baseline}: {DROP_OF_0}, which was not tested{why}")]
    whose = "its risk" if len(others) == 1 else "their risks"
    too = f"; {baseline} was not tested either, although {DROP_OF_0}" if baseline else ""
    return [("untested", f"{list_of(others)}: nothing is known about {whose}{why}{too}")]


def _ended(answer: Answer, certificate: Certificate) -> list[Line]:
    """The line on why the tests ended before all candidates were settled."""
    has_all = certificate.labels_used >= answer.n_examples
    if answer.limit is not None and answer.outcome is not None and not (has_all and answer.unsettled):
        return [("ended", spent(answer))]
    if not answer.unsettled:
        return []
    used = certificate.labels_used
    all_of_them = (
        "the only example that may be labelled is"
        if used == 1
        else f"all {amount(used)} examples that may be labelled are"
    )
    return [
        (
            "ended",
            f"{all_of_them} used; {more_labels(answer)}, with more examples or a higher "
            f"certify.labellable: winnow run SPEC --fork NEW_NAME{adding_up(answer)}",
        )
    ]


def _refuted(answer: Answer) -> str:
    if answer.is_mixed:
        return f" (this guarantees nothing: {MIXED})"
    sure = f"error probability for all of them together: at most {answer.delta:g}"
    return f" ({sure}{assumed(answer, answer.intervals_if)})"


def _earlier_results(earlier: Earlier, certificate: Certificate) -> str:
    """Sentence on results that an earlier campaign showed on the same labels.

    No test here can correct for choices that were made after seeing them.
    """
    shown = f"on {earlier.examples} of the {earlier.of} labelled examples that count here"
    if certificate.reads_autoevaluator:
        shown = f"on {earlier.examples:,} of the {earlier.of:,} examples that count here, labelled or not"
    return (
        f"campaign {earlier.campaign}, with other candidates or another test, has outcomes {shown}; if "
        "candidates were changed, or chosen among many, after seeing these results, nothing is certified"
    )


def _allowed(certificate: Certificate) -> str:
    if certificate.baseline is None:
        return f"a risk of at most {certificate.risk:g}"
    return f"a mean drop of at most {certificate.risk:g} below {certificate.baseline}"


def _too_much(certificate: Certificate) -> str:
    """The risk of refuted candidates, in words."""
    if certificate.baseline is None:
        return f"a risk above {certificate.risk:g}"
    return f"a mean drop of more than {certificate.risk:g} below {certificate.baseline}"


def _certified(answer: Answer, certificate: Certificate) -> str:
    allowed = _allowed(certificate)
    if answer.best is not None:
        return _cheapest(answer, certificate, answer.best)
    if answer.outcome == "none" and not certificate.is_reliable:
        return f"none: no candidate seems to have {allowed}"
    if answer.outcome == "none":
        refuted = answer.named("refuted")
        if len(refuted) == len(answer.candidates):
            return f"none: {allowed} was not shown for any candidate with these labels"
        others = " of the candidates that are not refuted" if refuted else ""
        return (
            f"none: {allowed} was not shown for any candidate with these labels; this does not mean that the "
            f"risks{others} are higher"
        )
    if answer.outcome == "failed":
        return f"none: {ALL_DROPPED}"
    return f"none yet: {allowed} is required"


def _cheapest(answer: Answer, certificate: Certificate, best: str) -> str:
    """The cheapest certified candidate in words, with others of the same cost."""
    cost = certificate.costs[best]
    said = COSTS[certificate.cost].format(_cost(certificate, cost))
    passed = answer.named("certified", "passed")
    alike = [name for name in passed if name != best and certificate.costs[name] == cost]
    so_far = "" if answer.outcome == "winner" else " so far"
    if answer.is_own_baseline:
        same = f", the same as that of {list_of(alike)}" if alike else ""
        return f"{best}, the baseline itself: {_cheaper(certificate, cost, so_far)}; {said}{same}"
    shown = _is_shown(answer, certificate)
    if not alike:
        has = "that was shown to have" if shown else "that seems to have"
        return f"{best}, the cheapest candidate{so_far} {has} {_allowed(certificate)}; {said}"
    have = "that were shown to have" if shown else "that seem to have"
    return (
        f"{best}, tested last of the {len(alike) + 1} cheapest candidates{so_far} {have} "
        f"{_allowed(certificate)}; {said}, the same as that of {list_of(alike)}"
    )


def _cheaper(certificate: Certificate, cost: float, so_far: str) -> str:
    """Clause on candidates that are cheaper than a certified baseline."""
    if cost <= min(certificate.costs.values()):
        return "no candidate is cheaper"
    has = "was shown to have" if certificate.is_reliable else "seems to have"
    return f"no cheaper candidate{so_far} {has} {_allowed(certificate)}"


def _cost(certificate: Certificate, cost: float) -> str:
    """A cost in words; prices keep all digits, so that a token's price is not 0."""
    return f"{cost:.10g}" if certificate.cost in GIVEN else amount(cost)


def _risk(answer: Answer, certificate: Certificate) -> list[Line]:
    best = answer.of_best
    if best is None or best.estimate is None:
        return []
    if answer.is_own_baseline:
        return [("risk", f"not tested for {best.name}: {DROP_OF_0}, whatever it answers")]
    between = sure = ""
    if best.lower is not None and best.upper is not None:
        between, sure = (
            ", between {} and {}".format(*ends(best.lower, best.upper)),
            interval_confidence(answer),
        )
    mean = certificate.means.get(best.name)
    is_moved = bool(between) and (mean is None or abs(best.estimate - mean) > ROUNDING)
    what = "the value in its interval that is nearest to its " if is_moved else "its "
    return [("risk", f"{rounded(best.estimate)}{between}: {what}{certificate.losses}{sure}")]


def _certainty(answer: Answer, certificate: Certificate) -> str:
    if not certificate.is_reliable:
        return f"heuristic: {certificate.selector} uses a plain mean and guarantees nothing"
    if answer.is_mixed:
        return f"heuristic: {MIXED}"
    if answer.best is None:
        return NOBODY if answer.outcome == "failed" else "nothing is claimed"
    baseline = certificate.baseline
    if answer.is_own_baseline and answer.named("certified") == (baseline,):
        return f"nothing is claimed: no candidate except {baseline} itself is certified"
    delta = answer.delta if answer.claim.delta is None else answer.claim.delta
    but = f" except {baseline}" if baseline in answer.named("certified") else ""
    higher = "higher risk" if certificate.baseline is None else "larger mean drop"
    worth = ", whether the autoevaluator is good or bad" if certificate.reads_autoevaluator else ""
    # The guarantee holds at every moment, also before a campaign ends.
    return (
        f"the probability that any certified candidate{but} has a {higher} is at most {delta:g}{worth}"
        f"{assumed(answer, answer.intervals_if)}"
    )


def _plain(certificate: Certificate) -> str:
    known = [name for name, mean in certificate.means.items() if mean is not None]
    if not known:
        return "no human loss is known yet, so there is no plain mean"
    some = len(known) < len(certificate.means)
    if certificate.plain is None or certificate.plain_mean is None:
        whom = f" of those with human losses ({list_of(known)})" if some else ""
        return f"the plain mean of human losses would certify no candidate{whom}"
    whom = f"of those with human losses ({list_of(known)}), " if some else ""
    mean = DROP_OF_0 if certificate.plain == certificate.baseline else rounded(certificate.plain_mean)
    said = f"{certificate.plain} ({mean})"
    return f"{whom}the plain mean of human losses would choose {said}, without any guarantee"
