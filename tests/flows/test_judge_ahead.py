"""Models that judge are asked about each text as it comes; what they say, and when it counts, is the same."""

import json

import pytest
import scripted_engines
import yaml
from ahead_campaigns import finish_with_kills, history, most_in_flight, persistent, run, write
from campaign_processes import rows
from without_prefect import leave_prefect_out

from winnow.flows.run import flow

RUBRIC = "The output is the reference, character for character."
JUDGMENTS = """
    SELECT r.number, c.position, j.number, j.verdict, j.reason, j.attempt, g.text FROM judgments j
    JOIN comparisons c ON c.id = j.comparison_id JOIN rounds r ON r.id = c.round_id
    LEFT JOIN generations g ON g.id = j.generation_id ORDER BY r.number, c.position, j.number
"""
PAID = """
    SELECT r.number, d.input_tokens, d.output_tokens FROM decisions d JOIN rounds r ON r.id = d.round_id
    ORDER BY r.number
"""


@pytest.fixture(autouse=True)
def plainly(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    leave_prefect_out(monkeypatch)
    for name in ("joining", "patient", "watched"):
        scripted_engines.provide(monkeypatch, name)
    scripted_engines.PatientEngine.judged.clear()
    monkeypatch.setattr(scripted_engines.PatientEngine, "waited_in_vain", False)


def write_judged(folder, **changes):
    """A campaign whose outputs a model scores, each model on a device of its own."""
    judging = folder / "judging"
    judging.mkdir(parents=True, exist_ok=True)
    (judging / "config.json").write_text(json.dumps({"name": "judging"}))
    model = {"name": "judging", "provider": "watched", "model": str(judging)}
    judge = {"type": "llm", "rubric": RUBRIC, "scale": "yes/no", "reference": True, "read": "text"}
    execution = {"devices": [0, 1, 2], "group_size": 4, "log_folder": str(folder / "logs")}
    fixed = {
        "judge": judge | {"model": model},
        "selector": {"name": "row-mean"},
        "stopping": {"budget": 40, "delta": 0.05},
        "execution": execution,
    }
    path = write(folder, **fixed, **changes)
    # Few examples: candidates say the same of one of them in different rounds, and the judge is asked once.
    path.write_text(path.read_text().replace("dataset:\n", "dataset:\n  limit: 12\n"))
    return path


def found_in(folder):
    return {**history(folder), "judgments": rows(folder, JUDGMENTS), "paid": rows(folder, PAID)}


@pytest.mark.parametrize("lookahead", [0, 2])
def test_a_judge_is_asked_before_its_round_is_written(tmp_path, lookahead):
    path = write_judged(tmp_path, lookahead=lookahead)
    path.write_text(path.read_text().replace("m1\n  provider: joining", "m1\n  provider: patient"))
    run(path)
    assert not scripted_engines.PatientEngine.waited_in_vain
    assert len(rows(tmp_path, JUDGMENTS)) == len(rows(tmp_path, "SELECT 1 FROM comparisons")) >= 40


@pytest.mark.parametrize("lookahead", [0, 2])
def test_killed_at_every_commit_it_ends_as_uninterrupted_and_as_without_streaming(tmp_path, lookahead):
    run(write_judged(tmp_path / "whole", lookahead=lookahead))
    kills = finish_with_kills(write_judged(tmp_path / "killed", lookahead=lookahead))
    run(write_judged(tmp_path / "after", lookahead=lookahead, streaming=False))
    whole = found_in(tmp_path / "whole")
    assert kills >= 16
    assert most_in_flight(whole) == lookahead
    assert found_in(tmp_path / "killed") == whole
    assert found_in(tmp_path / "after") == whole


@pytest.mark.parametrize("lookahead", [0, 2])
def test_models_that_metrics_ask_are_asked_ahead_as_well(tmp_path, lookahead):
    def written(folder, **changes):
        path = write_judged(folder, lookahead=lookahead, **changes)
        spec = yaml.safe_load(path.read_text())
        spec["metrics"] = [{"name": "same", "judge": spec["judge"]}]
        path.write_text(yaml.safe_dump(spec | {"judge": {"type": "exact"}}))
        return path

    path = written(tmp_path / "patient")
    path.write_text(path.read_text().replace("provider: joining", "provider: patient", 1))
    run(path)
    assert not scripted_engines.PatientEngine.waited_in_vain
    run(written(tmp_path / "ahead"))
    run(written(tmp_path / "after", streaming=False))
    stored = [found_in(tmp_path / name)["judgments"] for name in ("ahead", "after")]
    assert len(stored[0]) >= 40
    assert stored[0] == stored[1]


def test_engines_and_judges_that_die_are_asked_again_for_what_is_not_stored(tmp_path, monkeypatch):
    run(write_judged(tmp_path / "whole"))
    deaths = []
    monkeypatch.setattr(flow, "run_rounds", persistent(deaths))
    monkeypatch.setattr(scripted_engines.JoiningEngine, "lifespan", 3)
    path = write_judged(tmp_path / "mortal")
    path.write_text(path.read_text().replace("execution:\n", "execution:\n  max_restarts: 99\n"))
    run(path)
    assert len(deaths) > 2
    assert found_in(tmp_path / "mortal") == found_in(tmp_path / "whole")
