"""What a fork server does before it forks: all imports and one campaign, so that its forks find caches warm.

A process of a tiny campaign would else spend most of its time on what is done once: imports, the first
compilation of every query, the first load of a checkpoint.
"""

import os
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

import campaign_processes as processes
import pytest
from without_prefect import leave_prefect_out

from winnow.flows.prefect_support.environment import settle_environment

ELSEWHERE = (
    "anyio._backends._asyncio",
    "encodings.idna",
    "fastapi",
    "prefect.engine",
    "prefect.flow_engine",
    "prefect.task_engine",
    "prefect.utilities.visualization",
    "psycopg",
)
"""What a campaign imports when it is a flow run or is kept in PostgreSQL, which that of here does not."""


def run_a_campaign(folder: Path) -> None:
    """Run one to its end, without Prefect."""
    from winnow.flows.run import flow

    spec = processes.write_campaign(folder, budget=processes.BATCH_SIZE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(folder))
        leave_prefect_out(patch)
        flow.run_campaign(processes.store(spec), "survivor")


with TemporaryDirectory() as _folder:
    settle_environment(Path(os.environ.get("PREFECT_HOME", _folder)))
    run_a_campaign(Path(_folder))

for _module in ELSEWHERE:
    import_module(_module)
