"""Who is let into the dashboard: raw requests and WebSockets by foreign names, pages and people."""

import asyncio
import os
import random
import socket
import subprocess
from urllib.parse import parse_qs, urlsplit

import psutil
import pytest
from campaigns import one_message, winnow
from dashboard_servers import serving
from stored_campaigns import new_database
from waiting import PATIENCE_S, until

from winnow.flows.cli.results.dashboards import _wait_until_up
from winnow.flows.reports.dashboard.server import AccessMiddleware
from winnow.flows.reports.http_access import (
    TOKEN_VARIABLE,
    Gate,
    in_url,
    is_of_this_user,
    is_served_by_others,
    new_token,
)
from winnow.tasks.errors import WinnowError

SOCKET = {
    "Upgrade": "websocket",
    "Connection": "Upgrade",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    "Sec-WebSocket-Version": "13",
}
STREAM = "/_stcore/stream"
PATHS = [
    "/",
    "/_stcore/health",
    "/_stcore/host-config",
    "/static/x.js",
    "/media/x",
    "/_stcore/upload_file/a/b",
]


@pytest.fixture(scope="module")
def storage(tmp_path_factory):
    folder = tmp_path_factory.mktemp("door")
    new_database(folder / "winnow.db").close()
    return f"sqlite:///{folder}/winnow.db"


@pytest.fixture(scope="module")
def served(storage):
    """Host with port, and the token, of a page that is served."""
    with serving(storage, "--allow-host", "board.example") as (_, url):
        parts = urlsplit(url)
        yield parts.netloc, parse_qs(parts.query)["token"][0]


def answer(at, path="/", lines=(), method="GET"):
    """Status line's number and all that follows, of a request with these very header lines."""
    host, _, port = at.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=PATIENCE_S) as connection:
        asked = [f"{method} {path} HTTP/1.1", *lines]
        connection.sendall("\r\n".join([*asked, "", ""]).encode("latin-1"))
        said = b""
        while b"\r\n\r\n" not in said and (more := connection.recv(65536)):
            said += more
    return int(said.split()[1]), said.decode("latin-1")


def status(at, path="/", *, host=None, method="GET", **headers):
    named = [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return answer(at, path, [f"Host: {host or at}", *named, "Connection: close"], method)[0]


def socket_status(at, *, host=None, **headers):
    named = {"Host": host or at, **SOCKET, **headers}
    return answer(at, STREAM, [f"{name}: {value}" for name, value in named.items()])[0]


def cookie(at, token):
    return f"winnow-{at.rpartition(':')[2]}={token}"


def test_the_address_that_is_printed_is_exchanged_for_a_cookie_and_one_without_the_token(served):
    at, token = served
    lines = [f"Host: {at}", "Connection: close"]
    code, said = answer(at, f"/campaign?token={token}&campaign=a%20b", lines)
    assert code == 303
    assert "\r\nlocation: /campaign?campaign=a+b\r\n" in said
    assert f"\r\nset-cookie: {cookie(at, token)}; Path=/; HttpOnly; SameSite=Lax\r\n" in said
    assert status(at, "/campaign?campaign=a+b", Cookie=cookie(at, token)) == 200
    assert "\r\nlocation: /evil.example/\r\n" in answer(at, f"//evil.example/?token={token}", lines)[1]


@pytest.mark.parametrize("path", PATHS)
def test_nothing_is_served_without_the_token_or_by_a_foreign_name(served, path):
    at, token = served
    assert status(at, path) == 403
    assert status(at, path, Cookie=cookie(at, token[:-1])) == 403
    assert status(at, path, Authorization=f"Bearer {token}x") == 403
    assert status(at, f"{path}?token=", method="PUT") == 403
    assert status(at, path, Cookie=cookie(at, token), host="evil.example") == 403
    assert status(at, f"{path}?token={token}", host="evil.example") == 403
    assert status(at, path, Cookie=cookie(at, token)) != 403
    assert status(at, path, Authorization=f"Bearer {token}") != 403


def test_a_websocket_needs_the_token_a_known_host_and_its_own_origin(served):
    at, token = served
    port = at.rpartition(":")[2]
    known = {"Cookie": cookie(at, token)}
    rebound = f"evil.example:{port}"
    assert socket_status(at, **known, Origin=f"http://{at}") == 101
    assert socket_status(at, **known) == 101
    assert socket_status(at, Origin=f"http://{at}") == 403
    assert socket_status(at, **known, host=rebound, Origin=f"http://{rebound}") == 403
    assert socket_status(at, **known, host=rebound) == 403
    for foreign in (
        "http://evil.example",
        f"http://127.0.0.1:{int(port) + 1}",
        f"http://localhost:{port}",
        "null",
    ):
        assert socket_status(at, **known, Origin=foreign) == 403, foreign


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("localhost:{port}", 200),
        ("LOCALHOST.:{port}", 200),
        ("[::1]:{port}", 200),
        ("board.example", 200),
        ("127.0.0.1", 200),
        ("127.0.0.1.evil.example", 403),
        ("localhost.evil.example:{port}", 403),
        ("evil.example#localhost", 403),
        ("localhost@evil.example", 403),
        ("192.0.2.1:{port}", 403),
        ("::1", 403),
        ("", 403),
    ],
)
def test_only_known_hosts_are_answered_to(served, host, expected):
    at, token = served
    named = host.format(port=at.rpartition(":")[2])
    lines = [f"Host: {named}", f"Cookie: {cookie(at, token)}", "Connection: close"]
    assert answer(at, "/", lines)[0] == expected


def test_two_hosts_and_none_are_refused(served):
    at, token = served
    shown = [f"Cookie: {cookie(at, token)}", "Connection: close"]
    assert answer(at, "/", [f"Host: {at}", "Host: evil.example", *shown])[0] in (400, 403)
    assert answer(at, "/", shown)[0] in (400, 403)


def test_what_is_refused_is_told_in_a_sentence(served):
    at, _ = served
    _, said = answer(at, "/", [f"Host: {at}", "Connection: close"])
    assert "text/plain" in said
    assert "x-content-type-options: nosniff" in said


def test_without_a_token_the_host_is_still_looked_at(storage):
    with serving(storage, "--no-token") as (_, url):
        at = urlsplit(url).netloc
        assert "token" not in url
        assert status(at) == 200
        assert socket_status(at, Origin=f"http://{at}") == 101
        assert status(at, host="evil.example") == 403
        assert socket_status(at, host="evil.example", Origin="http://evil.example") == 403


def test_the_token_is_in_no_list_of_processes(storage):
    with serving(storage) as (process, url):
        (token,) = parse_qs(urlsplit(url).query)["token"]
        command = psutil.Process(process.pid)
        lines = [" ".join(each.cmdline()) for each in (command, *command.children(recursive=True))]
        assert len(lines) == 2
        assert not [line for line in lines if token in line]


def test_a_browser_is_started_with_what_lets_in_this_users_processes_alone(storage, tmp_path, monkeypatch):
    opened = tmp_path / "opened"
    (tmp_path / "xdg-open").write_text(f'#!/bin/sh\necho "$1" > {opened}.new; mv {opened}.new {opened}\n')
    (tmp_path / "xdg-open").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("DISPLAY", ":0")
    with serving(storage, browser=True) as (_, url):
        (token,) = parse_qs(urlsplit(url).query)["token"]
        until(opened.exists)
        address = urlsplit(opened.read_text().strip())
        assert token not in address.query
        lines = [f"Host: {address.netloc}", "Connection: close"]
        code, said = answer(address.netloc, f"/?{address.query}", lines)
        assert (code, cookie(address.netloc, token) in said) == (303, True)
        assert "\r\nlocation: /\r\n" in said
        assert status(address.netloc, "/?ticket=other") == 403


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_the_user_of_a_connection_is_told_by_the_system(address, monkeypatch):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with (
        socket.create_server((address, 0), family=family) as server,
        socket.create_connection(server.getsockname()[:2]) as client,
    ):
        ends = client.getsockname()[:2], server.getsockname()[1]
        assert is_of_this_user(*ends)
        assert not is_of_this_user(ends[0], 1)
        assert not is_served_by_others(*server.getsockname()[:2])
        monkeypatch.setattr(os, "getuid", lambda: 12345)
        assert not is_of_this_user(*ends)
        assert is_served_by_others(*server.getsockname()[:2])
    assert not is_served_by_others("localhost", 1)
    assert not is_of_this_user(("192.0.2.1", 1), 1)
    assert not is_of_this_user(None, 1)


@pytest.mark.parametrize("listens", ["127.0.0.1", "0.0.0.0", "::", "::ffff:127.0.0.1", "::1"])
def test_every_address_at_which_a_browser_would_look_is_looked_at(listens, monkeypatch):
    """A browser takes "localhost" for ::1 first, whichever address the server listens at."""
    local = [(family, 1, 6, "", (each, 0)) for family, each in ((2, "127.0.0.1"), (10, "::1"))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: local)
    with socket.socket(socket.AF_INET6 if ":" in listens else socket.AF_INET) as server:
        if ":" in listens:
            server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        server.bind((listens, 0))
        server.listen()
        port = server.getsockname()[1]
        assert not is_served_by_others("localhost", port)
        monkeypatch.setattr(os, "getuid", lambda: 12345)
        assert is_served_by_others("localhost", port)
    for name in ("localhost", "LOCALHOST", "localhost.", "a.localhost"):
        assert in_url(name) == "127.0.0.1"


def test_an_address_of_other_machines_is_printed_as_it_was_given(monkeypatch):
    assert [in_url(each) for each in ("0.0.0.0", "0", "::", "::1", "127.0.0.2")] == [
        *("127.0.0.1", "127.0.0.1", "[::1]", "[::1]", "127.0.0.2")
    ]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [(2, 1, 6, "", ("127.0.1.1", 0))])
    assert in_url("my-machine") == "my-machine"
    assert in_url("x" * 100) == "x" * 100


def test_a_port_that_another_user_took_meanwhile_is_told_no_token(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as taken, subprocess.Popen(["sleep", "60"]) as server:
        monkeypatch.setattr(os, "getuid", lambda: 12345)
        with pytest.raises(WinnowError, match="another user of this machine has just taken 127"):
            _wait_until_up(server, *taken.getsockname())
        server.kill()


@pytest.mark.parametrize("name", ["http://a.example", "a.example:80", "a b", "", "[::1]:1", "a/b"])
def test_a_name_that_is_no_host_is_a_sentence(tmp_path, name):
    refused = winnow(tmp_path, "view", "--no-browser", "--allow-host", name)
    assert refused.returncode == 1
    assert "--allow-host" in one_message(refused)


def test_a_gate_on_all_addresses_takes_addresses_and_no_other_names():
    gate = Gate.at("0.0.0.0", allowed=["Board.Example", "fe80::1"], token=None)
    taken = [
        "192.0.2.1:80",
        "[2001:db8::1]:80",
        "board.example:80",
        "[fe80::1]",
        socket.gethostname(),
        "localhost",
    ]
    assert [gate.refusal([host], [], []) for host in taken] == [None] * len(taken)
    assert gate.refusal(["evil.example"], [], []) is not None
    assert Gate.at("192.0.2.7", allowed=[], token=None).refusal(["192.0.2.1"], [], []) is not None


def test_a_token_of_ones_own_is_taken_and_a_weak_one_refused(monkeypatch):
    monkeypatch.setenv(TOKEN_VARIABLE, "abcdefgh-1234567")
    assert new_token() == "abcdefgh-1234567"
    for weak in ("", "short", "a" * 16 + " ", "a" * 16 + "\n", "ä" * 20):
        monkeypatch.setenv(TOKEN_VARIABLE, weak)
        with pytest.raises(WinnowError, match=TOKEN_VARIABLE):
            new_token()
    monkeypatch.delenv(TOKEN_VARIABLE)
    assert new_token() != new_token()
    assert len(new_token()) >= 43


@pytest.mark.parametrize("seed", range(200))
def test_whatever_is_sent_is_answered_or_passed_on_only_with_the_token(seed):
    """Headers and queries of random bytes end in a refusal, never in an exception or an open door."""
    draw = random.Random(seed)
    scope = {
        "type": draw.choice(["http", "websocket"]),
        "method": "GET",
        "path": "/" + "".join(chr(draw.randrange(256)) for _ in range(5)),
        "query_string": draw.randbytes(20),
        "headers": [
            (name, draw.randbytes(draw.randrange(30)))
            for name in (b"host", b"origin", b"cookie", b"authorization")
            if draw.random() < 0.5
        ]
        + [(b"host", b"localhost")] * draw.randrange(2),
    }
    passed, sent = [], []

    async def app(*_):
        passed.append(1)

    async def send(message):
        sent.append(message)

    gate = Gate.at("127.0.0.1", allowed=[], token="t" * 20)
    asyncio.run(AccessMiddleware(app, gate=gate, port=1)(scope, None, send))
    assert not passed
    assert sent[0].get("status", 403) == 403
