"""A campaign on a task of Inspect whose outputs a model grades: killed, resumed; and what needs leave."""

import json
import re

import pytest
import scripted_engines
import yaml
from campaign_processes import Kill, rows
from campaigns import one_message, winnow
from certify_campaigns import truth
from faulty_server import faulty_server
from scored_campaigns import decisions_with_kills, write_scored

QUOTED = re.compile(r"\[Submission\]: (.*)\n\*+\n\[Criterion\]: (.*)\n")


def grade(call):
    """What a grader says that finds some right, some partly so, and of some says nothing."""
    quoted = QUOTED.search(call.prompt)
    if quoted is None:
        return "a canary"
    submission, criterion = quoted.groups()
    said = {"a": "It is good.", "b": "GRADE: P"}.get(criterion, "GRADE: I")
    return said if submission != criterion or criterion == "a" else "GRADE: C"


def told(n=12):
    """What the task's code says, in the place of an interpreter that has Inspect."""
    of_samples = [
        {
            "id": f"e{number}",
            "input": f"{number}",
            "target": [truth(number)],
            "messages": [{"role": "user", "content": f"{number}="}],
            "metadata": {"level": number % 3},
        }
        for number in range(n)
    ]
    scorer = {"name": "inspect_ai/model_graded_qa", "params": {"partial_credit": True}}
    generate = {"name": "inspect_ai/generate", "params": {"max_tokens": 3}}
    return {
        "name": "letters",
        "solvers": [generate],
        "scorers": [scorer],
        "metrics": None,
        "epochs": None,
        "features": [],
        "config": {"max_tokens": 3},
        "rows": of_samples,
    }


@pytest.fixture
def write(monkeypatch):
    """Write a campaign on the task into a folder."""
    for name in ("knows", "guesses"):
        scripted_engines.provide(monkeypatch, name)

    def written(folder, url):
        path = write_scored(folder, ["knows", "guesses"], {"name": "row-mean"}, budget=24)
        (folder / "told.json").write_text(json.dumps(told()))
        (folder / "letters.py").write_text("raise SystemExit('this is never run here')\n")
        (folder / "python").write_text("#!/bin/sh\ntouch ran\ncp told.json $3\n")
        (folder / "python").chmod(0o755)
        grader = {
            "name": "judging",
            "provider": "openai",
            "model": "served",
            "model_base_url": url,
            "chat": True,
        }
        spec = yaml.safe_load(path.read_text())
        for key in ("prompts", "judge", "dataset"):
            del spec[key]
        spec["task"] = {"inspect": "letters.py@letters", "python": "./python", "grader": grader}
        path.write_text(yaml.safe_dump(spec))
        return path

    return written


@pytest.mark.usefixtures("plain_runs")
def test_a_graded_campaign_that_is_killed_ends_as_one_that_is_not(tmp_path, write):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    with faulty_server(reply=grade) as server:
        found = decisions_with_kills(whole, write(whole, server.url), [], is_trusted=True)
        kills = [Kill(commit=6, after=False)]
        again = decisions_with_kills(killed, write(killed, server.url), kills, is_trusted=True)
    assert again == found
    outcomes = [row[0] for row in rows(whole, "SELECT outcome FROM comparisons ORDER BY id")]
    assert len(outcomes) == 24
    assert {0.5, 1.0} < set(outcomes)
    assert rows(whole, "SELECT DISTINCT reason FROM comparisons WHERE outcome IS NULL") == [
        ("verdict_missing",)
    ]


def test_nothing_of_a_task_runs_before_somebody_allows_it(tmp_path, monkeypatch, write):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "configuration"))
    folder = tmp_path / "work"
    write(folder, "http://127.0.0.1:1/v1")
    refused = one_message(winnow(folder, "run", "campaign.yaml"))
    assert (
        f"it would run the task 'letters' of the Python file '{folder}/letters.py' by the interp" in refused
    )
    assert "which needs your permission to run" in one_message(winnow(folder, "validate", "campaign.yaml"))
    assert not (folder / "ran").exists()
    said = winnow(folder, "validate", "campaign.yaml", "--trust")
    assert said.returncode == 0, said.stderr
    assert (folder / "ran").exists()
    shown = yaml.safe_load(said.stdout.split("keys set by the task:")[1].partition("allowed: it would")[0])
    assert shown["prompts"] == [{"name": "letters", "template": "{{ context }}"}]
    assert (shown["judge"]["type"], shown["judge"]["partial_credit"]) == ("inspect-graded", True)
    assert shown["generate_config"] == {"max_tokens": 3}
