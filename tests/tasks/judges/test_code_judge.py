# ruff: noqa: E501 -- a program is a line
"""The judge of programs: what is run of an output, what counts as a test, and what is refused."""

import re

import pytest

from winnow.tasks.errors import JudgeError
from winnow.tasks.judges.code.sandbox import Outcome
from winnow.tasks.judges.protocol import Sample
from winnow.tasks.judges.registry import create_judge, judge_code

HUMAN_EVAL = {
    "prompt": 'def add(x: int, y: int):\n    """Add two numbers x and y\n    >>> add(2, 3)\n    5\n    """\n',
    "test": "METADATA = {}\n\n\ndef check(candidate):\n    assert candidate(0, 1) == 1\n    assert candidate(7, 5) == 12\n",
    "entry_point": "add",
}  # fmt: skip
HUMAN_EVAL_JUDGE = {"tests": "{{ test }}", "entry_point": "{{ entry_point }}", "prefix": "{{ prompt }}"}


def verdict(output, written="", *, fields=None, targets=(), **params):
    judge = create_judge("code", **{"allow_code": True, "tests": "{{ tests }}", **params})
    return judge.judge(Sample(output=output, fields={"tests": written, **(fields or {})}, targets=targets))


def said(*args, **kwargs):
    found = verdict(*args, **kwargs)
    return (found.score, found.reason or found.answer)


@pytest.mark.parametrize(
    ("tests", "params", "found"),
    [
        ("assert add(1, 2) == 3\nassert add(0, 0) == 0", {}, (1.0, "passed 2 of 2 tests")),
        ("import math\nassert math.isclose(add(.1, .2), .3)", {}, (1.0, "passed 1 of 1 tests")),
        ("assert add(1, 2) == 3\nassert add(1, 1) == 3", {}, (0.0, "AssertionError, at 'assert add(1, 1) == 3'")),
        ("assert add(1, '') == 3", {}, (0.0, "TypeError: unsupported operand type(s) for +: 'int' and 'str', at \"assert add(1, '') == 3\"")),
        ("def test_a():\n    assert add(1, 1) == 2\ndef test_b(): assert add(1, 1) == 3", {"partial": True},
         (0.5, "passed 1 of 2 tests; AssertionError, at 'def test_b(): assert add(1, 1) == 3'")),
        ("assert add(1, 1) == 3\nassert add(1, 1) == 4\nassert add(1, 1) == 2", {"partial": True},
         (1 / 3, "passed 1 of 3 tests; AssertionError, at 'assert add(1, 1) == 3'")),
        ("x = add(1, '')\nassert x", {"partial": True}, (0.0, None)),
        ("from unittest import *\nclass T(TestCase):\n    def setUp(self): self.x = 1\n"
         "    def test_a(self): self.assertEqual(add(self.x, 1), 2)\n    def test_b(self):\n"
         "        with self.assertRaises(TypeError): add(1, '')\nif __name__ == '__main__': main()", {}, (1.0, "passed 2 of 2 tests")),
        ("import unittest\nclass T(unittest.TestCase):\n    def test_a(self): self.assertEqual(add(1, 1), 3)\nunittest.main()", {},
         (0.0, "AssertionError: 2 != 3, at 'def test_a(self): self.assertEqual(add(1, 1), 3)'")),
        ("def check(candidate): assert candidate(1, 2) == 3", {"entry_point": "add"}, (1.0, "passed 1 of 1 tests")),
        ("def check(f): assert f(1, 2) == 3\ncheck(add)", {"entry_point": "add"}, (1.0, "passed 1 of 1 tests")),
        ("assert candidate(1, 2) == 3", {"entry_point": "add"}, (1.0, "passed 1 of 1 tests")),
        ("assert candidate(1, 2) == 3", {"entry_point": "sub"}, (0.0, "the program defines no 'sub'")),
        ("def check(candidate): assert candidate(1, 2) == 3", {}, (None, "unreadable_target")),
        ("x = 1", {}, (None, "unreadable_target")),
        ("assert add(", {}, (None, "unreadable_target")),
        ("assert add(1, object())", {}, (None, "unreadable_target")),
        ("assert add(1, object())", {"same_process": True}, (0.0, None)),
        (" \n", {}, (None, "no_target")),
        ("assert add(1, 2) == 3", {"tests": "{{ unknown }}"}, (None, "unreadable_target")),
        ("x", {"tests": "assert {{ input }}"}, (None, "unreadable_target")),
    ],
)  # fmt: skip
def test_tests_are_assertions_functions_methods_and_humanevals_check(tests, params, found):
    score, told = said("def add(a, b):\n    return a + b", tests, **params)
    assert score == found[0]
    assert found[1] is None or told == found[1]


@pytest.mark.parametrize("same_process", [False, True])
def test_humaneval_goes_on_with_its_prompt(same_process):
    def scored(output):
        return said(output, fields=HUMAN_EVAL, same_process=same_process, **HUMAN_EVAL_JUDGE)

    assert scored("    return x + y\n") == (1.0, "passed 1 of 1 tests")
    assert scored("    return x - y\n") == (0.0, "AssertionError, at 'assert candidate(0, 1) == 1'")
    assert scored("Sure:\n```python\ndef add(x, y):\n    return x + y\n```")[0] == 1.0
    assert scored("return x + y") == (
        *(0.0,),
        "the program raised SyntaxError: 'return' outside function (program.py, line 6)",
    )


def test_targets_can_be_the_tests_one_a_line():
    targets = ["assert add(1, 2) == 3", "assert add(1, 1) == 2"]
    assert said("add = lambda a, b: a + b", targets=targets, tests="{{ target }}") == (
        1.0,
        "passed 2 of 2 tests",
    )


PROGRAM = """
import collections, decimal, fractions
class Stack:
    def __init__(self, items=()): self.items = list(items)
    def push(self, item): self.items.append(item); return self
    def __len__(self): return len(self.items)
    def __getitem__(self, at): return self.items[at]
    def __eq__(self, other): return self.items == other.items
    def __add__(self, other): return Stack(self.items + other.items)
    def __str__(self): return f"Stack of {len(self)}"
class Refused(ValueError): pass
LIMIT = 10
def same(x): return x
def counted(x): return collections.Counter(x)
def letters(x): yield from x
def sort(x): x.sort()
def refuse(): raise Refused("no")
def fail(): raise KeyError("key")
def when():
    import datetime
    return datetime.date(2026, 1, 1)
"""


CARRIED = [
    "for x in [None, True, 0, -1, 10**30, 1.5, float('inf'), 1j, '', 'é\\ud800', b'a', bytearray(b'b'), (1, [2]), {1, 2},\n"
    "          frozenset('a'), {(1, 2): [3]}, range(3), deque([1])]:\n    y = same(x)\n"
    "    if x != y or type(x) is not type(y): raise AssertionError(repr((x, y)))\nassert same(1) == 1",
    "assert same(float('nan')) != same(float('nan'))",
    "assert counted('aab') == {'a': 2, 'b': 1}",
    "assert list(letters('ab')) == ['a', 'b'] and next(letters('ab')) == 'a' and letters('') != []",
    "x = [2, 1]\nsort(x)\nassert x == [1, 2]",
    "s = Stack([1])\nassert len(s.push(2)) == 2 and s[1] == 2 and s.items == [1, 2] and str(s) == 'Stack of 2'",
    "assert Stack([1]) == Stack([1]) and Stack([1]) != Stack([2]) and Stack([1]) + Stack([2]) == Stack([1, 2])",
    "assert Stack([1]) != [1] and [Stack([1])] == [Stack([1])] and Stack([1]) in [3, Stack([1])]",
    "s = Stack()\ns.items = [5]\nassert s[0] == 5 and list(s) == [5]",
    "assert LIMIT == 10 and same(fractions.Fraction(1, 3)) == fractions.Fraction(1, 3) and decimal.Decimal('0.1') == same(decimal.Decimal('0.1'))",
    "try: refuse()\nexcept ValueError as e: x = str(e)\nassert x == 'no'",
    "try: fail()\nexcept KeyError as e: x = e\nassert x",
    "assert same(sorted)([2, 1]) == [1, 2]",
    "assert sorted([same(2), same(1)], key=abs) == [1, 2]",
]  # fmt: skip


def test_values_and_objects_come_over_as_tests_expect_them():
    tests = "\n".join(["import collections", "from collections import deque", *CARRIED])
    found = verdict(PROGRAM, tests)
    assert found.score == 1.0, found


@pytest.mark.parametrize(
    ("tests", "told"),
    [
        ("assert sorted([1, 2], key=same) and same(lambda: 1)", "the tests give the program a function"),
        ("assert when() == 3", "the tests compare a date of the program with a int"),
        ("try:\n    when() == 3\nexcept BaseException: pass\nassert True", "the tests compare a date"),
    ],
)
def test_what_takes_one_process_is_said_and_scores_nobody(tests, told):
    found = verdict(PROGRAM, tests)
    assert (found.score, found.reason) == (None, "unreadable_target")
    assert told in found.detail
    assert found.detail.endswith("which needs same_process: true")


def test_an_output_without_a_program_is_wrong_or_unscored_as_is_asked():
    found = verdict("", "assert True")
    assert (found.score, found.no_answer) == (0.0, True)
    assert verdict("", "assert True", no_answer="unscored").reason == "no_answer"


@pytest.mark.parametrize(
    ("params", "path", "sentence"),
    [
        ({}, "judge.allow_code", "runs programs that models write; to allow this, set allow_code: true"),
        ({"allow_code": False}, "judge.allow_code", "to allow this, set allow_code: true"),
        ({"allow_code": 1}, "judge.allow_code", "must be true or false, got 1"),
        ({"allow_code": True, "timeout": 0}, "judge.timeout", "must be at least 1, got 0"),
        ({"allow_code": True, "memory": 1}, "judge.memory", "must be at least 16, got 1"),
        ({"allow_code": True, "tests": "{{ tests"}, "judge.tests", "line 1 of the template"),
        ({"allow_code": True, "prefix": "{% set x = 1 %}"}, "judge.prefix", "is not allowed"),
        ({"allow_code": True, "test": "{{ t }}"}, "judge.test", "did you mean 'tests'?"),
    ],
)
def test_what_is_not_accepted_is_named_with_its_place_and_what_is(params, path, sentence):
    with pytest.raises(Exception, match=re.escape(sentence)) as caught:
        create_judge("code", **params)
    assert isinstance(caught.value, JudgeError) or caught.value.path == path
    assert caught.value.path == path


def test_the_interpreter_belongs_to_what_the_judge_is(monkeypatch):
    before = judge_code("code", allow_code=True)
    monkeypatch.setattr("winnow.tasks.judges.code.judge.python_version", lambda: "3.99.0")
    assert judge_code("code", allow_code=True) != before


@pytest.mark.parametrize("wrap", [lambda judge: judge, lambda judge: {"type": "all", "judges": [judge]}])
def test_programs_that_are_told_ahead_are_run_once_and_then(monkeypatch, wrap):
    params = wrap({"type": "code", "allow_code": True, "extract": "say (.*)"})
    judge = create_judge(params.pop("type"), **params)
    samples = [Sample(output=f"say x = {n % 2}", targets=["assert x == 1"]) for n in range(4)]
    samples.append(Sample(output="nothing", targets=["assert True"]))
    judge.ahead(samples)
    monkeypatch.setattr("winnow.tasks.judges.code.judge.run_task", lambda task: pytest.fail("it runs again"))
    assert [judge.judge(each).score for each in samples] == [0.0, 1.0, 0.0, 1.0, 0.0]
    with pytest.raises(pytest.fail.Exception, match="it runs again"):
        judge.judge(Sample(output="say x = 3", targets=["assert x == 1"]))


def test_what_a_sandbox_could_not_run_ahead_is_run_when_it_is_judged(monkeypatch):
    judge, sample = create_judge("code", allow_code=True), Sample(output="x = 1", targets=["assert x"])
    monkeypatch.setattr(
        "winnow.tasks.judges.code.judge.run_tasks",
        lambda tasks: {task: Outcome(broken="no process could be had") for task in tasks},
    )
    judge.ahead([sample])
    assert judge.judge(sample).score == 1.0
