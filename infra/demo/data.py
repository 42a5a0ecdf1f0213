"""Evaluation examples and training texts of the demo, which have no input in common."""

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
    """An evaluation example: one line of the data file."""

    id: str
    task: str
    input: str
    target: list[str]


@dataclass(frozen=True, slots=True)
class TrainingText:
    """A prompt, and the answer that a checkpoint learns to generate."""

    prompt: str
    answer: str


def evaluation_examples() -> list[Example]:
    """`EXAMPLES_PER_TASK` examples of every task, with different inputs; the same in every call."""
    examples = []
    for task, draw in TASKS.items():
        rng = random.Random(f"{EVALUATION_SEED}/{task}")
        targets: dict[str, list[str]] = {}
        while len(targets) < EXAMPLES_PER_TASK:
            problem = draw(rng)
            targets.setdefault(problem.input, list(problem.target))
        examples += [
            Example(id=f"{task}/{number}", task=task, input=text, target=target)
            for number, (text, target) in enumerate(targets.items(), start=1)
        ]
    return examples


def training_texts(seed: int, mix: Mapping[str, float]) -> Iterator[TrainingText]:
    """Yield training texts without end; none has the input of an evaluation example.

    Tasks are drawn in the proportions of `mix`, and styles equally often.

    Args:
        seed: Seed; the same seed and mix give the same texts.
        mix: Task -> its weight, at least 0; the sum of the weights is arbitrary.
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
    """Task -> inputs of its evaluation examples, which training texts must not have."""
    return {task: frozenset(e.input for e in evaluation_examples() if e.task == task) for task in TASKS}
