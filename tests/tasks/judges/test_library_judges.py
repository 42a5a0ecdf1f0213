"""Judges by libraries say what the library says when it is called directly, mapped to [0, 1]."""

import json
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from winnow.tasks.errors import JudgeError
from winnow.tasks.judges.registry import create_judge, describe, judge_code

HERE = Path(__file__).parent
BY_LIBRARIES = ("bleu", "chrf", "json-schema", "math", "rouge", "ter")
REFERENCE = "the cat sat on the mat"
SETTINGS = [
    ("rouge", "the cat sat on a mat", {"variant": "rouge1"}),
    ("rouge", "the cat sat on a mat", {"variant": "rouge2"}),
    ("rouge", "on the mat\nthe cat sat", {"variant": "rougeLsum"}),
    ("ter", "The cat sat on the mat", {"case_sensitive": True}),
    ("ter", "the cat sat on the mat.", {"normalized": True}),
    ("chrf", "the cat", {"char_order": 3, "beta": 1}),
    ("bleu", "the cat", {"tokenize": "char"}),
]


def said(rows):
    """What the code of judges says of rows, and what their libraries say."""
    command = [sys.executable, str(HERE / "direct_calls.py")]
    ended = subprocess.run(command, input=json.dumps(rows), capture_output=True, text=True, check=True)
    return json.loads(ended.stdout)


def rows_of(name):
    """The rows of its table of verdicts whose output the library itself is asked about."""
    rows = json.loads((HERE / "golden" / f"{name}-1.json").read_text())
    known = [row for row in rows if row["verdict"][2] not in ("no_target", "unreadable_target")]
    known = [row for row in known if "extract" not in row["params"] and "NaN" not in row["output"]]
    assert len(known) >= 10
    for row in known:
        row["params"].pop("no_answer", None)
    return [[name, row["output"], row["targets"], row["params"]] for row in known]


def test_a_judge_says_what_its_library_says():
    rows = [row for name in BY_LIBRARIES for row in rows_of(name)]
    rows += [[name, output, [REFERENCE], params] for name, output, params in SETTINGS]
    for row, (judge, library) in zip(rows, said(rows), strict=True):
        assert judge == pytest.approx(library, abs=1e-12), row


@pytest.mark.parametrize("name", BY_LIBRARIES)
def test_a_library_that_is_missing_is_named_with_the_extra_that_brings_it(monkeypatch, name):
    def version(distribution):
        raise metadata.PackageNotFoundError(distribution)

    monkeypatch.setattr("winnow.tasks.judges.isolated.libraries.version", version)
    params = {"schema": {}} if name == "json-schema" else {}
    with pytest.raises(
        JudgeError, match=r"is not installed; run: pip install 'winnow-llm\[judges\]'"
    ) as caught:
        create_judge(name, **params)
    assert caught.value.path == "judge.type"


def test_the_version_of_a_library_is_part_of_what_the_judge_is(monkeypatch):
    before = judge_code("bleu")
    assert before["libraries"] == {"sacrebleu": metadata.version("sacrebleu")}
    monkeypatch.setattr("winnow.tasks.judges.isolated.libraries.version", lambda name: "0")
    assert judge_code("bleu") != before


@pytest.mark.parametrize(
    ("name", "value", "score"),
    [
        *[("bleu", 34.5, 0.345), ("chrf", 100.00000000000004, 1.0), ("ter", 0.0, 1.0), ("ter", 43.0, 0.57)],
        *[("ter", 100.0, 0.0), ("ter", 250.0, 0.0), ("rouge", 0.25, 0.25), ("f1", 1.0, 1.0)],
    ],
)
def test_native_values_are_mapped_to_the_unit_interval(name, value, score):
    assert describe(name).scale.score(value) == pytest.approx(score, abs=1e-12)
