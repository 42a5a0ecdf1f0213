"""Evaluation examples and the training texts, which never share an input."""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from winnow.infra.demo.problems import TASKS
from winnow.infra.demo.prompts import TEMPLATES, render

EVALUATION_SEED = 2024
EXAMPLES_PER_TASK = 150


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One evaluation example: a line of the data file."""

    id: str
    task: str
    input: str
    target: list[str]


@dataclass(frozen=True, slots=True)
class TrainingText:
    """A text that a checkpoint reads (`prompt`), and the one that it learns to write (`answer`)."""

    prompt: str
    answer: str


def evaluation_examples() -> list[Example]:
    """The same `EXAMPLES_PER_TASK` examples of every task on each call, all inputs of a task different."""
    examples = []
    for task, draw in TASKS.items():
        rng = random.Random(f"{EVALUATION_SEED}/{task}")
        drawn: dict[str, list[str]] = {}
        while len(drawn) < EXAMPLES_PER_TASK:
            problem = draw(rng)
            drawn.setdefault(problem.input, list(problem.target))
        examples += [
            Example(id=f"{task}/{number}", task=task, input=text, target=target)
            for number, (text, target) in enumerate(drawn.items(), start=1)
        ]
    return examples


def training_texts(seed: int, mix: Mapping[str, float]) -> Iterator[TrainingText]:
    """Endless training texts: tasks in the proportions of `mix`, styles equally often, no evaluation input.

    Args:
        seed: The same seed and mix give the same texts.
        mix: Weight of each task by name, non-negative; need not add up to one.
    """
    rng = random.Random(seed)
    tasks, weights, styles = list(mix), list(mix.values()), list(TEMPLATES)
    held_out = evaluation_inputs()
    while True:
        task = rng.choices(tasks, weights)[0]
        problem = TASKS[task](rng)
        if problem.input in held_out[task]:
            continue
        style = rng.choice(styles)
        yield TrainingText(render(style, task, problem.input), problem.answers[style])


@cache
def evaluation_inputs() -> Mapping[str, frozenset[str]]:
    """The inputs of the evaluation examples, by task: no training text may have one of them."""
    return {task: frozenset(e.input for e in evaluation_examples() if e.task == task) for task in TASKS}
