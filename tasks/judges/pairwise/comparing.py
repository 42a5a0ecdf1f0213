"""The form in which a model compares two answers, shown in one order or in both.

Two identical answers are a tie, without a call.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Literal

from winnow.tasks.errors import TemplateError
from winnow.tasks.judges.asking.calls import (
    NO_PROBABILITIES,
    PROMPT_FAILED,
    VERDICT_MISSING,
    Completed,
    JudgeCall,
    PresentationOrder,
)
from winnow.tasks.judges.asking.panel import Prompts
from winnow.tasks.judges.pairwise.pair_prompt import REPLY_FORMAT, PairTemplate
from winnow.tasks.judges.pairwise.verdicts import Read, VerdictFormat
from winnow.tasks.judges.protocol import SAME_ANSWER, SIDES, Duel, Verdict
from winnow.tasks.text.canonical_json import sha256

OrderAggregation = Literal["tie", "mean"]
"""The rule for combining the two orders of a question."""

Aggregation = Literal["majority", "mean"]
"""The rule for combining several values of the same kind (repeats, then judges)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparing:
    """See `tasks.judges.asking.panel.Form`."""

    template: PairTemplate
    verdicts: VerdictFormat
    reads: Read
    presentation_orders: tuple[PresentationOrder, ...]
    order_aggregation: OrderAggregation
    aggregation: Aggregation
    weighs: bool = False

    @property
    def labels(self) -> Sequence[str]:
        """The verdict labels."""
        return self.verdicts.choices

    @property
    def identity(self) -> Mapping[str, object]:
        """The texts of its prompts, which may come from a file or change with a release."""
        return {"template": self.template.source, REPLY_FORMAT: self.verdicts.instructions(self.reads)}

    @property
    def is_deterministic(self) -> bool:
        """Whether both orders are shown; else a coin decides which answer is A."""
        return len(self.presentation_orders) == 2

    def prompts(self, subject: Duel, /) -> Prompts | Verdict:
        """The prompt of each order; a tie if both answers are identical."""
        if subject.answer_a == subject.answer_b:
            return SAME_ANSWER
        reply_format = self.verdicts.instructions(self.reads)
        try:
            return {
                order: self.template.prompt(subject, order, reply_format)
                for order in self.presentation_orders
            }
        except TemplateError as error:
            return Verdict.unscored(PROMPT_FAILED, error.message)

    def reminder(self, number: int) -> str:
        """See `VerdictFormat`."""
        return self.verdicts.reminder(number)

    def seed(self, subject: Duel, place: Sequence[object], /) -> int:
        """The seed of a call, which follows from the duel's."""
        return int(sha256([subject.seed, *place])[:8], 16) >> 1

    def read(self, call: JudgeCall, reply: Completed, /) -> tuple[float | None, str | None]:
        """The preference for A, in either order of presentation."""
        if self.reads == "probabilities":
            shown_first, reason = self.verdicts.expected(reply.choice_logprobs), NO_PROBABILITIES
        elif self.reads == "choice":
            shown_first, reason = self.verdicts.scores.get(reply.text), VERDICT_MISSING
        else:
            is_cut = reply.finish_reason == "length"
            shown_first, reason = self.verdicts.in_text(reply.text, is_cut=is_cut), VERDICT_MISSING
        if shown_first is None:
            return None, reason
        return 1.0 - shown_first if call.presentation_order == "swapped" else shown_first, None

    def of_orders(self, values: Sequence[float]) -> float:
        """See `aggregate_orders`."""
        return aggregate_orders(values, self.order_aggregation)

    def aggregated(self, values: Sequence[float]) -> float:
        """See `aggregate`."""
        return aggregate(values, self.aggregation)

    def shown(self, value: float) -> str:
        """The preferred answer."""
        return SIDES.get(value, f"{value:.3f}")


def aggregate_orders(values: Sequence[float], rule: OrderAggregation) -> float:
    """Combine the two orders of a question, or return the value of the only one.

    Under "tie", orders that prefer different answers are a tie, and so are orders of which only one prefers
    neither; orders that agree keep their mean. Under "mean" it is always the mean. A judge with a position
    preference only gives one half under both.
    """
    if rule == "tie" and len({side(value) for value in values}) > 1:
        return 0.5
    return _mean(values)


def aggregate(values: Sequence[float], rule: Aggregation) -> float:
    """Combine one or more values; a single one is returned unchanged.

    Under "majority" each value above one half is a vote for A and each below it one for B; the side with more
    than half of all values wins, otherwise it is a tie.
    """
    if rule == "mean" or len(values) == 1:
        return _mean(values)
    sides = [side(value) for value in values]
    for winner in (1, -1):
        if 2 * sides.count(winner) > len(sides):
            return (1 + winner) / 2
    return 0.5


def side(value: float) -> int:
    """1 if A is preferred, -1 if B is, 0 if neither is."""
    return (value > 0.5) - (value < 0.5)


def _mean(values: Sequence[float]) -> float:
    return fsum(values) / len(values)
