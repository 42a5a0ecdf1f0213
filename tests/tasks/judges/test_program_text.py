# ruff: noqa: E501 -- an output is a line
"""The judge of programs: which part of an output is the program."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from winnow.tasks.judges.code.inside.program_text import program_text
from winnow.tasks.judges.code.inside.source_names import names_of
from winnow.tasks.judges.code.inside.testing import wanted_of
from winnow.tasks.judges.protocol import Sample
from winnow.tasks.judges.registry import create_judge

ADD = "def add(a, b):\n    return a + b\n"
LESS = "def add(a, b):\n    return a - b\n"
HEAD = 'def add(a, b):\n    """Add."""\n'


def block(code, language="python", fence="```"):
    return f"{fence}{language}\n{code}{fence}\n"


RIGHT = {
    "used in a later block": block(ADD) + "Use it:\n" + block("print(add(2, 3))\n"),
    "used in two later blocks": block(ADD) + block("x = add(1, 2)\n") + block("y = add(x, 2)\n"),
    "used first": block("assert add(1, 2) == 3\n") + block(ADD),
    "used in a block that waits for input": block(ADD) + block("print(add(int(input()), 1))\n"),
    "used in a block without end": block(ADD) + block("while True: add(1, 2)\n"),
    "used in a block that exits": block(ADD) + block("import sys\nsys.exit(add(1, 2))\n"),
    "used by importing it from elsewhere": block(ADD) + block("from solution import add\nprint(add(1, 2))\n"),
    "tested first, by a package that is not there": block("import pytest\nfrom add import add\ndef test(): assert add(1, 1) == 2\n") + block(ADD),
    "what it prints": block(ADD) + "It prints:\n" + block("5\n", ""),
    "what it prints, as Python": block(ADD) + block("5\n"),
    "a sentence, as Python": block(ADD) + block("The result is 5\n"),
    "a session": block(ADD) + block(">>> add(2, 3)\n5\n"),
    "a shell, untold": block(ADD) + block("pip install black\nblack add.py\n", ""),
    "another language before": block("function add(a, b) { return a + b }\n", "js") + block(ADD),
    "another language after": block(ADD) + block("int add(int a, int b);\n", "c"),
    "a later version": block(LESS) + "Better:\n" + block(ADD),
    "a later version that was cut off": block(ADD) + "Better:\n```python\ndef add(a, b):\n    return (a",
    "a use that was cut off": block(ADD) + "```python\nprint(add(1,",
    "warned of": block(ADD) + "Note that the following would be **wrong**:\n" + block(LESS),
    "warned of by a heading": block(ADD) + "**Wrong:**\n\n" + block(LESS),
    "warned of by a command": block(ADD) + "Sums are easy. Don't do this:\n" + block(LESS),
    "warned of as a common mistake": block(ADD) + "A common mistake:\n" + block(LESS),
    "warned of by a comment": block(ADD) + "Compare:\n" + block("# wrong!\n" + LESS),
    "the other was warned of": block(LESS) + "The above does not work. Here's the right one:\n" + block(ADD),
    "the other does not work": block(LESS) + "That does not work for negative numbers, so we write:\n" + block(ADD),
    "all are warned of": "Wrong:\n" + block(LESS) + "Wrong:\n" + block(ADD),
    "a helper before": block("def plus(a, b): return a + b\n") + block("def add(a, b): return plus(a, b)\n") + block("add(1)\n"),
    "a helper after": block("def add(a, b): return plus(a, b)\n") + "with\n" + block("def plus(a, b): return a + b\n"),
    "a helper that is corrected": block("def plus(a, b): return a - b\n") + block("def add(a, b): return plus(a, b)\n") + block("def plus(a, b): return a + b\n"),
    "a helper's helper": block("ONE = 1\n") + block("def plus(a, b): return a + b * ONE\n") + block("def add(a, b): return plus(a, b)\n"),
    "an import of its own": block("import operator\n") + block("def add(a, b): return operator.add(a, b)\n") + block("add(1)\n"),
    "import *": block("from operator import *\n") + block("print('x')\n"),
    "import * for a helper": block("from operator import sub as less, neg\nfrom operator import *\n") + block("def add(a, b): return less(a, neg(b)) + abs(index(0))\n") + block("add(1)\n"),
    "a default value": block("def add(a, b, start=START): return a + b + start\n") + "where\n" + block("START = 0\n"),
    "a base class that comes later": block("class Adder(Base):\n    pass\n\ndef add(a, b): return Adder().plus(a, b)\n") + block("class Base:\n    def plus(self, a, b): return a + b\n"),
    "a class that continues": block("class Adder:\n    def __init__(self): self.start = 0\n") + "Then:\n" + block("    def plus(self, a, b): return a + b + self.start\n") + block("def add(a, b): return Adder().plus(a, b)\n"),
    "another name at first": block("def sum_of_two(a, b): return a + b\n") + block("add = sum_of_two\n"),
    "wrapped": block(ADD) + "Cached:\n" + block("from functools import lru_cache\nadd = lru_cache(None)(add)\n"),
    "either way": block("try:\n    from operator import add\nexcept ImportError:\n    add = None\n") + block("add(1)\n"),
    "assigned with a type": block("from typing import Callable\nadd: Callable = lambda a, b: a + b\n") + block("add(1)\n"),
    "assigned by a function": block("def make():\n    global add\n    add = lambda a, b: a + b\nmake()\n") + block("add(1)\n"),
    "assigned unseen": block("globals()['add'] = lambda a, b: a + b\n") + block("1 + 1\n"),
    "a skeleton before": block("def add(a, b):\n    ...\n") + "Now we fill it in.\n" + block(ADD),
    "a fragment before": block("for x in xs:\n    total += x\n") + block(ADD),
    "a fragment that returns": block("return a + b\n") + block(ADD),
    "only a block of text": block(ADD, "text"),
    "tag py": block(ADD, "py"),
    "tag Python3": block(ADD, "Python3"),
    "tag {.python}": block(ADD, "{.python}"),
    "tag with a blank before": block(ADD, " python"),
    "tag with a file": block(ADD, "python:add.py"),
    "tag with a title": block(ADD, 'python title="add.py"'),
    "tildes": block(ADD, "python", "~~~"),
    "four backticks": block(ADD, "python", "````"),
    "a fence behind a word": f"Sure: ```python\n{ADD}```",
    "closed behind the code": "```python\ndef add(a, b):\n    return a + b```\nDone.",
    "a fence that is not closed": f"```python\n{ADD}",
    "a fence that is not closed before another": f"```python\n{LESS}\nBetter:\n```python\n{ADD}```",
    "one line": "```python def add(a, b): return a + b```",
    "within backticks": "`def add(a, b): return a + b`",
    "two fences around it": f"```\n```python\n{ADD}```\n```\n",
    "in a document of Markdown": f"````markdown\n# Add\n```python\n{ADD}```\n````\n",
    "in a numbered list": "1. Write:\n\n   ```python\n   def add(a, b):\n       return a + b\n   ```\n\n2. Run:\n\n   ```bash\n   python add.py\n   ```",
    "behind a list marker": "- ```python\n  def add(a, b):\n      return a + b\n  ```",
    "in a quotation": "> ```python\n> def add(a, b):\n>     return a + b\n> ```",
    "indented deeper than its fence": "```python\n    def add(a, b):\n        return a + b\n```",
    "a fence within a docstring": block('def add(a, b):\n    """Add.\n\n    ```python\n    add(1, 2)\n    ```\n    """\n    return a + b\n'),
    "line ends of Windows": (block(ADD) + block("add(1)\n")).replace("\n", "\r\n"),
    "the prompt opened the fence": f"{ADD}```\n",
    "the prompt opened the fence, and more": f"{ADD}```\n\nIt prints:\n\n{block('5', '')}",
    "the prompt opened the fence, and a use": f"{ADD}```\nThat's all. Use:\n{block('add(1)')}",
    "the prompt opened the fence, and a later version": f"{LESS}```\nWait!\n{block(ADD)}",
    "no fence": ADD,
    "no fence around the program": f"{ADD}\nUse:\n{block('add(1)')}",
    "prose and no fence": f"Sure, here it is:\n\n{ADD}\nThat's it. It's simple.\n",
    "prose and indented code": "Like this:\n\n    def add(a, b):\n        return a + b\n\nThat's it.",
    "marks of MBPP": f"[BEGIN]\n{ADD}[DONE]\n",
    "the prompt ended in a mark of MBPP": f"{ADD}[DONE]\n\nYour code should pass these tests:\n\nassert f(1)\n[BEGIN]\ndef f(x): return x\n[DONE]",
    "marks of Llama": f"[PYTHON]\n{ADD}[/PYTHON]\n[TESTS]\nassert add(1, 2) == 3\n[/TESTS]",
    "prose between functions": "First:\n\ndef plus(a, b):\n    return a + b\n\nThen:\n\ndef add(a, b):\n    return plus(a, b)\n\nDone!\n",
    "a session that defines it": block(">>> def add(a, b):\n...     return a + b\n...\n>>> add(1, 2)\n3\n", "pycon"),
    "thoughts with another version": f"<think>\nMaybe\n{block(LESS)}</think>\n{ADD}",
    "NUL elsewhere": block("x = '\0'\n") + block(ADD),
    "half a character elsewhere": block("x = '\ud800'\n") + block(ADD),
    "a deep expression elsewhere": block(f"x = {'(' * 500}{')' * 500}\n") + block(ADD),
}  # fmt: skip


def run(output, prefix="", wanted=("add",)):
    namespace = {"__name__": "program"}
    exec(compile(prefix + program_text(output, prefix, set(wanted)), "program.py", "exec"), namespace)
    return namespace


@pytest.mark.parametrize("output", RIGHT.values(), ids=RIGHT.keys())
def test_the_program_is_what_defines_the_names_that_the_tests_use(output):
    assert run(output)["add"](2, 3) == 5


@pytest.mark.parametrize(
    "output",
    [
        "    return a + b\n",
        "    return a + b\n```\nDone.",
        "    return a + b\n\nThis adds two numbers.\n",
        "    return a + b\n\n\ndef main():\n    print(add(1",
        block("    return a + b\n"),
        block(ADD) + block("add(1)\n"),
        "Sure!\n" + block("from operator import add as plus\n" + ADD),
    ],
)
def test_an_output_may_go_on_with_its_prefix(output):
    assert run(output, HEAD)["add"](2, 3) == 5


def test_names_of_the_prefix_are_defined():
    output = block("def add(a: List, b):\n    return a + b\n") + block("add(1)\n")
    assert run(output, "from typing import List\n" + HEAD)["add"](2, 3) == 5


@pytest.mark.parametrize(
    ("output", "program"),
    [
        ("x = 1", "x = 1"),
        ("```python\n```", "```python\n```"),
        ("I cannot do that.", "I cannot do that."),
        (block("x = (\n"), "x = (\n"),
        (block("f(\n") + block("x = (\n"), "x = (\n"),
        (block("def add(a, b)\n  a + b\nend\n", "ruby"), "def add(a, b)\n  a + b\nend\n"),
        (block("def plus(): 1\n") + block("print(plus())\n"), "def plus(): 1\n\nprint(plus())\n"),
        (f"<think>\n{block(ADD)}</think>\nI do not know.", "I do not know."),
        (block("def add(a): missing\n") + block("add(1)\n"), "def add(a): missing\n"),
    ],
)
def test_where_no_block_defines_a_name_all_python_is_the_program(output, program):
    assert program_text(output, "", {"add"}).strip("\n") == program.strip("\n")


def test_two_names_may_stand_in_two_blocks():
    blocks = block("def a(): return 1\n") + block("def b(): return 2\n") + block("a(1)\n")
    found = run(blocks, wanted=("a", "b"))
    assert (found["a"](), found["b"]()) == (1, 2)
    later = block("def a(): return 1\ndef b(): return 1\n") + block("def b(): return 2\n")
    assert run(later, wanted=("a", "b"))["b"]() == 2


def test_without_names_the_last_block_is_the_program():
    assert program_text(block("x = 1\n") + block("y = 2\n"), "", set()) == "y = 2\n"


@pytest.mark.parametrize(
    ("tests", "entry_point", "wanted"),
    [
        ("assert add(1, 2) == 3", None, {"add"}),
        ("import math\nx = add(1, len('a'))\nassert math.isclose(x, sub(3, 1))", None, {"add", "sub"}),
        ("def check(f): assert f(1)\ncheck(f)", None, {"f"}),
        ("def check(candidate): assert candidate(1)", "add", {"add"}),
        ("assert candidate(1) == other(1)", "add", {"add", "other"}),
        ("assert candidate(1)", None, {"candidate"}),
        ("for c in Stack(): assert c", None, {"Stack"}),
        ("class T(C):\n    def test(self): assert [f(x) for x in (1, 2)]", None, {"C", "f"}),
    ],
)
def test_the_names_that_tests_want_are_those_that_they_do_not_bind(tests, entry_point, wanted):
    assert wanted_of(tests, entry_point) == wanted


def test_names_that_are_used_before_they_are_bound_are_needed():
    found = names_of(
        "import os\nx = y + 1\ny = 2\nf = g(f)\ndef h(): return k, os, x\nz += [i for i in x][0]\n"
    )
    assert found.needed == {"y", "g", "f", "k", "z"}
    assert found.at_once == {"y", "g", "f", "z"}
    assert found.defined == {"x", "y", "f", "h", "z"}
    assert found.imported == {"os"}


LINES = st.sampled_from(
    ["```", "```python", "~~~", "  ```", "def add(a, b):", "    return a + b", "add(1, 2)", "x = (", "Wrong:", "", ">>> add", "class A:", "    def f(self): pass", "`x`", "<think>", "</think>", "> ```py", "\0"]
)  # fmt: skip


@given(st.lists(LINES, max_size=12).map("\n".join), st.sampled_from(["", HEAD]))
def test_any_output_has_a_program(output, prefix):
    assert isinstance(program_text(output, prefix, {"add"}), str)


@pytest.mark.parametrize(
    "block_of",
    [
        "x = " + "(" * 5_000 + ")" * 5_000,
        "x = " + "-" * 200_000 + "1",
        "x" + ".x" * 100_000,
        "x = " + "[" * 90 + "f'{" * 5,
        "x = '\0'",
    ],
)  # fmt: skip
def test_hostile_text_ends_within_the_limits_of_the_sandbox(block_of):
    judge = create_judge("code", allow_code=True, timeout=3)
    output = block(block_of + "\n") + block(ADD)
    found = judge.judge(Sample(output=output, targets=["assert add(2, 3) == 5"]))
    assert found.score in (0.0, 1.0)


@pytest.mark.parametrize("same_process", [False, True])
@pytest.mark.parametrize(
    "rest", ["", "Example:\n" + block("print(add(2, 3))\n"), "It prints:\n" + block("5\n", "")]
)
def test_the_judge_runs_the_function_whatever_follows_it(rest, same_process):
    judge = create_judge("code", allow_code=True, same_process=same_process)
    output = "Here it is:\n" + block(ADD) + rest
    found = judge.judge(Sample(output=output, targets=["assert add(2, 3) == 5", "assert add(0, 0) == 0"]))
    assert (found.score, found.answer) == (1.0, "passed 2 of 2 tests")
