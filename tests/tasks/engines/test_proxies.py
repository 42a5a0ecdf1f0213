"""Proxies of the environment: named in sentences, and not asked for this machine."""

import os
from contextlib import closing

import pytest
from faulty_server import always, faulty_server, refused

from winnow.flows.prefect_support.server import reach_this_machine_directly
from winnow.tasks.engines.errors import EngineDied, EngineLoadFailed
from winnow.tasks.engines.openai import server_calls
from winnow.tasks.engines.openai.http_connection import is_loopback, through_proxy
from winnow.tasks.engines.protocol import ModelRef, Request, Sampling
from winnow.tasks.engines.providers import EngineSettings, start_engine

NAMES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
NOBODY = "http://127.0.0.1:9"


@pytest.fixture(autouse=True)
def _no_proxies(monkeypatch):
    monkeypatch.setattr(server_calls, "FIRST_DELAY", 0.001)
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def asked(url):
    """The answer of a model at a base URL."""
    model = ModelRef(name="m", provider="openai", model="served", model_base_url=url)
    with closing(start_engine(model, EngineSettings(log_folder=None, max_retries=0))) as engine:
        return engine.generate([Request(prompt="p", sampling=Sampling(), seed=0)])[0]


@pytest.mark.parametrize("proxy", [NOBODY, "socks5://127.0.0.1:9", "nonsense://x"])
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_server_of_this_machine_is_asked_without_the_proxy(monkeypatch, proxy, host):
    """The reproduction: the request went to the proxy, and the sentence blamed the server."""
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, proxy)
    with faulty_server() as server:
        assert asked(server.url.replace("127.0.0.1", host)).text


def test_a_proxy_is_named_where_a_server_is_asked_through_it(monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://user:secret@127.0.0.1:9")
    with pytest.raises(EngineDied) as caught:
        asked("http://models.invalid/v1")
    said = str(caught.value)
    assert "http://models.invalid/v1 (through the proxy http://127.0.0.1:9 of $HTTP_PROXY) gave no" in said
    assert "secret" not in said


def test_what_a_proxy_answers_is_told_as_what_came_through_it(monkeypatch):
    with faulty_server(always(refused(407, "who are you?"))) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url.removesuffix("/v1"))
        with pytest.raises(EngineLoadFailed, match="the proxy requires a user and password"):
            asked("http://models.invalid/v1")
    with faulty_server(always(refused(400, "blocked"))) as proxy:
        url = proxy.url.removesuffix("/v1")
        monkeypatch.setenv("http_proxy", url)
        failure = asked("http://models.invalid/v1")
    assert failure.detail == (f"the server (through the proxy {url} of $http_proxy) says 400: blocked")


@pytest.mark.parametrize(
    ("host", "is_it"),
    [
        ("localhost", True),
        ("LOCALHOST.", True),
        ("app.localhost", True),
        ("127.8.9.1", True),
        ("::1", True),
        ("[::1]", True),
        ("0.0.0.0", True),
        ("10.0.0.1", False),
        ("localhost.example.org", False),
        ("", False),
    ],
)
def test_this_machine_is_known_by_its_names(host, is_it):
    assert is_loopback(host) is is_it


def test_a_server_without_a_proxy_is_named_alone(monkeypatch):
    assert through_proxy("http://models.invalid/v1") == ""
    monkeypatch.setenv("https_proxy", "proxy.invalid:3128")
    assert through_proxy("http://models.invalid/v1") == ""
    assert through_proxy("https://models.invalid/v1") == (
        " (through the proxy http://proxy.invalid:3128 of $https_proxy)"
    )
    monkeypatch.setenv("no_proxy", "models.invalid")
    assert through_proxy("https://models.invalid/v1") == ""


def test_libraries_and_children_are_told_to_reach_this_machine_directly(monkeypatch):
    reach_this_machine_directly()
    assert through_proxy("http://x.invalid/v1") == ""
    monkeypatch.setenv("HTTP_PROXY", NOBODY)
    monkeypatch.setenv("NO_PROXY", "example.org, localhost")
    monkeypatch.setenv("no_proxy", "")
    reach_this_machine_directly()
    assert {os.environ[name] for name in ("no_proxy", "NO_PROXY")} == {"example.org,localhost,127.0.0.1"}
