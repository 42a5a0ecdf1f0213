"""Human judges: annotators rate outputs by named levels, or prefer one of two answers.

Annotations are collected before the judge runs.
"""

from abc import abstractmethod
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Self

from pydantic import Field

from winnow.storage.text import storable
from winnow.tasks.errors import JudgeError, LabelMissing
from winnow.tasks.judges.asking.calls import PresentationOrder
from winnow.tasks.judges.protocol import SAME_ANSWER, SIDES, Duel, Judge, Sample, Scale, SubjectT, Verdict
from winnow.tasks.text.canonical_json import sha256

MOST_LEVELS = 9
"""Maximum number of levels: one for each key from 1 to 9."""

UNCLEAR = "unclear"
"""Reason if an annotator could not judge an output or a pair."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotation:
    """An annotator's judgment: a score, or "unclear"."""

    verdict: float | None
    """Score in [0, 1]; None if the annotator answered "unclear"."""
    annotator: str


class People(Judge[SubjectT]):
    """Base class of human judges; `annotations` holds the judgments by `subject_key`."""

    annotations: Mapping[str, Annotation]

    def with_annotations(self, annotations: Mapping[str, Annotation]) -> Self:
        """Return a copy of the judge that has these annotations, by `subject_key`."""
        knowing = copy(self)
        object.__setattr__(knowing, "annotations", annotations)
        return knowing

    def judge(self, subject: SubjectT, /) -> Verdict:
        """Verdict of an annotator.

        Raises:
            LabelMissing: If no annotator has judged the subject yet.
        """
        if not needs_people(subject):
            return SAME_ANSWER
        said = self.annotations.get(subject_key(subject))
        if said is None:
            raise LabelMissing(subject.question if isinstance(subject, Duel) else str(subject.example))
        if said.verdict is None:
            return Verdict.unscored(UNCLEAR, f"{said.annotator}: {UNCLEAR}")
        return Verdict(score=said.verdict, answer=f"{said.annotator}: {self.name_of(said.verdict)}")

    @abstractmethod
    def name_of(self, verdict: float) -> str:
        """Name of a score in notes, such as its level."""


@dataclass(frozen=True, kw_only=True)
class HumanJudge(People[Sample]):
    """Rating by annotators on a scale of named levels."""

    scale: ClassVar[Scale] = Scale(unit="levels with names", formula="the score of each in `levels`")

    question: Annotated[str, Field(min_length=1)]
    """The question to annotators about each output."""
    levels: Mapping[str, float]
    """Levels from which annotators choose, with their scores."""
    reference: bool = False
    """Whether annotators see the targets."""
    annotations: Mapping[str, Annotation] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        check_question(self.question)
        check_levels(self.levels)

    def name_of(self, verdict: float) -> str:
        """Name of the level with this score."""
        return level_of(self.levels, verdict)


@dataclass(frozen=True, kw_only=True)
class HumanPairJudge(People[Duel]):
    """Preference of annotators, who see the two answers in random order."""

    question: Annotated[str, Field(min_length=1)]
    """The question to annotators about each pair."""
    ties: bool = True
    """Whether annotators can answer that both are equally good."""
    reference: bool = False
    """Whether annotators see the targets."""
    annotations: Mapping[str, Annotation] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        check_question(self.question)

    def name_of(self, verdict: float) -> str:
        """Name of the outcome: "A", "B" or "tie"."""
        return SIDES[verdict]


def needs_people(subject: Sample | Duel) -> bool:
    """False only for a duel of two equal answers, which is a tie without an annotator."""
    return not isinstance(subject, Duel) or subject.answer_a != subject.answer_b


def subject_key(subject: Sample | Duel) -> str:
    """Key of a subject, unique in its campaign: `rating_key` or `duel_key`."""
    if isinstance(subject, Duel):
        return duel_key(subject)
    return rating_key(str(subject.example), subject.output)


def duel_key(duel: Duel) -> str:
    """Key of a duel, unique in its campaign: a repeated pair of answers is judged again."""
    texts = [storable(text) for text in (duel.question, duel.answer_a, duel.answer_b)]
    return sha256(["duel", duel.seed, *texts])


def presentation_order(duel: Duel) -> PresentationOrder:
    """Order in which the answers are shown: a fair coin, fixed for each duel."""
    return "swapped" if int(sha256(["presentation order", duel.seed])[:8], 16) % 2 else "original"


def rating_key(example: str, output: str) -> str:
    """Key of an output to be rated, unique in its campaign: the same output is rated once."""
    return sha256(["rating", storable(example), storable(output)])


def level_of(levels: Mapping[str, float], score: float) -> str:
    """Name of the level with this score; the number itself if no level has it."""
    return next((name for name, worth in levels.items() if worth == score), f"{score:g}")


def in_order(levels: Mapping[str, float]) -> list[str]:
    """Names of the levels, from the lowest score to the highest."""
    return sorted(levels, key=lambda name: levels[name])


def check_question(question: str) -> None:
    """Refuse a blank question.

    Raises:
        JudgeError: If the question is blank.
    """
    if not question.strip():
        raise JudgeError("is empty; write what annotators should look for", "judge.question")


def check_levels(levels: Mapping[str, float]) -> None:
    """Refuse an unusable scale of levels.

    Raises:
        JudgeError: If the number, the names or the scores of the levels are invalid.
    """
    place = "judge.levels"
    if not 2 <= len(levels) <= MOST_LEVELS:
        raise JudgeError(
            f"must have 2 to {MOST_LEVELS} levels, each with its score, got {len(levels)}", place
        )
    for number, name in enumerate(in_order(levels), 1):
        score = levels[name]
        if len(name.strip()) == 1 and name.strip() != str(number):
            raise JudgeError(
                f"{name!r} is a single character, but the key of this level is {number}; use a longer name",
                place,
            )
        if not name.strip() or name.strip().lower() == UNCLEAR:
            raise JudgeError(f"a level cannot be called {name!r}; give it another name", place)
        if not 0.0 <= score <= 1.0:
            raise JudgeError(f"the score of {name!r} must be between 0 and 1, got {score:g}", place)
    if len({name.strip().lower() for name in levels}) < len(levels):
        raise JudgeError("two levels have the same name, apart from case; rename one", place)
    if len(set(levels.values())) < len(levels):
        raise JudgeError("two levels have the same score; give each a different score", place)
