"""People who prefer one of two answers; what they said is put in before the judge is asked."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import Field

from winnow.storage.text import storable
from winnow.tasks.errors import LabelMissing
from winnow.tasks.judges.asking.calls import Reply
from winnow.tasks.judges.pairwise.protocol import Duel, JudgmentCall, PairVerdict, PresentationOrder
from winnow.tasks.judges.pointwise.human import UNCLEAR, Annotation, check_question
from winnow.tasks.text.canonical_json import sha256

VERSION = 1
"""Raised when a verdict can change; see `tasks.judges.catalogue`."""

SAME = "the same answer twice"
_NAMES = {1.0: "A", 0.0: "B", 0.5: "tie"}


@dataclass(frozen=True, kw_only=True)
class HumanPairJudge:
    """A person, who is shown both answers in an order that a coin decides, prefers one of them."""

    question: Annotated[str, Field(min_length=1)]
    """The question that people are asked about each pair."""
    ties: bool = True
    """Whether they may say that both are as good."""
    reference: bool = False
    """Whether they are shown the targets."""
    annotations: Mapping[str, Annotation] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        check_question(self.question)

    @property
    def models(self) -> tuple[()]:
        """None: people are asked."""
        return ()

    @property
    def identity(self) -> Mapping[str, object]:
        """Nothing that the spec does not hold."""
        return {}

    @property
    def is_deterministic(self) -> bool:
        """No: somebody who is asked again may say something else."""
        return False

    def with_annotations(self, annotations: Mapping[str, Annotation]) -> "HumanPairJudge":
        """The same judge with what people said at hand, by `duel_key`."""
        knowing = HumanPairJudge(question=self.question, ties=self.ties, reference=self.reference)
        object.__setattr__(knowing, "annotations", annotations)
        return knowing

    def calls(self, duel: Duel, replies: Mapping[JudgmentCall, Reply]) -> tuple[()]:
        """None: people are asked before, all at once."""
        return ()

    def verdict(self, duel: Duel, replies: Mapping[JudgmentCall, Reply]) -> PairVerdict:
        """The verdict that somebody gave; the same answer twice is a tie, about which nobody is asked.

        Raises:
            LabelMissing: If nobody has judged it.
        """
        if not needs_people(duel):
            return PairVerdict(outcome=0.5, answer=SAME)
        said = self.annotations.get(duel_key(duel))
        if said is None:
            raise LabelMissing(duel.question)
        if said.verdict is None:
            return PairVerdict(reason=UNCLEAR, answer=f"{said.annotator}: {UNCLEAR}")
        return PairVerdict(outcome=said.verdict, answer=f"{said.annotator}: {_NAMES[said.verdict]}")


def needs_people(duel: Duel) -> bool:
    """Whether somebody has to look at a duel."""
    return duel.answer_a != duel.answer_b


def duel_key(duel: Duel) -> str:
    """The key of a duel, unique in its campaign: two answers that meet again are judged anew."""
    texts = [storable(text) for text in (duel.question, duel.answer_a, duel.answer_b)]
    return sha256(["duel", duel.seed, *texts])


def presentation_order(duel: Duel) -> PresentationOrder:
    """The order in which the answers are shown: a fair coin, the same whenever the duel is looked at."""
    return "swapped" if int(sha256(["presentation order", duel.seed])[:8], 16) % 2 else "original"
