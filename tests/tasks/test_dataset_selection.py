"""Several files, compressed ones too, are read row by row; filter, limit, sample and shuffle take rows."""

import gzip
import json
from itertools import islice

import pytest
from scipy.stats import binomtest

from winnow.tasks.data.dataset_files import read_files
from winnow.tasks.data.datasets import Selection, dataset_of
from winnow.tasks.data.sources import read_dataset
from winnow.tasks.errors import DatasetError, SpecError, TemplateError
from winnow.tasks.setup.load import check_campaign_file
from winnow.tasks.setup.open_campaign import open_campaign, reopen_campaign
from winnow.tasks.spec.sections.dataset import DatasetSpec

ROWS = [{"id": f"e{i}", "input": f"{i}?", "level": i % 3} for i in range(12)]


def lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


def keys(selection):
    rows = ((f"row {at}", row) for at, row in enumerate(ROWS))
    return [each.key for each in dataset_of(rows, {"id": "id"}, selection, name="rows", path="rows").examples]


@pytest.fixture
def shards(tmp_path, monkeypatch):
    """Three files in a folder, of three formats, one compressed."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "shards"
    folder.mkdir()
    (folder / "part-0.jsonl").write_text(lines(ROWS[:4]))
    with gzip.open(folder / "part-1.jsonl.gz", "wt") as file:
        file.write("\ufeff" + lines(ROWS[4:8]))
    (folder / "part-2.json").write_text(json.dumps(ROWS[8:]))
    return folder


@pytest.mark.parametrize(
    "path", ["shards/part-*", ["shards/part-0.jsonl", "shards/part-1.*", "shards/part-2.json"]]
)
def test_several_files_are_one_dataset_in_the_order_of_their_names(shards, path):
    spec = DatasetSpec.model_validate({"path": path, "fields": {"id": "id", "target": None}})
    dataset = read_dataset(spec)
    assert [each.key for each in dataset.examples] == [row["id"] for row in ROWS]
    (shards / "all.jsonl").write_text(lines(ROWS))
    whole = read_dataset(DatasetSpec.model_validate({**spec.model_dump(), "path": "shards/all.jsonl"}))
    assert dataset.fingerprint == whole.fingerprint
    assert dataset.name in ("shards", "part-0")


def test_rows_are_read_as_they_are_asked_for(shards):
    (shards / "part-1.jsonl.gz").write_bytes(b"no gzip")
    assert [row for _, row in islice(read_files(["shards/part-*"]), 4)] == ROWS[:4]


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("shards/none-*", "no file matches shards/none-*"),
        (["shards/part-0.jsonl", "shards/*.jsonl"], "shards/part-0.jsonl is named twice; name each file"),
        ("shards", "shards is a folder; name a file in it, or all files as shards/*.jsonl"),
        ("shards/x.parquet.gz", "unknown suffix '.parquet.gz'"),
        ("shards/cut.jsonl.gz", "shards/cut.jsonl.gz is not a complete gzip file"),
        (
            "shards/none.jsonl.gz",
            "is not compressed, although its suffix is .gz; rename it to shards/none.jsonl",
        ),
        (["shards/part-0.jsonl", "shards/odd.csv.gz"], "shards/odd.csv.gz, line 2: not UTF-8"),
        (["shards/part-0.jsonl", "shards/more.jsonl"], "0.jsonl, line 1 and shards/more.jsonl, line 1"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_read_is_named(shards, path, sentence):
    whole = (shards / "part-1.jsonl.gz").read_bytes()
    (shards / "cut.jsonl.gz").write_bytes(whole[: len(whole) - 9])
    (shards / "none.jsonl.gz").write_text("{}")
    (shards / "odd.csv.gz").write_bytes(gzip.compress(b"id,input\na,\xff\n"))
    (shards / "more.jsonl").write_text(lines(ROWS[:1]))
    spec = DatasetSpec.model_validate({"path": path, "fields": {"id": "id", "target": None}})
    with pytest.raises(DatasetError) as refused:
        read_dataset(spec)
    assert sentence in str(refused.value)


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [
        ("level == 2", ["e2", "e5", "e8", "e11"]),
        ("level and input.startswith('1')", ["e1", "e10", "e11"]),
        ("row.id in ['e3', 'e4'] or id | length > 2", ["e3", "e4", "e10", "e11"]),
        ("other is not defined and level < 1", ["e0", "e3", "e6", "e9"]),
    ],
)
def test_a_filter_leaves_rows_out_before_they_are_counted(expression, wanted):
    assert keys(Selection(filter=expression)) == wanted
    assert keys(Selection(filter=expression, limit=2)) == wanted[:2]


@pytest.mark.parametrize(
    ("expression", "sentence"),
    [
        ("level ==", "line 1 of the template: "),
        ("level }} {{ level", "line 1 of the template: "),
        ("level > 1 level", "there is text after the end of the expression"),
        ("other > 1", "row 0: the template failed: 'other' is undefined"),
        ("input > 1", "row 0: the template failed: '>' not supported"),
        ("range(3)", "range() is not allowed"),
        ("input.__class__", ".__class__ is not allowed"),
        ("level * 'x'", "* needs numbers on both sides"),
    ],
)
def test_a_filter_that_fails_is_one_sentence_at_its_key(expression, sentence):
    with pytest.raises(TemplateError) as refused:
        keys(Selection(filter=expression))
    assert str(refused.value).startswith("dataset.filter: ")
    assert sentence in str(refused.value)


def test_a_filter_that_leaves_nothing_is_refused():
    with pytest.raises(DatasetError, match=r"dataset\.filter: rows has no rows for which level > 5 is true"):
        keys(Selection(filter="level > 5"))


@pytest.mark.parametrize("selection", [Selection(shuffle=0), Selection(sample=(1, 0)), Selection()])
def test_an_id_that_cannot_be_stored_is_refused_before_anything_is_drawn_by_it(selection):
    rows = [("row 1", {"id": "fine", "input": "x"}), ("row 2", {"id": "\ud800", "input": "y"})]
    with pytest.raises(DatasetError, match=r"row 2: .* is half a character and cannot be stored"):
        dataset_of(rows, {"id": "id"}, selection, name="rows", path="rows")


def test_a_sample_keeps_the_order_of_the_rows_and_a_shuffle_changes_it():
    drawn = keys(Selection(sample=(5, 0)))
    assert len(drawn) == 5
    assert drawn == sorted(drawn, key=lambda key: int(key[1:]))
    assert drawn != keys(Selection(sample=(5, 1)))
    shuffled = keys(Selection(sample=(5, 0), shuffle=3))
    assert sorted(shuffled) == sorted(drawn)
    assert shuffled != drawn
    assert sorted(keys(Selection(shuffle=3))) == sorted(row["id"] for row in ROWS)
    assert keys(Selection(sample=(99, 0))) == [row["id"] for row in ROWS]
    assert set(keys(Selection(limit=6, sample=(4, 0)))) < {row["id"] for row in ROWS[:6]}


def test_every_row_is_drawn_as_often_as_any_other():
    # 400 seeds, each row in a third of the samples; 12 two-sided tests at 1e-4 each: false alarm below 0.2%.
    counts = dict.fromkeys((row["id"] for row in ROWS), 0)
    for seed in range(400):
        for key in keys(Selection(sample=(4, seed))):
            counts[key] += 1
    assert sum(counts.values()) == 1600
    assert all(binomtest(count, 400, 1 / 3).pvalue > 1e-4 for count in counts.values())


SETTINGS = "dataset={path: [letters.jsonl], fields: {id: id}, filter: id != 'e0', sample: 3, shuffle: 4}"


def test_a_campaign_keeps_its_sample_and_goes_on_without_its_file(campaign_file, database, folder):
    checked = check_campaign_file(campaign_file(), [SETTINGS])
    stored = open_campaign(database, checked)
    assert stored.spec["dataset"]["sample"] == {"n": 3, "seed": 0}
    assert stored.spec["dataset"]["shuffle"] == 4
    (folder / "letters.jsonl").unlink()
    _, again = reopen_campaign(database, "letters", "sqlite:///results.db")
    assert again.dataset.examples == checked.dataset.examples
    assert "e0" not in {each.key for each in again.dataset.examples}


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("dataset={}", "give exactly one of path (files) and hub"),
        ("dataset={path: a.jsonl, hub: b/c}", "give exactly one of path (files) and hub"),
        ("dataset.split=test", "split is only for hub; remove split"),
        ("dataset.path=[]", "must be a file, a pattern such as shards/*.parquet, or a list of these"),
        ("dataset.sample=0", "dataset.sample.n: must be at least 1"),
        ("dataset.sample={m: 3}", "dataset.sample.m: unknown key"),
        ("dataset.shuffle=true", "dataset.shuffle: must be a whole number"),
        ("dataset.filter=level == 3", "dataset.filter: letters.jsonl, line 1: the template failed: 'level'"),
    ],
)
def test_bad_settings_end_in_one_sentence(campaign_file, setting, sentence):
    with pytest.raises(SpecError) as refused:
        check_campaign_file(campaign_file(), [setting])
    assert sentence in str(refused.value)
