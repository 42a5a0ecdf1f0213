"""The four tasks of the demo: what is asked, what is accepted, and how an answer may be worked out.

Each `draw_…` function makes one problem from a random generator. The answers are worked out in three styles,
named like the prompt templates in `infra.demo.prompts`; whatever follows the last `>` of an answer is final.
"""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from winnow.infra.demo.words import COUNTED, NOUNS, NUMERALS

ANSWER_MARK = ">"
"""Stands between scratch work and the final answer."""

SHORT_WORDS = tuple(word for word in NOUNS if len(word) <= 4)


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One question with its accepted answers."""

    input: str
    target: tuple[str, ...]
    """Every accepted final answer; never empty."""
    answers: Mapping[str, str]
    """The whole text a perfect model writes, by style of prompt."""


def draw_sum(rng: random.Random) -> Problem:
    """Two integers from 0 to 99 to add, written like `47+85`; one and two digits are equally likely."""
    first, second = (rng.randrange(10 ** rng.randint(1, 2)) for _ in range(2))
    total = str(first + second)
    return Problem(
        input=f"{first}+{second}",
        target=(total,),
        answers=_answers(total, scratch=_column_sums(first, second), backwards=total[::-1]),
    )


def draw_letter(rng: random.Random) -> Problem:
    """A noun whose second letter is wanted."""
    word = rng.choice(NOUNS)
    return Problem(
        input=word,
        target=(word[1],),
        answers=_answers(word[1], scratch=" ".join(word[:2]), backwards=word[::-1]),
    )


def draw_count(rng: random.Random) -> Problem:
    """A list of two to four kinds of things, up to five of each, whose total is wanted."""
    amounts = [rng.randint(1, 5) for _ in range(rng.randint(2, 4))]
    things = rng.sample(COUNTED, len(amounts))
    running = [sum(amounts[: i + 1]) for i in range(len(amounts))]
    total = str(running[-1])
    return Problem(
        input=", ".join(_some(amount, thing) for amount, thing in zip(amounts, things, strict=True)),
        target=(total, NUMERALS[running[-1]]),
        answers=_answers(total, scratch=_spaced(running), backwards=_spaced(amounts[::-1])),
    )


def draw_scrambled_word(rng: random.Random) -> Problem:
    """A noun of three or four letters in a wrong order; every noun made of these letters is accepted."""
    word = rng.choice(SHORT_WORDS)
    letters = sorted(word)
    accepted = (word, *(other for other in SHORT_WORDS if other != word and sorted(other) == letters))
    scrambled = word
    while scrambled in accepted:
        scrambled = "".join(rng.sample(word, len(word)))
    return Problem(
        input=scrambled,
        target=accepted,
        answers=_answers(word, scratch="".join(letters), backwards=word[::-1]),
    )


TASKS: Mapping[str, Callable[[random.Random], Problem]] = {
    "sum": draw_sum,
    "letter": draw_letter,
    "count": draw_count,
    "unscramble": draw_scrambled_word,
}
"""How a problem of each task is drawn, by the name that stands in the prompt."""


def _answers(final: str, *, scratch: str, backwards: str) -> dict[str, str]:
    return {
        "direct": final,
        "scratchpad": f"{scratch}{ANSWER_MARK}{final}",
        "reversed": f"{backwards}{ANSWER_MARK}{final}",
    }


def _column_sums(first: int, second: int) -> str:
    """The sums of units, tens, hundreds, each with the carry: `12 13 4` for 347 + 85."""
    columns: list[int] = []
    while first or second or not columns:
        carry = columns[-1] // 10 if columns else 0
        columns.append(first % 10 + second % 10 + carry)
        first, second = first // 10, second // 10
    return _spaced(columns)


def _some(amount: int, thing: str) -> str:
    return (
        f"{'an' if thing[0] in 'aeiou' else 'a'} {thing}" if amount == 1 else f"{NUMERALS[amount]} {thing}s"
    )


def _spaced(numbers: list[int]) -> str:
    return " ".join(map(str, numbers))
