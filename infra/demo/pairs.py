"""Pairs of answers with a verdict: what the demo's judge learns from.

Right answers are those of the problems, in any style; wrong ones are right ones with a slip such as the
demo's models make: a digit or a letter is another one, or two letters have changed places.
"""

import random
import string
from collections.abc import Iterator
from dataclasses import dataclass

from infra.demo.data import TrainingText, evaluation_inputs
from infra.demo.problems import ANSWER_MARK, TASKS, Problem

FIRST, SECOND, NEITHER = "A", "B", "C"
"""What a verdict prefers: the answer shown first, the one shown second, neither."""

RIGHT_SHARE = 0.6
"""How often an answer is right: about half of all pairs then have a better one."""
SLIPS_EARLIER = 0.3
"""How often a wrong answer slips in its scratch work too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two answers to one problem."""

    task: str
    input: str
    answers: tuple[str, str]
    right: tuple[bool, bool]
    solution: str
    """A right final answer."""

    @property
    def verdict(self) -> str:
        """Which is better: a right answer than a wrong one, and nothing else."""
        if self.right[0] == self.right[1]:
            return NEITHER
        return FIRST if self.right[0] else SECOND

    @property
    def swapped(self) -> "Pair":
        """The same pair, shown the other way round."""
        return Pair(
            task=self.task,
            input=self.input,
            answers=self.answers[::-1],
            right=self.right[::-1],
            solution=self.solution,
        )


def pair_prompt(task: str, input: str, first: str, second: str) -> str:
    """What the judge reads; `JUDGE_TEMPLATE` makes the same of an example and two answers."""
    return JUDGE_TEMPLATE.format(task=task, input=input, first=first, second=second)


JUDGE_TEMPLATE = "{task} {input} | {first} | {second} ="


def judged_texts(seed: int) -> Iterator[TrainingText]:
    """Endless training texts for a judge: all tasks equally often, both orders of each pair."""
    for pair in judged_pairs(seed):
        for shown in (pair, pair.swapped):
            yield TrainingText(
                pair_prompt(shown.task, shown.input, *shown.answers), reasoned(shown)
            )


def reasoned(pair: Pair) -> str:
    """What a perfect judge writes: the solution, whether each answer agrees with it, the verdict."""
    first, second = ("yes" if right else "no" for right in pair.right)
    return f"{pair.solution}: {first} {second} {pair.verdict}"


def judged_pairs(seed: int) -> Iterator[Pair]:
    """Endless pairs of different answers; no evaluation input is among them."""
    rng = random.Random(f"pairs/{seed}")
    held_out = evaluation_inputs()
    while True:
        task = rng.choice(list(TASKS))
        problem = TASKS[task](rng)
        (first, first_right), (second, second_right) = _answer(rng, problem), _answer(rng, problem)
        if problem.input in held_out[task] or first == second:
            continue
        yield Pair(
            task=task,
            input=problem.input,
            answers=(first, second),
            right=(first_right, second_right),
            solution=problem.target[0],
        )


def _answer(rng: random.Random, problem: Problem) -> tuple[str, bool]:
    """An answer in any style, and whether it is right."""
    scratch, mark, final = rng.choice(list(problem.answers.values())).rpartition(ANSWER_MARK)
    if rng.random() < RIGHT_SHARE:
        return f"{scratch}{mark}{final}", True
    if scratch and rng.random() < SLIPS_EARLIER:
        scratch = _with_a_slip(rng, scratch)
    slipped = _with_a_slip(rng, final)
    return f"{scratch}{mark}{slipped}", slipped in problem.target


def _with_a_slip(rng: random.Random, text: str) -> str:
    characters = list(text)
    place = rng.choice([place for place, character in enumerate(characters) if character.isalnum()])
    old = characters[place]
    if old.isdigit():
        characters[place] = str((int(old) + rng.choice([-2, -1, 1, 2])) % 10)
    elif len(text) > 1 and rng.random() < 0.5:
        other = rng.choice([each for each in range(len(text)) if each != place])
        characters[place], characters[other] = characters[other], old
    else:
        characters[place] = rng.choice(string.ascii_lowercase)
    return "".join(characters)
