"""A campaign that stopped early is replayed as a trace, until `--exhaustive` has filled its table."""

import json

import campaign_processes as processes
import pandas as pd
import pytest
import scripted_engines
from campaigns import one_message, winnow

pytestmark = pytest.mark.usefixtures("plain_runs")

GRID = 6 * processes.N_EXAMPLES


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A campaign of two scripted models that has spent its budget."""
    scripted_engines.provide(monkeypatch, "honest")
    processes.write_campaign(tmp_path, provider="honest")
    assert winnow(tmp_path, "run", "campaign.yaml").returncode == 3
    return tmp_path


def simulate(folder, *options, name="survivor"):
    return winnow(
        folder, "simulate", f"campaign:{name}", "--storage", processes.storage_of(folder), "--out", "results",
        "--selector", "row-mean:batch_size=4", "--selector", "ucb-e:batch_size=4", "--seeds", "3",
        "--budgets", "0.1,1.0", "--workers", "1", *options,
    )  # fmt: skip


def test_a_campaign_that_stopped_early_gives_a_trace_that_says_what_it_is(folder):
    result = simulate(folder)
    assert (result.returncode, result.stderr) == (0, "")
    assert "filled 0.2222" in result.stdout.splitlines()[0]
    assert "a trace, not an estimate" in result.stdout
    assert "winnow run SPEC --exhaustive" in result.stdout
    table = result.stdout.partition("a trace")[0]
    assert not {"reaches", "stopped", "wrong", "accuracy"} & set(table.split())
    assert table.count(" of 3)") == 2  # whom the runs of each selector picked
    summary = json.loads(simulate(folder, "--json").stdout)
    assert (summary["metric"], summary["is_estimate"], summary["target"]) == ("coverage", False, None)
    assert summary["note"].startswith("a trace, not an estimate")
    for each in summary["selectors"]:
        assert not {"budget_to_target", "stopped", "after", "wrong"} & each.keys()
        assert each["means"][1] == pytest.approx(processes.BUDGET / GRID)  # in the end, it asked for all
    runs = pd.read_parquet(folder / "results" / "runs.parquet")
    assert (set(runs.metric), set(runs.is_estimate)) == ({"coverage"}, {False})
    assert runs.value.between(0.0, 1.0).all()


def test_a_metric_of_how_good_a_selector_is_is_refused_on_a_trace(folder):
    result = simulate(folder, "--metric", "accuracy")
    assert result.returncode == 2
    assert "--metric accuracy: only 22% of the scores of campaign:survivor exist" in one_message(result)
    assert not (folder / "results").exists()


def test_exhaustive_fills_the_table_by_reuse_and_leaves_the_first_campaign_as_it_was(folder):
    before = processes.history(folder)
    result = winnow(folder, "run", "campaign.yaml", "--exhaustive")
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("survivor-exhaustive: ")
    made = dict(
        processes.rows(
            folder,
            "SELECT c.name, count(*) FROM generations g JOIN rounds r ON r.id = g.round_id "
            "JOIN campaigns c ON c.id = r.campaign_id GROUP BY 1",
        )
    )
    assert made == {"survivor": processes.BUDGET, "survivor-exhaustive": GRID - processes.BUDGET}
    after = processes.history(folder)
    for table in ("rounds", "decisions"):
        assert set(before[table]) <= set(after[table])
    scored = dict(
        processes.rows(
            folder,
            "SELECT c.name, sum(d.scored) FROM decisions d JOIN rounds r ON r.id = d.round_id "
            "JOIN campaigns c ON c.id = r.campaign_id GROUP BY 1",
        )
    )
    assert scored == {"survivor": processes.BUDGET, "survivor-exhaustive": GRID}
    simulated = simulate(folder, "--metric", "accuracy", "--json")
    summary = json.loads(simulated.stdout)
    assert (summary["table"], summary["is_estimate"]) == ("campaign:survivor-exhaustive", True)
    assert [each["means"][1] for each in summary["selectors"]] == [1.0, 1.0]  # all was asked
    again = winnow(folder, "run", "campaign.yaml", "--exhaustive")
    assert again.returncode == 0
    assert processes.rows(folder, "SELECT count(*) FROM comparisons") == [(GRID + processes.BUDGET,)]


def test_exhaustive_is_for_scores_of_single_candidates(tmp_path):
    processes.write_campaign(tmp_path)
    result = winnow(
        tmp_path, "run", "campaign.yaml", "--exhaustive", "--set", "objective=route",
        "--set", "selector={name: random}",
    )  # fmt: skip
    assert result.returncode == 2
    assert "has objective route; remove --exhaustive" in one_message(result)


def test_a_name_that_leaves_no_room_is_refused(tmp_path):
    processes.write_campaign(tmp_path, name="n" * 95)
    result = winnow(tmp_path, "run", "campaign.yaml", "--exhaustive")
    assert result.returncode == 2
    assert "choose a shorter name with --fork" in one_message(result)
