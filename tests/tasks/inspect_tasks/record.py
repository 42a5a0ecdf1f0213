"""What Inspect makes of the tasks here, and how it scores; kept in expected.json.

cd tests/tasks/inspect_tasks && PYTHON record.py, with an interpreter that has inspect-ai 0.3.285.
"""

import asyncio
import hashlib
import itertools
import json
import os
import runpy
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
CHILD = HERE.parents[2] / "tasks" / "harness" / "inspect" / "child.py"
NAMES = """
    plain templates turns choices several graded graded_otherwise words own_solver tools critique epochs files
    fails missing
""".split()  # noqa: SIM905
RUN = NAMES[:8]
"""Those that Winnow runs as well."""

GRADED = ("graded", "graded_otherwise")

SAID = [
    *("11", "ANSWER: 25", "It is {braces}", "ja.", "The answer is 4", "5", "ANSWER: A", "ANSWER: B, C"),
    *("answer: (c).", "**ANSWER: A**", "A", "ANSWER: A and B and C", "ANSWER: D.", "", "is ja"),
]
GRADES = [
    *(
        "GRADE: C",
        "GRADE: I",
        "grade : p",
        "Correct. GRADE:\u200b Correct!",
        "GRADE: C ... GRADE: I",
        "C",
        "",
    ),
    *(
        "downgrade: C",
        "GRADE: CI",
        "GRADE: X",
        "GRADE: $C",
        "SCORE: 0.25",
        "SCORE: yes",
        "SCORE: C",
        "SCORE: 7",
    ),
    *("SCORE: maybe", "GRADE: partial", "GRADE: C\nGRADE:", "SCORE: nan"),
]

OUTPUTS = [
    *(
        "",
        " ",
        "a",
        "The answer is A.",
        "11",
        "$11.00",
        "it is 1,234.5!",
        "so 1.234,5",
        "11 or 12",
        "(42)",
        "~42",
    ),
    *(
        "42%",
        "-4",
        "−4",
        "4²",
        "2½",
        "½",
        "Ⅻ",
        "十二",
        "三万五千",
        "二〇二五",
        "１２",
        "1e3",
        "1e",
        "1_000",
        "nan",
        "inf",
    ),
    *(
        "**12**",
        "\\$20",
        "20 dollars",
        "Answer: yes",
        "ANSWER: Yes.",
        "ANSWER: b) no",
        "ANSWER: b\nANSWER: c",
    ),
    *(
        "straße",
        "STRASSE",
        "İ",
        "the cat",
        "cat",
        "a the",
        "3.14.",
        "x-y z",
        "Éx\u00a0ß",
        "\u2028a",
        "1 234",
        "1'234",
    ),
    *(
        "−½²",
        "٣٫٥",
        "12.0",
        "12.",
        "12,",
        "10³",
        "二点五",
        "负三",
        "2½½",
        "--5",
        "+ 7",
        "5e-1",
        ".5",
        "!?",
        "ab12",
    ),
]
TARGETS = [
    *(
        ["11"],
        ["42"],
        ["12", "A"],
        ["yes"],
        ["b"],
        ["c", "b"],
        ["1234.5"],
        ["-4"],
        ["2.5"],
        ["strasse"],
        ["cat"],
    ),
    *(
        ["the"],
        ["."],
        ["20"],
        ["2025"],
        ["35000"],
        ["0.5"],
        ["16"],
        ["x y z"],
        ["3.14"],
        ["i̇"],
        ["1000"],
        ["7"],
        ["ß"],
    ),
    *(["60", "60%"], ["1,234"], ["½"], ["0.25"], ["3.5"]),
]
SCORERS = [
    *(
        ("match", {"location": location, "ignore_case": ignore_case, "numeric": numeric})
        for location in ("begin", "end", "any", "exact")
        for ignore_case in (True, False)
        for numeric in (True, False)
    ),
    *(("includes", {"ignore_case": True}), ("includes", {"ignore_case": False}), ("exact", {}), ("f1", {})),
    ("f1", {"stop_words": ["The", "answer", "12"]}),
    *(("answer", {"pattern": kind}) for kind in ("letter", "word", "line")),
    ("pattern", {"pattern": r"(\d+)"}),
    ("pattern", {"pattern": r"(?:is|or) (\w+)|^(\w+)", "ignore_case": False}),
    ("pattern", {"pattern": r"(\w)(\w)?", "match_all": True}),
    ("pattern", {"pattern": r"\d+"}),
]
CHOSEN = [
    *(
        "ANSWER: A",
        "answer: b",
        "ANSWER: A, B",
        "ANSWER: AB",
        "ANSWER: A B",
        "ANSWER: A and B",
        "ANSWER: E",
        "B",
    ),
    *(
        "ANSWER: $B$",
        "**ANSWER: C**",
        "ANSWER: (D)",
        "ANSWER: A.\nThen ANSWER: B.",
        "Well, ANSWER: C!",
        "ANSWER: A,",
    ),
    *(
        "ANSWER: A, B, and C",
        "ANSWER:",
        "ANSWER: , ,",
        "ANSWER: 1",
        "ANSWER: 2 A",
        "ANSWER: **A**, (B)",
        "ANSWER: aa",
    ),
    *("ANSWER: D ANSWER: C", "", "The ANSWER : b\n", "ANSWER: A extra", "ANSWER: A\tB", "ANSWER: é"),
]
RIGHT = [
    ["A"],
    ["B"],
    ["A", "B"],
    ["AB"],
    ["A, C"],
    ["D"],
    ["b"],
    ["E"],
    ["1"],
    ["0"],
    ["?"],
    ["A", "A"],
    ["½"],
]
N_CHOICES = (2, 4, 27)


def picked(texts, *key):
    """One of the texts, always the same for a key."""
    digest = hashlib.sha256(json.dumps(key).encode()).digest()
    return texts[int.from_bytes(digest[:4], "big") % len(texts)]


def main():
    expected = {
        "told": {name: told(f"{HERE}/tasks.py@{name}", {}) for name in NAMES},
        "page": told_of_the_page(),
        "scores": asyncio.run(scores()),
        "choices": asyncio.run(choices()),
        "samples": {name: evaluated(name) for name in RUN},
        "grades": {f"{name}/{at}": graded(name, reply) for name in GRADED for at, reply in enumerate(GRADES)},
    }
    parts = [f"{json.dumps(part)}: {lines(of_part)}" for part, of_part in expected.items()]
    (HERE / "expected.json").write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")


def lines(values):
    """JSON with each entry on a line of its own."""
    if isinstance(values, dict):
        found = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in values.items()]
        return "{\n" + ",\n".join(found) + "\n}"
    return "[\n" + ",\n".join(map(json.dumps, values)) + "\n]"


def page_code():
    """The task that docs/how-to/inspect-tasks.md shows."""
    page = (HERE.parents[2] / "docs" / "how-to" / "inspect-tasks.md").read_text()
    return page.partition("```python\n")[2].partition("```")[0]


def told_of_the_page():
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "capitals.py")
        file.write_text(page_code())
        return told(f"{file}@capitals", {"n": 3})


def told(task, args):
    """What the child of Winnow says of a task."""
    with tempfile.TemporaryDirectory() as folder:
        request, answer = Path(folder, "request.json"), Path(folder, "answer.json")
        request.write_text(json.dumps({"task": task, "args": args}))
        sys.path.insert(0, "")  # which the child takes away
        here = os.getcwd()  # which the child leaves for the task's folder
        runpy.run_path(str(CHILD))["main"](request, answer, os.getppid())
        os.chdir(here)
        return json.loads(answer.read_text())


def said(text):
    from inspect_ai.model import ModelOutput, ModelUsage

    output = ModelOutput.from_content("mock", text)
    output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
    return output


def state_of(output, choices=None):
    from inspect_ai.model import ModelName
    from inspect_ai.solver import TaskState

    return TaskState(
        model=ModelName("none/none"),
        sample_id=1,
        epoch=1,
        input="?",
        messages=[],
        output=said(output),
        choices=choices,
    )


def as_number(score):
    from inspect_ai.scorer import value_to_float

    value = value_to_float()(score.value)
    return int(value) if value.is_integer() else value


async def scores():
    """By scorer and output: the scores for each target."""
    from inspect_ai import scorer as scorers
    from inspect_ai.scorer import Target

    found = []
    for name, options in SCORERS:
        score = getattr(scorers, name)(**options)
        for output in OUTPUTS:
            found.append([as_number(await score(state_of(output), Target(each))) for each in TARGETS])
    return found


async def choices():
    """By number of choices, output and whether several may be right: the scores for each target."""
    from inspect_ai.scorer import Target, choice
    from inspect_ai.solver._multiple_choice import parse_answers, set_choices_based_on_generated_response

    score, found = choice(), []
    for n, output, several in itertools.product(N_CHOICES, CHOSEN, (False, True)):
        of_targets = []
        for right in RIGHT:
            state = state_of(output, [f"choice {number}" for number in range(n)])
            if named := parse_answers(state, several):
                set_choices_based_on_generated_response(state, named)
            try:
                of_targets.append(as_number(await score(state, Target(right))))
            except ValueError:
                of_targets.append(None)
        found.append(of_targets)
    return found


def evaluated(name, grade=None):
    """What Inspect shows a scripted model for each sample, what that says, and the scores by scorer."""
    from inspect_ai import eval as run
    from inspect_ai.model import get_model

    shown = {}

    def says(messages, *others):
        text = picked(SAID, messages[-1].text)
        shown[json.dumps([[each.role, each.text] for each in messages])] = text
        return said(text)

    asked = []

    def grades(messages, *others):
        asked.append(messages[-1].text)
        return said(picked(GRADES, messages[-1].text) if grade is None else grade)

    with tempfile.TemporaryDirectory() as folder:
        [log] = run(
            f"{HERE}/tasks.py@{name}",
            model=get_model("mockllm/model", custom_outputs=says, memoize=False),
            model_roles={"grader": get_model("mockllm/grader", custom_outputs=grades, memoize=False)},
            log_dir=folder,
            max_samples=1,
            display="none",
        )
        assert log.status == "success", log.error.message
        samples = [scored(sample) for sample in log.samples]  # which are read from the folder
    return {
        "samples": samples,
        "shown": [[json.loads(key), text] for key, text in shown.items()],
        "asked": asked,
    }


def graded(name, reply):
    """The scores of each sample where the model that grades always says the same."""
    return [next(iter(each["scores"].values())) for each in evaluated(name, reply)["samples"]]


def scored(sample):
    """Its scores by scorer; None where there is none."""
    scores = {
        key: None if score.value != score.value else as_number(score) for key, score in sample.scores.items()
    }
    return {"id": sample.id, "output": sample.output.completion, "scores": scores}


if __name__ == "__main__":
    main()
