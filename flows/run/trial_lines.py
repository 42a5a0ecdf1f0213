"""The outputs of a trial in a terminal: input, target, output and score."""

from winnow.flows.reports.summary import hanging
from winnow.flows.run.trial import Trial, TrialOutput
from winnow.tasks.text.phrases import rounded
from winnow.tasks.text.printable import one_line

MOST_SHOWN = 400
"""Maximum number of characters shown of a text."""
PLAIN_WIDTH = 100
"""Width in columns if there is no terminal."""


def trial_lines(trial: Trial, width: int | None, most: int | None = None) -> list[str]:
    """A block of lines for each output, and a line for each warning.

    Args:
        trial: The trial.
        width: Columns of the terminal; None if there is none.
        most: Maximum number of outputs shown, from the first; None for all.
    """
    width = min(width or PLAIN_WIDTH, PLAIN_WIDTH)
    lines: list[str] = []
    for number, each in enumerate(trial.outputs[:most], 1):
        lines += [*_block(number, each, width), ""]
    for warning in trial.warnings:
        lines += hanging("warning: ", one_line(warning.sentence), width)
    return lines


def _block(number: int, output: TrialOutput, width: int) -> list[str]:
    score = "no score" if output.score is None else f"score {rounded(output.score)}"
    head = f"{number}. {one_line(output.candidate)}, example {_cut(output.example, 40)}"
    gap = max(width - len(head) - len(score), 2)
    lines = [f"{head}{' ' * gap}{score}"]
    lines += hanging("   input   ", _cut(output.asked), width)
    if output.targets:
        lines += hanging("   target  ", _cut(" | ".join(output.targets)), width)
    if output.text is not None:
        lines += hanging("   output  ", _cut(output.text) or "(empty)", width)
    if output.score is None and output.why:
        lines += hanging("   why     ", _cut(output.why), width)
    return lines


def _cut(text: str, most: int = MOST_SHOWN) -> str:
    line = one_line(text)
    return line if len(line) <= most else f"{line[: most - 1]}…"
