"""Campaigns as runs of MLflow and of Weights & Biases, read back by what those two read with."""

import json
import math
import struct

import pytest
from campaign_processes import rows
from campaigns import one_message, winnow
from report_campaigns import change, scored_campaign
from stored_campaigns import store_campaign

from winnow.storage.engine.sqlite import NAMES_A_FILE

NO_MORE = dict.fromkeys(("raised_by", "assumptions", "refuted"), ())
"""That is to be said of a claim."""
TABLES = "SELECT sql FROM sqlite_master ORDER BY name"
HOSTILE = "a/<b>*x*[2J"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # a database takes seconds to be made
    monkeypatch.setenv("WANDB_MODE", "offline")
    return tmp_path


def read_mlflow(folder):
    """The only run of a tracking folder, with its client."""
    from mlflow import MlflowClient

    client = MlflowClient(tracking_uri=(folder / "runs").as_uri())
    (run,) = client.search_runs([client.get_experiment_by_name("winnow").experiment_id])
    return client, run


def test_mlflow_reads_back_what_was_written_and_a_second_export_goes_on_in_the_same_run(folder):
    campaign = scored_campaign(folder)
    change(folder, "UPDATE candidates SET name = ? WHERE name = 'b'", HOSTILE)
    result = winnow(folder, "export", "letters", "--mlflow", "runs")
    assert result.returncode == 0, result.stderr
    client, run = read_mlflow(folder)
    assert run.info.run_name == "letters"
    assert run.data.params["selector"] == "ucb-e"
    assert run.data.params["stopping.delta"] == "0.05"
    assert run.data.tags["winnow.outcome"] == "undecided"
    assert run.data.tags["winnow.best"] == "a/<b>*x*[2J"
    assert "leading: a/\\<b\\>\\*x\\*" in run.data.tags["mlflow.note.content"]
    history = client.get_metric_history(run.info.run_id, "estimate")
    assert [(each.step, each.value) for each in history] == [(0, 0.25), (1, 0.75)]
    assert [each.value for each in client.get_metric_history(run.info.run_id, "comparisons")] == [3, 6]
    assert run.data.metrics["spent/comparisons"] == 6
    report = client.download_artifacts(run.info.run_id, "report.html")
    with open(report) as file:
        assert "<title>letters: undecided" in file.read()
    tables = {each.path for each in client.list_artifacts(run.info.run_id, "tables")}
    assert {"tables/leaderboard.csv", "tables/curve.csv", "tables/campaign.json"} <= tables

    campaign.finish(
        campaign.plan(2, [0], [3]), [1.0], best=0, estimates=[0.5, 0.4, None], lower=[0.1, 0.0, None],
        upper=[0.9, 0.8, None],
    )  # fmt: skip
    assert winnow(folder, "export", "letters", "--mlflow", "runs").returncode == 0
    client, again = read_mlflow(folder)
    assert again.info.run_id == run.info.run_id
    history = client.get_metric_history(run.info.run_id, "estimate")
    assert [(each.step, each.value) for each in history] == [(0, 0.25), (1, 0.75), (2, 0.5)]


def test_what_is_claimed_no_more_is_taken_back_from_a_run_of_mlflow(folder):
    campaign = scored_campaign(folder)
    proven = {"estimates": [0.25, 0.75, None], "lower": [0.2, 0.7, None], "upper": [0.3, 0.8, None]}
    claim = {"kind": "proven", "delta": 0.05, **NO_MORE}
    campaign.finish(
        campaign.plan(2, [1], [4]), [1.0], best=1, claim=claim, stop=True, reason="confident", **proven
    )
    assert winnow(folder, "export", "letters", "--mlflow", "runs").returncode == 0
    _, run = read_mlflow(folder)
    assert (run.info.status, run.data.metrics["final/delta"]) == ("FINISHED", 0.05)
    assert run.data.tags["winnow.claim"] == "proven"
    campaign.finish(campaign.plan(3, [0], [4]), [1.0], best=None, estimates=[None, None, None])
    assert winnow(folder, "export", "letters", "--mlflow", "runs").returncode == 0
    _, run = read_mlflow(folder)
    assert run.info.status == "RUNNING"
    assert math.isnan(run.data.metrics["final/delta"])
    assert math.isnan(run.data.metrics["final/estimate"])
    assert {"winnow.best", "winnow.outcome", "winnow.runner_up"}.isdisjoint(run.data.tags)
    assert "winnow.key" in run.data.tags


def test_several_winners_are_named_and_no_interval_is_taken_for_theirs(folder):
    campaign = scored_campaign(folder)
    tied = {"estimates": [0.75, 0.75, 0.25], "lower": [0.7, 0.7, 0.2], "upper": [0.8, 0.8, 0.3]}
    campaign.finish(
        campaign.plan(2, [1], [4]),
        [1.0],
        best=1,
        claim={"kind": "exact", "delta": None, **NO_MORE},
        stop=True,
        reason="confident",
        status=("tied", "tied", "eliminated"),
        **tied,
    )
    assert winnow(folder, "export", "letters", "--mlflow", "runs").returncode == 0
    _, run = read_mlflow(folder)
    assert run.data.tags["winnow.best"] == run.data.tags["winnow.tied"] == "b, a"
    assert run.data.metrics["final/estimate"] == 0.75
    assert "final/lower" not in run.data.metrics


def records(path):
    """The records of a file of W&B, which is a log as LevelDB writes them, as its own messages."""
    from wandb.proto.wandb_internal_pb2 import Record

    data, place, parts = path.read_bytes(), 7, []
    while place + 7 <= len(data):
        if 32_768 - place % 32_768 < 7:  # too little of a block is left for a header
            place += 32_768 - place % 32_768
            continue
        length, kind = struct.unpack_from("<HB", data, place + 4)
        parts.append(data[place + 7 : place + 7 + length])
        place += 7 + length
        if kind in (1, 4):  # whole, or the last part of one
            yield Record.FromString(b"".join(parts))
            parts = []


def test_mlflow_writes_through_no_link(folder):
    scored_campaign(folder)
    (folder / "elsewhere").mkdir()
    (folder / "mlruns").symlink_to("elsewhere")
    result = winnow(folder, "export", "letters", "--mlflow", "sqlite:///runs.db")
    assert result.returncode == 1
    assert one_message(result) == "mlruns is a link, and MLflow would write files to its target: remove it"
    assert list((folder / "elsewhere").iterdir()) == []


@pytest.mark.parametrize(
    "uri", ["sqlite:///runs.db?timeout=3", "sqlite+pysqlite:///runs.db", "sqlite:///./runs.db"]
)
def test_mlflow_deletes_no_file_that_a_journal_names(folder, uri):
    scored_campaign(folder)
    (folder / "runs.db").touch()
    (folder / "runs.db-journal").write_bytes(b"\0" * 512 + NAMES_A_FILE)
    result = winnow(folder, "export", "letters", "--mlflow", uri)
    assert "names another file, which SQLite would delete" in one_message(result)
    result = winnow(folder, "export", "letters", "--mlflow", "sqlite:///file:runs.db?uri=true")
    assert "write the file's plain path, such as sqlite:///mlflow.db" in one_message(result)


@pytest.mark.parametrize("uri", ["runs", "sqlite:///runs.db"])
def test_a_strangers_store_of_mlflow_writes_nothing_elsewhere(folder, uri, tmp_path_factory):
    from mlflow import MlflowClient

    scored_campaign(folder)
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    place = f"sqlite:///{folder}/runs.db" if uri != "runs" else (folder / "runs").as_uri()
    client = MlflowClient(tracking_uri=place)
    client.create_experiment("near", artifact_location=(folder / "files").as_uri())
    client.create_experiment("outside", artifact_location=elsewhere.as_uri())
    client.create_experiment("server", artifact_location="sftp://h/x")
    assert winnow(folder, "export", "letters", "--mlflow", uri, "--experiment", "near").returncode == 0
    for experiment in ("outside", "server"):
        result = winnow(folder, "export", "letters", "--mlflow", uri, "--experiment", experiment)
        assert "outside this folder; choose another --experiment" in one_message(result)
    assert list(elsewhere.iterdir()) == []
    if uri == "runs":
        (folder / "runs" / "models").symlink_to(elsewhere)
        result = winnow(folder, "export", "letters", "--mlflow", uri, "--experiment", "near")
        assert "is a link, and MLflow would write files to its target" in one_message(result)


def test_wandb_reads_back_what_was_written(folder, monkeypatch):
    scored_campaign(folder)
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state"))
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    (folder / "wandb").symlink_to(elsewhere)  # of whoever filled the folder
    result = winnow(folder, "export", "letters", "--wandb", "team/models")
    assert result.returncode == 0, result.stderr
    (file,) = (folder / "state" / "winnow").glob("*/wandb/offline-run-*/*.wandb")
    assert str(file.parent) in result.stdout
    assert list(elsewhere.iterdir()) == []
    found = list(records(file))
    (run,) = [each.run for each in found if each.WhichOneof("record_type") == "run"][:1]
    assert (run.display_name, run.project, run.entity) == ("letters", "models", "team")
    config = {each.key: json.loads(each.value_json) for each in run.config.update}
    assert (config["selector"], config["stopping.delta"]) == ("ucb-e", 0.05)
    steps = [
        {item.key or item.nested_key[0]: json.loads(item.value_json) for item in each.history.item}
        for each in found
        if each.WhichOneof("record_type") == "history"
    ]
    assert [(each["comparisons"], each["estimate"]) for each in steps[:2]] == [(3, 0.25), (6, 0.75)]
    summary = {
        item.key: json.loads(item.value_json)
        for each in found
        if each.WhichOneof("record_type") == "summary"
        for item in each.summary.update
    }
    assert summary["winnow.outcome"] == "undecided"
    assert summary["spent/comparisons"] == 6
    manifests = [each.request.log_artifact for each in found if each.request.HasField("log_artifact")]
    artifacts = [each.artifact for each in found if each.HasField("artifact")] + [
        m.artifact for m in manifests
    ]
    kept = {entry.path for each in artifacts for entry in each.manifest.contents}
    assert {"report.html", "leaderboard.csv"} <= kept


def test_an_export_to_nowhere_and_to_a_server_that_is_not_there_are_sentences(folder):
    store_campaign(scored_campaign(folder).database, "later")
    result = winnow(folder, "export", "letters")
    assert result.returncode == 2
    assert one_message(result) == "name a folder to write to, --mlflow URI or --wandb PROJECT"
    result = winnow(folder, "export", "later", "--mlflow", "nonsense:x")
    assert result.returncode == 1
    assert "check that the server runs" in one_message(result)


@pytest.mark.parametrize(
    ("uri", "said"),
    [
        (
            "sqlite:///winnow.db",
            "sqlite:///winnow.db is a Winnow database, where MLflow would create its own",
        ),
        ("sqlite:///notes.txt", "file is not a database"),
        ("oracle://me:secret@127.0.0.1/x", "check that the server runs"),
    ],
)
def test_a_database_that_is_none_for_mlflow_is_a_sentence_and_stays_as_it_is(folder, uri, said):
    scored_campaign(folder)
    (folder / "notes.txt").write_text("no database " * 100)
    tables, before = rows(folder, TABLES), (folder / "notes.txt").read_bytes()
    result = winnow(folder, "export", "letters", "--mlflow", uri)
    assert result.returncode == 1
    assert said in one_message(result)
    assert "secret" not in result.stderr
    assert (rows(folder, TABLES), (folder / "notes.txt").read_bytes()) == (tables, before)


def test_without_its_package_a_tracker_says_what_to_install(folder, monkeypatch):
    scored_campaign(folder)
    monkeypatch.setattr(
        "winnow.tasks.plugins.extras.find_spec", lambda name: None if name in ("mlflow", "wandb") else name
    )
    for option, extra in (("--mlflow", "mlflow"), ("--wandb", "wandb")):
        result = winnow(folder, "export", "letters", option, "x")
        assert result.returncode == 2
        assert f"pip install 'winnow-llm[{extra}]'" in result.stderr
