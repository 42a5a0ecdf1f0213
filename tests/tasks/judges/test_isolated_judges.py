"""What judges run in a process of their own: whatever it does, there is a verdict or a reason, in time."""

import json
import re
import sys
import time
from pathlib import Path

import psutil
import pytest

from winnow.tasks.errors import JudgeError
from winnow.tasks.judges.isolated import json_schema
from winnow.tasks.judges.protocol import Sample
from winnow.tasks.judges.registry import create_judge, judge_code

LONG = "word 1 " * 15_000  # 100 kB
POWER = "$9^{9^{9^{9^9}}}$"
SCHEMA = {"properties": {"a": {"pattern": "^(a+)+$"}}}
FUNCTION = """
import os, sys, time
from helper import FACTOR

def score(sample):
    return {
        "fine": lambda: FACTOR,
        "hang": lambda: time.sleep(1000),
        "spin": lambda: sum(iter(int, 1)),
        "die": lambda: os._exit(3),
        "exit": lambda: sys.exit(0),
        "nan": lambda: float("nan"),
        "text": lambda: "1",
        "none": lambda: None,
        "raise": lambda: {}["colour"],
        "huge": lambda: 10 ** 400,
        "seen": lambda: float(sample.prompt == "p" and sample.candidate == {"model": "m"}),
    }[sample.output]()

number = 7
"""


@pytest.fixture
def file(tmp_path):
    (tmp_path / "helper.py").write_text("FACTOR = 0.5\n")
    path = tmp_path / "mine.py"
    path.write_text(FUNCTION)
    return path


def said(judge, output, targets=("1",), **seen):
    verdict = judge.judge(Sample(output=output, targets=targets, **seen))
    return verdict.reason or verdict.score


@pytest.mark.parametrize(
    ("name", "params", "cases"),
    [
        ("math", {}, {"": 0.0, "\u202e\u2066$1$\ud800": 1.0, LONG: 1.0, POWER: "judge_limit", "$1$": 1.0}),
        ("json-schema", {"schema": SCHEMA},
         {"": 0.0, LONG: 0.0, "[" * 100_000: "judge_limit", '{"a": "' + "a" * 40 + '!"}': "judge_limit",
          '"\u202e\\ud800"': 1.0}),
        ("bleu", {}, {"": 0.0, "\u202e\ud800": 0.0, LONG: pytest.approx(0.0, abs=1e-4), "1": 1.0}),
        ("chrf", {}, {"": 0.0, "\u202e\ud800": 0.0, LONG: pytest.approx(0.0, abs=1e-3), "1": 1.0}),
        ("ter", {}, {"": 0.0, "\u202e\ud800": 0.0, "1": 1.0}),
        ("rouge", {}, {"": 0.0, "\u202e\ud800": 0.0, "1": 1.0}),
    ],
)  # fmt: skip
def test_hostile_outputs_end_in_a_verdict_or_in_a_reason(monkeypatch, name, params, cases):
    monkeypatch.setattr("winnow.tasks.judges.isolated.libraries.SECONDS", 1.0)
    judge = create_judge(name, **params)
    began = time.monotonic()
    found = {output: said(judge, output) for output in cases}
    assert found == cases
    assert time.monotonic() - began < 60.0


@pytest.mark.parametrize(
    ("schema", "wrong"),
    [
        ({"items": {"pattern": "^(a|aa)+$"}}, ["a" * 60 + "!"]),
        ({"patternProperties": {"^(a|aa)+$": False}}, {"a" * 60 + "!": 1}),
        ({"patternProperties": {"^(a|aa)+$": True}, "additionalProperties": False}, {"a" * 60 + "!": 1}),
        ({"patternProperties": {"^(a|aa)+$": True}, "unevaluatedProperties": False}, {"a" * 60 + "!": 1}),
        ({"propertyNames": {"pattern": "^(a|aa)+$"}}, {"a" * 60 + "!": 1}),
    ],
)
def test_patterns_of_a_schema_are_stopped_in_all_and_the_process_goes_on(monkeypatch, schema, wrong):
    monkeypatch.setattr(json_schema, "PATTERN_SECONDS", 0.05)
    search = re.search
    judge = json_schema.validator(schema)
    verdict = judge(Sample(output=json.dumps(wrong)))
    assert (verdict.score, verdict.reason) == (None, "judge_limit")
    assert verdict.detail == "the pattern '^(a|aa)+$' took over 0.05 s; simplify it"
    right = ["a" * 60] if isinstance(wrong, list) else {}
    assert judge(Sample(output=json.dumps(right))).score == 1.0
    assert re.search is search


def test_the_time_of_many_patterns_counts_together(monkeypatch):
    monkeypatch.setattr(json_schema, "PATTERN_SECONDS", 0.1)
    judge = json_schema.validator({"items": {"pattern": "^(a|aa)+$"}})
    texts = ["a" * 22 + "!"] * 10_000  # each some milliseconds
    assert judge(Sample(output=json.dumps(texts))).reason == "judge_limit"


@pytest.mark.parametrize("name", ["ter", "rouge"])
def test_what_takes_the_square_of_a_texts_length_is_stopped(monkeypatch, name):
    monkeypatch.setattr("winnow.tasks.judges.isolated.libraries.SECONDS", 0.5)
    words = " ".join(map(str, range(20_000)))
    assert said(create_judge(name), words, ["1 2 3 " * 7_000]) == "judge_limit"


def test_a_functions_every_way_to_fail_is_a_reason_and_the_next_output_is_judged(file):
    judge = create_judge("python", path=f"{file}:score", timeout=0.3)
    judge.try_out()
    outputs = ["hang", "spin", "die", "exit", "nan", "text", "none", "raise", "huge", "unknown"]
    found = {}
    for output in outputs:
        found[output] = said(judge, output)
        assert said(judge, "fine") in (0.5, "judge_failed")
    invalid = dict.fromkeys(["nan", "text", "none"], "invalid_score")
    failed = ["hang", "spin", "die", "exit", "raise", "huge", "unknown"]
    assert found == invalid | dict.fromkeys(failed, "judge_failed")
    detail = judge.judge(Sample(output="raise")).detail
    assert detail.startswith("the judge 'python' (mine:score) raised KeyError: 'colour' (mine.py, line ")
    assert "did not answer within 0.3 s" in judge.judge(Sample(output="hang")).detail


def test_a_number_that_rounding_puts_outside_of_its_range_is_the_bound(tmp_path):
    (tmp_path / "near.py").write_text("def score(sample):\n    return float(sample.output)\n")
    judge = create_judge("python", path=f"{tmp_path}/near.py:score", range=[-5, 5])
    assert [said(judge, each) for each in ("5.000000000000001", "-5.000000009")] == [1.0, 0.0]
    assert said(judge, "5.0000001") == "invalid_score"


def test_a_function_sees_the_whole_sample(file):
    judge = create_judge("python", path=f"{file}:score")
    assert said(judge, "seen", prompt="p", candidate={"model": "m"}) == 1.0
    assert said(judge, "seen", prompt="q", candidate={"model": "m"}) == 0.0


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        (
            "import nowhere_at_all\nfrom os import *",
            "raised ModuleNotFoundError",
        ),
        (
            "if not __name__:\n    def score(sample): pass",
            "raised AttributeError",
        ),
        ("score = 7", "raised TypeError: score is not a function"),
        ("import os\nscore = os._exit(3)", "ended its process: it ended with exit code 3"),
        ("def score(sample): pass\nraise SystemExit(0)", "raised SystemExit: 0 (mine.py, line 2)"),
    ],
)
def test_a_function_that_cannot_be_had_is_refused_in_a_sentence(file, code, sentence):
    file.write_text(code)
    with pytest.raises(JudgeError, match=r"correct .*mine\.py:score") as caught:
        create_judge("all", judges=[{"type": "python", "path": f"{file}:score"}]).try_out()
    assert sentence in caught.value.message


def test_a_function_is_known_by_its_file_and_by_what_it_imports(file):
    params = {"path": f"{file}:score"}
    before = judge_code("python", **params)
    assert set(before["files"]) == {"mine", "helper"}
    assert judge_code("all", judges=[{"type": "python", **params}])["judges"] == [before]
    (file.parent / "helper.py").write_text("FACTOR = 0.25\n")
    assert judge_code("python", **params) != before
    assert "helper" not in sys.modules


def test_code_that_changed_under_a_running_campaign_is_not_run(file):
    judge = create_judge("python", path=f"{file}:score", timeout=5.0)
    assert said(judge, "fine") == 0.5
    (file.parent / "helper.py").write_text("FACTOR = 0.25\n")
    assert said(judge, "die") == "judge_failed"  # its process is gone, and another one is started
    verdict = judge.judge(Sample(output="fine"))
    assert verdict.reason == "judge_failed"
    assert "was changed after the campaign started or resumed" in verdict.detail


def test_the_process_ends_with_its_judge(file):
    this, before = psutil.Process(), set(psutil.Process().children())
    judge = create_judge("python", path=f"{file}:score")
    said(judge, "fine")
    (mine,) = set(this.children()) - before
    del judge
    assert not mine.is_running()


def test_nothing_is_written_beside_a_users_file(file):
    said(create_judge("python", path=f"{file}:score"), "fine")
    assert {each.name for each in Path(file.parent).iterdir()} == {"mine.py", "helper.py"}
