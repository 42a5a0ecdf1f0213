"""Judge models: each scores one output, or compares two answers in both orders.

Replies become a verdict in these steps:

1. A judgment is one question to one model. If its reply has no readable verdict, the question is sent again,
at most `max_reasks` times. A new attempt has another seed. Greedy decoding ignores seeds, so its prompt ends
with a numbered reminder of the format instead. If the form requests probabilities first (`weighs`), and a
model's engine returns no usable ones, a text is requested instead. The question is not sent again if a new
reply would not help, for example after an engine's failure.
2. The values of both orders of a question become one value; if an order has no verdict, the question has
none.
3. The values of the questions (`repeats`), and then the opinions of the judges, are aggregated. With fewer
opinions than `min_valid_judges` there is no score: a missing opinion counts neither as zero nor as a tie.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Protocol, Self

from winnow.tasks.engines.protocol import GenerationFailure, ModelRef
from winnow.tasks.judges.asking.calls import (
    FALLS_BACK,
    PATTERN_TIMEOUT,
    TOO_FEW_JUDGES,
    VERDICT_MISSING,
    Completed,
    JudgeCall,
    PresentationOrder,
    ReadReply,
    Replies,
    Reply,
)
from winnow.tasks.judges.asking.judge_models import JudgeModel
from winnow.tasks.judges.protocol import Judge, SubjectT, Verdict
from winnow.tasks.text.patterns import compiled

Prompts = Mapping[PresentationOrder, str]

IN_BRACKETS = compiled(r"\[\[([^\[\]\r\n]{1,40}+)\]\]")
"""A label in double square brackets, as judges end a reply after reasoning."""


class Form(Protocol[SubjectT]):
    """Prompts about a subject, and how replies are read and aggregated."""

    @property
    def labels(self) -> Sequence[str]:
        """Verdict labels, for a model whose output is restricted to them."""

    @property
    def weighs(self) -> bool:
        """Whether to request probabilities of the labels first, and a text if they are unavailable."""

    @property
    def identity(self) -> Mapping[str, object]:
        """See `Judge`."""

    @property
    def is_deterministic(self) -> bool:
        """See `Judge`, for greedy models."""

    def prompts(self, subject: SubjectT, /) -> Prompts | Verdict:
        """The prompt for each order; or the verdict, if no call is needed."""

    def reminder(self, number: int) -> str:
        """Text added to a prompt after an unreadable reply."""

    def seed(self, subject: SubjectT, place: Sequence[object], /) -> int | None:
        """Seed of a call that is not greedy, by its place in the panel.

        None if it is derived from the campaign's seed, as in `JudgeCall`.
        """

    def read(self, call: JudgeCall, reply: Completed, /) -> tuple[float | None, str | None]:
        """Score of a reply, or the reason why it has none.

        Raises:
            TimeoutError: If a pattern takes too long.
        """

    def of_orders(self, values: Sequence[float]) -> float:
        """Aggregate the values of all orders to one value."""

    def aggregated(self, values: Sequence[float]) -> float:
        """Aggregate the values of repeats, or of judges, to one value."""

    def shown(self, value: float) -> str:
        """A value as displayed in a note."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Opinion:
    """One model's opinion: a value, or a reason why it has none."""

    value: float | None
    reason: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel(Judge[SubjectT]):
    """Judge that consists of one or more models; see the module."""

    judges: tuple[JudgeModel, ...]
    form: Form[SubjectT]
    max_reasks: int
    repeats: int
    min_valid_judges: int
    replies: Replies = field(default_factory=dict, repr=False, compare=False)
    """Replies that are already available."""

    @property
    def models(self) -> Sequence[ModelRef]:
        """See `Judge`."""
        return tuple(judge.ref for judge in self.judges)

    @property
    def identity(self) -> Mapping[str, object]:
        """See `Judge`."""
        return self.form.identity

    @property
    def is_deterministic(self) -> bool:
        """See `Judge`.

        A greedy reply is stored and read again, so the value does not depend on the engine.
        """
        return self.form.is_deterministic and all(judge.sampling.temperature == 0.0 for judge in self.judges)

    def told(self, replies: Replies, /) -> Self:
        """See `Judge`."""
        return replace(self, replies=replies)

    def calls(self, subject: SubjectT, replies: Replies, /) -> Sequence[JudgeCall]:
        """See `Judge`; the calls are for each question in each order, as far as replies allow."""
        prompts = self.form.prompts(subject)
        if isinstance(prompts, Verdict):
            return ()
        exchanges = (self._exchange(slot, subject, prompts, replies) for slot in self._slots(prompts))
        return tuple(wanted for _, wanted in exchanges if wanted is not None)

    def judge(self, subject: SubjectT, /) -> Verdict:
        """Score from the replies, or the reason why it is missing.

        Raises:
            ValueError: If a reply is still missing.
        """
        prompts = self.form.prompts(subject)
        if isinstance(prompts, Verdict):
            return prompts
        readings: list[ReadReply] = []
        for slot in self._slots(prompts):
            done, wanted = self._exchange(slot, subject, prompts, self.replies)
            if wanted is not None:
                raise ValueError(f"the verdict is not ready: judge {wanted.judge!r} has not replied yet")
            readings += done
        return self._combined(readings)

    def _slots(self, prompts: Prompts) -> Iterator[tuple[JudgeModel, int, PresentationOrder]]:
        return product(self.judges, range(self.repeats), prompts)

    def _exchange(
        self,
        slot: tuple[JudgeModel, int, PresentationOrder],
        subject: SubjectT,
        prompts: Prompts,
        replies: Replies,
    ) -> tuple[list[ReadReply], JudgeCall | None]:
        """Attempts so far at one question in one order, and the next call; None if it needs no more."""
        done: list[ReadReply] = []
        for attempt in range(self._n_weighed + self.max_reasks + 1):
            call = self._call(slot, attempt, subject, prompts)
            if call not in replies:
                return done, call
            done.append(self._reading(call, replies[call]))
            goes_on = FALLS_BACK if attempt < self._n_weighed else {VERDICT_MISSING}
            if done[-1].reason not in goes_on:
                break
        return done, None

    @property
    def _n_weighed(self) -> int:
        return 1 if self.form.weighs else 0

    def _call(
        self,
        slot: tuple[JudgeModel, int, PresentationOrder],
        attempt: int,
        subject: SubjectT,
        prompts: Prompts,
    ) -> JudgeCall:
        judge, repeat, order = slot
        is_weighed, reminders = attempt < self._n_weighed, attempt - self._n_weighed
        is_drawn = judge.sampling.temperature > 0.0 and not is_weighed
        prompt = prompts[order]
        seed = self.form.seed(subject, [judge.id, repeat, order, attempt]) if is_drawn else None
        sampling = judge.sampling
        if is_weighed:
            sampling = replace(sampling, choices=tuple(self.form.labels))
        return JudgeCall(
            judge=judge.id,
            model=judge.ref,
            prompt=prompt if is_drawn or reminders <= 0 else prompt + self.form.reminder(reminders),
            sampling=sampling,
            repeat=repeat,
            attempt=attempt,
            # Greedy decoding ignores the seed; a constant one lets stored replies be reused.
            replicate=repeat * (self.max_reasks + 2) + attempt if is_drawn and seed is None else 0,
            presentation_order=order,
            seed=seed,
        )

    def _reading(self, call: JudgeCall, reply: Reply) -> ReadReply:
        if isinstance(reply, GenerationFailure):
            return ReadReply(call=call, reason=reply.reason)
        try:
            score, reason = self.form.read(call, reply)
        except TimeoutError:
            score, reason = None, PATTERN_TIMEOUT
        return ReadReply(call=call, score=score, reason=reason)

    def _opinion(self, judge: str, readings: Sequence[ReadReply]) -> _Opinion:
        last = {
            (reading.call.repeat, reading.call.presentation_order): reading
            for reading in readings
            if reading.call.judge == judge
        }
        values: list[float] = []
        for repeat in range(self.repeats):
            verdicts = [reading.score for (number, _), reading in last.items() if number == repeat]
            known = [verdict for verdict in verdicts if verdict is not None]
            if len(known) == len(verdicts):
                values.append(self.form.of_orders(known))
        if values:
            return _Opinion(value=self.form.aggregated(values), reason=None)
        reason = next(reading.reason for reading in last.values() if reading.reason is not None)
        return _Opinion(value=None, reason=reason)

    def _combined(self, readings: Sequence[ReadReply]) -> Verdict:
        opinions = [self._opinion(judge.id, readings) for judge in self.judges]
        note = "; ".join(
            f"{judge.id}: {each.reason if each.value is None else self.form.shown(each.value)}"
            for judge, each in zip(self.judges, opinions, strict=True)
        )
        values = [each.value for each in opinions if each.value is not None]
        if len(values) >= self.min_valid_judges:
            return Verdict(score=self.form.aggregated(values), answer=note, replies=readings)
        reason = opinions[0].reason if len(opinions) == 1 else TOO_FEW_JUDGES
        return Verdict(reason=reason, answer=note, replies=readings)
