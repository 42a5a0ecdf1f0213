"""Campaigns run by plain calls, for tests of what campaigns do and say: Prefect is most of the cost of one.

What Prefect is for is looked at with Prefect: that a run and its steps show there, engines that die and are
asked again, interrupts, schedules, work pools, lost servers, and kills.
"""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest

COMMAND = """
import sys
import pytest
from without_prefect import leave_prefect_out
leave_prefect_out(pytest.MonkeyPatch())
from winnow.flows.main import main
sys.argv[0] = "winnow"
main()
"""
"""The program `winnow`, in a process that finds this module, whose campaigns run without Prefect too."""

STEPS = ("plan", "generate", "judge", "decide", "record", "rounds", "rounds_ahead")


class PlainTask:
    """A task of Prefect's as a function that is called once, whatever comes of it."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def with_options(self, **options: object) -> "PlainTask":
        return self

    def __call__(self, *arguments: Any) -> Any:
        return self._function(*(argument.unquote() for argument in arguments))


def leave_prefect_out(patch: pytest.MonkeyPatch) -> None:
    """Have campaigns of this process run without Prefect and its server; safe to ask for again."""
    from winnow.flows.prefect_support import client
    from winnow.flows.run import flow, head_start, launch, progress

    if isinstance(flow.rounds, PlainTask):
        return
    for name in STEPS:
        patch.setattr(flow, name, PlainTask(getattr(flow, name).fn))
    patch.setattr(flow, "run_campaign", flow.run_campaign.fn)
    patch.setattr(launch, "early_server", nullcontext)
    patch.setattr(head_start, "early_server", nullcontext)
    patch.setattr(launch, "prefect_server", nullcontext)
    patch.setattr(client, "mark_crashed_runs", lambda storage: [])
    patch.setattr(progress, "server_is_the_users", lambda: False)
