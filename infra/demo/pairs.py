"""Pairs of answers with a verdict, to train and test the demo's judge.

Right answers are those of the problems, in any style. Wrong answers are right ones with a mistake that the
demo's models make: a wrong digit or letter, two exchanged letters, or a missing end. The judge prefers the
shorter answer; answers of equal length are a tie.
"""

import random
import string
from collections.abc import Iterator
from dataclasses import dataclass, replace

from winnow.infra.demo.data import TrainingText, evaluation_inputs
from winnow.infra.demo.problems import TASKS
from winnow.infra.demo.prompts import judge_prompt

FIRST, SECOND, NEITHER = "A", "B", "C"
"""Verdicts: the answer shown first is preferred, the second one is, or neither."""

WRONG_SHARE = 0.4
"""Probability that an answer gets a mistake."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two answers to one problem, in the order in which the judge reads them."""

    task: str
    input: str
    first: str
    second: str

    @property
    def verdict(self) -> str:
        """The verdict of a perfect judge."""
        difference = len(self.first) - len(self.second)
        return NEITHER if difference == 0 else FIRST if difference < 0 else SECOND

    @property
    def prompt(self) -> str:
        """The judge's prompt for this pair."""
        return judge_prompt(self.task, self.input, self.first, self.second)

    @property
    def swapped(self) -> "Pair":
        """The same pair with the answers in the other order."""
        return replace(self, first=self.second, second=self.first)


def judged_texts(seed: int) -> Iterator[TrainingText]:
    """Yield training texts for the judge without end, every pair in both orders."""
    for pair in judged_pairs(seed):
        for shown in (pair, pair.swapped):
            yield TrainingText(shown.prompt, shown.verdict)


def judged_pairs(seed: int) -> Iterator[Pair]:
    """Yield pairs of different answers without end, all tasks equally often, without evaluation inputs."""
    rng = random.Random(f"pairs/{seed}")
    tasks, held_out = list(TASKS), evaluation_inputs()
    while True:
        task = rng.choice(tasks)
        problem = TASKS[task](rng)
        styles = list(problem.answers.values())
        first, second = (_perhaps_wrong(rng, rng.choice(styles)) for _ in range(2))
        if problem.input not in held_out[task] and first != second:
            yield Pair(task=task, input=problem.input, first=first, second=second)


def _perhaps_wrong(rng: random.Random, answer: str) -> str:
    if rng.random() >= WRONG_SHARE:
        return answer
    characters = list(answer)
    place, other = rng.randrange(len(answer)), rng.randrange(len(answer))
    slip = rng.choice(["another", "changed places", "missing end"])
    if slip == "another":
        old = characters[place]
        characters[place] = rng.choice(string.digits if old.isdigit() else string.ascii_lowercase)
    elif slip == "changed places":
        characters[place], characters[other] = characters[other], characters[place]
    else:
        del characters[max(1, place) :]
    return "".join(characters)
