"""Write the progress of a selection to standard error."""

import math
import reprlib
import time
from collections.abc import Sequence

from winnow.algorithms.decision import Decision
from winnow.flows.reports.output import tell

SECONDS = 1.0
"""Minimum time between two lines, in seconds."""


class ProgressLines:
    """Write a progress line after a round, at most one per second; always after the last round.

    Args:
        candidates: The candidates, indexed by arm.
        n_examples: Number of examples.
    """

    def __init__(self, candidates: Sequence[object], n_examples: int) -> None:
        self._candidates, self._pairs = candidates, len(candidates) * n_examples
        self._shown = -math.inf

    def show(self, round_: int, comparisons: int, decision: Decision) -> None:
        """Write a line for a round, unless the last line is less than a second old.

        Args:
            round_: Number of completed rounds.
            comparisons: Number of scores requested so far.
            decision: The decision after the round.
        """
        if not decision.stop and time.monotonic() - self._shown < SECONDS:
            return
        self._shown = time.monotonic()
        active = sum(status == "active" for status in decision.status)
        leads = "" if decision.best is None else f", {reprlib.repr(self._candidates[decision.best])} leads"
        tell(f"round {round_}: {comparisons:,} of {self._pairs:,} scores{leads}, {active} candidates open")
