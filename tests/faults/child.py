"""The process that meets a fault: a fork that runs the real command line in a campaign's folder."""

import json
import os
import signal
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.faults.tampering import Tampering

PRELOADED = [
    "tests.faults.child",
    "winnow.flows.run.flow",
    "winnow.flows.cli",
    "winnow.flows.run.launch",
    "winnow.tasks.setup.load",
    "winnow.storage.queries.campaign_views",
    "alembic.command",
    "alembic.autogenerate",
    "fastapi",
    "prefect.utilities.visualization",
    "prefect.engine",
    "prefect.flow_engine",
    "prefect.task_engine",
    "winnow.tasks.embedding.sentence_model",
    "winnow.tasks.engines.transformers.engine",
    "winnow.tasks.engines.openai.engine",
    "transformers.models.llama.modeling_llama",
    "winnow.algorithms.best_mean.baselines.row_mean",
    "psycopg",
    "route_campaigns",
    "scripted_engines",
    "tests.faults.digest_engine",
    "tests.faults.settled",
]
"""What a fork finds imported already; a command of its own would spend seconds on it."""

PROVIDERS = {"worker": "tests.faults.worker_engine:start", "digest": "tests.faults.digest_engine:start"}


def run_command(
    folder: str,
    arguments: Sequence[str],
    tamperings: Sequence[Tampering],
    out: str,
    err: str,
    prefect_api: str | None,
) -> None:
    """Be `winnow ARGUMENTS` in a folder, with both outputs in files, after what is tampered with.

    Flow runs go to the Prefect server at `prefect_api`: the fork server may be older than it, and without one
    every process would start a server of its own.
    """
    os.chdir(folder)
    for number in (signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)  # nohup, or a shell's &, would have them ignored here too
    for descriptor, path in ((1, out), (2, err)):
        opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.dup2(opened, descriptor)
        os.close(opened)
    provide()
    _write_down_requests(Path("asked.jsonl"))
    for tampering in tamperings:
        tampering()
    sys.argv = ["winnow", *arguments]
    from winnow.flows.main import main

    with _recorded_at(prefect_api):
        main()


@contextmanager
def _recorded_at(prefect_api: str | None) -> Generator[None, None, None]:
    if prefect_api is None:
        yield
        return
    from prefect.settings import PREFECT_API_URL, temporary_settings

    os.environ["PREFECT_API_URL"] = prefect_api
    with temporary_settings({PREFECT_API_URL: prefect_api}):
        yield


def provide() -> None:
    """Let this process know the providers of scripted engines."""
    from route_campaigns import PROVIDERS as ROUTED
    from scripted_engines import SCRIPTED

    from winnow.tasks.engines import providers

    providers.PROVIDERS.update(PROVIDERS | SCRIPTED | ROUTED)


def _write_down_requests(path: Path) -> None:
    """Leave a line for every text that is asked for, before it is answered."""
    from winnow.tasks.engines.pool.pool import EnginePool

    generate = EnginePool.generate
    # Open from the beginning: a fault may be that no file can be opened any more.
    told = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def generate_and_tell(self, model, requests, **options):
        lines = [json.dumps([os.getpid(), model.name, each.prompt, each.seed]) + "\n" for each in requests]
        os.write(told, "".join(lines).encode())
        return generate(self, model, requests, **options)

    EnginePool.generate = generate_and_tell
