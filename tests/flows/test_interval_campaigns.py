"""Campaigns that stop by single ends, as published, and by halving, through the command line."""

import json
import re
import sqlite3
from contextlib import closing

import pytest
import scripted_engines
from campaigns import one_message, winnow
from tiny_models import save_tiny_llama

from winnow.algorithms.best_mean.baselines import halving

pytestmark = pytest.mark.usefixtures("plain_runs")

N_EXAMPLES = 150
SPEC = """\
name: letters
objective: best-mean
seed: 3
storage: sqlite:///winnow.db
models:
  - {name: knows, provider: knows, model: knows}
  - {name: slips, provider: slips, model: slips}
  - {name: guesses, provider: guesses, model: guesses}
prompts:
  - {name: plain, template: "{{ input }}"}
generate_configs:
  - {name: cold, temperature: 0.0, max_tokens: 2}
dataset: {path: data.jsonl, fields: {id: id, input: input, target: target}}
judge: {type: exact}
selector: {name: ucb-e}
batch_size: 16
stopping: {budget: 450, delta: 0.05, epsilon: 0.05}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for provider in ("knows", "slips", "guesses"):
        scripted_engines.provide(monkeypatch, provider)
        save_tiny_llama(tmp_path / provider, seed=1)
    rows = [{"id": f"e{i}", "input": str(i), "target": "abcdefg"[i % 7]} for i in range(N_EXAMPLES)]
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "campaign.yaml").write_text(SPEC)
    return tmp_path


def comparisons(result):
    return int(re.search(r"([0-9]+) comparisons in", result.stdout)[1])


def arms_of_first_round(folder, name):
    rows = json.loads(winnow(folder, "query", name, "comparisons", "--json").stdout)
    first = min(row["round"] for row in rows)
    return len({row["candidate"] for row in rows if row["round"] == first})


def test_mended_and_as_published_a_campaign_is_confident_of_the_same_and_asks_otherwise(folder):
    mended = winnow(folder, "run", "campaign.yaml")
    assert mended.returncode == 0, mended.stderr
    published = winnow(
        folder, "run", "campaign.yaml", "--fork", "published", "--set", "selector.params.variant=paper"
    )
    assert published.returncode == 0, published.stderr
    for result in (mended, published):
        assert re.search(r"winner +knows", result.stdout)
        assert "(at most 5% risk of error)" in result.stdout
        assert "95% confidence for all intervals and rounds together" in result.stdout
    assert [arms_of_first_round(folder, name) for name in ("letters", "published")] == [2, 1]


def test_a_campaign_that_was_stopped_in_the_middle_asks_what_it_would_have_asked(folder):
    straight = winnow(folder, "run", "campaign.yaml")
    stopped = winnow(folder, "run", "campaign.yaml", "--fork", "stopped", "--set", "stopping.budget=48")
    assert stopped.returncode == 3
    assert "undecided at error probability 0.05" in stopped.stdout
    going_on = winnow(folder, "run", "campaign.yaml", "--fork", "stopped", "--set", "stopping.budget=450")
    assert going_on.returncode == 0, going_on.stderr
    assert comparisons(going_on) == comparisons(straight)


def test_halving_spends_its_budget_and_claims_no_more_than_a_heuristic(folder):
    halving = ["--set", "selector.name=halving", "--set", "stopping={budget: 60}"]
    result = winnow(folder, "run", "campaign.yaml", *halving)
    assert result.returncode == 0, result.stderr
    assert comparisons(result) == 60
    assert "heuristic" in result.stdout
    assert "no error probability (stopping.delta) was requested" in result.stdout


def stored_schedule(folder, name):
    query = "SELECT json_extract(spec, '$.halving_schedule') FROM campaigns WHERE name = ?"
    with closing(sqlite3.connect(folder / "winnow.db")) as database:
        return database.execute(query, (name,)).fetchone()[0]


def asked(folder, name):
    rows = json.loads(winnow(folder, "query", name, "comparisons", "--json").stdout)
    return [(row["round"], row["candidate"], row["example"]) for row in rows]


def test_halving_goes_on_by_the_schedule_with_which_it_began(folder, monkeypatch):
    def run(name, budget, *more):
        settings = ["--set", "selector.name=halving", "--set", f"stopping={{budget: {budget}}}", *more]
        done = winnow(folder, "run", "campaign.yaml", "--fork", name, *settings)
        assert done.returncode == 0, done.stderr

    halved = ["--set", "selector.params.schedule=halving"]
    with monkeypatch.context() as patch:
        patch.setattr(halving, "schedule_for", lambda n_arms, n_examples, budget: "halving")  # as before
        run("older", 405)
    run("chosen", 405, *halved)
    assert asked(folder, "older") == asked(folder, "chosen")
    for budget in (420, 430):  # the budget by which a new one would reject, and another
        run("older", budget)
        run("chosen", budget, *halved)
        assert asked(folder, "older") == asked(folder, "chosen")
    run("small", 150)
    run("small", 420)
    run("new", 420)
    run("new", 430)
    schedules = [stored_schedule(folder, name) for name in ("older", "chosen", "small", "new")]
    assert schedules == [None, None, None, "rejects"]
    assert asked(folder, "new") != asked(folder, "older")
    checked = winnow(folder, "db", "check")
    assert checked.returncode == 0, checked.stdout


@pytest.mark.parametrize(
    ("params", "told"),
    [
        ("{pull: 0}", "selector: pull must be at least 1 or None, got 0"),
        ("{variant: published}", "selector: variant must be 'mended' or 'paper', got 'published'"),
        ("{variant: paper, pull: 4}", "selector: pull must be None if variant is 'paper'"),
    ],
)
def test_parameters_that_cannot_be_are_refused_in_a_sentence(folder, params, told):
    result = winnow(folder, "validate", "campaign.yaml", "--set", f"selector.params={params}")
    assert result.returncode == 2
    assert told in one_message(result)
