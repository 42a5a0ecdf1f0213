"""What Prometheus reads of a database: parsed by its own parser, and true."""

import http.client
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from contextlib import closing, contextmanager

import pytest
from campaigns import one_message, winnow
from hostile_texts import HOSTILE_TEXTS
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from stored_campaigns import judgment, new_database, store_campaign
from waiting import PATIENCE_S

from winnow.flows.reports.http_access import Gate
from winnow.flows.reports.prometheus import CampaignMetrics, metrics_server


@pytest.fixture
def storage(tmp_path):
    """A database with a campaign of scores and one of duels."""
    database = new_database(tmp_path / "winnow.db")
    scores = store_campaign(database, "scores", budget={"comparisons": 100, "tokens": 40})
    known = {"estimates": [0.1, 0.9, None], "lower": [None, 0.5, None], "upper": [None, 1.0, None]}
    scores.finish(scores.plan(0, [0, 1, 2], [0, 0, 0]), [1.0, 0.0, None], best=1, **known)
    duels = store_campaign(database, "duels", objective="best-duel")
    judged = [(1.0, [judgment("original", 1.0)]), (None, [judgment("original", "no_verdict")])]
    duels.finish_duels(duels.plan(0, [[0, 1], [1, 2]], [0, 1]), judged, best=0)
    database.close()
    return f"sqlite:///{tmp_path}/winnow.db"


def scraped(storage):
    registry = CollectorRegistry()
    registry.register(CampaignMetrics(storage))
    return parsed(generate_latest(registry).decode())


def parsed(text):
    """Value of each sample, by its name and its labels but the objective."""
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    return {(each.name, own_labels(each.labels)): each.value for each in samples}


def own_labels(labels):
    return tuple(sorted((name, value) for name, value in labels.items() if name != "objective"))


def of(values, name, **labels):
    return values[name, tuple(sorted(labels.items()))]


def test_every_family_is_there_and_says_what_the_rows_say(storage):
    values = scraped(storage)
    assert of(values, "winnow_database_up") == 1.0
    assert of(values, "winnow_rounds_total", campaign="scores") == 1.0
    assert of(values, "winnow_tokens_total", campaign="scores", direction="input") == 9.0
    assert of(values, "winnow_engine_seconds_total", campaign="scores") == 0.75
    counted = {"campaign": "scores", "outcome": "unscored", "reason": "no_answer"}
    assert of(values, "winnow_comparisons_total", **counted) == 1.0
    assert of(values, "winnow_comparisons_total", campaign="scores", outcome="scored", reason="") == 2.0
    best = {"campaign": "scores", "candidate": "b"}
    assert [of(values, f"winnow_best_{each}", **best) for each in ("estimate", "lower", "upper")] == [
        0.9,
        0.5,
        1.0,
    ]
    assert of(values, "winnow_budget_spent", campaign="scores", budget="tokens") == 15.0
    assert of(values, "winnow_budget_limit", campaign="scores", budget="tokens") == 40.0
    assert of(values, "winnow_campaign_state", campaign="scores", state="interrupted") == 1.0
    assert sum(value for (name, labels), value in values.items()
               if name == "winnow_campaign_state" and ("campaign", "scores") in labels) == 1.0  # fmt: skip


def test_a_duel_counts_once(storage):
    values = scraped(storage)
    assert of(values, "winnow_comparisons_total", campaign="duels", outcome="scored", reason="") == 1.0
    unscored = {"campaign": "duels", "outcome": "unscored", "reason": "verdict_missing"}
    assert of(values, "winnow_comparisons_total", **unscored) == 1.0


def test_the_command_prints_them_once(storage, tmp_path):
    printed = winnow(tmp_path, "metrics", "--storage", storage)
    assert printed.returncode == 0
    assert parsed(printed.stdout) == scraped(storage)


@pytest.mark.parametrize("text", [each for each in HOSTILE_TEXTS if len(each) < 1000 and each.isprintable()])
def test_a_hostile_name_is_one_label_and_no_line_of_its_own(tmp_path, text):
    database = new_database(tmp_path / "winnow.db")
    campaign = store_campaign(database, "name", names=("a", f'{text}"}} 1 winnow_forged 1', "c"))
    campaign.finish(campaign.plan(0, [1], [0]), [1.0], best=1, estimates=[None, 0.5, None])
    database.close()
    values = scraped(f"sqlite:///{tmp_path}/winnow.db")
    assert not [name for name, _ in values if name == "winnow_forged"]
    assert [value for (name, _), value in values.items() if name == "winnow_best_estimate"] == [0.5]


def test_a_database_that_does_not_answer_is_down_and_no_error(tmp_path):
    assert scraped(f"sqlite:///{tmp_path}/nowhere.db") == {("winnow_database_up", ()): 0.0}


def test_the_command_names_a_database_that_is_not_there_and_a_port_that_is_taken(storage, tmp_path):
    assert winnow(tmp_path, "metrics", "--storage", "sqlite:///nowhere.db").returncode == 1
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        result = winnow(tmp_path, "metrics", "--storage", storage, "--serve", port)
    assert result.returncode == 1
    assert "choose another --serve PORT" in one_message(result)


def test_scrapes_see_what_came_meanwhile_also_several_at_once(storage, tmp_path):
    with served(storage, Gate.at("127.0.0.1", allowed=[], token=None)) as url:
        found = []
        scrapers = [threading.Thread(target=lambda: found.append(fetched(url))) for _ in range(4)]
        for each in scrapers:
            each.start()
        for each in scrapers:
            each.join()
        assert found == [scraped(storage)] * 4
        (tmp_path / "winnow.db").unlink()
        assert fetched(url) == {("winnow_database_up", ()): 0.0}


def test_a_foreign_name_or_page_is_refused_with_and_without_a_token(storage):
    with served(storage, Gate.at("127.0.0.1", allowed=["box"], token=None)) as url:
        at = url.split("/")[2]
        assert refused(url, Host="evil.example")
        assert refused(url, Origin="http://evil.example")
        assert refused(url, Origin="http://localhost:1")
        assert not refused(url, Origin=f"http://{at}")
        assert not refused(url, Host="box:80")


def test_beyond_this_machine_a_scrape_brings_the_token(storage):
    with served(storage, Gate.at("0.0.0.0", allowed=[], token="abcdefgh-1234567")) as url:
        assert refused(url)
        assert refused(url, Authorization="Bearer abcdefgh-123456")
        assert refused(url, Authorization="abcdefgh-1234567")
        assert refused(f"{url}?token=a")
        assert not refused(url, Authorization="Bearer abcdefgh-1234567")
        assert not refused(f"{url}?token=abcdefgh-1234567")
        assert refused(url, Authorization="Bearer abcdefgh-1234567", Host="evil.example")


@pytest.mark.parametrize(
    ("options", "asks"),
    [((), True), (("--host", "0.0.0.0"), True), (("--no-token",), False)],
)
def test_the_command_asks_for_a_token_unless_it_is_told_not_to(storage, options, asks):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [
        sys.executable,
        "-m",
        "winnow.flows.main",
        "metrics",
        "--storage",
        storage,
        "--serve",
        str(port),
    ]
    server = subprocess.Popen([*command, *options], stderr=subprocess.PIPE, text=True)
    try:
        said = server.stderr.readline()
        url = f"http://127.0.0.1:{port}/metrics"
        assert said.startswith(f"serving metrics at {url}; ")
        assert ("the token is" in said) == asks == refused(url)
    finally:
        server.send_signal(signal.SIGINT)
        assert server.communicate(timeout=PATIENCE_S)[1] == ""
    assert server.returncode == 0


@contextmanager
def served(storage, gate):
    registry = CollectorRegistry()
    registry.register(CampaignMetrics(storage))
    server = metrics_server(registry, "127.0.0.1", 0, gate)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/metrics"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def refused(url, **headers):
    connection = http.client.HTTPConnection(url.split("/")[2])
    with closing(connection):
        connection.request(
            "GET", url.partition("/metrics")[1] + url.partition("/metrics")[2], headers=headers
        )
        reply = connection.getresponse()
        assert reply.status in (200, 403)
        assert (b"winnow_database_up" in reply.read()) == (reply.status == 200)
        return reply.status == 403


def fetched(url):
    with urllib.request.urlopen(url) as reply:
        return parsed(reply.read().decode())
