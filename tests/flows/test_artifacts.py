"""Prefect's pages: a campaign's progress and leaderboard, read back from a real server."""

import json
import threading

import campaign_processes as processes
import pytest
import scripted_engines
from campaigns import winnow
from hostile_texts import HOSTILE_TEXTS
from stored_campaigns import new_database, store_campaign
from test_campaign_flow import ask
from waiting import eventually

from winnow.flows.run import artifacts
from winnow.flows.run import artifacts as contents
from winnow.tasks.campaign.look import Look
from winnow.tasks.text.printable import escaped

RECORDED = {"estimates": [0.1, 0.9, None], "lower": [None, 0.5, None], "upper": [None, 1.0, None]}


def published(api, key):
    """The only version of an artifact."""
    (found,) = ask(api, "artifacts", {"artifacts": {"key": {"any_": [key]}}})
    return found


def latest(api, key):
    (found,) = ask(api, "artifacts/latest", {"artifacts": {"key": {"any_": [key]}}})
    return found


def run(folder, monkeypatch, name, *settings):
    scripted_engines.provide(monkeypatch, "honest")
    processes.write_campaign(folder, provider="honest", name=name)
    return winnow(folder, "run", "campaign.yaml", *(part for each in settings for part in ("--set", each)))


def logs_of(api, run_id):
    return ask(api, "logs", {"logs": {"flow_run_id": {"any_": [run_id]}}})


def test_progress_and_leaderboard_are_what_the_campaign_ended_with(prefect_api, tmp_path, monkeypatch):
    monkeypatch.setenv("WINNOW_VIEW_URL", "http://pages.example/base/")
    result = run(tmp_path, monkeypatch, "on-pages", "stopping.budget={comparisons: 16, tokens: 900}")
    assert result.returncode == 3, result.stderr
    progress = published(prefect_api, "winnow-on-pages-progress")
    assert (progress["type"], progress["data"]) == ("progress", 100.0)
    assert "comparisons 16 of 16, tokens 32 of 900" in progress["description"]
    table = published(prefect_api, "winnow-on-pages-leaderboard")
    rows = json.loads(table["data"])
    asked = json.loads(winnow(tmp_path, "query", "on-pages", "leaderboard", "--json").stdout)
    assert [row["candidate"] for row in rows] == [escaped(row["candidate"]) for row in asked]
    assert [row["best"] for row in rows] == ["best" if row["best"] else "" for row in asked]
    names = [table["metadata_"][f"candidate {number}"] for number in range(1, len(asked) + 1)]
    assert names == [row["candidate"] for row in asked]
    assert rows[0]["estimate"] == round(asked[0]["estimate"], 4)
    runs = ask(prefect_api, "flow_runs", {"flow_runs": {"name": {"any_": ["on-pages"]}}})
    assert {progress["flow_run_id"], table["flow_run_id"]} == {each["id"] for each in runs}
    (flow_run,) = runs
    assert sorted(flow_run["tags"]) == ["winnow", "winnow-campaign"]
    said, headline, page, report = flow_run["state"]["message"].split("\n")
    assert headline.startswith("No winner yet among ")
    assert said.startswith(f"on-pages: undecided, best {asked[0]['candidate']} ")
    assert page == "page: http://pages.example/base/campaign?campaign=on-pages"
    assert report.startswith("report: winnow report on-pages --html on-pages.html --storage sqlite:///")
    link = published(prefect_api, "winnow-on-pages-page")
    assert "(http://pages.example/base/campaign?campaign=on-pages)" in link["data"]
    eventually(lambda: said in [line["message"] for line in logs_of(prefect_api, flow_run["id"])])
    assert latest(prefect_api, "winnow-on-pages-progress")["data"] == 100.0


def test_they_are_updated_in_place_while_it_runs(prefect_api, tmp_path, monkeypatch):
    monkeypatch.setattr(artifacts, "PACE", 0.0)
    monkeypatch.setattr(artifacts, "SHARE", 1.0)
    seen = []
    progress = contents.progress
    monkeypatch.setattr(contents, "progress", lambda *args: seen.append(progress(*args)) or seen[-1])
    generate = scripted_engines.ScriptedEngine.generate
    batches = []

    def once_the_last_round_was_seen(self, requests):
        batches.append(len(requests))
        eventually(lambda: sum(batches) <= 8 or len(seen) >= 2)
        return generate(self, requests)

    monkeypatch.setattr(scripted_engines.ScriptedEngine, "generate", once_the_last_round_was_seen)
    assert run(tmp_path, monkeypatch, "live", "stopping.budget=16").returncode == 3
    percents = [percent for percent, _ in seen]
    assert len(percents) > 2
    assert percents == sorted(percents)
    assert percents[-1] == published(prefect_api, "winnow-live-progress")["data"]


@pytest.mark.parametrize("where", ["create_artifact", "update_artifact"])
def test_a_server_that_fails_ends_no_campaign_and_is_told_once(prefect_api, tmp_path, monkeypatch, where):
    from prefect.client.orchestration import SyncPrefectClient

    def fail(self, *args, **kwargs):
        raise RuntimeError("the server is on fire")

    monkeypatch.setattr(SyncPrefectClient, where, fail)
    monkeypatch.setattr(artifacts, "PACE", 0.0)
    monkeypatch.setattr(artifacts, "SHARE", 1.0)
    result = run(tmp_path, monkeypatch, f"on-fire-{where[:6]}", "stopping.budget=100")
    assert result.returncode in (0, 3)
    assert result.stderr.count("the server is on fire; it continues") == 1


def test_a_server_that_hangs_delays_the_end_no_longer_than_a_farewell(prefect_api, tmp_path, monkeypatch):
    from prefect.client.orchestration import SyncPrefectClient

    answered = threading.Event()
    monkeypatch.setattr(SyncPrefectClient, "create_artifact", lambda *args: answered.wait(60))
    monkeypatch.setattr(artifacts, "FAREWELL", 0.1)
    assert run(tmp_path, monkeypatch, "hanging").returncode in (0, 3)
    answered.set()


@pytest.mark.parametrize("text", HOSTILE_TEXTS)
def test_a_hostile_name_is_text(tmp_path, text):
    name = f"{text}[x](javascript:alert(1))<b>*_`|\n# title"
    database = new_database(tmp_path / "winnow.db")
    campaign = store_campaign(database, names=("a", name, "c"))
    campaign.finish(campaign.plan(0, [0, 1, 2], [0, 0, 0]), [1.0, 0.0, None], best=1, **RECORDED)
    with database.reading() as session:
        _, standing = contents.progress(session, campaign.record)
        table, _, names = contents.leaderboard(Look(session, campaign.record))
        said = contents.status_line(Look(session, campaign.record))
    database.close()
    assert "\n" not in standing
    for mark in ("<b>", "](", "*_`"):
        assert mark not in standing
        assert mark not in table
    (cell,) = [row["candidate"] for row in json.loads(table) if row["best"]]
    assert cell.isprintable()
    assert name in names.values()
    assert "\n" not in said


def test_a_key_is_what_prefect_takes_and_no_two_campaigns_share_one():
    names = ["sum-prompts", "sum.prompts", "Sum-prompts", "sum_prompts", "x" * 100, "1.2"]
    keys = [contents.artifact_key(name, "progress") for name in names]
    assert keys[0] == "winnow-sum-prompts-progress"
    assert len(set(keys)) == len(names)
    assert all(set(key) <= set("abcdefghijklmnopqrstuvwxyz0123456789-") for key in keys)


def test_progress_counts_the_limit_that_is_nearest(tmp_path):
    database = new_database(tmp_path / "winnow.db")
    for name, budget, percent in (
        ("tokens", {"comparisons": 100, "tokens": 20}, 75.0),
        ("all", {"tokens": 1500}, 20.0),
        ("plain", 12, 25.0),
    ):
        campaign = store_campaign(database, name, budget=budget)
        campaign.finish(campaign.plan(0, [0, 1, 2], [0, 0, 0]), [1.0, 0.0, None], best=1, **RECORDED)
        with database.reading() as session:
            assert contents.progress(session, campaign.record)[0] == percent
    database.close()


def test_nobody_looks_at_a_temporary_server(prefect_api, monkeypatch):
    from prefect.settings import PREFECT_API_URL, temporary_settings

    assert artifacts.server_is_the_users()
    monkeypatch.delenv("PREFECT_API_URL")
    with temporary_settings({PREFECT_API_URL: prefect_api}):
        assert not artifacts.server_is_the_users()
