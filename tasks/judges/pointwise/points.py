"""The scales of a scoring model: labels, the score of each, and how a reply is read.

The scores are fixed: yes is 1 and no is 0; of n points, k is worth (k - 1) / (n - 1).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import regex

from winnow.tasks.judges.asking.panel import IN_BRACKETS
from winnow.tasks.text.patterns import last_answer

ScaleName = Literal["yes/no", "1..5", "1..10"]

UNIT = "yes or no, or points of `scale`"
FORMULA = "1 for yes, 0 for no; (points - 1) / (highest - 1)"

_DRESSED = r"[\s\"'`*_().\[\]]*+"
"""Characters that may surround a label that is the whole reply."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Points:
    """A scale."""

    name: ScaleName
    scores: Mapping[str, float]
    """Scores by label, from best to worst, or increasing."""
    choices: Mapping[str, str]
    """Label as written by a model that writes nothing else -> label. None of them is a prefix of another, so
    that an engine can compare their likelihoods."""
    meaning: str
    """The meaning of the labels, for the prompt."""

    def in_text(self, text: str, *, is_cut: bool = False) -> str | None:
        """The label of a reply: the last one in double brackets, or the reply as a whole.

        None if the last text in double brackets is not a label; if there is none, and the reply has more than
        a label; or if the reply was cut off before its verdict.
        """
        said = last_answer(IN_BRACKETS, text, is_cut=is_cut)
        if said is None:
            alone = regex.fullmatch(f"{_DRESSED}([a-zA-Z0-9]+){_DRESSED}", text)
            said = None if alone is None else alone.group(1)
        label = None if said is None else said.strip().casefold()
        return label if label in self.scores else None

    def nearest(self, score: float) -> float:
        """The score of the nearest label; of two equally near ones, the lower."""
        return min(sorted(self.scores.values()), key=lambda each: abs(each - score))

    def shown(self, score: float) -> str:
        """A score in points, or the probability of yes."""
        if self.name == "yes/no":
            return {1.0: "yes", 0.0: "no"}.get(score, f"yes with {score:.3g}")
        return f"{1.0 + score * (len(self.scores) - 1):.3g}"

    def instructions(self, *, reasoned: bool) -> str:
        """Instructions on how to reply, for the prompt."""
        if reasoned:
            asked = ", ".join(f"[[{label}]]" for label in self.scores)
            return (
                "First weigh the output against the rubric in a few sentences. Then end your reply with "
                f"exactly one of {asked} on a line of its own: {self.meaning}."
            )
        asked = ", ".join(self.choices)
        return f"Reply with exactly one of {asked} and nothing else: {self.meaning}."

    def reminder(self, number: int) -> str:
        """The text added to a prompt after an unreadable reply."""
        asked = ", ".join(f"[[{label}]]" for label in self.scores)
        return f"\n\nReminder {number}: your reply must end with exactly one of {asked}."


def points_of(name: ScaleName) -> Points:
    """The scale of this name."""
    if name == "yes/no":
        scores = {"yes": 1.0, "no": 0.0}
        return Points(
            name=name,
            scores=scores,
            choices={label: label for label in scores},
            meaning="yes if the output meets the rubric, no if it does not",
        )
    highest = int(name.removeprefix("1.."))
    labels = [str(number) for number in range(1, highest + 1)]
    in_brackets = highest > 9  # "1" begins "10"
    return Points(
        name=name,
        scores={label: (int(label) - 1) / (highest - 1) for label in labels},
        choices={f"[[{label}]]" if in_brackets else label: label for label in labels},
        meaning=f"1 is the worst, {highest} the best that an output can be by the rubric",
    )
