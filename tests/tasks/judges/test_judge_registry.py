"""Judges by name: what is refused, and how a package adds one."""

import re
import subprocess
import sys

import pytest

from winnow.tasks.errors import JudgeError
from winnow.tasks.judges.registry import create_judge, describe, judge_names

BUILT_IN = ("choice", "contains", "exact", "normalised", "numeric", "regex")
MODULE = '''
from winnow.tasks.judges.protocol import Verdict


class Length:
    """The output has a given length."""

    def __init__(self, limit: int, word: "str" = "x"):
        if limit < 0:
            raise ValueError(f"limit must not be negative, got {limit}")

    def judge(self, output, targets):
        return Verdict.scored(True, output) if output.isdigit() else Verdict.unscored("no_number")


def hidden(**anything):
    raise AssertionError("a built-in judge was replaced")
'''
ENTRIES = """
[winnow.judges]
acme-length = acme_judges:Length
acme-gone = acme_gone:Gone
exact = acme_judges:hidden
"""


@pytest.fixture
def acme(tmp_path, monkeypatch):
    (tmp_path / "acme_judges.py").write_text(MODULE)
    metadata = tmp_path / "acme_judges-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-judges\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(ENTRIES)
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("acme_judges", None)


@pytest.mark.parametrize(
    ("type", "params", "path", "sentence"),
    [
        ("exat", {}, "judge.type", "unknown judge 'exat'; did you mean 'exact'? available: choice,"),
        (
            "exact",
            {"stirp": True},
            "judge.stirp",
            "did you mean 'strip'? available: extract, no_answer, strip",
        ),
        ("numeric", {"tolerance": "x"}, "judge.tolerance", "must be a valid number, got 'x'"),
        ("numeric", {"tolerance": -1}, "judge.tolerance", "greater than or equal to 0, got -1"),
        ("numeric", {"relative": 1}, "judge.relative", "must be a valid boolean, got 1"),
        ("contains", {"match": "some"}, "judge.match", "must be 'any' or 'all', got 'some'"),
        ("choice", {"options": ["A", True]}, "judge.options[1]", "must be a valid string, got True"),
        ("choice", {"options": ["A", "a"]}, "judge", "options must be different and not empty"),
        ("regex", {}, "judge.pattern", "regex needs pattern (str); add it"),
        ("regex", {"pattern": "("}, "judge", "'(' is not a regular expression"),
        ("exact", {"extract": "("}, "judge.extract", "'(' is not a regular expression"),
        ("exact", {"extract": 3}, "judge.extract", "must be a valid string, got 3"),
        ("exact", {"no_answer": "zero"}, "judge.no_answer", "must be 'wrong' or 'unscored', got 'zero'"),
    ],
)
def test_what_is_not_accepted_is_named_with_its_place_and_what_is(type, params, path, sentence):
    with pytest.raises(JudgeError, match=re.escape(sentence)) as caught:
        create_judge(type, **params)
    assert caught.value.path == path


def test_every_built_in_judge_describes_itself():
    assert set(BUILT_IN) <= set(judge_names())
    for name in BUILT_IN:
        description = describe(name)
        assert description.summary.endswith(".")
        assert [each.name for each in description.parameters[-2:]] == ["extract", "no_answer"]
    tolerance = describe("numeric").parameters[0]
    assert (tolerance.name, tolerance.accepts, tolerance.default, tolerance.required) == (
        *("tolerance", "float", 0.0),
        False,
    )
    assert describe("regex").parameters[0].required


@pytest.mark.usefixtures("acme")
def test_a_package_adds_a_judge_and_its_parameters_are_checked_too():
    assert "acme-length" in judge_names()
    assert [parameter.name for parameter in describe("acme-length").parameters] == [
        "limit",
        "word",
        "extract",
        "no_answer",
    ]
    assert create_judge("acme-length", limit=3, extract=r"\d").judge("a1b2", ()).answer == "2"
    judged = create_judge("acme-length", limit=3).judge("two", ())
    assert (judged.score, judged.no_answer) == (0.0, True)
    with pytest.raises(JudgeError, match="valid integer, got 'x'"):
        create_judge("acme-length", limit="x")
    with pytest.raises(JudgeError, match="limit must not be negative, got -1"):
        create_judge("acme-length", limit=-1)


@pytest.mark.usefixtures("acme")
def test_a_package_cannot_replace_a_built_in_judge_and_a_broken_one_is_named():
    assert create_judge("exact").judge("a", ["a"]).score == 1.0
    with pytest.raises(JudgeError, match=r"'acme-gone' \(acme_gone:Gone\) cannot be used: ModuleNotF"):
        create_judge("acme-gone")


def test_naming_the_judges_imports_none_of_them():
    code = (
        "import sys; from winnow.tasks.judges.registry import judge_names; judge_names();"
        f"print([n for n in {BUILT_IN} if 'winnow.tasks.judges.' + n in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"
