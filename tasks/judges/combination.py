"""Judges that combine other judges: all, any, best-of, or a weighted mean.

Each part is a judge as in a campaign, with its own options, in a list:

    judge: {type: all, judges: [{type: json-schema, schema: {...}}, {type: contains}]}

An output is unscored if a part leaves it unscored, unless the other parts determine the score: a zero
determines `all`, a one determines `any`, and a part of weight zero is ignored. The reason is that part's, or
`part_unscored` if the part found no answer and its `no_answer` is "unscored".

Parts that use a model are evaluated only if the other parts do not determine the score.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from itertools import chain
from math import fsum, isfinite
from typing import Annotated, ClassVar, Self

from pydantic import Field

from winnow.storage.json_types import JsonObject
from winnow.tasks.engines.protocol import ModelRef
from winnow.tasks.errors import JudgeError
from winnow.tasks.judges.asking.calls import JudgeCall, Replies
from winnow.tasks.judges.options import ANSWERLESS
from winnow.tasks.judges.protocol import SHARE, Judge, Sample, Scale, Verdict
from winnow.tasks.judges.registry import Made, create_judge, judge_code, within

PART_UNSCORED = "part_unscored"
NOT_ASKED = Verdict.unscored("not_asked")
"""Verdict of a part that is not evaluated, because the others determine the score."""

Parts = Annotated[Sequence[Mapping[str, object]], Field(min_length=1, max_length=100)]


@dataclass(frozen=True, kw_only=True)
class _Combination(Judge[Sample]):
    """Base class of combinations, which evaluate each part in order and combine the scores."""

    judges: Parts
    """The parts, each with its `type` and parameters."""
    _parts: tuple[Judge[Sample], ...] = field(init=False, repr=False, compare=False)
    _replies: Replies = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_parts", tuple(_each(self.judges, create_judge)))

    @classmethod
    def code(cls, judges: Parts, **others: object) -> JsonObject:
        """Identity of the parts' code."""
        return {"judges": list(_each(judges, judge_code))}

    def try_out(self) -> None:
        """See `Judge`."""
        for part in self._parts:
            part.try_out()

    def ahead(self, subjects: Sequence[Sample], /) -> None:
        """See `Judge`."""
        for part in self._parts:
            part.ahead(subjects)

    @property
    def parts(self) -> Sequence[Judge[Sample]]:
        """The combined judges."""
        return self._parts

    @property
    def models(self) -> Sequence[ModelRef]:
        """See `Judge`."""
        return tuple(chain.from_iterable(part.models for part in self._parts))

    def calls(self, sample: Sample, replies: Replies, /) -> Sequence[JudgeCall]:
        """See `Judge`."""
        wanted = [part.calls(sample, replies) for part in self._parts]
        if not any(wanted):
            return ()
        known = [
            None if calls else part.told(replies).judge(sample).score
            for part, calls in zip(self._parts, wanted, strict=True)
        ]
        return tuple(chain.from_iterable(wanted)) if self.combined(known) is None else ()

    def told(self, replies: Replies, /) -> Self:
        """See `Judge`."""
        knowing = copy(self)
        object.__setattr__(knowing, "_parts", tuple(part.told(replies) for part in self._parts))
        object.__setattr__(knowing, "_replies", replies)
        return knowing

    def judge(self, sample: Sample, /) -> Verdict:
        """Combined score of the parts; see the module."""
        verdicts = [
            NOT_ASKED if part.calls(sample, self._replies) else part.judge(sample) for part in self._parts
        ]
        replies = tuple(chain.from_iterable(verdict.replies for verdict in verdicts))
        scores = [verdict.score for verdict in verdicts]
        combined = self.combined(scores)
        if combined is None:
            return replace(self._unscored(verdicts), replies=replies)
        told = [
            f"{each['type']} {verdict.score:g}" if verdict.score is not None else f"{each['type']} unscored"
            for each, verdict in zip(self.judges, verdicts, strict=True)
        ]
        return Verdict(
            score=combined,
            answer=", ".join(told),
            no_answer=all(verdict.no_answer for verdict in verdicts),
            replies=replies,
        )

    @abstractmethod
    def combined(self, scores: Sequence[float | None]) -> float | None:
        """Combine the parts' scores, in their order; None if unscored parts leave it open."""

    def _unscored(self, verdicts: Sequence[Verdict]) -> Verdict:
        part, verdict = next(
            (part, verdict)
            for part, verdict in zip(self.judges, verdicts, strict=True)
            if verdict.reason is not None
        )
        assert verdict.reason is not None
        reason = PART_UNSCORED if verdict.reason in ANSWERLESS else verdict.reason
        detail = f"{part['type']}: {verdict.reason}" + (f": {verdict.detail}" if verdict.detail else "")
        return Verdict.unscored(reason, detail=detail)


@dataclass(frozen=True, kw_only=True)
class AllJudge(_Combination):
    """Minimum of several judges' scores; 0 as soon as one gives 0."""

    scale: ClassVar = Scale(unit="score, 0 to 1", formula="the lowest of the parts")

    def combined(self, scores: Sequence[float | None]) -> float | None:
        """The lowest score; 0 as soon as one part has 0.

        None if a score is missing and no score is 0.
        """
        known = [score for score in scores if score is not None]
        if 0.0 in known:
            return 0.0
        return min(known) if len(known) == len(scores) else None


@dataclass(frozen=True, kw_only=True)
class AnyJudge(_Combination):
    """Maximum of several judges' scores; 1 as soon as one gives 1."""

    scale: ClassVar = Scale(unit="score, 0 to 1", formula="the highest of the parts")

    def combined(self, scores: Sequence[float | None]) -> float | None:
        """The highest score; 1 as soon as one part has 1.

        None if a score is missing and no score is 1.
        """
        known = [score for score in scores if score is not None]
        if 1.0 in known:
            return 1.0
        return max(known) if len(known) == len(scores) else None


@dataclass(frozen=True, kw_only=True)
class BestOfJudge(_Combination):
    """Score by the first part, of the output that the second part prefers.

    The second part receives no targets, so that it chooses without the right answer. The judge is for
    campaigns with `samples: {reduce: best-of}`.
    """

    scale: ClassVar = Scale(unit="score, 0 to 1", formula="that of the first part")

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self._parts) != 2:
            sentence = f"must be two judges, one that scores and one that chooses, got {len(self._parts)}"
            raise JudgeError(sentence, "judge.judges")

    def calls(self, sample: Sample, replies: Replies, /) -> Sequence[JudgeCall]:
        """See `Judge`."""
        scores, chooses = self._parts
        return (*scores.calls(sample, replies), *chooses.calls(_without_targets(sample), replies))

    def judge(self, sample: Sample, /) -> Verdict:
        """The verdict of the first part, with the preference of the second one."""
        scores, chooses = self._parts
        verdict, chosen = scores.judge(sample), chooses.judge(_without_targets(sample))
        replies = (*verdict.replies, *chosen.replies)
        if verdict.score is None or chosen.score is None:
            return replace(self._unscored([verdict, chosen]), replies=replies)
        return replace(verdict, preference=chosen.score, replies=replies)

    def combined(self, scores: Sequence[float | None]) -> float | None:
        """The first part's score; None if either score is missing."""
        return None if None in scores else scores[0]


def _without_targets(sample: Sample) -> Sample:
    return replace(sample, targets=())


@dataclass(frozen=True, kw_only=True)
class WeightedJudge(_Combination):
    """Weighted mean of several judges' scores."""

    scale: ClassVar = SHARE

    weights: Sequence[float]
    """One weight for each part, 0 or more; only their proportions count."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.weights) != len(self.judges):
            sentence = f"got {len(self.weights)} for {len(self.judges)} judges; set one for each judge"
            raise JudgeError(sentence, "judge.weights")
        if not all(isfinite(each) and each >= 0.0 for each in self.weights) or not any(self.weights):
            sentence = f"each must be 0 or more, and at least one above 0, got {list(self.weights)}"
            raise JudgeError(sentence, "judge.weights")

    def combined(self, scores: Sequence[float | None]) -> float | None:
        """Weighted mean of the parts' scores; None if a part with a weight is unscored."""
        counted = [each for each in zip(self.weights, scores, strict=True) if each[0] > 0.0]
        known = [(weight, score) for weight, score in counted if score is not None]
        if len(known) < len(counted):
            return None
        mean = fsum(weight * score for weight, score in known) / fsum(weight for weight, _ in known)
        return min(1.0, max(0.0, mean))


def _each(judges: Parts, make: Callable[..., Made]) -> Iterator[Made]:
    return (within(each, f"judge.judges[{at}]", make) for at, each in enumerate(judges))
