"""Models that compare two answers, each shown them in both orders.

How judgments become an outcome, from the inside out:

1. A judgment is one question to one model, asked again where its reply has no readable verdict, at most
   `max_reasks` times. Another attempt has another seed; a greedy one, which a seed would not change, has a
   numbered reminder of the format at the end of its prompt. What a new reply would not mend (an engine's
   failure, missing probabilities) is not asked again.
2. The orders of a question are aggregated (`order_aggregation`); if one has no verdict, the question has
   none.
3. The questions that have one (`repeats`) and then the judges that have an opinion are aggregated
   (`aggregation`). With fewer judges than `min_valid_judges` the duel is unscored: silence is not a tie.

Two answers that are the same, character for character, are a tie, and no model is asked.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from winnow.tasks.engines.protocol import ModelRef
from winnow.tasks.errors import TemplateError
from winnow.tasks.judges.asking.calls import PROMPT_FAILED, TOO_FEW_JUDGES, VERDICT_MISSING, Reply
from winnow.tasks.judges.asking.judge_models import JudgeModel
from winnow.tasks.judges.pairwise.order_aggregation import (
    Aggregation,
    OrderAggregation,
    aggregate,
    aggregate_orders,
)
from winnow.tasks.judges.pairwise.pair_prompt import REPLY_FORMAT, PairTemplate
from winnow.tasks.judges.pairwise.protocol import (
    Duel,
    Judgment,
    JudgmentCall,
    PairVerdict,
    PresentationOrder,
)
from winnow.tasks.judges.pairwise.verdicts import Read, VerdictFormat, read_reply
from winnow.tasks.text.canonical_json import sha256

_NAMES = {1.0: "A", 0.0: "B", 0.5: "tie"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Opinion:
    """One model's opinion of a duel: a value or a reason."""

    judge: str
    value: float | None
    reason: str | None

    def __str__(self) -> str:
        said = self.reason if self.value is None else _NAMES.get(self.value, f"{self.value:.3f}")
        return f"{self.judge}: {said}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """A pair judge made of models; see the module."""

    judges: tuple[JudgeModel, ...]
    template: PairTemplate
    verdicts: VerdictFormat
    read: Read
    presentation_orders: tuple[PresentationOrder, ...]
    order_aggregation: OrderAggregation
    aggregation: Aggregation
    max_reasks: int
    repeats: int
    min_valid_judges: int

    @property
    def models(self) -> tuple[ModelRef, ...]:
        """The models it calls."""
        return tuple(judge.ref for judge in self.judges)

    @property
    def identity(self) -> Mapping[str, object]:
        """The texts of its prompts, which may come from a file or change with a release."""
        return {"template": self.template.source, REPLY_FORMAT: self.verdicts.instructions(self.read)}

    @property
    def is_deterministic(self) -> bool:
        """Whether every judge is greedy and sees both orders.

        A greedy reply is stored once and read again, so this does not rest on the engine. Where one order is
        shown alone, the coin that decides which answer is A makes the verdict random.
        """
        return len(self.presentation_orders) == 2 and all(
            judge.sampling.temperature == 0.0 for judge in self.judges
        )

    def calls(self, duel: Duel, replies: Mapping[JudgmentCall, Reply]) -> list[JudgmentCall]:
        """The calls still wanted: every question in every order first, then those to be asked again."""
        if duel.answer_a == duel.answer_b:
            return []
        try:
            prompts = self._prompts(duel)
        except TemplateError:  # the verdict says so
            return []
        rallies = (self._rally(slot, duel, prompts, replies) for slot in self._slots())
        return [wanted for _, wanted in rallies if wanted is not None]

    def verdict(self, duel: Duel, replies: Mapping[JudgmentCall, Reply]) -> PairVerdict:
        """The outcome of all judgments, or the reason why there is none.

        Raises:
            ValueError: If `calls` still wants a reply.
        """
        if duel.answer_a == duel.answer_b:
            return PairVerdict(outcome=0.5, answer="the same answer twice")
        try:
            prompts = self._prompts(duel)
        except TemplateError as error:
            return PairVerdict(reason=PROMPT_FAILED, answer=error.message)
        judgments: list[Judgment] = []
        for slot in self._slots():
            played, wanted = self._rally(slot, duel, prompts, replies)
            if wanted is not None:
                raise ValueError(f"the verdict is not ready: judge {wanted.judge!r} has not replied yet")
            judgments += played
        return self._combined([self._opinion(judge.id, judgments) for judge in self.judges], tuple(judgments))

    def _prompts(self, duel: Duel) -> dict[PresentationOrder, str]:
        reply_format = self.verdicts.instructions(self.read)
        return {
            presentation_order: self.template.prompt(duel, presentation_order, reply_format)
            for presentation_order in self.presentation_orders
        }

    def _slots(self) -> Iterator[tuple[JudgeModel, int, PresentationOrder]]:
        return product(self.judges, range(self.repeats), self.presentation_orders)

    def _rally(
        self,
        slot: tuple[JudgeModel, int, PresentationOrder],
        duel: Duel,
        prompts: Mapping[PresentationOrder, str],
        replies: Mapping[JudgmentCall, Reply],
    ) -> tuple[list[Judgment], JudgmentCall | None]:
        """The attempts at one question in one order so far, and the call that is wanted next, if any."""
        judge, repeat, presentation_order = slot
        judgments: list[Judgment] = []
        for attempt in range(self.max_reasks + 1):
            call = self._call(
                judge, repeat, presentation_order, attempt, duel.seed, prompts[presentation_order]
            )
            if call not in replies:
                return judgments, call
            judgments.append(read_reply(call, replies[call], self.verdicts, self.read))
            if judgments[-1].reason != VERDICT_MISSING:
                break
        return judgments, None

    def _call(
        self,
        judge: JudgeModel,
        repeat: int,
        presentation_order: PresentationOrder,
        attempt: int,
        seed: int,
        prompt: str,
    ) -> JudgmentCall:
        greedy = judge.sampling.temperature == 0.0
        key = [seed, judge.id, repeat, presentation_order, attempt]
        return JudgmentCall(
            judge=judge.id,
            model=judge.ref,
            prompt=prompt + self.verdicts.reminder(attempt) if greedy and attempt else prompt,
            sampling=judge.sampling,
            # Greedy text does not depend on a seed: with one and the same, stored replies are used again.
            seed=0 if greedy else int(sha256(key)[:8], 16) >> 1,
            presentation_order=presentation_order,
            repeat=repeat,
            attempt=attempt,
        )

    def _opinion(self, judge: str, judgments: Sequence[Judgment]) -> _Opinion:
        last = {
            (judgment.repeat, judgment.presentation_order): judgment
            for judgment in judgments
            if judgment.judge == judge
        }
        values: list[float] = []
        for repeat in range(self.repeats):
            verdicts = [
                last[repeat, presentation_order].verdict for presentation_order in self.presentation_orders
            ]
            known = [verdict for verdict in verdicts if verdict is not None]
            if len(known) == len(verdicts):
                values.append(aggregate_orders(known, self.order_aggregation))
        if values:
            return _Opinion(judge=judge, value=aggregate(values, self.aggregation), reason=None)
        reason = next(judgment.reason for judgment in last.values() if judgment.reason is not None)
        return _Opinion(judge=judge, value=None, reason=reason)

    def _combined(self, opinions: Sequence[_Opinion], judgments: tuple[Judgment, ...]) -> PairVerdict:
        note = "; ".join(map(str, opinions))
        values = [opinion.value for opinion in opinions if opinion.value is not None]
        if len(values) >= self.min_valid_judges:
            outcome = aggregate(values, self.aggregation)
            return PairVerdict(outcome=outcome, answer=note, judgments=judgments)
        reason = opinions[0].reason if len(opinions) == 1 else TOO_FEW_JUDGES
        return PairVerdict(reason=reason, answer=note, judgments=judgments)
