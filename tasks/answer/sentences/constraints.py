"""Sentences on constraints: which candidates meet them, and what a claim covers."""

from winnow.tasks.answer.model import Answer, Constrained
from winnow.tasks.answer.sentences.clauses import Line, on_examples
from winnow.tasks.text.phrases import list_of, rounded


def constraint_lines(answer: Answer) -> list[Line]:
    """Lines on each constraint and the best candidate, then on candidates that fail."""
    lines = [("must", _stands(answer, each)) for each in answer.constraints]
    asked = {each.constraint.metric: each.judges for each in answer.constraints if each.judges}
    for metric, models in asked.items():
        said = (
            f"values of {metric} come from verdicts of {list_of(models)} on outputs, with the prompts and "
            "settings of the file"
        )
        lines.append(("judge", said))
    if (missed := answer.named("infeasible")) and not answer.is_mixed:
        said = f"{len(missed)} of {len(answer.candidates)} candidates cannot meet the constraints"
        lines.append(("missed", f"{said}, whatever their missing values are: {list_of(missed)}"))
    if (unfit := answer.named("unfit")) and not answer.is_mixed:
        said = (
            f"{len(unfit)} of {len(answer.candidates)} candidates are eliminated by bets that they violate a"
        )
        lines.append(("unfit", f"{said} constraint, which is not certain for each one: {list_of(unfit)}"))
    return lines


def what_is_met(answer: Answer, whom: str, within: str) -> str:
    """The claim about a winner or tied candidates that meet constraints.

    Args:
        answer: The answer of a campaign with constraints.
        whom: Words that exclude candidates from the claim; empty if it covers all candidates.
        within: Words for the smallest amount by which a mean would have to be higher.

    Returns:
        A sentence without confidence, capital letter and full stop, to which the confidence is added.
    """
    here = on_examples(answer)
    known = " (known exactly)" if answer.claim.kind == "proven" else ""
    meets = f"{answer.best} meets the constraints{known}"
    if len(answer.candidates) == len(answer.dropped) + 1:
        return (
            f"{here} {meets}; every other candidate was dropped, so there is no candidate to compare it with"
        )
    if answer.outcome != "tied":
        return (
            f"{here} {meets}, and of the candidates that meet them, no candidate{whom} has a mean that is "
            f"higher{within}"
        )
    equal = "have the same mean"
    if answer.epsilon:
        equal = f"have means within {answer.epsilon:g} of the highest of all that meet them"
    meet = f"the tied candidates meet the constraints{known} and {equal}"
    return f"{here} {meet}, and no other candidate{whom} that meets them has one that is higher{within}"


def _stands(answer: Answer, found: Constrained) -> str:
    """A constraint, and the best candidate's mean of its metric, in words."""
    said = str(found.constraint)
    if answer.best is None or found.mean is None:
        return said
    said += f": {answer.best} has {rounded(found.mean)} on"
    if found.valued < answer.n_examples:
        return f"{said} {found.valued:,} of the {answer.n_examples:,} examples"
    known = "" if answer.is_mixed else " (known exactly)"
    return f"{said} the {answer.n_examples:,} examples{known}"
