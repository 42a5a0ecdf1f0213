"""Ask the user at a terminal about candidates whose first outputs look wrong.

If there is no answer within `ANSWER_WITHIN` seconds, the campaign continues.
"""

import select
import sys
import time
from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal

from winnow.flows.reports.output import tell, terminal_width
from winnow.flows.reports.summary import hanging
from winnow.tasks.queries.warnings.first_outputs import Suspect
from winnow.tasks.text.phrases import count_of
from winnow.tasks.text.printable import one_line

ANSWER_WITHIN = 60.0
"""Seconds after which the campaign continues without an answer."""

AT_A_TIME = 0.5
"""Seconds between two checks for a request to stop."""

MOST_SHOWN = 8
"""Maximum number of candidates shown in one question."""

PLAIN_WIDTH = 100
"""Maximum width of a line, and its width without a terminal, in columns."""

Reply = Literal["leave out", "stop", "go on"]

LineWithin = Callable[[float], str | None]
"""A function that returns the line that the user enters within some seconds, or None."""

_approved: ContextVar[frozenset[str]] = ContextVar("approved", default=frozenset())


@contextmanager
def approved(names: Collection[str]) -> Generator[None, None, None]:
    """Suppress questions about these candidates inside the block, because the user has seen their outputs."""
    token = _approved.set(frozenset(names))
    try:
        yield
    finally:
        _approved.reset(token)


def not_approved(suspects: Sequence[Suspect]) -> list[Suspect]:
    """The suspects that the user has not approved."""
    return [each for each in suspects if each.name not in _approved.get()]


def ask_about(
    suspects: Sequence[Suspect],
    *,
    may_leave_out: bool,
    is_stopped: Callable[[], bool],
    line_within: LineWithin | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Reply:
    """Ask what to do about suspects; return "go on" if no answer is entered in time.

    Args:
        suspects: The suspected candidates.
        may_leave_out: Whether "leave out" is a valid answer.
        is_stopped: Returns whether a stop was requested meanwhile, which ends the question.
        line_within: Reads a line within a time limit; None reads from standard input.
        clock: Returns the time in seconds.
    """
    for line in question_lines(suspects, terminal_width(sys.stderr), may_leave_out=may_leave_out):
        tell(line)
    read, end = line_within or _line_within, clock() + ANSWER_WITHIN
    while (left := end - clock()) > 0.0 and not is_stopped():
        entered = read(min(left, AT_A_TIME))
        if entered is None:
            continue
        reply = entered.strip().casefold()
        if may_leave_out and reply in ("l", "leave", "leave out"):
            return "leave out"
        if reply in ("s", "stop"):
            return "stop"
        if reply in ("", "g", "go", "go on", "y", "yes"):
            return "go on"
        tell(f"answer {_answers(may_leave_out)}")
    tell("the campaign continues")
    return "go on"


def question_lines(suspects: Sequence[Suspect], width: int | None, *, may_leave_out: bool) -> list[str]:
    """Lines with the suspected problems, one paragraph per candidate, and the question."""
    width = min(width or PLAIN_WIDTH, PLAIN_WIDTH)
    candidates = count_of(len(suspects), "candidate")
    lines = hanging(
        "",
        f"The first outputs of {candidates} look as if the judge, the prompt or a setting were wrong:",
        width,
    )
    for each in suspects[:MOST_SHOWN]:
        for sentence in each.sentences:
            lines += hanging("  - ", one_line(sentence), width)
    if len(suspects) > MOST_SHOWN:
        lines.append(f"  and {len(suspects) - MOST_SHOWN} more")
    them, counts = ("it", "It then counts") if len(suspects) == 1 else ("them", "They then count")
    ask = "Stop to correct that (s), or go on (g)?"
    if may_leave_out:
        ask = (
            f"Stop to correct that (s), go on (g), or leave {them} out (l)? {counts} as dropped: the stated "
            "error probability rises, and the evidence on the other candidates starts again."
        )
    return [*lines, *hanging("", f"{ask} Without an answer, it goes on in {ANSWER_WITHIN:.0f} s.", width)]


def _answers(may_leave_out: bool) -> str:
    return "s (stop), g (go on) or l (leave out)" if may_leave_out else "s (stop) or g (go on)"


def _line_within(seconds: float) -> str | None:
    ready, _, _ = select.select([sys.stdin], [], [], seconds)
    return sys.stdin.readline() if ready else None
