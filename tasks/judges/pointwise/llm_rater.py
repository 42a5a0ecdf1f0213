"""Models that score an output by a rubric, each by itself.

How replies become a score, from the inside out:

1. A model is asked how probable each point of the scale is, and the score is the mean under these
   probabilities. Where its engine tells none that can be used, and wherever `read` is "text", it writes a
   reply, which is read strictly; a reply that cannot be read is asked for again, at most `max_reasks` times.
   Another attempt has another seed; a greedy one, which a seed would not change, has a numbered reminder at
   the end of its prompt. What a new reply would not mend is not asked again.
2. The readings that there are (`repeats`), and then the judges that have an opinion, are aggregated. With
   fewer judges than `min_valid_judges` the output is unscored: silence is not a zero.
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from math import fsum
from statistics import median
from typing import Literal, Self

from winnow.tasks.engines.choices.probabilities import expected_value
from winnow.tasks.engines.protocol import GenerationFailure, ModelRef
from winnow.tasks.errors import TemplateError
from winnow.tasks.judges.asking.calls import (
    FALLS_BACK,
    NO_PROBABILITIES,
    PATTERN_TIMEOUT,
    PROMPT_FAILED,
    TOO_FEW_JUDGES,
    VERDICT_MISSING,
    JudgeCall,
    ReadReply,
    Replies,
    Reply,
)
from winnow.tasks.judges.asking.judge_models import JudgeModel
from winnow.tasks.judges.pointwise.inspect_graded import Grader
from winnow.tasks.judges.pointwise.points import Points
from winnow.tasks.judges.pointwise.rating_prompt import prompt
from winnow.tasks.judges.protocol import NO_TARGET, Sample, Verdict

Aggregation = Literal["mean", "median", "majority"]


def aggregate(scores: Sequence[float], rule: Aggregation, points: Points) -> float:
    """One score of one or more; a single one stands as it is.

    Under "majority" each score is a vote for the nearest point of the scale; where several points have the
    most votes, it is the mean of these.
    """
    if len(scores) == 1:
        return scores[0]
    if rule == "median":
        return median(scores)
    if rule == "mean":
        return min(1.0, fsum(scores) / len(scores))
    votes = Counter(map(points.nearest, scores))
    most = max(votes.values())
    leading = [point for point, count in votes.items() if count == most]
    return min(1.0, fsum(leading) / len(leading))


Read = Literal["probabilities", "text"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rater:
    """A judge made of models; see the module."""

    judges: tuple[JudgeModel, ...]
    points: Points
    beginning: str
    """The beginning of every prompt."""
    reference: bool
    """Whether the targets are shown."""
    read: Read
    aggregation: Aggregation
    max_reasks: int
    repeats: int
    min_valid_judges: int
    replies: Replies = field(default_factory=dict, repr=False, compare=False)
    """The replies that are known when it judges."""

    @property
    def models(self) -> Sequence[ModelRef]:
        """See `Judge`."""
        return tuple(judge.ref for judge in self.judges)

    def told(self, replies: Replies) -> Self:
        """See `Judge`."""
        return replace(self, replies=replies)

    def calls(self, sample: Sample, replies: Replies) -> Sequence[JudgeCall]:
        """See `Judge`: every question first, then what has to be asked again."""
        shown = self._prompt(sample)
        if isinstance(shown, Verdict):
            return ()
        exchanges = (self._exchange(judge, repeat, shown, replies) for judge, repeat in self._slots())
        return tuple(wanted for _, wanted in exchanges if wanted is not None)

    def judge(self, sample: Sample) -> Verdict:
        """The score that the replies come to, or the reason why there is none.

        Raises:
            ValueError: If a reply is still wanted.
        """
        shown = self._prompt(sample)
        if isinstance(shown, Verdict):
            return shown
        readings: list[ReadReply] = []
        for judge, repeat in self._slots():
            done, wanted = self._exchange(judge, repeat, shown, self.replies)
            if wanted is not None:
                raise ValueError(f"the verdict is not ready: judge {wanted.judge!r} has not replied yet")
            readings += done
        return self._combined(readings)

    def _prompt(self, sample: Sample) -> str | Verdict:
        """The prompt for the models; or the verdict, where there is nothing to ask them."""
        if self.reference and not sample.targets:
            return Verdict.unscored(NO_TARGET)
        asked = sample.fields.get("input", "")
        question = asked if isinstance(asked, str) else json.dumps(asked, ensure_ascii=False)
        try:
            return prompt(self.beginning, question, sample.targets if self.reference else (), sample.output)
        except TemplateError as error:
            return Verdict.unscored(PROMPT_FAILED, detail=error.message)

    def _slots(self) -> Iterator[tuple[JudgeModel, int]]:
        return product(self.judges, range(self.repeats))

    def _exchange(
        self, judge: JudgeModel, repeat: int, shown: str, replies: Replies
    ) -> tuple[list[ReadReply], JudgeCall | None]:
        """The calls of a model so far with the readings of the replies, and the call wanted next, if any."""
        n_weighed = 1 if self.read == "probabilities" else 0
        done: list[ReadReply] = []
        for attempt in range(n_weighed + self.max_reasks + 1):
            call = self._call(judge, repeat, attempt, shown, is_weighed=attempt < n_weighed)
            if call not in replies:
                return done, call
            done.append(self._reading(call, replies[call]))
            if not self._goes_on(done[-1]):
                break
        return done, None

    def _goes_on(self, reading: ReadReply) -> bool:
        """Whether another reply could mend this one."""
        if reading.call.sampling.choices:
            return reading.reason in FALLS_BACK
        return reading.reason == VERDICT_MISSING

    def _call(
        self, judge: JudgeModel, repeat: int, attempt: int, shown: str, *, is_weighed: bool
    ) -> JudgeCall:
        sampling = (
            replace(judge.sampling, choices=tuple(self.points.choices)) if is_weighed else judge.sampling
        )
        is_drawn = sampling.temperature > 0.0 and not is_weighed
        reminders = attempt - (self.read == "probabilities")
        return JudgeCall(
            judge=judge.id,
            model=judge.ref,
            prompt=shown if is_drawn or reminders <= 0 else shown + self.points.reminder(reminders),
            sampling=sampling,
            repeat=repeat,
            attempt=attempt,
            replicate=repeat * (self.max_reasks + 2) + attempt if is_drawn else 0,
        )

    def _reading(self, call: JudgeCall, reply: Reply) -> ReadReply:
        if isinstance(reply, GenerationFailure):
            return ReadReply(call=call, reason=reply.reason)
        if call.sampling.choices:
            values = {choice: self.points.scores[label] for choice, label in self.points.choices.items()}
            score = expected_value(values, reply.choice_logprobs)
            return ReadReply(call=call, score=score, reason=NO_PROBABILITIES if score is None else None)
        try:
            label = self.points.in_text(reply.text, is_cut=reply.finish_reason == "length")
        except TimeoutError:
            return ReadReply(call=call, reason=PATTERN_TIMEOUT)
        if label is None:
            return ReadReply(call=call, reason=VERDICT_MISSING)
        return ReadReply(call=call, score=self.points.scores[label])

    def _combined(self, readings: Sequence[ReadReply]) -> Verdict:
        opinions = [self._opinion(judge.id, readings) for judge in self.judges]
        note = "; ".join(
            f"{judge.id}: {found if isinstance(found, str) else self.points.shown(found)}"
            for judge, found in zip(self.judges, opinions, strict=True)
        )
        scores = [found for found in opinions if isinstance(found, float)]
        if len(scores) >= self.min_valid_judges:
            score = aggregate(scores, self.aggregation, self.points)
            return Verdict(score=score, answer=note, replies=readings)
        reason = opinions[0] if isinstance(opinions[0], str) and len(opinions) == 1 else TOO_FEW_JUDGES
        return replace(Verdict.unscored(reason, note), replies=readings)

    def _opinion(self, judge: str, readings: Sequence[ReadReply]) -> float | str:
        """One model's opinion of an output: a score or a reason."""
        last = {reading.call.repeat: reading for reading in readings if reading.call.judge == judge}
        scores = [reading.score for reading in last.values() if reading.score is not None]
        if scores:
            return aggregate(scores, self.aggregation, self.points)
        return next(reading.reason for reading in last.values() if reading.reason is not None)


def raters(judge: object) -> Iterator[Rater | Grader]:
    """The model judges within a judge: itself, or those in it and its parts."""
    if isinstance(judge, Rater | Grader):
        yield judge
    for inner in (getattr(judge, "inner", None), *getattr(judge, "parts", ())):
        if inner is not None:
            yield from raters(inner)
