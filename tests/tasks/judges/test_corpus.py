"""Judges agree with verdicts that people decided by hand on outputs of chat models; see corpus/README.md.

Whoever changes a judge looks at the rows of `seen` alone. Of `unseen`, no more than counts is ever shown.
"""

import json
from importlib import import_module
from pathlib import Path

import pytest

from winnow.tasks.data.datasets import Selection, dataset_of
from winnow.tasks.judges.isolated import libraries
from winnow.tasks.judges.protocol import Sample
from winnow.tasks.judges.registry import create_judge

CORPUS = Path(__file__).parent / "corpus"
JUDGES = ("bleu", "choice", "code", "exact", "json-schema", "math", "numeric", "regex", "rouge")
LEAST_AGREEMENT = 0.98
FEWEST_ROWS = 60
ROUNDING = 1e-9


class InThisProcess:
    """Stands in for an `IsolatedJudge`: the verdicts are the same, and processes take seconds to import."""

    def __init__(self, build, params, **limits):
        module, _, name = build.partition(":")
        self.judge = getattr(import_module(module), name)(**params)


@pytest.fixture(autouse=True)
def no_process_for_a_library(monkeypatch):
    monkeypatch.setattr(libraries, "IsolatedJudge", InThisProcess)


def rows_of(half, name):
    return [json.loads(line) for line in (CORPUS / half / f"{name}.jsonl").read_text().splitlines()]


def targets_of(row):
    """The targets as a data set of this row has them."""
    read = dataset_of(
        [("row 1", {"input": "", "target": row["target"]})],
        {"target": "target"},
        Selection(),
        name="corpus",
        path="corpus.jsonl",
    )
    return read.examples[0].targets


def verdicts(name, rows):
    made = {}
    for row in rows:
        params = json.dumps(row["judge"])
        if params not in made:
            made[params] = create_judge(name, **row["judge"])
        sample = Sample(
            output=row["output"],
            targets=targets_of(row),
            has_forms=True,
            fields=row.get("fields", {}),
            prompt=row.get("prompt"),
        )
        yield made[params].judge(sample)


def agrees(row, verdict):
    wanted = row["score"]
    if verdict.score is None or not isinstance(wanted, list):
        return verdict.score == wanted
    return wanted[0] - ROUNDING <= verdict.score <= wanted[1] + ROUNDING


@pytest.mark.parametrize("name", JUDGES)
def test_a_judge_agrees_with_people(name):
    rows = rows_of("seen", name)
    missed = [
        f"{row['note']}: {row['output']!r} for {row['target']!r} is {found.score}, should be {row['score']}"
        for row, found in zip(rows, verdicts(name, rows), strict=True)
        if not agrees(row, found)
    ]
    assert len(rows) >= FEWEST_ROWS
    assert len(missed) <= (1 - LEAST_AGREEMENT) * len(rows), "\n".join(missed)


@pytest.mark.parametrize("name", JUDGES)
def test_a_judge_agrees_with_people_on_outputs_that_its_authors_did_not_see(name):
    rows = rows_of("unseen", name)
    agreed = sum(agrees(row, found) for row, found in zip(rows, verdicts(name, rows), strict=True))
    if agreed < LEAST_AGREEMENT * len(rows):
        pytest.fail(f"unseen: {agreed} of {len(rows)} agree", pytrace=False)
