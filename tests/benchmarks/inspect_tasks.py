"""Tasks of Inspect on the demo's problems, which `inspect_peers` runs on both sides; DEMO is their folder."""

import json
import os
from pathlib import Path

from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.model import GenerateConfig
from inspect_ai.scorer import choice, includes, match, model_graded_qa
from inspect_ai.solver import generate, multiple_choice, prompt_template

SHORT = GenerateConfig(max_tokens=12, temperature=0.0)
LETTERS = "{question} {choices} {letters} ANSWER: "


def problems(n):
    path = Path(os.environ["DEMO"]) / "data" / "demo.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    step = len(rows) // n
    return [
        Sample(id=row["id"], input=row["input"], target=row["target"], metadata={"kind": row["task"]})
        for row in rows[::step][:n]
    ]


ASKED = [prompt_template("{kind} {prompt} ="), generate()]


@task
def numbers(n: int = 100):
    return Task(dataset=problems(n), solver=ASKED, scorer=match(numeric=True), config=SHORT)


@task
def parts(n: int = 100):
    return Task(dataset=problems(n), solver=ASKED, scorer=includes(), config=SHORT)


@task
def letters(n: int = 100):
    samples = problems(n)
    for number, sample in enumerate(samples):
        options = [str(sample.target[0]), "A", "0", "ab"]
        at = number % 4
        sample.choices = options[-at:] + options[:-at]
        sample.target = "ABCD"[at]
    return Task(dataset=samples, solver=multiple_choice(template=LETTERS), scorer=choice(), config=SHORT)


@task
def graded(n: int = 100):
    scorer = model_graded_qa(partial_credit=True)
    return Task(dataset=problems(n), solver=ASKED, scorer=scorer, config=SHORT)
