"""A file that holds something else than its suffix says is read, or the sentence says what it is."""

import gzip
import json

import pandas as pd
import pytest

from winnow.tasks.data.datasets import load_dataset
from winnow.tasks.errors import DatasetError

ROWS = [{"id": "a", "input": "x{}", "target": "y"}, {"id": "b", "input": "[]", "target": "z"}]
LINES = "".join(json.dumps(row) + "\n" for row in ROWS)
LIST = json.dumps(ROWS, indent=1)
CSV = 'id,"input",target\na,x{},y\nb,[],z\n'
FIELDS = {"id": "id", "input": "input", "target": "target"}


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write(name, content):
        content = content if isinstance(content, bytes) else content.encode()
        (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        return name

    return write


@pytest.mark.parametrize("suffix", [".json", ".jsonl", ".ndjson", ".json.gz", ".jsonl.gz", ".ndjson.gz"])
@pytest.mark.parametrize("content", [LINES, f"\ufeff{LINES}", f"\n{LINES}\n\n", LIST, f"\ufeff \n{LIST}\n"])
def test_json_is_read_as_the_list_or_the_lines_that_it_is(file, suffix, content):
    dataset = load_dataset(file(f"data{suffix}", content), FIELDS)
    assert [(each.key, each.fields["input"], each.targets) for each in dataset.examples] == [
        ("a", "x{}", ("y",)),
        ("b", "[]", ("z",)),
    ]


def parquet():
    return pd.DataFrame(ROWS).to_parquet()


LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n"
SHEET = "a spreadsheet or another zip archive"
OTHER = {
    "lines as csv": ("d.csv", LINES, "JSON lines", "rename it to d.jsonl"),
    "list as csv": ("d.csv.gz", LIST, "one JSON list", "rename it to d.json.gz"),
    "csv as json": ("d.json", CSV, "CSV", "rename it to d.csv"),
    "csv as jsonl": ("d.jsonl.gz", CSV, "CSV", "rename it to d.csv.gz"),
    "csv as parquet": ("d.parquet", CSV, "CSV", "rename it to d.csv"),
    "lines as parquet": ("d.parquet", LINES, "JSON lines", "rename it to d.jsonl"),
    "parquet as lines": ("d.jsonl", parquet(), "a Parquet file", "rename it to d.parquet"),
    "parquet as csv": ("d.csv", parquet(), "a Parquet file", "rename it to d.parquet"),
    "gzip": ("d.jsonl", gzip.compress(LINES.encode()), "compressed by gzip", "rename it to d.jsonl.gz"),
    "lines as text": ("d.txt", LINES, "JSON lines", "rename it to d.jsonl"),
    "no suffix": ("data", CSV, "CSV", "rename it to data.csv"),
    "sheet": ("d.xlsx", b"PK\3\4more", SHEET, "save its table as .csv"),
    "sheet as csv": ("d.csv", b"PK\3\4more", SHEET, "save its table as .csv"),
    "lfs": ("d.parquet", LFS, "a pointer of Git LFS", "fetch the file itself: git lfs pull"),
    "page": ("d.jsonl", "\n<!DOCTYPE html>", "a page of the web", "download the file itself"),
}


@pytest.mark.parametrize("name", OTHER)
def test_a_file_that_is_something_else_is_called_so(file, name):
    path, content, what, remedy = OTHER[name]
    with pytest.raises(DatasetError) as refused:
        load_dataset(file(path, content), FIELDS)
    assert refused.value.message == f"{path} is {what}, which does not match its suffix; {remedy}"


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("d.tsv", "id\tinput\n1\t2\n", "unknown suffix '.tsv'; did you mean '.csv'?"),
        ("d.json", '{"n": 1, "data": [1]}', "is one list of objects; save only the list 'data'"),
        ("d.jsonl", LIST[:-9], "d.jsonl, line 10: not JSON"),
        ("d.json", LINES[:-9], "d.json, line 2: not JSON"),
    ],
)
def test_a_file_that_is_damaged_is_told_of_as_what_it_is(file, name, content, sentence):
    with pytest.raises(DatasetError) as refused:
        load_dataset(file(name, content), FIELDS)
    assert sentence in str(refused.value)


@pytest.mark.parametrize("content", ["", "\n", "{}", "[", "nothing", '{"a": 1', "a;b\n1;2\n", "\xff"])
@pytest.mark.parametrize("suffix", [".json", ".jsonl", ".csv", ".parquet", ".txt", ".csv.gz", ".parquet.gz"])
def test_what_is_nothing_known_is_refused_in_a_sentence_all_the_same(file, suffix, content):
    with pytest.raises(DatasetError):
        load_dataset(file(f"d{suffix}", content), FIELDS)
