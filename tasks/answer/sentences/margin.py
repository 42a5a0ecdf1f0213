"""Claims with a margin: another candidate can be better by up to epsilon."""

from winnow.storage.objectives import traits_of
from winnow.tasks.answer.model import Answer
from winnow.tasks.text.phrases import points, risk_of


def leaves_margin(answer: Answer) -> bool:
    """Whether another candidate can be better than the named one by up to epsilon.

    With an epsilon, candidates that were only shown to be no better by more than epsilon have their own
    status. Tied candidates can differ by it, and elimination in duels allows for it, too.
    """
    if not answer.epsilon or answer.baseline is not None or not answer.is_guaranteed:
        return False
    if answer.outcome not in ("winner", "tied"):
        return False
    if traits_of(answer.objective).compares_pairs or answer.chosen is not None:
        return True
    if is_ahead_of_all(answer):
        return False
    differ = bool(answer.tied) and answer.listed_estimate is None
    return differ or bool(answer.named("not-better", "active"))


def differ_within_epsilon(answer: Answer) -> bool:
    """Whether candidates with the outcome tied are the answer and have different means, within epsilon."""
    if not answer.epsilon or traits_of(answer.objective).compares_pairs or answer.top_m > 1:
        return False
    if answer.constraints or answer.chosen is not None:
        return False
    return len({each.estimate for each in answer.candidates if each.status == "tied"}) > 1


def is_ahead_of_all(answer: Answer) -> bool:
    """Whether the winner is proven better than every other candidate, without epsilon.

    This uses the intervals of the differences, which hold simultaneously, so all of it has the error
    probability of one of them. Dropped candidates do not matter.
    """
    if answer.outcome != "winner" or answer.top_m > 1 or answer.constraints or answer.chosen is not None:
        return False
    if answer.additions or answer.intervals_if or answer.is_mixed or answer.delta is None:
        return False
    others = [each for each in answer.candidates if each.name != answer.best and each.status != "dropped"]
    behind = [each.difference for each in others if each.difference is not None]
    return 0 < len(behind) == len(others) and all(
        each.against == answer.best and each.upper is not None and each.upper < 0.0 for each in behind
    )


def margin_claim(answer: Answer) -> str:
    """The claim in a few words.

    Example: "no candidate is better by more than 5 points (5% risk of error)".
    """
    claim = answer.claim
    risk = f" ({risk_of(claim.delta)})" if claim.kind == "proven" and claim.delta is not None else ""
    is_tied = answer.outcome == "tied" and not differ_within_epsilon(answer)
    return f"{'tied: ' if is_tied else ''}{_what(answer)}{risk}"


def _what(answer: Answer) -> str:
    of_all = [
        *(["meets the constraints"] if answer.constraints else []),
        *(["was not dropped"] if answer.dropped else []),
    ]
    whom = f" that {' and '.join(of_all)}" if of_all else ""
    if traits_of(answer.objective).compares_pairs:
        most = f"in more than {100.0 * (0.5 + answer.epsilon):.10g}% of duels"
        if "winner-exists" in answer.claim.assumptions:
            among = "of all candidates that were not dropped, the one" if answer.dropped else "the candidate"
            return f"{among} over which no other is preferred is not preferred {most}"
        return f"no candidate{whom} is preferred {most}"
    than = f" than any of the {len(answer.top) or answer.top_m} named" if answer.top_m > 1 else ""
    other = "other " * (answer.top_m > 1)
    return f"no {other}candidate{whom} is better{than} by more than {points(answer.epsilon)}"
