"""The flow as a whole: bad candidates, dying engines, hostile texts, and what Prefect sees."""

import base64
import json
import os
import urllib.request
from contextlib import closing

import campaign_processes as processes
import numpy as np
import pytest
import scripted_engines
from campaigns import status_json, winnow
from mortal_engine import MortalEngine
from without_prefect import leave_prefect_out

from winnow.flows.prefect_support.masked_urls import mask, unmask
from winnow.flows.run import flow
from winnow.storage.engine.database import open_database
from winnow.storage.errors import StorageError
from winnow.storage.records import campaigns as campaign_records
from winnow.storage.records import outcomes as outcome_records
from winnow.tasks.campaign.look import Look
from winnow.tasks.campaign.replay import restored
from winnow.tasks.queries.warnings.campaign_warnings import campaign_warnings
from winnow.tasks.setup.open_campaign import reopen_campaign

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
    spent = processes.rows(folder, "SELECT reason IS NULL, count(*) FROM comparisons GROUP BY 1 ORDER BY 1")
    assert spent[1] == (1, processes.BUDGET)  # what could not be loaded cost nothing
    assert spent[0][1] >= 3 * 8
    status = status_json(folder)
    assert status["budgets"][0]["spent"] == processes.BUDGET
    coverage = json.loads(winnow(folder, "query", "survivor", "coverage", "--json").stdout)
    assert "two" in {row["candidate"].partition("/")[0] for row in coverage if row["reason"] == "load_failed"}
    assert status["best"].startswith("one/")


def test_where_no_model_can_be_loaded_nothing_is_spent_and_every_candidate_is_dropped(folder):
    for name in ("model-1", "model-2"):
        (folder / name / "model.safetensors").write_bytes(b"these are no weights")
    result = winnow(folder, "run", "campaign.yaml")
    assert result.returncode == 1
    assert "Traceback" not in result.stderr
    assert processes.rows(folder, "SELECT sum(answered), sum(scored), sum(generations) FROM decisions") == [
        (0, 0, 0)
    ]
    found = status_json(folder)
    assert (found["reason"], found["best"]) == ("all-dropped", None)
    assert found["budgets"][0]["spent"] == 0
    rows = json.loads(winnow(folder, "query", "survivor", "coverage", "--json").stdout)
    assert {(row["reason"], row["comparisons"] >= 8) for row in rows} == {("load_failed", True)}
    asked = processes.rows(folder, "SELECT count(*) FROM comparisons")
    assert winnow(folder, "resume", "survivor", "--storage", processes.storage_of(folder)).returncode == 1
    assert processes.rows(folder, "SELECT count(*) FROM comparisons") == asked


def test_a_model_that_loads_the_second_time_does_not_change_what_was_told_before(folder, monkeypatch):
    scripted_engines.provide(monkeypatch, "absent")
    with_provider(folder, "absent")
    monkeypatch.setattr(scripted_engines.AbsentEngine, "is_there", False)
    assert winnow(folder, "run", "campaign.yaml", "--set", "stopping.budget=8").returncode == 3
    before = processes.history(folder)
    dead = [row for row in before["comparisons"] if row[5] == "load_failed"]
    assert dead
    monkeypatch.setattr(scripted_engines.AbsentEngine, "is_there", True)
    assert winnow(folder, "run", "campaign.yaml").returncode == 3
    after = processes.history(folder)
    for table in ("rounds", "comparisons", "decisions"):
        assert after[table][: len(before[table])] == before[table]
    assert processes.rows(folder, "SELECT sum(answered) FROM decisions") == [(processes.BUDGET,)]
    assert any(text == "here again" for *_, text, _ in after["generations"])
    with closing(open_database(processes.storage_of(folder))) as database:
        record, checked = reopen_campaign(database, "survivor", processes.storage_of(folder))
        with database.reading() as session:
            selector, allowance, _ = restored(session, record, checked)
            stored = outcome_records.latest_decision(session, record.id)
    decision = selector.decision()
    assert (decision.reason, decision.stop) == (stored.reason, stored.stop)
    assert [None if np.isnan(each) else each for each in decision.lower] == stored.lower
    assert (allowance.answered, allowance.limit) == (processes.BUDGET, len(after["comparisons"]))


def test_an_engine_that_dies_now_and_then_changes_nothing(tmp_path, monkeypatch):
    scripted_engines.provide(monkeypatch, "mortal")
    histories = []
    for lifespan in (5, 1000):
        folder = tmp_path / f"dies-after-{lifespan}"
        folder.mkdir()
        processes.write_campaign(folder)
        with_provider(folder, "mortal")
        monkeypatch.setattr(MortalEngine, "batches", 0)
        monkeypatch.setattr(MortalEngine, "lifespan", lifespan)
        assert winnow(folder, "run", "campaign.yaml", "--set", "execution.max_restarts=9").returncode == 3
        assert MortalEngine.batches > 3
        histories.append(processes.history(folder))
    assert histories[0] == histories[1]


def test_an_engine_that_dies_too_often_fails_its_candidates_only(folder, monkeypatch):
    scripted_engines.provide(monkeypatch, "mortal")
    monkeypatch.setattr(MortalEngine, "batches", 0)
    with_provider(folder, "mortal")
    assert winnow(folder, "run", "campaign.yaml", "--set", "execution.max_restarts=0").returncode == 3
    found = processes.rows(folder, "SELECT DISTINCT reason, detail FROM comparisons WHERE reason IS NOT NULL")
    assert [reason for reason, _ in found] == ["engine_failed"]
    assert "it was its time" in found[0][1]
    assert processes.rows(folder, "SELECT sum(answered) FROM decisions") == [(processes.BUDGET,)]


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


def test_who_says_nothing_is_wrong_and_does_not_win_by_the_rest(tmp_path, monkeypatch):
    """One is right on 8 of 9; the other on 3 of 5, and says nothing of the others."""
    for name in ("adds", "coy"):
        scripted_engines.provide(monkeypatch, name)
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text("{}")
    rows = [{"id": f"e{i}", "input": f"{i} + {i * 3}", "target": str(4 * i)} for i in range(45)]
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "campaign.yaml").write_text("""\
name: sums
objective: best-mean
storage: sqlite:///winnow.db
models:
  - {name: a, provider: adds, model: adds}
  - {name: b, provider: coy, model: coy}
prompts: [{name: plain, template: "{{ input }}"}]
dataset: {path: data.jsonl, fields: {id: id, input: input, target: target}}
judge: {type: numeric}
selector: {name: row-mean}
stopping: {budget: 90, delta: 0.05}
""")
    result = winnow(tmp_path, "run", "campaign.yaml")
    assert result.returncode == 0, result.stderr
    assert status_json(tmp_path, "sums")["best"] == "a/plain"
    coverage = json.loads(winnow(tmp_path, "query", "sums", "coverage", "--json").stdout)
    said_nothing = {row["candidate"]: row["no_answer"] / row["comparisons"] for row in coverage}
    assert {row["reason"] for row in coverage} == {None}
    assert said_nothing == {"a/plain": 0.0, "b/plain": pytest.approx(0.4, abs=0.1)}
    with closing(open_database(f"sqlite:///{tmp_path}/winnow.db")) as database, database.reading() as session:
        record = campaign_records.get_campaign(session, "sums")
        (warning,) = campaign_warnings(Look(session, record), has_ended=True)
    assert warning.kind == "no-answer"


def test_the_run_and_its_steps_show_in_the_prefect_server(folder, prefect_api):
    assert winnow(folder, "run", "campaign.yaml", "--set", "name=seen-by-prefect").returncode == 3
    (run,) = ask(prefect_api, "flow_runs", {"flow_runs": {"name": {"any_": ["seen-by-prefect"]}}})
    assert run["state_type"] == "COMPLETED"
    steps = ask(prefect_api, "task_runs", {"flow_runs": {"name": {"any_": ["seen-by-prefect"]}}})
    assert {"plan", "generate", "judge", "decide", "record"} <= {
        step["name"].rpartition("-")[0] for step in steps
    }
    assert set(run["tags"]) == {"winnow", "winnow-campaign"}
    assert not any(step["tags"] for step in steps)  # each would ask the server whether its tags have a limit


def ask(api, what, body):
    secret = base64.b64encode(os.environ["PREFECT_API_AUTH_STRING"].encode()).decode()
    given = {"Content-Type": "application/json", "Authorization": f"Basic {secret}"}
    request = urllib.request.Request(f"{api}/{what}/filter", json.dumps(body).encode(), given)
    with urllib.request.urlopen(request) as reply:
        return json.load(reply)


def test_prefect_is_not_told_a_password_and_the_flow_still_finds_the_database():
    url = "postgresql://ann:secret@host/results"
    shown = mask(url)
    assert "secret" not in shown
    assert (unmask(shown), unmask("sqlite:///winnow.db")) == (url, "sqlite:///winnow.db")


def test_a_flow_whose_database_is_gone_makes_none_in_its_place(tmp_path, monkeypatch):
    leave_prefect_out(monkeypatch)
    url = f"sqlite:///{tmp_path}/moved.db"
    with pytest.raises(StorageError, match="there is no such file"):
        flow.run_campaign(url, "survivor")
    assert list(tmp_path.iterdir()) == []
