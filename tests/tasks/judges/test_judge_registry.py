"""Judges by name: what is refused, and how a package adds one."""

import math
import os
import re
import subprocess
import sys
from functools import reduce

import pytest

from winnow.tasks.errors import JudgeError
from winnow.tasks.judges.protocol import Sample
from winnow.tasks.judges.registry import create_judge, create_pair_judge, describe, judge_names

BUILT_IN = (
    *(
        "all",
        "any",
        "best-of",
        "bleu",
        "choice",
        "chrf",
        "code",
        "contains",
        "exact",
        "f1",
        "json-schema",
        "llm",
        "math",
    ),
    *("normalised", "numeric", "python", "regex", "rouge", "similarity", "squad", "ter", "weighted"),
)
MODULES = {"combination", "isolated.json_schema", "isolated.rouge", "rules.numeric", "rules.regex"}
MODULE = '''
from winnow.tasks.judges.protocol import Verdict


class Length:
    """The output has a given length."""

    def __init__(self, limit: int, word: "str" = "x"):
        if limit < 0:
            raise ValueError(f"limit must not be negative, got {limit}")

    def judge(self, sample):
        said = sample.output
        return Verdict.scored(True, said) if said.isdigit() else Verdict.unscored("no_number")


def words(output, targets):
    return len(output.split()) == 1


def hidden(**anything):
    raise AssertionError("a built-in judge was replaced")
'''
ENTRIES = """
[winnow.judges]
acme-length = acme_judges:Length
acme-gone = acme_gone:Gone
acme-words = acme_judges:words
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


DEEP = reduce(lambda inner, _: {"properties": {"a": inner}}, range(300), {})
TANGLED = {
    "$ref": "#/$defs/0",
    "$defs": {
        **{
            str(i): {"allOf": [{"$ref": f"#/$defs/{i + 1}"}, {"$ref": f"#/$defs/{i + 1}"}]} for i in range(40)
        },
        "40": {},
    },
}


@pytest.mark.parametrize(
    ("type", "params", "path", "sentence"),
    [
        ("exat", {}, "judge.type", "unknown judge 'exat'; did you mean 'exact'? nearest: exact, "),
        ("accuracy", {}, "judge.type", "unknown judge 'accuracy'; did you mean 'exact'? nearest: "),
        ("llm-rubric", {}, "judge.type", "unknown judge 'llm-rubric'; did you mean 'llm'? nearest: "),
        ("no_such", {}, "judge.type", "; all: winnow judges"),
        (
            "exact",
            {"stirp": True},
            "judge.stirp",
            "did you mean 'strip'? available: extract, no_answer, strip",
        ),
        ("numeric", {"tolerance": "x"}, "judge.tolerance", "must be a number, got 'x'"),
        ("numeric", {"tolerance": -1}, "judge.tolerance", "must be at least 0, got -1"),
        ("numeric", {"relative": 1}, "judge.relative", "must be true or false, got 1"),
        ("contains", {"match": "some"}, "judge.match", "must be 'any' or 'all', got 'some'"),
        (
            "choice",
            {"options": ["A", True]},
            "judge.options[1]",
            "must be text, got True; put it in quotes; Y",
        ),
        ("choice", {"options": ["A", "a"]}, "judge", "options must be different and not empty"),
        ("regex", {}, "judge.pattern", "regex needs pattern; add it, for example pattern: "),
        ("regex", {"pattern": "("}, "judge", "'(' is not a regular expression"),
        (
            "json-schema",
            {"schema": {"type": "objec"}},
            "judge.schema",
            "is not a JSON schema: $.type: 'objec' is",
        ),
        (
            "json-schema",
            {"schema": {"pattern": "("}},
            "judge.schema",
            "is not a JSON schema: $.pattern: '(' is not",
        ),
        ("json-schema", {"schema": {"$ref": "#"}}, "judge.schema", "a $ref leads back to itself"),
        ("json-schema", {"schema": DEEP}, "judge.schema", "is nested too deeply"),
        ("json-schema", {"schema": TANGLED}, "judge.schema", "its $refs are followed more than 10000 times"),
        ("json-schema", {"schema": {"$ref": "#/$defs/a"}}, "judge.schema", "'/$defs/a' does not exist"),
        (
            "json-schema",
            {"schema": {"items": {"$ref": "http://h/s"}}},
            "judge.schema",
            "'http://h/s' points outside the schema",
        ),
        ("json-schema", {"schema": {"minimum": math.nan}}, "judge.schema", "is not JSON"),
        (
            "json-schema",
            {"schema": "s.json"},
            "judge.schema",
            "must be a mapping of keys to values, got 's.json'",
        ),
        ("json-schema", {"schema": [1]}, "judge.schema", "must be a mapping of keys to values, got [1]"),
        ("choice", {"options": "A,B"}, "judge.options", "must be a list, got 'A,B'"),
        ("all", {"judges": {"type": "exact"}}, "judge.judges", "must be a list, got {'type': 'exact'}"),
        ("math", {"target_format": "latex"}, "judge.target_format", "must be 'expression' or 'text'"),
        (
            "bleu",
            {"tokenize": "flores200"},
            "judge.tokenize",
            "must be '13a', 'char', 'intl', 'none' or 'zh'",
        ),
        ("chrf", {"word_order": -1}, "judge.word_order", "must be at least 0, got -1"),
        ("ter", {"normalised": True}, "judge.normalised", "did you mean 'normalized'?"),
        ("rouge", {"variant": "rouge9"}, "judge.variant", "must be 'rouge1', 'rouge2', 'rougeL' or"),
        ("f1", {"strip": True}, "judge.strip", "available: extract, no_answer"),
        ("similarity", {"model": "gone"}, "judge.model", "there is no checkpoint in 'gone'"),
        ("similarity", {"pooling": "max"}, "judge.pooling", "must be 'mean', 'cls' or 'last', got 'max'"),
        ("squad", {"strip": True}, "judge.strip", "available: extract, no_answer"),
        ("all", {"judges": []}, "judge.judges", "must have at least 1 entry, got []"),
        ("any", {"judges": [{"type": "exat"}]}, "judge.judges[0].type", "did you mean 'exact'?"),
        ("all", {"judges": [{"type": "exact"}, {"strip": 1}]}, "judge.judges[1].type", "must name a judge"),
        (
            "any",
            {"judges": [{"type": "all", "judges": [{"type": "numeric", "tolerance": -1}]}]},
            *("judge.judges[0].judges[0].tolerance", "must be at least 0, got -1"),
        ),
        ("weighted", {"judges": [{"type": "exact"}]}, "judge.weights", "weighted needs weights"),
        (
            "weighted",
            {"judges": [{"type": "exact"}], "weights": [1, 2]},
            *("judge.weights", "got 2 for 1 judges; set one for each judge"),
        ),
        (
            "weighted",
            {"judges": [{"type": "exact"}], "weights": [0]},
            "judge.weights",
            "one above 0, got [0.0]",
        ),
        (
            "python",
            {"path": "gone.py:f"},
            "judge.path",
            "there is no Python file 'gone.py'; give its path relative to",
        ),
        ("python", {"path": "judge.py"}, "judge.path", "must be FILE.py:FUNCTION, got 'judge.py'"),
        (
            "python",
            {"path": "a.py:f", "range": [1, 0]},
            "judge.range",
            "must be [low, high] with low below high",
        ),
        ("python", {"path": "a.py:f", "timeout": 0}, "judge.timeout", "greater than 0, got 0"),
        ("exact", {"extract": "("}, "judge.extract", "'(' is not a regular expression"),
        ("exact", {"extract": 3}, "judge.extract", "must be text, got 3"),
        ("exact", {"no_answer": "zero"}, "judge.no_answer", "must be 'wrong' or 'unscored', got 'zero'"),
    ],
)
def test_what_is_not_accepted_is_named_with_its_place_and_what_is(type, params, path, sentence):
    with pytest.raises(JudgeError, match=re.escape(sentence)) as caught:
        create_judge(type, **params)
    assert caught.value.path == path


def test_a_pipe_in_the_place_of_a_python_file_is_said_to_be_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe.py")
    with pytest.raises(JudgeError, match=r"'pipe\.py' cannot be read: it is a named pipe; write its output"):
        create_judge("python", path="pipe.py:f")


def test_every_built_in_judge_describes_itself():
    assert set(BUILT_IN) <= set(judge_names())
    for name in BUILT_IN:
        description = describe(name)
        assert description.summary.endswith(".")
        assert description.scale.unit
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
    assert (
        create_judge("acme-length", limit=3, extract=r"\d").judge(Sample(output="a1b2", targets=())).answer
        == "2"
    )
    judged = create_judge("acme-length", limit=3).judge(Sample(output="two", targets=()))
    assert (judged.score, judged.no_answer) == (0.0, True)
    with pytest.raises(JudgeError, match="whole number, got 'x'"):
        create_judge("acme-length", limit="x")
    with pytest.raises(JudgeError, match="limit must not be negative, got -1"):
        create_judge("acme-length", limit=-1)


@pytest.mark.usefixtures("acme")
def test_a_package_cannot_replace_a_built_in_judge_and_a_broken_one_is_named():
    assert create_judge("exact").judge(Sample(output="a", targets=["a"])).score == 1.0
    with pytest.raises(JudgeError, match=r"'acme-gone' \(acme_gone:Gone\) cannot be used: ModuleNotF"):
        create_judge("acme-gone")


@pytest.mark.usefixtures("acme")
def test_a_package_that_names_a_function_that_judges_is_told_what_to_name_instead():
    """Its output and targets would be taken for keys of the file."""
    with pytest.raises(JudgeError) as refused:
        create_judge("acme-words")
    assert str(refused.value) == (
        "judge.output: acme-words needs output; add it; or if acme_judges:words is a function that "
        "judges outputs, change the entry point to a class or function that creates a judge, because only "
        "@winnow.judge accepts functions that judge"
    )


def test_naming_the_judges_imports_none_of_them():
    code = (
        "import sys; from winnow.tasks.judges.registry import judge_names; judge_names();"
        f"print([n for n in {MODULES} if 'winnow.tasks.judges.' + n in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"


def test_a_judge_of_the_other_kind_says_which_campaigns_it_is_for():
    with pytest.raises(JudgeError, match="rules judges pairs of outputs, for objective best-duel"):
        create_judge("rules")
    with pytest.raises(JudgeError, match=r"write judge: \{type: rules, scorer: \{type: exact\}\}"):
        create_pair_judge("exact")


def test_a_missing_parameter_comes_with_its_choices():
    with pytest.raises(JudgeError, match=r"llm needs scale; add scale, one of: yes/no, 1\.\.5, 1\.\.10"):
        create_judge("llm", rubric="Right?")
