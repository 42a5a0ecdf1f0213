"""What follows for new examples, in a sentence."""

from winnow.tasks.answer.beyond import LEVEL, Beyond
from winnow.tasks.answer.model import Answer
from winnow.tasks.answer.phrases import Line, percent, which_is_open


def beyond_lines(answer: Answer) -> list[Line]:
    """How the winner compares with its closest rival on examples like these; empty where nobody asked."""
    found = answer.beyond
    if found is None:
        return _left_open(answer)
    pair = f"{found.winner} and {found.rival}"
    if found.joined is not None:
        why = f"{found.joined} joined after scores on these examples had been seen"
        return [("beyond", f"nothing follows for new examples: {why}")]
    if not found.is_sample:
        why = f"the examples that were scored for both {pair} were chosen and are no random sample"
        return [("beyond", f"nothing follows for new examples: {why}")]
    if found.difference is None:
        few = f"only {found.n} examples were scored for both {pair}{_left_out(found)}"
        return [("beyond", f"nothing follows for new examples: {few}")]
    between = f"between {found.lower:.3f} and {found.upper:.3f}"
    even = 0.5 if answer.objective == "best-duel" else 0.0
    if answer.objective == "best-duel":
        said = f"{found.winner} is preferred over {found.rival} in {found.difference:.3f} of duels, {between}"
    else:
        said = f"{found.winner} scores {found.difference:+.3f} against {found.rival}, {between}"
    sample = f"{found.n} examples, taken as a random sample of those that matter{_left_out(found)}"
    sure = f"{percent(LEVEL)}, for all pairs of candidates at once"
    open_ = which_is_open(found.lower, found.upper, even)
    return [("beyond", f"on new examples like these: {said} ({sample}; {sure}){open_}")]


def _left_open(answer: Answer) -> list[Line]:
    if answer.outcome not in ("winner", "tied") or (answer.groups is None and not answer.constraints):
        return []
    where = "groups are compared" if answer.groups is not None else "constraints have to be met"
    return [("beyond", f"nothing is worked out for new examples where {where}")]


def _left_out(found: Beyond) -> str:
    return f"; {found.left_out} comparisons without an outcome are left out" if found.left_out else ""
