"""Sentences about the answer of a route campaign."""

from winnow.tasks.answer.model import Answer
from winnow.tasks.answer.sentences.clauses import (
    NOBODY,
    Line,
    dropped_lines,
    spent,
)
from winnow.tasks.objectives.route.status import Standing
from winnow.tasks.text.phrases import count_of, ends, list_of, percent, rounded


def _pays(answer: Answer, standing: Standing) -> str:
    """Answer whether routing is shown to score more than the best single candidate, with the interval."""
    found = standing.advantage
    if found is None:
        return "not known: whether routing scores more than one candidate needs selector.params.explore"
    lower, upper = ends(found.lower, found.upper)
    is_shown = found.lower > 0.0 or found.upper < 0.0
    # Weights of few explored prompts move the estimate far from the truth while the interval is wide.
    estimate = f"{rounded(found.estimate, '+')}, " if is_shown else ""
    between = f"{estimate}between {lower} and {upper}"
    of_left = " of those that were not dropped" if answer.dropped else ""
    late = (
        "; a candidate that joined later is compared on the prompts since it joined"
        if standing.has_late
        else ""
    )
    if standing.uncompared:
        late += f"; nothing is claimed about {list_of(standing.uncompared)}, not compared on any prompt yet"
    word = "yes" if found.lower > 0.0 else "no" if found.upper < 0.0 else "not shown"
    return (
        f"{word}: on these prompts, the mean score of routing minus that of the best single candidate"
        f"{of_left} is {between} ({percent(found.delta)} confidence, simultaneously over all rounds). "
        f"The interval is valid whichever candidate is the best; {standing.single} is estimated to be the "
        f"best{late}"
    )


def lines_of(answer: Answer) -> list[Line]:
    """Lines on the score of routing, and on the best single candidate."""
    standing = answer.standing
    assert standing is not None
    if answer.outcome == "failed":
        return [
            ("routes", "nothing"),
            ("confidence", NOBODY),
            *dropped_lines(answer),
            *_arrived(answer, standing),
        ]
    if standing.mean is None:
        return [("routes", "nothing known yet"), *_arrived(answer, standing)]
    scored = f"mean score {rounded(standing.mean)} on the {count_of(standing.scored, 'prompt')} scored so far"
    if standing.late_mean is not None and standing.late_scored:
        last = "last" if standing.late_scored == 1 else f"last {standing.late_scored:,}"
        scored += f"; {rounded(standing.late_mean)} on the {last} of them"
    lines = [("routes", scored)]
    best = answer.of_best
    if best is not None and best.estimate is not None:
        given = f"{rounded(best.estimate)} on the {count_of(standing.single_scored, 'prompt')} scored for it"
        of_left = "of those that were not dropped, " if answer.dropped else ""
        left = (each for each in answer.candidates if each != best and each.status != "dropped")
        alike = [each.name for each in left if each.estimate == best.estimate]
        too = f", and so {'has' if len(alike) == 1 else 'have'} {list_of(alike)}" if alike else ""
        lines.append(("single", f"{of_left}{best.name} has the highest mean, {given}{too}"))
    lines.append(("pays", _pays(answer, standing)))
    why = (
        "prompts are routed to the candidate expected to do best, so these means do not generalise to "
        "other prompts"
    )
    lines.append(("confidence", f"heuristic: {why}"))
    lines += dropped_lines(answer)
    if answer.limit is not None and answer.outcome is not None:
        lines.append(("ended", spent(answer)))
    return lines + _arrived(answer, standing)


def headline_of(answer: Answer) -> tuple[str, str]:
    """The score of routing, and its confidence, as two sentences."""
    standing = answer.standing
    assert standing is not None
    if answer.outcome == "failed":
        return "No answer: every candidate was dropped", ""
    if standing.mean is None:
        return "Nothing is known yet", ""
    prompts = count_of(standing.scored, "prompt")
    found = standing.advantage
    sure = "Not proven: prompts go to the candidate that is expected to do best"
    if found is not None and found.lower > 0.0:
        risk = f"{100.0 * found.delta:.10g}% risk of error"
        sure = f"Routing scores more on these prompts than any single candidate that is compared ({risk})"
    return f"Route with this policy: mean score {rounded(standing.mean)} on {prompts}", sure


def _arrived(answer: Answer, standing: Standing) -> list[Line]:
    n = standing.unanswered
    if not n:
        return []
    said = f"{count_of(n, 'prompt')} that arrived later {'has' if n == 1 else 'have'} no output yet"
    return [("arrived", f"{said}; run winnow route {answer.campaign} --unanswered")]
