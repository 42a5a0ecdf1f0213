"""The flow as a whole: bad candidates, dying engines, hostile texts, and what Prefect sees."""

import json
import urllib.request

import campaign_processes as processes
import pytest
import scripted_engines
from test_command_line import winnow

from flows.storage_urls import hide, reveal

pytestmark = pytest.mark.usefixtures("prefect_api")


@pytest.fixture
def folder(tmp_path):
    processes.write_campaign(tmp_path)
    return tmp_path


def with_provider(folder, name, model="two"):
    spec = folder / "campaign.yaml"
    text = spec.read_text()
    assert f"name: {model}, provider: transformers" in text
    spec.write_text(
        text.replace(f"name: {model}, provider: transformers", f"name: {model}, provider: {name}")
    )


def test_a_candidate_that_cannot_be_loaded_is_marked_and_the_others_go_on(folder):
    (folder / "model-2" / "model.safetensors").write_bytes(b"these are no weights")
    result = winnow(folder, "run", "campaign.yaml")
    assert result.returncode == 3
    assert "Traceback" not in result.stderr
    reasons = dict(
        processes.rows(
            folder,
            "SELECT json_extract(k.model, '$.name'), group_concat(DISTINCT coalesce(c.reason, 'scored')) "
            "FROM comparisons c JOIN candidates k ON k.id = c.candidate_a_id GROUP BY 1",
        )
    )
    assert reasons == {"one": "scored", "two": "load_failed"}
    assert not processes.rows(
        folder, "SELECT 1 FROM comparisons WHERE reason IS NOT NULL AND outcome IS NOT NULL"
    )
    assert processes.rows(folder, "SELECT count(*) FROM comparisons") == [(processes.BUDGET,)]
    coverage = json.loads(winnow(folder, "query", "survivor", "coverage", "--json").stdout)
    assert "two" in {row["candidate"].partition("/")[0] for row in coverage if row["reason"] == "load_failed"}
    best = json.loads(winnow(folder, "status", "survivor", "--json").stdout)["best"]
    assert best.startswith("one/")


def test_an_engine_that_dies_now_and_then_changes_nothing(tmp_path, monkeypatch):
    scripted_engines.provide(monkeypatch, "mortal")
    histories = []
    for lifespan in (5, 1000):
        folder = tmp_path / f"dies-after-{lifespan}"
        folder.mkdir()
        processes.write_campaign(folder)
        with_provider(folder, "mortal")
        monkeypatch.setattr(scripted_engines.MortalEngine, "batches", 0)
        monkeypatch.setattr(scripted_engines.MortalEngine, "lifespan", lifespan)
        assert winnow(folder, "run", "campaign.yaml", "--set", "execution.max_restarts=9").returncode == 3
        assert scripted_engines.MortalEngine.batches > 3
        histories.append(processes.history(folder))
    assert histories[0] == histories[1]


def test_an_engine_that_dies_too_often_fails_its_candidates_only(folder, monkeypatch):
    scripted_engines.provide(monkeypatch, "mortal")
    monkeypatch.setattr(scripted_engines.MortalEngine, "batches", 0)
    with_provider(folder, "mortal")
    assert winnow(folder, "run", "campaign.yaml", "--set", "execution.max_restarts=0").returncode == 3
    found = processes.rows(folder, "SELECT DISTINCT reason, detail FROM comparisons WHERE reason IS NOT NULL")
    assert [reason for reason, _ in found] == ["engine_failed"]
    assert "it was its time" in found[0][1]
    assert (
        processes.rows(folder, "SELECT count(*) FROM comparisons WHERE outcome IS NULL")[0][0]
        < processes.BUDGET
    )


def test_hostile_outputs_are_stored_judged_and_shown_as_text(folder, monkeypatch):
    scripted_engines.provide(monkeypatch, "hostile")
    with_provider(folder, "hostile")
    assert winnow(folder, "run", "campaign.yaml").returncode == 3
    shown = winnow(folder, "query", "survivor", "comparisons").stdout
    assert "[bold]a[/bold]" in shown
    assert not {"\x1b", "\0", "\u202e"} & set(shown)
    texts = [
        row["text"] for row in json.loads(winnow(folder, "query", "survivor", "comparisons", "--json").stdout)
    ]
    assert any("{{ 1/0 }}" in text for text in texts)
    assert winnow(folder, "db", "check").returncode == 0


def test_the_run_and_its_steps_show_in_the_prefect_server(folder, prefect_api):
    assert winnow(folder, "run", "campaign.yaml", "--set", "name=seen-by-prefect").returncode == 3
    (run,) = ask(prefect_api, "flow_runs", {"flow_runs": {"name": {"any_": ["seen-by-prefect"]}}})
    assert run["state_type"] == "COMPLETED"
    steps = ask(prefect_api, "task_runs", {"flow_runs": {"name": {"any_": ["seen-by-prefect"]}}})
    assert {"plan", "generate", "judge", "decide", "record"} <= {
        step["name"].rpartition("-")[0] for step in steps
    }


def ask(api, what, body):
    request = urllib.request.Request(
        f"{api}/{what}/filter", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request) as reply:
        return json.load(reply)


def test_prefect_is_not_told_a_password_and_the_flow_still_finds_the_database():
    url = "postgresql://ann:secret@host/results"
    shown = hide(url)
    assert "secret" not in shown
    assert (reveal(shown), reveal("sqlite:///winnow.db")) == (url, "sqlite:///winnow.db")
