"""Campaigns run by plain calls, for tests of what campaigns do and say: Prefect is most of the cost of one.

What Prefect is for is looked at with Prefect: that a run and its steps show there, engines that die and are
asked again, interrupts, schedules, work pools, lost servers, and kills.
"""

from contextlib import nullcontext

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


def leave_prefect_out(patch: pytest.MonkeyPatch) -> None:
    """Have campaigns of this process run without Prefect and its server; safe to ask for again."""
    from winnow.flows.prefect_support import client
    from winnow.flows.run import flow, head_start, launch, plain_run, progress

    if flow.run_rounds is plain_run.run_rounds:
        return
    patch.setattr(flow, "run_rounds", plain_run.run_rounds)
    patch.setattr(flow, "run_campaign", flow.run_campaign.fn)
    patch.setattr(launch, "early_server", nullcontext)
    patch.setattr(head_start, "early_server", nullcontext)
    patch.setattr(launch, "prefect_server", nullcontext)
    patch.setattr(client, "mark_crashed_runs", lambda storage: [])
    patch.setattr(progress, "server_is_the_users", lambda: False)
