"""Rows are the same, cell by cell, in whatever form they leave the database."""

import datetime as dt
import json

import pandas as pd
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from campaigns import winnow
from report_campaigns import certified_campaign, duelled_campaign, routed_campaign, scored_campaign

from winnow.flows.reports.export.exporting import export
from winnow.flows.reports.rows.writer import print_rows
from winnow.storage.engine.database import open_database
from winnow.storage.records import campaigns as campaign_records
from winnow.tasks.campaign.look import Look
from winnow.tasks.queries.frames import frame
from winnow.tasks.queries.views import answered_by, ask, cells, kind_of

CAMPAIGNS = {
    "best-mean": scored_campaign,
    "best-duel": duelled_campaign,
    "certify": certified_campaign,
    "route": routed_campaign,
}


@pytest.mark.parametrize("objective", CAMPAIGNS)
def test_query_export_and_frames_agree_cell_by_cell(tmp_path, objective):
    CAMPAIGNS[objective](tmp_path)
    name = "survivor" if objective == "certify" else "letters"
    storage = f"sqlite:///{next(tmp_path.rglob('*.db'))}"
    with open_database(storage, read_only=True).reading() as session:
        campaign = campaign_records.get_campaign(session, name)
        views = {
            view: list(cells(ask(Look(session, campaign), view), view)) for view in answered_by(objective)
        }
        for format_ in ("csv", "jsonl", "parquet"):
            folder = tmp_path / f"exported-{format_}"
            export(Look(session, campaign), folder, format_=format_)
            for view, expected in views.items():
                assert not expected or read(folder / f"{view}.{format_}", view) == expected, (view, format_)
    for view, expected in views.items():
        for format_ in ("csv", "json", "jsonl", "parquet"):
            file = tmp_path / f"{view}.{format_}"
            print_rows(expected, format_, file, view=view)
            if expected or format_ != "parquet":
                assert read(file, view) == expected, (view, format_)
        assert rows_of(frame(storage, name, view), view) == expected, view


def read(path, view):
    """The rows of a file, each cell of its column's kind."""
    if path.suffix == ".parquet":
        return pq.read_table(path).to_pylist()
    if path.suffix == ".json":
        return [typed(row, view) for row in json.loads(path.read_text("utf-8"))]
    if path.suffix == ".jsonl":
        return [typed(json.loads(line), view) for line in path.read_text("utf-8").split("\n") if line]
    if not path.stat().st_size:
        return []
    heading = pa_csv.open_csv(path).schema.names
    table = pa_csv.read_csv(
        path,
        parse_options=pa_csv.ParseOptions(newlines_in_values=True),
        convert_options=pa_csv.ConvertOptions(
            column_types=dict.fromkeys(heading, pa.string()),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,  # two quotes are an empty text, nothing is a missing value
        ),
    )
    return [typed(row, view) for row in table.to_pylist()]


def typed(row, view):
    """A row read from text, with every value of its column's kind."""
    return {name: READ[kind_of(view, name)](value) for name, value in row.items()}


def known(convert):
    """The same of a missing value, which stays missing."""
    return lambda value: None if value is None or (value == "" and convert is not str) else convert(value)


READ = {
    "integer": known(int),
    "real": known(float),
    "truth": known({"true": True, "false": False, True: True, False: False}.__getitem__),
    "time": known(dt.datetime.fromisoformat),
    "text": known(str),
}


def rows_of(made, view):
    """A frame's rows as Python's own values."""
    plain = {"integer": int, "real": float, "truth": bool, "time": pd.Timestamp.to_pydatetime, "text": str}
    return [
        {
            name: None if pd.isna(value) else plain[kind_of(view, name)](value)
            for name, value in zip(made.columns, row, strict=True)
        }
        for row in made.itertuples(index=False, name=None)
    ]


def test_what_a_statement_gives_is_the_same_in_every_format(tmp_path):
    scored_campaign(tmp_path)
    storage = f"sqlite:///{next(tmp_path.rglob('*.db'))}"
    statement = "SELECT 1 AS n, 0.1 AS x, 'a,\"b' AS s, '' AS empty, NULL AS gone, x'00ff' AS bytes"
    expected = {"n": 1, "x": 0.1, "s": 'a,"b', "empty": "", "gone": None, "bytes": "00ff"}
    for format_ in ("csv", "json", "jsonl", "parquet"):
        file = tmp_path / f"sql.{format_}"
        result = ["--format", format_, "--output", str(file), "--storage", storage]
        assert winnow(tmp_path, "query", "--sql", statement, *result).returncode == 0
    assert json.loads((tmp_path / "sql.json").read_text()) == [expected]
    assert json.loads((tmp_path / "sql.jsonl").read_text()) == expected
    assert pq.read_table(tmp_path / "sql.parquet").to_pylist() == [expected]
    assert (tmp_path / "sql.csv").read_text().splitlines() == [
        '"n","x","s","empty","gone","bytes"',
        '1,0.1,"a,""b","",,"00ff"',
    ]


def test_a_statement_that_finds_nothing_names_its_columns(tmp_path):
    scored_campaign(tmp_path)
    storage = f"sqlite:///{next(tmp_path.rglob('*.db'))}"
    nothing = ["query", "--sql", "SELECT 1 AS n, 'a' AS s WHERE 1 = 0", "--storage", storage]
    assert winnow(tmp_path, *nothing, "--format", "csv").stdout == '"n","s"\n'
    assert winnow(tmp_path, *nothing, "--format", "csv", "--columns", "s").stdout == '"s"\n'
    assert "unknown column 'x'" in winnow(tmp_path, *nothing, "--format", "csv", "--columns", "x").stderr
    file = tmp_path / "nothing.parquet"
    assert winnow(tmp_path, *nothing, "--format", "parquet", "--output", str(file)).returncode == 0
    assert pq.read_table(file).column_names == ["n", "s"]


def test_a_view_that_is_read_from_one_statement_names_its_columns_where_it_has_no_rows(tmp_path):
    scored_campaign(tmp_path)
    storage = f"sqlite:///{next(tmp_path.rglob('*.db'))}"
    asked = ["query", "letters", "judgments", "--storage", storage]
    first = winnow(tmp_path, *asked, "--format", "csv").stdout
    assert first.startswith('"round","position",')
    assert first.count("\n") == 1
    file = tmp_path / "nothing.parquet"
    assert winnow(tmp_path, *asked, "--format", "parquet", "--output", str(file)).returncode == 0
    schema = pq.read_table(file).schema
    assert schema.field("round").type == pa.int64()


def test_json_of_numbers_that_json_lacks_can_be_read(tmp_path):
    scored_campaign(tmp_path)
    storage = f"sqlite:///{next(tmp_path.rglob('*.db'))}"
    for format_ in ("json", "jsonl"):
        asked = ["query", "--sql", "SELECT 1e400 AS x, -1e400 AS y, 0.5 AS z", "--format", format_]
        result = winnow(tmp_path, *asked, "--storage", storage)
        found = json.loads(result.stdout, parse_constant=pytest.fail)
        assert found in ([row := {"x": "Infinity", "y": "-Infinity", "z": 0.5}], row)
