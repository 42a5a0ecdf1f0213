import fcntl
import os
import shutil
import sqlite3
from contextlib import closing, contextmanager
from functools import cache

import pytest
from stored_campaigns import copy_tables
from without_prefect import leave_prefect_out

from winnow.flows.prefect_support import server
from winnow.flows.prefect_support.environment import settle_environment
from winnow.flows.prefect_support.server import prefect_server


@pytest.fixture(scope="module", autouse=True)
def _tables_are_copied():
    with pytest.MonkeyPatch.context() as patch:
        copy_tables(patch)
        yield


@pytest.fixture(scope="session")
def prefect_api(tmp_path_factory):
    """One Prefect server for all campaigns of the session; processes find it through the environment."""
    folder = tmp_path_factory.mktemp("prefect")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("PREFECT_API_URL", raising=False)
        patch.setenv("PREFECT_HOME", str(folder / "home"))
        patch.setattr(server, "new_secret", lambda: os.environ["PREFECT_API_AUTH_STRING"])
        settle_environment(folder / "home")
        with (
            _tables_of_another(
                folder / "home" / "prefect.db", tmp_path_factory.getbasetemp().parent
            ) as share,
            prefect_server(folder / "server.log", schedules=True),
        ):
            share()
            from prefect.settings import PREFECT_API_URL

            patch.setenv("PREFECT_API_URL", PREFECT_API_URL.value())
            yield os.environ["PREFECT_API_URL"]


@contextmanager
def _tables_of_another(database, common):
    """Prefect migrates one database for all processes of the suite: each takes five seconds of a processor.

    Who finds none yet makes it, and shares it by calling what is given; others wait until then.
    """
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID")
    if run is None:
        yield lambda: None
        return
    made = common / f"prefect-{run}.db"
    with made.with_suffix(".lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if made.exists():
            fcntl.flock(lock, fcntl.LOCK_UN)
            database.parent.mkdir(exist_ok=True)
            shutil.copyfile(made, database)

        def share():
            if not made.exists():
                part = made.with_suffix(".part")
                with closing(sqlite3.connect(database)) as source, closing(sqlite3.connect(part)) as to:
                    source.backup(to)
                part.rename(made)
            fcntl.flock(lock, fcntl.LOCK_UN)

        yield share


@pytest.fixture(scope="module")
def plain_runs():
    """Campaigns of a module run without Prefect, but for those in processes of their own."""
    with pytest.MonkeyPatch.context() as patch:
        leave_prefect_out(patch)
        yield


@pytest.fixture(scope="session")
def streamlit_once():
    """Streamlit looks for its components among all installed packages once, not for every page of a test."""
    from streamlit.components.v2 import manifest_scanner

    with pytest.MonkeyPatch.context() as patch:
        once = cache(manifest_scanner.scan_component_manifests)
        patch.setattr(manifest_scanner, "scan_component_manifests", once)
        yield


@pytest.fixture(scope="module")
def chrome():
    """A browser without pages, which a module's tests share."""
    from dashboard_servers import chromium
    from playwright.sync_api import sync_playwright

    with (
        sync_playwright() as playwright,
        playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"]) as chrome,
    ):
        yield chrome
