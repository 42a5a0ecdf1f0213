"""The verdicts of each version of each built-in judge, held for good.

A campaign that began with a version goes on with it alone. So a verdict that changes here needs a new
version: raise it in `tasks/spec/judge_tree.py`, and give it a table of its own in the place of the old one.
The verdicts of a version are never edited; more rows may be added.
"""

import json
import sys
from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

from tests.tasks.judges.rated import asked, rater, sample
from tests.tasks.pair_judges.scripted_judges import MODEL, duel
from winnow.tasks.judges.asking.calls import JudgeReply
from winnow.tasks.judges.isolated import libraries, similarity
from winnow.tasks.judges.protocol import Sample
from winnow.tasks.judges.registry import (
    create_judge,
    create_pair_judge,
    judge_code,
    pair_judge_code,
)
from winnow.tasks.spec.judge_tree import BUILT_IN

TABLES = Path(__file__).parent / "golden"
JUDGES = (
    *("acc", "acc_norm", "all", "any", "best-of", "bits_per_byte", "bleu", "byte_perplexity", "choice"),
    *(
        "chrf",
        "code",
        "contains",
        "exact",
        "exact_match",
        "f1",
        "greedy",
        "inspect",
        "json-schema",
        "lm-eval",
    ),
    *(
        "math",
        "normalised",
        "numeric",
        "python",
        "recorded",
        "regex",
        "reported",
        "rouge",
        "score",
        "similarity",
        "squad",
        "ter",
        "weighted",
        "word_perplexity",
    ),
)
CODE = {"python": {"path": "golden_function.py:score"}, "all": {"judges": []}, "any": {"judges": []}}
CODE["lm-eval"] = {"metric": "right", "process_results": "golden_task.py:process_results"}
CODE["weighted"] = CODE["best-of"] = CODE["all"]
"""Parameters of the judges whose code they name."""
OPTIONS = ("extract", "no_answer")


def table(name, version):
    path = TABLES / f"{name}-{version}.json"
    assert path.exists(), f"{name} has version {version} and no table of its verdicts: {path.name}"
    return json.loads(path.read_text())


class InThisProcess:
    """Stands in for an `IsolatedJudge`: the verdicts are the same, and processes take seconds to import."""

    def __init__(self, build, params, **limits):
        module, _, name = build.partition(":")
        self.judge = getattr(import_module(module), name)(**params)


@pytest.fixture(autouse=True)
def no_process_for_a_library(monkeypatch):
    for module in (libraries, similarity):
        monkeypatch.setattr(module, "IsolatedJudge", InThisProcess)


@cache
def made(name, params):
    """Once for all rows: some judges load a library or a model."""
    return create_judge(name, **json.loads(params))


def version(name):
    return judge_code(name, **CODE.get(name, {}))["version"]


@pytest.fixture(autouse=True)
def beside_the_function(monkeypatch):
    monkeypatch.chdir(Path(__file__).parent)


def verdict(name, row):
    judge = made(name, json.dumps(row["params"]))
    shown = ("choices", "loglikelihoods", "fields", "candidate", "reported")
    weighed = {key: row[key] for key in shown if key in row}
    found = judge.judge(Sample(output=row["output"], targets=row["targets"], **weighed))
    return [found.score, found.answer, found.reason]


def golden(name, row):
    """The library that works out bleu adds with `sum`, which rounds less since Python 3.12."""
    score, *rest = row["verdict"]
    if name == "bleu" and score is not None and sys.version_info >= (3, 12):
        score = pytest.approx(score, rel=1e-14)
    return [score, *rest]


@pytest.mark.parametrize("name", JUDGES)
def test_a_judge_gives_the_verdicts_of_its_version(name):
    rows = table(name, version(name))
    assert len(rows) >= 10
    for row in rows:
        assert verdict(name, row) == golden(name, row), f"raise the version of {name}: {row}"


@pytest.mark.parametrize("option", OPTIONS)
def test_an_option_of_all_judges_gives_the_verdicts_of_its_version(option):
    """With `no_answer` left out too: another default is another version."""
    rows = table(option, judge_code("exact", extract="x")["options"][option])
    assert len(rows) >= 5
    for row in rows:
        assert verdict(row["judge"], row) == row["verdict"], f"raise the version of {option}: {row}"


def played(row):
    """The outcome of a duel whose judge, if it is a model, replies as the row says, in both orders."""
    judge = create_pair_judge(row["type"], **row["params"])
    this = duel(*row["answers"], targets=row["targets"], seed=row["seed"])
    replies = {}
    while wanted := judge.calls(this, replies):
        replies |= {call: _reply(row["replies"][call.presentation_order]) for call in wanted}
    found = judge.told(replies).judge(this)
    return [found.score, found.reason]


def _reply(said):
    """A text, or a text and how it ended."""
    return JudgeReply(text=said) if isinstance(said, str) else JudgeReply(**said)


SCORES = "llm-score"
"""How the table of the model judge of single outputs is called: one of pairs has the judge's own name."""


def replying(replies):
    """By attempt."""
    return lambda call: JudgeReply(**replies[call.attempt])


def test_a_model_that_scores_gives_the_verdicts_of_its_version():
    rows = table(SCORES, version("llm"))
    assert len(rows) >= 10
    for row in rows:
        found, _ = asked(rater(**row["params"]), sample(row["output"]), replying(row["replies"]))
        assert [found.score, found.answer, found.reason] == row["verdict"], f"raise the version of llm: {row}"


GRADED = "inspect-graded"


def test_a_model_that_grades_gives_the_verdicts_of_its_version():
    rows = table(GRADED, version(GRADED))
    assert len(rows) >= 10
    for row in rows:
        judge = rater(GRADED, rubric=None, scale=None, read=None, **row["params"])
        found, _ = asked(judge, sample(row["output"]), replying(row["replies"]))
        assert [found.score, found.answer, found.reason] == row["verdict"], (
            f"raise the version of {GRADED}: {row}"
        )


@pytest.mark.parametrize("name", ["llm", "rules"])
def test_a_judge_of_pairs_gives_the_verdicts_of_its_version(name):
    rows = table(name, pair_judge_code(name)["version"])
    assert len(rows) >= 10
    for row in rows:
        given = row | ({"params": row["params"] | {"models": [MODEL]}} if name == "llm" else {})
        assert played(given) == row["verdict"], f"raise the version of {name}: {row}"


def test_every_built_in_judge_has_a_version():
    for name in JUDGES:
        assert version(name) >= 1
    assert {"no_answer"} == judge_code("exact")["options"].keys()
    assert {"no_answer", "extract"} == judge_code("exact", extract="x")["options"].keys()


def test_a_judge_of_pairs_by_rules_depends_on_its_scorers_code(monkeypatch):
    def identity():
        return create_pair_judge("rules", scorer={"type": "exact"}).identity

    before = identity()
    monkeypatch.setitem(BUILT_IN, "exact", replace(BUILT_IN["exact"], version=99))
    assert identity() != before


def test_tables_that_no_version_has_are_not_kept():
    known = {f"{name}-{version(name)}" for name in JUDGES}
    known |= {f"{SCORES}-{version('llm')}", f"{GRADED}-{version(GRADED)}"}
    known |= {f"{name}-{pair_judge_code(name)['version']}" for name in ("llm", "rules")}
    known |= {f"{name}-{code}" for name, code in judge_code("exact", extract="x")["options"].items()}
    assert {path.stem for path in TABLES.glob("*.json")} == known
