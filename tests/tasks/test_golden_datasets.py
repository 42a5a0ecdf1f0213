"""Data sets of every format and kind of column keep their keys, fields and fingerprints, bit for bit.

Stored texts are found by the fields that prompts were written from, labels and histories by keys, and stored
campaigns by fingerprints. `golden_datasets/expected.json` is what the first release read from each of them.
"""

import json
from pathlib import Path

import pytest

from winnow.tasks.data.sources import read_dataset, read_solved
from winnow.tasks.spec.sections.dataset import DatasetSpec, FieldNames, SolvedSpec

FOLDER = Path(__file__).parent / "golden_datasets"
ANSWERS = {"id": "id", "input": "question", "target": "answer"}
NONE = {"target": None}
SENTENCES = {"input": "sentence", "target": "label"}
SPECS = {
    "objects": {"path": "objects.jsonl", "fields": ANSWERS},
    "without-ids": {"path": "without-ids.jsonl", "fields": {**ANSWERS, "id": None}},
    "without-targets": {"path": "without-ids.jsonl", "fields": {"input": "question", "target": None}},
    "drawn": {"path": "without-ids.jsonl", "fields": {**ANSWERS, "id": None}, "sample": 4, "shuffle": 2},
    "list": {"path": "list.json", "fields": ANSWERS},
    "cells": {"path": "cells.csv", "fields": ANSWERS},
    "dotted-column": {"path": "cells.csv", "fields": {**ANSWERS, "target": "answers.text"}},
    "cells-without-ids": {"path": "cells.csv.gz", "fields": {"input": "question"}},
    "compressed": {"path": "lines.jsonl.gz", "fields": ANSWERS, "filter": "level > 0", "limit": 2},
    "typed": {"path": "typed.parquet", "fields": ANSWERS},
    "typed-without-ids": {"path": "typed.parquet", "fields": {"input": "question", "target": "large"}},
    "shards": {"path": "shards/part-*", "fields": {"id": "id"}, "filter": "group.name != 'b'", "sample": 5},
    "hub": {"hub": "hub", "split": "train", "fields": {"input": "question", "target": "score"}},
    "hub-test": {"hub": "hub", "split": "test", "fields": {"id": "question", "input": "context", **NONE}},
    "hub-lines": {"hub": "hub-lines"},
    "saved": {"hub": "saved", "fields": {"id": "idx", **SENTENCES}},
    "saved-without-ids": {"hub": "saved", "fields": SENTENCES, "shuffle": 0},
}  # fmt: skip


def content(dataset):
    """What stored data rest on, as JSON, in which 5 and 5.0 differ, 1 and true, and two orders of columns."""
    examples = [
        {"key": each.key, "fields": dict(each.fields), "targets": each.targets} for each in dataset.examples
    ]
    return {"fingerprint": dataset.fingerprint, "examples": examples}


def spelled(value):
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"


@pytest.fixture(scope="module")
def expected():
    return json.loads((FOLDER / "expected.json").read_text("utf-8"))


@pytest.mark.parametrize("name", SPECS)
def test_what_could_be_stored_is_read_as_ever(name, expected, monkeypatch):
    monkeypatch.chdir(FOLDER)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    found = content(read_dataset(DatasetSpec.model_validate(SPECS[name])))
    assert spelled(found) == spelled(expected[name])


def test_solved_examples_are_read_as_ever(expected, monkeypatch):
    monkeypatch.chdir(FOLDER)
    spec = SolvedSpec.model_validate({"path": "objects.jsonl", "filter": "level > 0"})
    found = content(read_solved(spec, FieldNames.model_validate(ANSWERS), is_allowed=False))
    assert spelled(found) == spelled(expected["solved"])
