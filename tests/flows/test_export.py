"""Exports: whole folders or none, every text as it was, in the shapes that other tools read."""

import csv
import json
import os
from itertools import product

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from campaigns import one_message, winnow
from hostile_texts import HOSTILE_TEXTS
from report_campaigns import certified_campaign, duelled_campaign, routed_campaign, scored_campaign
from stored_campaigns import NOW, generation, new_database, store_campaign

from winnow.flows.reports.export import exporting
from winnow.flows.reports.export.exporting import export, parts_of
from winnow.flows.reports.rows import formats
from winnow.flows.reports.rows.formats import FORMULA_STARTS
from winnow.flows.reports.rows.writer import write_file
from winnow.storage.engine.database import open_database
from winnow.storage.records import campaigns as campaign_records
from winnow.storage.records import generations as generation_records
from winnow.tasks.campaign.look import Look
from winnow.tasks.queries.views import answered_by, ask, kind_of

TEXTS = [*HOSTILE_TEXTS, "=1+1", '"', "NA"]


def untyped(_):
    """The kinds of columns, for formats that do not ask for them."""
    return {}


INSPECT_FIELDS = {
    "log": {"version", "status", "eval", "plan", "results", "stats", "samples"},
    "eval": {
        *("eval_id", "run_id", "created", "task", "task_id", "task_args", "dataset", "model", "model_args"),
        *("config", "packages", "metadata"),
    },
    "results": {"total_samples", "completed_samples", "scores", "metadata"},
    "scores": {"name", "scorer", "scored_samples", "unscored_samples", "metrics"},
    "sample": {
        *("id", "epoch", "uuid", "input", "target", "messages", "output", "events", "scores", "metadata"),
        *("completed_at", "model_usage", "total_time"),
    },
    "output": {"model", "choices", "completion", "usage", "time"},
    "score": {"value", "answer", "explanation", "reason", "metadata"},
    "event": {"event", "timestamp", "model", "input", "tools", "tool_choice", "config", "output"},
}
"""What a log may hold: fields of the models of inspect_ai 0.3.285, which read such a log back in full."""


def exported(folder, *arguments, name="letters"):
    result = winnow(folder, "export", name, "out", *arguments)
    assert result.returncode == 0, result.stderr
    return folder / "out"


def objects(path):
    with path.open(encoding="utf-8", newline="\n") as file:
        return [json.loads(line) for line in file]


@pytest.fixture
def scored(tmp_path):
    return scored_campaign(tmp_path)


@pytest.fixture
def hostile(tmp_path):
    """A campaign whose prompts and texts are all that a file format may stumble over."""
    campaign = store_campaign(new_database(tmp_path / "winnow.db"))
    pairs = list(product(range(3), range(5)))[: len(TEXTS)]
    round_ = campaign.plan(0, [arm for arm, _ in pairs], [example for _, example in pairs])
    made = [generation(f"letters-0-{i}", prompt=text, text=text) for i, text in enumerate(TEXTS)]
    with campaign.database.writing() as session:
        generation_records.add_generations(session, round_.id, made, NOW)
    campaign.finish(round_, [0.5] * len(TEXTS))
    return TEXTS


READERS = {
    "csv": lambda path: pd.read_csv(path, dtype="string", keep_default_na=False)["text"].tolist(),
    "jsonl": lambda path: [row["text"] for row in objects(path)],
    "parquet": lambda path: pd.read_parquet(path)["text"].tolist(),
}


@pytest.mark.parametrize("format_", READERS)
def test_every_text_is_read_back_as_it_was(hostile, tmp_path, format_):
    out = exported(tmp_path, "--format", format_, "--only", "comparisons")
    assert READERS[format_](out / f"comparisons.{format_}") == hostile


def test_python_itself_reads_csv_back_as_it_was(hostile, tmp_path):
    out = exported(tmp_path, "--only", "comparisons")
    before = csv.field_size_limit(10_000_000)
    try:
        with (out / "comparisons.csv").open(encoding="utf-8", newline="") as file:
            assert [row["prompt"] for row in csv.DictReader(file)] == hostile
    finally:
        csv.field_size_limit(before)


def test_no_reader_of_lines_ends_one_within_an_object(hostile, tmp_path):
    out = exported(tmp_path, "--format", "jsonl", "--only", "comparisons")
    lines = (out / "comparisons.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line)["text"] for line in lines] == hostile


def test_csv_for_spreadsheets_calculates_nothing_and_csv_for_programs_changes_nothing(tmp_path):
    rows = [{"text": text, "n": -1} for text in ("=1", "+1", "-1", "@A", "\t=1", "1=1", "")]
    write_file(tmp_path / "plain.csv", rows, untyped, "csv")
    write_file(tmp_path / "safe.csv", rows, untyped, "csv", spreadsheet=True)
    plain = pd.read_csv(tmp_path / "plain.csv", keep_default_na=False)
    safe = pd.read_csv(tmp_path / "safe.csv", keep_default_na=False, skiprows=1)
    assert plain["text"].tolist() == ["=1", "+1", "-1", "@A", "\t=1", "1=1", ""]
    assert safe["text"].tolist() == ["'=1", "'+1", "'-1", "'@A", "'\t'=1", "1=1", ""]
    assert safe["n"].tolist() == [-1] * 7


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_no_separator_makes_a_formula_of_a_part_of_a_text(tmp_path, separator):
    starts = ("=1", "+1", "-1", "@A", "＝1", '"=1', ' "=1"', "\n=1")
    rows = [{"=n": 1, "text": f'a{end}{start}"{end}b'} for end in ";\t|\r\n," for start in starts]
    write_file(tmp_path / "safe.csv", rows, untyped, "csv", spreadsheet=True)
    first, *others = (tmp_path / "safe.csv").read_text("utf-8").splitlines(keepends=True)
    assert first == "sep=,\n"
    cells = [cell for line in csv.reader(others, delimiter=separator) for cell in line]
    assert not [each for each in cells if each.strip().startswith(FORMULA_STARTS)]


def test_in_csv_a_missing_value_is_not_an_empty_text(tmp_path):
    row = {"none": None, "empty": "", "yes": True, "third": 1 / 3, "when": NOW}
    write_file(tmp_path / "row.csv", [row], untyped, "csv")
    assert (tmp_path / "row.csv").read_text("utf-8").splitlines()[1] == (
        f',"",true,0.3333333333333333,{NOW.isoformat()}'
    )


CAMPAIGNS = {
    "best-mean": scored_campaign,
    "best-duel": duelled_campaign,
    "certify": certified_campaign,
    "route": routed_campaign,
}


@pytest.mark.parametrize("objective", CAMPAIGNS)
def test_every_view_of_an_objective_is_exported_with_all_its_rows(tmp_path, objective):
    CAMPAIGNS[objective](tmp_path)
    name = "survivor" if objective == "certify" else "letters"
    url = next(tmp_path.rglob("*.db"))
    out = exported(tmp_path, "--format", "parquet", "--storage", f"sqlite:///{url}", name=name)
    database = open_database(f"sqlite:///{url}", read_only=True)
    with database.reading() as session:
        campaign = campaign_records.get_campaign(session, name)
        for view in answered_by(objective):
            rows = list(ask(Look(session, campaign), view))
            file = out / f"{view}.parquet"
            assert (pq.read_metadata(file).num_rows if rows else file.exists()) == len(rows)
            for column in rows[0] if rows else ():
                types = {type(row[column]) for row in rows} - {type(None)}
                assert kind_of(view, column) != "text" or types <= {str, list}, (view, column)
    database.close()
    assert (out / ("battles.parquet" if objective == "best-duel" else "inspect")).exists()
    assert json.loads((out / "campaign.json").read_text())["objective"] == objective


def test_columns_have_one_type_in_every_row_group_and_memory_holds_one_group(tmp_path, monkeypatch):
    monkeypatch.setattr(formats, "MOST_ROWS", 10)
    monkeypatch.setattr(formats, "MOST_CHARACTERS", 50)
    rows = [{"n": i, "late": "x" * (20 if i < 6 else 1) if i > 2 else None} for i in range(30)]
    kinds = {"n": "integer", "late": "text"}
    assert formats.write_parquet(tmp_path / "a.parquet", kinds, iter(rows)) == 30
    metadata = pq.read_metadata(tmp_path / "a.parquet")
    assert [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)] == [6, 10, 10, 4]
    table = pq.read_table(tmp_path / "a.parquet")
    assert (table.to_pylist(), table.schema.field("late").type) == (rows, pa.string())


def test_rows_are_written_as_they_are_read(tmp_path):
    """A writer that collected its rows first would ask for the last one before it wrote any."""
    path = tmp_path / "rows.jsonl"

    def rows():
        for number in range(20_000):
            yield {"n": number}
        (beside,) = tmp_path.glob(".rows.jsonl.*")  # which takes its place once it is whole
        assert beside.stat().st_size > 100_000
        assert not path.exists()

    assert write_file(path, rows(), untyped, "jsonl") == 20_000


def test_duels_become_battles_with_a_winner_each(tmp_path):
    duelled_campaign(tmp_path)
    battles = objects(exported(tmp_path) / "battles.jsonl")
    assert [(each["model_a"], each["model_b"], each["winner"]) for each in battles] == [
        ("a", "b", "model_a"),
        ("b", "a", "model_b"),
        ("a", "b", "tie"),
    ]
    assert battles[0] == {
        "question_id": "e0",
        "model_a": "a",
        "model_b": "b",
        "winner": "model_a",
        "judge": "llm",
        "conversation_a": [
            {"content": "p", "role": "user"},
            {"content": "text of letters-0-0-a", "role": "assistant"},
        ],
        "conversation_b": [
            {"content": "p", "role": "user"},
            {"content": "text of letters-0-0-b", "role": "assistant"},
        ],
        "turn": 1,
        "anony": True,
        "language": "unknown",
        "tstamp": NOW.timestamp(),
        "outcome": 1.0,
    }


def test_battles_in_parquet_have_the_types_that_lmarena_publishes(tmp_path):
    duelled_campaign(tmp_path)
    out = exported(tmp_path, "--format", "parquet", "--only", "battles")
    table = pq.read_table(out / "battles.parquet")
    types = {field.name: str(field.type) for field in table.schema}
    messages = "list<element: struct<content: string, role: string>>"
    assert types["conversation_a"] == types["conversation_b"] == messages
    assert (types["turn"], types["anony"], types["tstamp"]) == ("int64", "bool", "double")
    assert table["conversation_a"][0].as_py()[1]["content"] == "text of letters-0-0-a"


def logs(out):
    return [json.loads(path.read_text("utf-8")) for path in sorted((out / "inspect").iterdir())]


def test_each_candidate_has_a_log_with_the_fields_that_inspect_reads(scored, tmp_path):
    found = logs(exported(tmp_path))
    assert [log["eval"]["task_args"]["candidate"] for log in found] == ["a", "b", "c"]
    for log in found:
        assert log.keys() == INSPECT_FIELDS["log"]
        assert log["version"] == 2
        assert log["status"] == "success"
        assert log["eval"].keys() == INSPECT_FIELDS["eval"]
        assert log["results"].keys() == INSPECT_FIELDS["results"]
        assert log["results"]["scores"][0].keys() == INSPECT_FIELDS["scores"]
        assert log["results"]["total_samples"] == log["eval"]["dataset"]["samples"] == len(log["samples"])
        for sample in log["samples"]:
            assert sample.keys() == INSPECT_FIELDS["sample"]
            assert sample["output"].keys() == INSPECT_FIELDS["output"]
            assert sample["scores"]["exact"].keys() == INSPECT_FIELDS["score"]
            assert [event.keys() for event in sample["events"]] == [INSPECT_FIELDS["event"]]
    assert len({log["eval"]["eval_id"] for log in found}) == 3
    assert len({sample["uuid"] for log in found for sample in log["samples"]}) == 6


def test_a_log_holds_a_candidates_scores_texts_and_mean(scored, tmp_path):
    _, log, unscored = logs(exported(tmp_path, "--only", "inspect"))
    assert {sample["id"]: sample["scores"]["exact"]["value"] for sample in log["samples"]} == {
        "e0": 1.0,
        "e1": 0.5,
        "e2": 1.0,
    }
    assert log["results"]["scores"][0]["metrics"]["mean"]["value"] == pytest.approx(2.5 / 3)
    assert log["results"]["metadata"] == {"estimate": 0.75, "lower": 0.5, "upper": 1.0, "best": True}
    sample = log["samples"][0]
    assert (sample["input"], sample["target"]) == ("p", "x")
    assert sample["output"]["completion"] == sample["messages"][1]["content"] == "text of letters-0-2"
    score = unscored["samples"][0]["scores"]["exact"]
    assert (str(score["value"]), score["reason"]) == ("nan", "no_answer")
    assert unscored["results"]["scores"][0]["metrics"] == {}


def test_logs_are_named_as_inspect_looks_for_them(scored, tmp_path):
    names = sorted(os.listdir(exported(tmp_path, "--only", "inspect") / "inspect"))
    assert names[0].startswith("2026-01-02T03-04-05+00-00_letters-a_")
    assert all(name.count("_") == 2 and name.endswith(".json") for name in names)


def test_a_folder_with_files_is_left_as_it_is(scored, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    result = winnow(tmp_path, "export", "letters", "out")
    assert (result.returncode, one_message(result)) == (
        1,
        "out is not an empty folder; name a new one, or delete it first",
    )
    assert os.listdir(tmp_path / "out") == ["mine.txt"]


def test_an_empty_folder_is_filled(scored, tmp_path):
    (tmp_path / "out").mkdir()
    assert (exported(tmp_path) / "leaderboard.csv").exists()


def test_nothing_is_left_of_an_export_that_fails_half_way(scored, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(exporting, "write_logs", full)
    before = set(os.listdir(tmp_path))
    result = winnow(tmp_path, "export", "letters", "out")
    assert result.returncode == 1
    assert one_message(result).startswith("out: No space left on device; nothing was exported")
    assert {each for each in os.listdir(tmp_path) if "out" in each} == set()
    assert before <= set(os.listdir(tmp_path))


def test_the_same_campaign_exported_twice_gives_the_same_bytes(scored, tmp_path):
    with scored.database.reading() as session:
        for name in ("one", "two"):
            export(Look(session, scored.record), tmp_path / name, format_="csv")
    for path in filter(lambda each: each.is_file(), (tmp_path / "one").rglob("*")):
        assert path.read_bytes() == (tmp_path / "two" / path.relative_to(tmp_path / "one")).read_bytes()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["--only", "leaderbord"],
            "unknown part of a best-mean campaign 'leaderbord'; did you mean 'leaderboard'?",
        ),
        (["--only", "battles"], "unknown part of a best-mean campaign 'battles'"),
        (["--format", "jsonl", "--spreadsheet"], "--spreadsheet is for csv only: remove --spreadsheet or"),
    ],
)
def test_what_cannot_be_exported_is_refused_and_nothing_written(scored, tmp_path, arguments, said):
    result = winnow(tmp_path, "export", "letters", "out", *arguments)
    assert result.returncode == 2
    assert one_message(result).startswith(said)
    assert not (tmp_path / "out").exists()


def test_what_was_written_is_told_as_json_too(scored, tmp_path):
    result = winnow(tmp_path, "export", "letters", "out", "--json", "--only", "curve", "--only", "reuse")
    assert json.loads(result.stdout) == [
        {"name": "curve", "file": "curve.csv", "rows": 2, "note": ""},
        {"name": "reuse", "file": None, "rows": 0, "note": ""},
    ]
    assert sorted(os.listdir(tmp_path / "out")) == ["campaign.json", "curve.csv"]


def test_parts_of_duels_are_battles_and_those_of_scores_are_logs():
    assert parts_of("best-duel")[-1] == "battles"
    assert {parts_of(objective)[-1] for objective in ("best-mean", "certify", "route")} == {"inspect"}


def test_an_unknown_candidate_is_refused_with_the_nearest_one(scored, tmp_path):
    result = winnow(tmp_path, "query", "letters", "comparisons", "--candidate", "aa")
    assert (result.returncode, one_message(result)) == (
        2,
        "'letters' has no candidate 'aa'; did you mean 'a'? winnow show letters lists all 3",
    )
