"""The sentences that may be said of an answer that routes prompts to candidates."""

from winnow.tasks.answer.model import Answer
from winnow.tasks.answer.phrases import NOBODY, Line, dropped_lines, percent, spent
from winnow.tasks.objectives.route.status import Standing


def _pays(standing: Standing) -> str:
    """Whether routing was shown to score more than the best single candidate."""
    found = standing.advantage
    if found is None:
        return "not known: whether routing scores more than one candidate needs selector.params.explore"
    between = f"{found.estimate:+.3f}, between {found.lower:.3f} and {found.upper:.3f}"
    said = f"on these prompts routing scores {between}, against {standing.single} alone"
    sure = f"with probability {percent(found.delta)}, at every round at once"
    if found.lower > 0.0:
        return f"yes: {said}, {sure}"
    return f"{'no' if found.upper < 0.0 else 'not shown'}: {said}, {sure}"


def policy_lines(answer: Answer, standing: Standing) -> list[Line]:
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
    lines.append(("pays", _pays(standing)))
    why = "prompts are given to whoever is thought good at them, so that means say nothing of other prompts"
    lines.append(("sure", f"heuristic: {why}"))
    lines += dropped_lines(answer)
    if answer.limit is not None and answer.outcome is not None:
        lines.append(("ended", spent(answer)))
    return lines
