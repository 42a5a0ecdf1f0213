"""The answer as labelled lines, for `winnow status` and the pages."""

from collections.abc import Sequence

from winnow.storage.json_types import JsonView
from winnow.storage.objectives import traits_of
from winnow.tasks.answer.model import Answer
from winnow.tasks.answer.sentences.answer_lines import answer_lines, badge
from winnow.tasks.answer.sentences.clauses import Line, rounds
from winnow.tasks.answer.unit_costs import running_words
from winnow.tasks.engines.known_providers import NO_SEED
from winnow.tasks.text.phrases import amount, count_of, list_of, percentage
from winnow.tasks.text.printable import one_line

NAMING = ("winner", "best", "certified", "passed")
"""Labels of lines that begin with the winner's name, if the campaign has a winner."""

SETTLES = ("confidence", "open", "next")
"""Labels of lines on whether the question is settled.
The cost follows them and precedes all explanations, so that it fits on a phone's screen.
"""


def status_lines(answer: Answer, totals: JsonView) -> list[Line]:
    """Lines of an answer: the candidate to use, its mean, the confidence, the cost.

    Args:
        answer: The current answer.
        totals: Counts with the keys `answered` (comparisons so far), `rounds` (rounds so far) and `grid`
            (comparisons in the full grid).
    """
    running = answer.running and running_words(answer.running, is_of_program=answer.is_of_program)
    running_cost = [("running cost", running)] if running else []
    repeated = [*_asked_lines(answer), *repeat_lines(answer.unsteady or ())]
    servers = [("server", change.sentence) for change in answer.servers]
    if answer.without_canaries:
        servers.append(("server", NOT_ASKED))
    said = [*answer_lines(answer), *_score_lines(answer), *servers, *repeated, *running_cost]
    last = max((place for place, (word, _) in enumerate(said) if word in SETTLES), default=len(said) - 1)
    return [*said[: last + 1], ("cost", cost(answer, totals)), *said[last + 1 :]]


NOT_ASKED = (
    "no canary prompts were sent (execution.canaries: off), so it is not known whether a server changed its "
    "model during the campaign, or since reused outputs were generated"
)


def _asked_lines(answer: Answer) -> list[Line]:
    """The warning about several answers to one question; empty for a single answer."""
    if not answer.asked_before:
        return []
    examples = ", other examples" if traits_of(answer.objective).measures_risk else ""
    said = (
        f"the same question before, with other draws{examples} or another test: "
        f"{list_of(answer.asked_before)}. The error probabilities of these answers add up: an answer that is "
        "picked among them can be wrong with a probability of up to their sum"
    )
    return [("asked", said)]


def repeat_lines(engines: Sequence[str]) -> list[Line]:
    """The warning that a run may not be reproducible; empty if all engines are."""
    if not engines:
        return []
    engines = [one_line(each) for each in engines]  # of an agent, a command or a URL as its file gives it
    said = (
        f"not exactly: outputs of {list_of(engines)} can depend on what else is generated at the same time. "
        "Stored outputs always give this answer; if the campaign runs again, or is killed and resumed, "
        "outputs can differ"
    )
    if seedless := [each for each in engines if each.endswith(NO_SEED)]:
        said += f". {list_of(seedless)} gets no seed, so outputs drawn at a temperature differ each time"
    return [("repeatable", said)]


def _score_lines(answer: Answer) -> list[Line]:
    """The line on how several outputs give one score; empty for one output."""
    if answer.samples is None:
        return []
    n, reducer = answer.samples
    return [("score", f"of an example: {reducer} of the {n} outputs that were drawn")]


def cost(answer: Answer, totals: JsonView) -> str:
    """The comparisons so far, compared with the full grid, in words."""
    spent = f"{count_of(totals['answered'], 'comparison')} in {rounds(totals['rounds'])}"
    if answer.certificate is not None:
        what = "human label" if answer.people is None else "example"
        used = count_of(answer.certificate.labels_used, what)
        return f"{spent}, {'' if answer.people is None else 'of '}{used}"
    grid = totals["grid"]
    if not grid:
        return spent
    share = totals["answered"] / grid
    # Without an answer nothing is saved. A stream, or duels that repeat examples, can exceed the grid.
    has_answer = badge(answer) is not None and not traits_of(answer.objective).is_stream
    saved = f" ({percentage(1.0 - share)} saved)" if share < 1.0 and has_answer else ""
    return f"{spent}: {percentage(share)} of the full grid of {amount(grid)}{saved}"


def named_winner(answer: Answer, line: Line) -> str | None:
    """The winner with whose name a line begins; None for other lines."""
    word, sentence = line
    if answer.outcome != "winner" or word not in NAMING:
        return None
    known = (each.name for each in answer.candidates if sentence.startswith(each.name))
    return max(known, key=len, default=None)
