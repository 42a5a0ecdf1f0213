"""What all faults share: one Prefect server, one PostgreSQL server, one fork server."""

import multiprocessing
import os
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from multiprocessing.context import ForkServerContext
from pathlib import Path

from tests.faults import child
from tests.faults.outcomes import Stage


def fork_server() -> ForkServerContext:
    """Forks that find everything imported."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(child.PRELOADED)
    return context


@contextmanager
def stage() -> Generator[Stage, None, None]:
    """A place for faults, gone with all its folders when the block ends."""
    from postgres_server import postgres_server

    from winnow.flows.prefect_support.environment import settle_environment
    from winnow.flows.prefect_support.server import prefect_server

    # Not in memory: a database that outlives its server's end is one whose files do.
    with tempfile.TemporaryDirectory(prefix="winnow-faults-") as name, postgres_server() as server:
        folder = Path(name)
        os.environ["PREFECT_HOME"] = str(folder / "prefect")
        os.environ.setdefault("OMP_NUM_THREADS", "1")
        settle_environment(folder / "prefect")
        with prefect_server(folder / "prefect-server.log"):
            from prefect.settings import PREFECT_API_AUTH_STRING, PREFECT_API_URL

            os.environ["PREFECT_API_URL"] = str(PREFECT_API_URL.value())
            os.environ["PREFECT_API_AUTH_STRING"] = str(PREFECT_API_AUTH_STRING.value())
            child.provide()
            yield Stage(fork_server(), folder, server)
