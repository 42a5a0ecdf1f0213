"""A campaign with held-out examples: run, killed and resumed, and what it says in the end."""

import json

import campaign_processes as processes
import pytest
import scripted_engines
from campaign_processes import Kill
from campaigns import one_message, status_json, winnow
from test_command_line import edit
from waiting import PATIENCE_S

pytestmark = pytest.mark.usefixtures("plain_runs")

HELD_OUT = 6
"""Of the 24 examples, at the share of 0.25."""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A campaign of six scripted candidates, ready to run."""
    scripted_engines.provide(monkeypatch, "honest")
    spec = processes.write_campaign(tmp_path, provider="honest", budget=60)
    spec.write_text(spec.read_text() + "holdout: 0.25\n")
    return tmp_path


def held_out_comparisons(folder):
    """(candidate, example, number of the round) of what was asked once selection had ended."""
    rounds = processes.rows(folder, "SELECT number, arms, examples FROM rounds ORDER BY number")
    return [
        (arm, example, number)
        for number, arms, examples in rounds
        for arm, example in zip(json.loads(arms), json.loads(examples), strict=True)
        if number >= len(rounds) - 2
    ]


def test_the_winner_is_scored_on_examples_that_selection_never_saw(folder):
    edit(folder, "delta: 0.05", "delta: null")
    result = winnow(folder, "run", "campaign.yaml")
    assert result.returncode == 0, result.stderr
    assert "on the 18 examples of selection" in result.stdout
    assert "on the 6 examples that selection did not use" in result.stdout
    assert "ahead by" in result.stdout
    last = held_out_comparisons(folder)
    held_out = {example for _, example, _ in last}
    assert (len(last), len(held_out), len({arm for arm, _, _ in last})) == (12, HELD_OUT, 2)
    earlier = processes.rows(folder, "SELECT examples FROM rounds WHERE number < 6")
    assert not held_out & {example for (examples,) in earlier for example in json.loads(examples)}
    assert processes.rows(folder, "SELECT count(*) FROM comparisons") == [(60,)]
    found = status_json(folder)
    assert (found["n_examples"], found["held_out"]["is_complete"], found["reason"]) == (18, True, "budget")
    assert found["held_out"]["winner"] == found["best"]
    (line,) = json.loads(winnow(folder, "list", "--json").stdout)
    assert line["held_out"] == found["held_out"]["mean"] is not None
    apart = f"(+{HELD_OUT} held out)"
    assert winnow(folder, "report", "survivor").stdout.count(apart) == 2
    for kind, file in (("--html", "page.html"), ("--model-card", "card.md")):
        assert winnow(folder, "report", "survivor", kind, file).returncode == 0
        assert (folder / file).read_text().count(apart) == 2
    board = json.loads(winnow(folder, "query", "survivor", "leaderboard", "--json").stdout)
    assert sorted(row["held_out"] for row in board)[-3:] == [0, HELD_OUT, HELD_OUT]
    again = winnow(folder, "run", "campaign.yaml")
    assert processes.rows(folder, "SELECT count(*) FROM comparisons") == [(60,)]
    assert again.returncode == 0


def test_a_fork_with_other_prompts_has_seen_the_held_out_examples(folder):
    edit(folder, "delta: 0.05", "delta: null")
    assert winnow(folder, "run", "campaign.yaml").returncode == 0
    same = winnow(folder, "run", "campaign.yaml", "--fork", "longer", "--set", "stopping.budget=66")
    assert "this interval and the next both hold" in same.stdout
    text = (folder / "campaign.yaml").read_text()
    (folder / "campaign.yaml").write_text(text.replace("Q: {{", "Carefully: {{"))
    assert text != (folder / "campaign.yaml").read_text()
    mended = winnow(folder, "run", "campaign.yaml", "--fork", "mended")
    assert "this guarantees nothing if candidates, the judge or a setting were changed" in mended.stdout
    assert "which has outcomes on 6 of these examples" in mended.stdout
    assert "the held-out mean has no such bias" not in mended.stdout


def test_a_budget_that_ends_before_is_said_and_a_raised_one_goes_on(folder):
    edit(folder, "delta: 0.05", "delta: null")
    short = winnow(folder, "run", "campaign.yaml", "--set", "stopping.budget={comparisons: 60, tokens: 110}")
    assert "not known: 4 of the 6 examples that selection does not use are scored for" in short.stdout
    assert "then the token budget is spent: 112 of 110" in short.stdout
    longer = winnow(folder, "run", "campaign.yaml")
    assert "on the 6 examples that selection did not use" in longer.stdout
    assert "guarantees nothing" not in longer.stdout


def test_the_share_may_not_change(folder):
    assert winnow(folder, "run", "campaign.yaml").returncode == 3
    edit(folder, "holdout: 0.25", "holdout: 0.5")
    refused = winnow(folder, "run", "campaign.yaml")
    assert refused.returncode == 2
    assert "holdout: 0.25 -> 0.5" in one_message(refused)


def test_killed_while_the_finalists_are_scored_ends_as_uninterrupted(tmp_path):
    forks, histories = processes.fork_server(), []
    for name in ("whole", "killed"):
        folder = tmp_path / name
        folder.mkdir()
        spec = processes.write_campaign(folder, budget=28)
        spec.write_text(spec.read_text() + "holdout: 0.25\n")
        storage = processes.store(spec)
        kills = 0
        while not processes.rows(folder, "SELECT 1 FROM decisions WHERE stop"):
            turn = [Kill(commit=3, after=False), Kill(commit=2, after=True)][kills % 2]
            kill = None if name == "whole" else turn if kills else Kill(commit=10, after=True)
            process = processes.start(forks, folder, storage, kill)
            process.join(PATIENCE_S)
            kills += process.exitcode == -9
            assert kills < 20
        assert kills >= (4 if name == "killed" else 0)
        histories.append(processes.history(folder))
    whole, killed = histories
    assert killed == whole
    selected = {example for _, _, examples, _ in whole["rounds"][:2] for example in json.loads(examples)}
    late = [example for _, _, examples, _ in whole["rounds"][2:] for example in json.loads(examples)]
    assert (len(late), len(set(late))) == (12, HELD_OUT)
    assert not selected & set(late)
