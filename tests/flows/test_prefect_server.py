"""A Prefect server that is lost or cannot start ends in a sentence; temporary ones have a database each."""

import asyncio
import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing, nullcontext
from pathlib import Path

import httpx
import psutil
import pytest
from free_ports import free_port
from prefect._internal.concurrency.api import create_call, from_sync
from stored_campaigns import new_database, store_campaign
from waiting import until
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from winnow.flows.prefect_support import server
from winnow.flows.prefect_support.environment import settle_environment
from winnow.flows.prefect_support.server import (
    CONNECTION_URL,
    SECRET,
    PrefectServerFailed,
    own_database,
    prefect_server,
    serve_others,
)
from winnow.flows.run import flow as campaign
from winnow.flows.run import resume
from winnow.flows.run.resume import run_flow
from winnow.flows.run.signals import Interrupts
from winnow.tasks.campaign.campaign import find_in
from winnow.tasks.errors import WinnowError
from winnow.tasks.plugins.own_files import state_folder


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
def test_a_lost_server_is_named_with_the_remedy(monkeypatch, tmp_path, error):
    monkeypatch.setattr(resume, "announcing", lambda found: nullcontext())
    database = new_database(tmp_path / "winnow.db")
    campaign_at_hand = find_in(database, database.url, store_campaign(database).record.name)

    def run_campaign(storage, name):
        raise error

    monkeypatch.setattr(campaign, "run_campaign", run_campaign)
    with pytest.raises(WinnowError, match=r"Prefect's server does not answer.*stored results are safe"):
        run_flow(campaign_at_hand, Interrupts())


def answered(url, method="POST", **headers):
    return httpx.request(method, url, json={}, headers={**headers}, timeout=60)


def test_a_server_that_winnow_starts_answers_to_who_has_its_secret_under_its_name_alone(prefect_api):
    url = f"{prefect_api}/deployments/filter"
    name, _, password = os.environ["PREFECT_API_AUTH_STRING"].partition(":")
    right = {"Authorization": httpx.BasicAuth(name, password)._auth_header}
    assert answered(url, **right).status_code == 200
    refused = {
        "no secret": {},
        "a wrong one": {"Authorization": httpx.BasicAuth(name, "wrong")._auth_header},
        "as another kind": {"Authorization": f"Bearer {password}"},
        "nonsense": {"Authorization": "Basic !"},
        "another name (DNS rebinding)": right | {"Host": "evil.example"},
        "a page of others": right | {"Origin": "https://evil.example"},
        "a page of another port": right | {"Origin": "http://127.0.0.1:1"},
        "a page of no origin": right | {"Origin": "null"},
    }
    got = {what: answered(url, **headers) for what, headers in refused.items()}
    assert {what: each.status_code for what, each in got.items()} == dict.fromkeys(refused, 403)
    asked = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    preflight = answered(url, "OPTIONS", **asked)
    assert "access-control-allow-origin" not in preflight.headers
    for page in (
        "docs",
        "openapi.json",
        "",
        "api/docs",
        "api/openapi.json",
        "api/admin/version",
        "api/health/x",
    ):
        assert answered(f"{prefect_api.removesuffix('api')}{page}", "GET").status_code == 403
    assert answered(f"{prefect_api}/health", "GET").json() is True


@pytest.mark.parametrize("path", ["events/in", "events/out", "logs/out", "task_runs/subscriptions/scheduled"])
def test_a_websocket_is_given_nothing_without_the_secret(prefect_api, path):
    url = f"{prefect_api.replace('http', 'ws', 1)}/{path}"
    for headers in ({"Origin": "https://evil.example"}, {"Host": "evil.example"}):
        with pytest.raises(InvalidStatus, match=r"40[03]"):  # 400: a newer server refuses a second Host
            connect(url, additional_headers=headers, subprotocols=["prefect"], proxy=None)
    with pytest.raises((ConnectionClosed, InvalidStatus)), connect(url, proxy=None) as socket:
        socket.recv(60)
    for token in (None, "winnow:wrong"):
        with connect(url, subprotocols=["prefect"], proxy=None) as socket:
            socket.send(json.dumps({"type": "auth", "token": token}))
            with pytest.raises(ConnectionClosed):
                socket.recv(60)


def test_no_command_line_holds_the_secret(prefect_api):
    secret = os.environ["PREFECT_API_AUTH_STRING"].partition(":")[2]
    assert secret not in str([each.info for each in psutil.process_iter(["cmdline"])])


def test_a_server_for_other_machines_wants_a_secret(monkeypatch):
    monkeypatch.delenv(SECRET, raising=False)
    with pytest.raises(SystemExit, match="set PREFECT_SERVER_API_AUTH_STRING to USER:PASSWORD"):
        serve_others("0.0.0.0", 4200, ["prefect"])


def test_a_server_for_other_machines_answers_to_the_names_it_is_given_and_its_pages_ask_for_the_secret(
    tmp_path,
):
    port = free_port()
    environment = os.environ | {
        "PREFECT_HOME": str(tmp_path),
        SECRET: "winnow:of compose",
        "PREFECT_API_AUTH_STRING": "winnow:of compose",
    }
    environment.pop("PREFECT_API_URL", None)
    command = [
        sys.executable,
        "-P",
        "-m",
        "winnow.flows.prefect_support.server",
        "0.0.0.0",
        str(port),
        "prefect",
    ]
    with subprocess.Popen(command, env=environment) as process:
        try:
            api = f"http://127.0.0.1:{port}/api"
            until(lambda: is_up(f"{api}/health"))
            right = {"Authorization": httpx.BasicAuth("winnow", "of compose")._auth_header}
            url = f"{api}/deployments/filter"
            assert answered(url, **right, Host=f"prefect:{port}").status_code == 200
            assert answered(url, Host=f"prefect:{port}").status_code == 401
            assert answered(url, **right, Host="evil.example").status_code == 403
            assert answered(url, **right, Origin="http://evil.example").status_code == 403
            settings = httpx.get(f"http://127.0.0.1:{port}/ui-settings").json()
            assert settings["auth"] == "BASIC"
        finally:
            process.terminate()


def is_up(url):
    try:
        return httpx.get(url, timeout=5).status_code == 200
    except httpx.HTTPError:
        return False


@pytest.mark.parametrize(("home", "log"), [("file/home", "log"), ("home", "file/log")])
def test_a_place_for_its_files_that_cannot_be_written_ends_in_a_sentence(monkeypatch, tmp_path, home, log):
    monkeypatch.setattr(os, "environ", os.environ.copy())
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path / home))
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    monkeypatch.setattr("winnow.flows.prefect_support.server.has_own_server", lambda: False)
    (tmp_path / "file").touch()
    settle_environment(tmp_path)  # every command does, and most have no need of the place
    refused = pytest.raises(PrefectServerFailed, match=r"cannot write its files \(.*/file.*PREFECT_HOME")
    with refused, prefect_server(tmp_path / log):
        raise AssertionError("a server came up")


def test_temporary_servers_that_run_at_once_share_no_database(monkeypatch, tmp_path):
    for name in CONNECTION_URL:
        monkeypatch.delenv(name, raising=False)
    lock = tmp_path / "lock"
    with (
        lock.open("wb") as first,
        lock.open("wb") as second,
        own_database(first, tmp_path / "prefect.db") as alone,
    ):
        assert alone == {}  # the file of the folder
        with own_database(second, tmp_path / "prefect.db") as beside:
            (url,) = beside.values()
            folder = Path(url.removeprefix("sqlite+aiosqlite:///")).parent
            assert folder.is_dir()
        assert not folder.exists()
        monkeypatch.setenv(CONNECTION_URL[1], "postgresql+asyncpg://localhost/prefect")
        with own_database(second, tmp_path / "prefect.db") as named:
            assert named == {}
    with lock.open("wb") as third, own_database(third, tmp_path / "prefect.db") as after:
        assert after == {}


def database_at(path, revision):
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE alembic_version (version_num)")
        database.execute("INSERT INTO alembic_version VALUES (?)", (revision,))
    return path


KNOWN = "79e7a60e43d8"
"""A revision of the installed Prefect's database."""


@pytest.mark.parametrize("damaged", [False, True])
def test_a_database_of_another_release_of_prefect_is_set_aside_where_it_is_winnows_own(
    tmp_path, monkeypatch, capsys, damaged
):
    for name in CONNECTION_URL:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    own = database_at(state_folder() / "prefect" / "prefect.db", "of the future")
    theirs = database_at(tmp_path / "theirs" / "prefect.db", "of the future")
    if damaged:
        own.write_bytes(b"no database" * 100)
    with (tmp_path / "lock").open("wb") as lock, own_database(lock, own) as environment:
        assert environment == {}
    assert not own.exists()
    (aside,) = own.parent.iterdir()
    assert f"{own} is from another release of Prefect, or damaged: it is renamed to {aside.name}" in (
        capsys.readouterr().err
    )
    with (tmp_path / "lock").open("wb") as lock, own_database(lock, theirs) as environment:
        assert list(environment) == [CONNECTION_URL[0]]  # the user's own is left alone
    assert theirs.exists()


def test_a_database_of_this_release_is_used(tmp_path, monkeypatch):
    for name in CONNECTION_URL:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    own = database_at(state_folder() / "prefect" / "prefect.db", KNOWN)
    (tmp_path / "new.db").touch()
    for file in (own, tmp_path / "new.db", tmp_path / "none.db"):
        with (tmp_path / "lock").open("wb") as lock, own_database(lock, file) as environment:
            assert environment == {}
    assert own.exists()


def test_clients_give_up_at_once_on_a_temporary_server_that_was_killed(monkeypatch):
    from prefect.client import base
    from prefect.settings import PREFECT_API_URL, temporary_settings

    monkeypatch.setitem(vars(base), "PREFECT_CLIENT_MAX_RETRIES", base.PREFECT_CLIENT_MAX_RETRIES)
    usual = base.PREFECT_CLIENT_MAX_RETRIES.value()
    server._give_up_on_ended_servers()
    server._give_up_on_ended_servers()
    url = "http://127.0.0.1:9/api"
    with (
        subprocess.Popen(["cat"], stdin=subprocess.PIPE) as process,
        temporary_settings({PREFECT_API_URL: url}),
    ):
        monkeypatch.setitem(server._PROCESSES, url, process)
        assert base.PREFECT_CLIENT_MAX_RETRIES.value() == usual > 0
        process.kill()
        process.wait()
        assert base.PREFECT_CLIENT_MAX_RETRIES.value() == 0
    assert base.PREFECT_CLIENT_MAX_RETRIES.value() == usual


def test_events_for_a_temporary_server_that_was_killed_are_not_waited_for(monkeypatch):
    from prefect.events import Event
    from prefect.events.clients import EventsClient
    from prefect.events.worker import EventsWorker
    from prefect.settings import PREFECT_API_URL, temporary_settings

    class Trying(EventsClient):
        async def _emit(self, event):
            await asyncio.Event().wait()

    url = "http://127.0.0.1:9/api"
    worker = EventsWorker(Trying, ())
    monkeypatch.setattr(EventsWorker, "_instances", {worker._key: worker})
    with temporary_settings({PREFECT_API_URL: url}):
        from_sync.call_soon_in_loop_thread(create_call(worker.start)).result()
    for number in range(5):
        resource = {"prefect.resource.id": f"winnow.{number}"}
        worker.send(Event(event="winnow.tested", resource=resource))
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as process:
        process.kill()
        process.wait()
        monkeypatch.setattr(server, "_PROCESSES", {url: process})
        server._hand_over_events()
    assert worker._done_event.is_set()  # for which Python waits at its end


def test_prefect_is_asked_not_to_report_usage_unless_the_user_said_otherwise(tmp_path, monkeypatch):
    for said, expected in ((None, "1"), ("0", "0")):
        monkeypatch.setattr(os, "environ", {} if said is None else {"DO_NOT_TRACK": said})
        settle_environment(tmp_path)
        assert os.environ["DO_NOT_TRACK"] == expected
