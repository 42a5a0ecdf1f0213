"""Logs for machines: every line is JSON, says when, in which campaign and round, and nothing breaks it."""

import datetime as dt
import json
import logging

import campaign_processes as processes
import pytest
import scripted_engines
from campaigns import winnow
from hostile_texts import HOSTILE_TEXTS
from mortal_engine import MortalEngine

from winnow.flows.run.log_format import LogFormat, LogLevel, json_context, logged, notice
from winnow.flows.run.signals import Interrupts
from winnow.tasks.errors import WinnowError


def lines(text):
    """Every line of standard error, which has nothing else on it."""
    return [json.loads(line) for line in text.splitlines()]


def events(found):
    return [line["event"] for line in found]


@pytest.fixture
def run(prefect_api, tmp_path, monkeypatch):
    """Run a campaign whose model two is the one named, and whose log is JSON."""
    processes.write_campaign(tmp_path, provider="honest")
    scripted_engines.provide(monkeypatch, "honest")
    spec = tmp_path / "campaign.yaml"

    def run_with(provider, *more):
        if provider != "honest":
            scripted_engines.provide(monkeypatch, provider)
        spec.write_text(
            spec.read_text().replace("name: two, provider: honest", f"name: two, provider: {provider}")
        )
        return winnow(tmp_path, "run", "campaign.yaml", "--log-format", "json", *more)

    return run_with


def test_a_run_logs_its_rounds_with_campaign_round_and_utc(run):
    result = run("honest", "--set", "stopping.budget={comparisons: 16, tokens: 999}")
    found = lines(result.stderr)
    assert {line["campaign"] for line in found} == {"survivor"}
    loads = [line for line in found if line["event"] == "model_load"]
    assert sorted(line["model"] for line in loads) == ["one", "two"]
    found = [line for line in found if line not in loads]
    assert events(found) == ["campaign_begun", "round_recorded", "round_recorded", "campaign_ended"]
    assert [line["round"] for line in found] == [0, 0, 1, None]
    assert [line["level"] for line in found] == ["info"] * 4
    for line in found:
        assert dt.datetime.fromisoformat(line["timestamp"]).utcoffset() == dt.timedelta(0)
    # The sentence counts rounds as the lines of a run do, the field as the database does.
    assert [line["message"].partition(":")[0] for line in found[1:3]] == [
        "round 1 is recorded",
        "round 2 is recorded",
    ]
    assert found[2]["spent"] == {"comparisons": 16, "tokens": 32}
    assert found[2]["reason"] == "budget"
    assert (found[-1]["state"], found[-1]["outcome"]) == ("ended", "undecided")
    assert result.stdout.startswith("survivor: undecided")


def test_trouble_names_the_candidate_the_reason_and_the_model(run, monkeypatch):
    monkeypatch.setattr(MortalEngine, "batches", 0)
    monkeypatch.setattr(MortalEngine, "lifespan", 1)
    settings = ["execution.max_restarts=1", "stopping.budget=120", "stopping.delta=null"]
    found = lines(run("mortal", *(part for each in settings for part in ("--set", each))).stderr)
    ended = [line for line in found if line["event"] == "engine_ended"]
    assert len(ended) == 2
    assert {(line["model"], line["level"], line["campaign"]) for line in ended} == {
        ("mortal", "warning", "survivor")
    }
    unscored = [line for line in found if line["event"] == "comparisons_unscored"]
    assert {line["reason"] for line in unscored} == {"engine_failed"}
    assert all(line["candidate"].startswith("two/") and line["round"] >= 0 for line in unscored)
    assert "it was its time" in unscored[0]["detail"]
    aside = [line["candidate"] for line in found if line["event"] == "candidate_dropped"]
    assert aside == sorted(set(aside), key=aside.index)
    assert set(aside) == {"two/plain/warm", "two/question/warm", "two/shout/warm"}


def test_a_level_leaves_out_what_is_below_it(run):
    assert run("honest", "--set", "stopping.budget=8", "--log-level", "warning").stderr == ""


def test_errors_and_hints_are_lines_too_and_the_exit_code_stays(run, tmp_path):
    result = run("honest", "--set", "batchsize=8")
    (line,) = lines(result.stderr)
    assert (result.returncode, line["event"], line["level"]) == (2, "failed", "error")
    assert "batchsize: unknown key" in line["message"]


def test_the_environment_chooses_the_format(run, monkeypatch, tmp_path):
    monkeypatch.setenv("WINNOW_LOG_FORMAT", "json")
    (line,) = lines(winnow(tmp_path, "resume", "nobody", "--storage", "sqlite:///nowhere.db").stderr)
    assert line["event"] == "failed"


@pytest.mark.parametrize("text", [each for each in HOSTILE_TEXTS if len(each) < 5000])
def test_a_hostile_text_is_one_line_in_either_format(capsys, text):
    forged = f'{text}"}}\n{{"event": "forged"}}'
    with logged(LogFormat.json):
        logging.getLogger("winnow.test").warning(
            "%s", forged, extra={"event": "told", "candidate": forged, "detail": "\ud800" + text}
        )
    (line,) = lines(capsys.readouterr().err)
    assert (line["event"], line["candidate"], line["message"]) == ("told", forged, forged)
    with logged(LogFormat.text):
        logging.getLogger("winnow.test").warning("%s", forged)
    written = capsys.readouterr().err
    assert written.startswith("warning: ")
    assert written.count("\n") == 1
    assert not set(written.rstrip("\n")) & set("\x1b\x07\r\x08\x85\u2028\u202e")


def test_what_is_said_to_people_is_an_event_where_lines_are_json(capsys):
    notice("stopped_early", "\nstopped early; continue")
    assert capsys.readouterr().err == "\nstopped early; continue\n"
    with logged(LogFormat.json, LogLevel.info):
        Interrupts()._handle(2, None)
        notice("stopped_early", "\nstopped early; continue")
    found = lines(capsys.readouterr().err)
    assert events(found) == ["interrupted", "stopped_early"]
    assert found[1]["message"] == "stopped early; continue"


def test_nothing_is_left_behind_and_bugs_keep_their_traceback():
    logger = logging.getLogger("winnow")
    before = logger.handlers[:], logger.level, logger.propagate
    with pytest.raises(ZeroDivisionError), logged(LogFormat.json):
        raise ZeroDivisionError
    with pytest.raises(SystemExit), logged(LogFormat.json):
        raise WinnowError("a sentence")
    with pytest.raises(WinnowError), logged(LogFormat.text):
        raise WinnowError("a sentence")
    assert (logger.handlers, logger.level, logger.propagate) == before
    assert json_context() is None
