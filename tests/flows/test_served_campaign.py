"""Campaigns on models that a server runs, from the command line: servers that fail now and then, or move."""

import re
from contextlib import contextmanager

import campaign_processes as processes
import pytest
from campaigns import winnow
from faulty_server import (
    MODEL,
    SERVER_ERROR,
    WRONG_KEY,
    faulty_server,
    is_canary,
    no_faults,
    now_and_then,
    refused,
)

from winnow.tasks.engines.openai import server_calls
from winnow.tasks.engines.openai.engine import CONTROL

pytestmark = pytest.mark.usefixtures("prefect_api")


@pytest.fixture(autouse=True)
def _short_delays(monkeypatch):
    monkeypatch.setattr(server_calls, "FIRST_DELAY", 0.001)


@pytest.fixture
def folder(tmp_path):
    """Makes folders with a campaign in each: the models named are asked at a server."""

    def made(name, url, *models, **keys):
        (folder := tmp_path / name).mkdir()
        spec = processes.write_campaign(folder)
        keys = {"provider": "openai", "model": MODEL, "model_base_url": url} | keys
        text = spec.read_text()
        for model in models:
            written = ", ".join(f"{key}: '{value}'" for key, value in keys.items())
            text = re.sub(rf"\{{name: {model},.*", f"{{name: {model}, {written}}}", text)
        spec.write_text(text)
        return folder

    return made


@contextmanager
def serving(script=no_faults):
    """A server whose texts differ in quality: some prompts are answered with many letters."""

    def reply(call):
        return "aeioustrn"[: 1 + (len(call.prompt) + call.body.get("seed", 0)) % 9]

    with faulty_server(script, reply) as server:
        yield server


def after_the_first(fault):
    """A fault for all but the request that shows whether a model is there."""
    return lambda call: fault if call.body["max_tokens"] > 1 else None


def run(folder, *arguments):
    ran = winnow(folder, "run", "campaign.yaml", *arguments)
    assert "Traceback" not in ran.stderr
    return ran


def test_a_campaign_with_a_fifth_of_faults_reaches_the_decision_of_one_without(folder):
    histories = []
    for name, script in (("calm", no_faults), ("stormy", now_and_then(0.2))):
        with serving(script) as server:
            campaign = folder(name, server.url, "one", "two", served_identity="vowels")
            assert run(campaign).returncode == 3
            histories.append(processes.history(campaign))
    assert len(server.calls) > 1.1 * server.answered
    assert histories[0] == histories[1]
    scored = [outcome for _, _, _, _, outcome, *_ in histories[0]["comparisons"]]
    assert {0.0, 1.0} == set(scored)


def test_a_server_may_move_in_the_middle_of_a_campaign(folder):
    with serving() as server:
        whole = folder("whole", server.url, "one", "two")
        assert run(whole).returncode == 3
        moving = folder("moving", server.url, "one", "two")
        assert run(moving, "--set", "stopping.budget=16").returncode == 3
    with serving() as server:
        moved = [f"models[{i}].model_base_url={server.url}" for i in (0, 1)]
        assert run(moving, "--set", moved[0], "--set", moved[1]).returncode == 3
        assert server.answered
        assert server.url in winnow(moving, "show", "survivor").stdout
    histories = [processes.history(each) for each in (whole, moving)]
    for each in histories:
        del each["decisions"]  # the first part of the campaign was decided at the end of its own budget
    assert histories[0] == histories[1]


def test_a_campaign_does_not_go_on_at_a_server_that_serves_something_else(folder):
    with serving() as server, faulty_server() as other:
        moving = folder("moving", server.url, "one", "two")
        assert run(moving, "--set", "stopping.budget=16").returncode == 3
        moved = [f"models[{i}].model_base_url={other.url}" for i in (0, 1)]
        refused = run(moving, "--set", moved[0], "--set", moved[1])
        assert refused.returncode == 2
        assert "answers 5 of 5 canary prompts differently" in refused.stderr
        assert "winnow run SPEC --fork NEW_NAME" in refused.stderr
        assert other.answered == 0
        assert run(moving).returncode == 3


@pytest.mark.parametrize("fault", [SERVER_ERROR, WRONG_KEY])
def test_a_campaign_begins_once_its_models_can_be_asked_or_without_those_that_cannot(
    folder, monkeypatch, fault
):
    """As where a server was not started yet, or with a key that is wrong."""
    monkeypatch.setenv("TEST_KEY", "sk-abc***xyz")
    broken = [True]
    with serving(lambda call: fault if broken else None) as server:
        campaign = folder("early", server.url, "one", api_key="$TEST_KEY")
        given = ("--set", "execution.max_retries=0")
        ran = run(campaign, *given)
        assert ran.returncode == 2
        assert "winnow: 1 of 2 models cannot be used: 'one' (" in ran.stderr
        assert "no output was requested yet; correct them or start their servers, or begin" in ran.stderr
        assert len(ran.stderr.splitlines()) == 1
        assert {call.prompt for call in server.calls} <= {CONTROL.prompt}
        begun = run(campaign, *given, "--allow-missing", "--fork", "smaller")
        assert begun.returncode == 3
        assert "campaign 'smaller' continues without 'one' (" in begun.stderr
        assert begun.stdout.startswith("smaller: undecided without one")
        assert "left out     one (" in begun.stdout
        broken.clear()
        assert run(campaign).returncode == 3
    assert processes.rows(campaign, "SELECT DISTINCT reason FROM comparisons") == [(None,)]


@pytest.mark.parametrize("fault", [SERVER_ERROR, WRONG_KEY])
def test_a_campaign_whose_servers_ended_at_once_goes_on_when_they_answer(folder, monkeypatch, fault):
    monkeypatch.setenv("TEST_KEY", "sk-abc***xyz")
    broken = [True]
    with serving(lambda call: after_the_first(fault)(call) if broken else None) as server:
        campaign = folder("early", server.url, "one", "two", api_key="$TEST_KEY")
        ran = run(campaign, "--set", "execution.max_retries=0", "--set", "execution.max_restarts=0")
        assert ran.returncode == 1
        assert (
            "no comparison has an outcome yet, and this round is not recorded: start the server, or"
            in ran.stderr
        )
        assert "stopped early; continue with: winnow resume survivor" in ran.stderr
        assert processes.rows(campaign, "SELECT count(*) FROM comparisons") == [(0,)]
        broken.clear()
        assert run(campaign).returncode == 3
    assert processes.rows(campaign, "SELECT DISTINCT reason FROM comparisons") == [(None,)]


def test_a_key_whose_credit_ends_within_a_campaign_decides_nothing(folder, monkeypatch):
    """The reproduction: candidates were dropped one by one, and who was left was the winner, with code 0."""
    monkeypatch.setenv("TEST_KEY", "sk-abc***xyz")
    has_ended = [True]

    def credit(call):
        if has_ended and call.number >= 20 and not is_canary(call.body):
            return refused(402, "Insufficient Balance")
        return None

    histories = []
    for name, script in (("whole", no_faults), ("ended", credit)):
        with serving(script) as server:
            campaign = folder(name, server.url, "one", "two", api_key="$TEST_KEY", served_identity="vowels")
            if name == "ended":
                ran = run(campaign)
                assert ran.returncode == 1
                assert "add credit to the account of $TEST_KEY, or raise its limit" in ran.stderr
                assert (
                    "no server of this round for texts is reachable, and this round is not recorded"
                    in ran.stderr
                )
                assert processes.rows(campaign, "SELECT DISTINCT reason FROM comparisons") == [(None,)]
                has_ended.clear()
            assert run(campaign).returncode == 3
            histories.append(processes.history(campaign))
    assert histories[0] == histories[1]


@pytest.mark.parametrize(
    ("fault", "reason", "detail"),
    [
        (SERVER_ERROR, "engine_failed", "answered 500: Internal Server Error (after 2 attempts)"),
        (WRONG_KEY, "load_failed", "refuses the key in $TEST_KEY (401: Incorrect API key provided: ***)"),
    ],
)
def test_a_server_that_does_not_answer_fails_its_own_candidates_only(
    folder, monkeypatch, fault, reason, detail
):
    key = "sk-abc***xyz"  # the server repeats it
    monkeypatch.setenv("TEST_KEY", key)
    with serving(after_the_first(fault)) as server:
        campaign = folder("failing", server.url, "two", api_key="$TEST_KEY")
        ran = run(campaign, "--set", "execution.max_retries=1", "--set", "execution.max_restarts=1")
    assert ran.returncode == 3
    found = processes.rows(
        campaign,
        "SELECT json_extract(k.model, '$.name'), c.reason, c.detail FROM comparisons c "
        "JOIN candidates k ON k.id = c.candidate_a_id",
    )
    assert {reason for model, reason, _ in found if model == "one"} == {None}
    assert {why for model, why, _ in found if model == "two"} == {reason}
    assert all(detail in said for model, _, said in found if model == "two")
    kept = [path for path in campaign.rglob("*") if path.is_file() and key.encode() in path.read_bytes()]
    assert not kept
    assert key not in ran.stderr + ran.stdout
