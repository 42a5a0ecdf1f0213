"""A Prefect server that is lost or cannot start ends in a sentence; temporary ones have a database each."""

import os
from pathlib import Path

import httpx
import pytest

from winnow.flows.prefect_support.server import (
    CONNECTION_URL,
    PrefectServerFailed,
    own_database,
    prefect_server,
    settle_environment,
)
from winnow.flows.run import flow as campaign
from winnow.flows.run.resume import run_flow
from winnow.flows.run.signals import Interrupts
from winnow.tasks.errors import WinnowError


@pytest.mark.parametrize(
    "error",
    [
        httpx.ConnectError("[Errno 111] Connection refused"),
        httpx.ReadTimeout("timed out"),
        httpx.HTTPStatusError(
            "503 Service Unavailable",
            request=httpx.Request("POST", "http://localhost"),
            response=httpx.Response(503),
        ),
    ],
    ids=["refused", "late", "overloaded"],
)
def test_a_lost_server_is_named_with_the_remedy(monkeypatch, error):
    def run_campaign(storage, name):
        raise error

    monkeypatch.setattr(campaign, "run_campaign", run_campaign)
    with pytest.raises(WinnowError, match=r"Prefect's server does not answer any more .* nothing .* is lost"):
        run_flow("sqlite:///winnow.db", "survivor", Interrupts())


@pytest.mark.parametrize(("home", "log"), [("file/home", "log"), ("home", "file/log")])
def test_a_place_for_its_files_that_cannot_be_written_ends_in_a_sentence(monkeypatch, tmp_path, home, log):
    monkeypatch.setattr(os, "environ", os.environ.copy())
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path / home))
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    monkeypatch.setattr("winnow.flows.prefect_support.server._has_own", lambda: False)
    (tmp_path / "file").touch()
    settle_environment(tmp_path)  # every command does, and most have no need of the place
    refused = pytest.raises(PrefectServerFailed, match=r"no room for its files \(.*/file.*PREFECT_HOME")
    with refused, prefect_server(tmp_path / log):
        raise AssertionError("a server came up")


def test_temporary_servers_that_run_at_once_share_no_database(monkeypatch, tmp_path):
    for name in CONNECTION_URL:
        monkeypatch.delenv(name, raising=False)
    lock = tmp_path / "lock"
    with lock.open("wb") as first, lock.open("wb") as second, own_database(first) as alone:
        assert alone == {}  # the file of the folder
        with own_database(second) as beside:
            (url,) = beside.values()
            folder = Path(url.removeprefix("sqlite+aiosqlite:///")).parent
            assert folder.is_dir()
        assert not folder.exists()
        monkeypatch.setenv(CONNECTION_URL[1], "postgresql+asyncpg://localhost/prefect")
        with own_database(second) as named:
            assert named == {}
    with lock.open("wb") as third, own_database(third) as after:
        assert after == {}


def test_prefect_is_asked_not_to_report_usage_unless_the_user_said_otherwise(tmp_path, monkeypatch):
    for said, expected in ((None, "1"), ("0", "0")):
        monkeypatch.setattr(os, "environ", {} if said is None else {"DO_NOT_TRACK": said})
        settle_environment(tmp_path)
        assert os.environ["DO_NOT_TRACK"] == expected
