"""A campaign whose people rate only outputs that differ: killed and resumed, and on every surface."""

import signal

import campaign_processes as processes
import people_campaigns as people
import pytest
import scripted_engines
from campaigns import status_json, winnow
from people_campaigns import judged_to_the_end, labelled_elsewhere, tasks, write_people

pytestmark = pytest.mark.usefixtures("plain_runs")

SPARED = {
    "judge": people.QUALITY | {"spare": "equal-outputs"},
    "selector": {"name": "race"},
    "stopping": {"delta": 0.01},
    "fail_on_error": 1.0,
}


@pytest.fixture(autouse=True)
def scripted_models(monkeypatch):
    scripted_engines.provide_all(monkeypatch)


def test_people_rate_what_differs_and_a_killed_campaign_ends_the_same(prefect_api, tmp_path):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    for folder in (whole, killed):
        folder.mkdir()
        where = {"group_size": 8, "max_loaded": 2, "log_folder": f"{folder}/logs"}
        write_people(folder, "best-mean", storage=f"sqlite:///{folder}/winnow.db", execution=where, **SPARED)
    assert winnow(whole, "run", "campaign.yaml").returncode == 3
    judged_to_the_end(whole)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(killed)
        storage = processes.store(killed / "campaign.yaml")
    forks = processes.fork_server()
    assert people.killed_at(forks, killed, storage, 3) == -signal.SIGKILL
    assert winnow(killed, "resume", "survivor", "--trust").returncode == 3
    labelled = winnow(killed, "label", "survivor", str(labelled_elsewhere(killed)), "--as", "Ann")
    assert labelled.returncode == 0
    assert people.killed_at(forks, killed, storage, 2) == -signal.SIGKILL
    assert winnow(killed, "resume", "survivor", "--trust").returncode in (0, 3)
    judged_to_the_end(killed, "--trust")
    assert processes.history(killed) == processes.history(whole)

    rated = tasks(whole)
    by_example = {row["example"]: set() for row in rated}
    for row in rated:
        by_example[row["example"]].add(row["output"])
    assert all(len(outputs) == 2 for outputs in by_example.values())
    found = status_json(whole)
    told, judged = found["totals"]["comparisons"], found["judged"]
    assert (found["outcome"], found["best"]) == ("winner", "medium/plain")
    assert 2 * judged == len(rated) < told
    assert found["lower"] is None
    assert found["beyond"]["n"] == told // 2
    assert found["beyond"]["left_out"] == found["beyond"]["unscored"] == 0
    said = winnow(whole, "status", "survivor").stdout
    assert f"mean 1.000 on the {judged} examples whose outputs differ" in said
    assert "Best of 2 candidates on these 40 examples (1% risk of error)" in said
    assert "including those of equal outputs" in said
    assert "equal_outputs" in winnow(whole, "query", "survivor", "coverage").stdout
    assert "is sound" in winnow(whole, "db", "check").stdout
