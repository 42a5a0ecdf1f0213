"""Sentences about the answer of a gate, which compares candidates with a baseline."""

from collections.abc import Sequence

from winnow.algorithms.claims import ArmStatus
from winnow.tasks.answer.model import Answer, CandidateStanding
from winnow.tasks.answer.sentences.clauses import (
    MIXED,
    Claimed,
    Line,
    asking_again,
    dropped_lines,
    interval_words,
    on_examples,
    spent,
)
from winnow.tasks.text.phrases import list_of, risk_of, rounded

WORDS: dict[ArmStatus, str] = {"better": "better", "no-worse": "no worse", "worse": "worse", "active": "open"}
"""The word for a candidate's result, by its status."""


def gate_headline(answer: Answer) -> str:
    """The result of a gate in a few words, such as "no worse".

    "decided" if candidates have different results. Dropped candidates have no result, so their number is
    added.
    """
    words = {WORDS[each.status] for each in answer.candidates if each.status in WORDS}
    said = words.pop() if len(words) == 1 else "decided"
    dropped = sum(each.name != answer.baseline for each in answer.dropped)
    return f"{said}, except {dropped} dropped" if dropped else said


def gate_lines(answer: Answer) -> list[Line]:
    """Lines on the baseline, on each candidate's result, and on the confidence."""
    lines = [("baseline", _baseline(answer))]
    for status, word in WORDS.items():
        lines += [
            (word, f"{each.name}: {difference_words(answer, each)}")
            for each in answer.candidates
            if each.status == status and each.name != answer.baseline
        ]
    return [*lines, ("confidence", gate_certainty(answer)), *dropped_lines(answer)]


def gate_certainty(answer: Answer) -> str:
    """The claim about the candidates, then the open ones and the reason."""
    if answer.outcome is None:
        return "not yet: the campaign has not ended"
    if answer.outcome == "failed":
        return _nobody_compared(answer)
    if answer.is_mixed:
        return f"heuristic: {MIXED}"
    claimed = [_claimed(answer)] if answer.claim.kind in ("exact", "proven") else []
    return "; ".join([*claimed, *([_undecided(answer)] if answer.outcome == "undecided" else [])])


def _nobody_compared(answer: Answer) -> str:
    if answer.baseline in [each.name for each in answer.dropped]:
        why = f"{answer.baseline} was dropped, so no candidate can be compared with it"
    else:
        why = f"every candidate to compare with {answer.baseline} was dropped"
    return f"nothing is claimed: {why}"


def _baseline(answer: Answer) -> str:
    """The baseline and its mean.

    The mean has no interval, because the simultaneous intervals of a gate are those of differences.
    """
    mean = next(each.estimate for each in answer.candidates if each.name == answer.baseline)
    if mean is None:
        return f"{answer.baseline}"
    is_known = answer.is_known(answer.baseline)
    of = f"on the {answer.n_examples:,} examples (known exactly)" if is_known else "on the scored examples"
    return f"{answer.baseline}: mean {rounded(mean)} {of}"


def difference_words(answer: Answer, standing: CandidateStanding) -> str:
    """A candidate's difference to the baseline and its confidence, in words."""
    found = standing.difference
    if found is None or found.estimate is None:
        return "nothing known yet" if answer.outcome is None else "nothing is known"
    ahead = f"{rounded(found.estimate, '+')} against {answer.baseline}"
    of_all = f"on the {answer.n_examples:,} examples"
    if answer.is_known(standing.name, answer.baseline):
        return f"{ahead} {of_all} (known exactly)"
    # A settled candidate gets no further examples, so it has fewer than the baseline's mean.
    said = f"{ahead} on examples scored for both"
    if found.lower is None or found.upper is None:
        return said
    claimed = _difference_claimed(answer, standing.status)
    return f"{said}; {of_all} {interval_words(answer, found.lower, found.upper, claimed, '+')}"


def _difference_claimed(answer: Answer, status: ArmStatus) -> Claimed | None:
    """The claim about a candidate's difference to the baseline, by its status.

    None if nothing is claimed.
    """
    if answer.claim.kind not in ("exact", "proven"):
        return None
    limit = answer.epsilon
    where: dict[ArmStatus, Claimed] = {
        "better": Claimed("above 0", least=0.0),
        "no-worse": Claimed(f"at least {0.0 - limit:g}", least=-limit),
        "worse": Claimed(f"below {0.0 - limit:g}", most=-limit),
    }
    return where.get(status)


def _claimed(answer: Answer) -> str:
    """The claim about all settled candidates: exact, or up to an error probability."""
    limit, baseline = answer.epsilon, answer.baseline
    whose = f"that of {baseline}"
    where: dict[ArmStatus, str] = {
        "no-worse": f"at most {limit:g} below {whose}" if limit else f"not below {whose}",
        "better": f"above {whose}",
        "worse": f"more than {limit:g} below {whose}" if limit else f"below {whose}",
    }
    parts = [_means(names, said) for status, said in where.items() if (names := answer.named(status))]
    said = f"{on_examples(answer)} {', and '.join(parts)}"
    if answer.claim.kind == "exact":
        return f"exact: {said}"
    return f"{said} (at most {risk_of(answer.claim.delta or 0.0)} in any of this)"


def _means(names: Sequence[str], said: str) -> str:
    if len(names) == 1:
        return f"the mean of {names[0]} is {said}"
    return f"the means of {list_of(names)} are {said}"


def _undecided(answer: Answer) -> str:
    names = [name for name in answer.named("active") if name != answer.baseline]
    if answer.reason == "budget":
        return f"undecided at error probability {answer.delta:g} for {list_of(names)}: {spent(answer)}"
    if answer.baseline in [each.name for each in answer.dropped]:
        return (
            f"undecided for {list_of(names)}: {answer.baseline} was dropped, so nothing more can be learned"
        )
    lacks = [f"{each.name} lacks {each.unscored:,}" for each in answer.lacking if each.unscored]
    return (
        f"undecided for {list_of(names)}: no comparison is left, and comparisons without an outcome could "
        f"still change the answer ({list_of(lacks)}); winnow query {answer.campaign} coverage says why"
        f"{asking_again(answer)}"
    )
