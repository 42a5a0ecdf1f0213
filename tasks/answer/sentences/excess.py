"""Sentences on how much better another candidate can be, while it is undecided."""

from winnow.algorithms.claims import Assumption
from winnow.tasks.answer.model import Answer
from winnow.tasks.answer.sentences.clauses import Line, assumed, estimated
from winnow.tasks.text.phrases import ends, list_of, percent


def excess_words(
    over: str, most: float, delta: float, *, whom: str = "", top_m: int = 1, value: str | None = None
) -> str:
    """The bound in words.

    Example: "no candidate is better than A by more than 0.043 (95% confidence)".

    Args:
        over: Name of the candidate that the bound is about.
        most: Upper bound on how much better another candidate can be.
        delta: The error probability; 0 if the bound is certain.
        whom: Words that exclude candidates from the bound, such as " that was not dropped".
        top_m: Number of best candidates to find; if it is above 1, `over` is the last of them.
        value: The compared value in words; None for the plain mean.
    """
    by = f" by more than {ends(0.0, most)[1]}" if most else ""
    if top_m > 1:
        number, verb = top_m - 1, "is" if top_m == 2 else "are"
        said = f"at most {number} candidate{'s' * (number > 1)}{whom} {verb} better than {over}{by}"
    elif value is not None:
        said = f"no candidate{whom} has a {value} above that of {over}{by}"
    else:
        said = f"no candidate{whom} is better than {over}{by}"
    return f"{said} ({f'{percent(delta)} confidence' if delta else 'exact'})"


def whom_words(*, has_constraints: bool, has_dropped: bool) -> str:
    """Words that exclude candidates from the bound; empty if it covers all candidates."""
    found = ["meets the constraints"] * has_constraints + ["was not dropped"] * has_dropped
    return f" that {' and '.join(found)}" if found else ""


def excess_clause(answer: Answer) -> str:
    """The bound with its assumptions, as a clause.

    Empty without a bound, and if the answer is proven, because a proven answer implies it.
    """
    found = answer.excess
    if found is None or answer.is_guaranteed or answer.is_unsolved or answer.outcome == "failed":
        return ""
    said = excess_words(
        found.over,
        found.most,
        found.delta,
        whom=whom_words(has_constraints=bool(answer.constraints), has_dropped=bool(answer.dropped)),
        top_m=answer.top_m,
        value=None if answer.groups is None else estimated(answer),
    )
    return said + assumed(answer, _assumptions(answer))


def not_excluded(answer: Answer) -> str:
    """The candidates that can still be better, such as "not excluded: B, C".

    Empty without a bound. Also empty in a search for the m best, which does not ask which of them is better
    than the last.
    """
    if not excess_clause(answer) or answer.excess is None or answer.top_m > 1:
        return ""
    if not answer.excess.not_excluded:
        return ""
    return f"not excluded: {list_of(answer.excess.not_excluded)}"


def excess_lines(answer: Answer) -> list[Line]:
    """The line on how much better another candidate can be; empty without a bound."""
    said = [each for each in (excess_clause(answer), not_excluded(answer)) if each]
    if said and (joined := sum(len(each.names) for each in answer.additions)):
        said.append(
            f"{joined} of all candidates {'was' if joined == 1 else 'were'} added after scores were seen"
        )
    return [("bound", "; ".join(said))] if said else []


def _assumptions(answer: Answer) -> tuple[Assumption, ...]:
    """The assumptions of the bound."""
    if answer.additions and not answer.expects_additions:
        return (*answer.intervals_if, "planned-additions")
    return answer.intervals_if
