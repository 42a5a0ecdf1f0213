"""LLM judge of duels: its parameters, and how a model compares two answers.

Answers are shown in one order or in both. Two identical answers are a tie, without a call.
`tasks.judges.asking.panel` sends the requests to models.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import fsum
from typing import Annotated, Literal

from pydantic import Field

from winnow.tasks.errors import JudgeError, TemplateError
from winnow.tasks.judges.asking.calls import (
    NO_PROBABILITIES,
    PROMPT_FAILED,
    VERDICT_MISSING,
    Completed,
    JudgeCall,
    PresentationOrder,
)
from winnow.tasks.judges.asking.judge_models import JudgeModel, check_counts, judge_models
from winnow.tasks.judges.asking.panel import Panel, Prompts
from winnow.tasks.judges.pairwise.pair_template import BUILT_IN, REPLY_FORMAT, PairTemplate, load_template
from winnow.tasks.judges.pairwise.verdicts import (
    Read,
    VerdictFormat,
    VerdictFormatName,
    mapped_format,
    named_format,
)
from winnow.tasks.judges.protocol import SAME_ANSWER, SIDES, Duel, Verdict
from winnow.tasks.spec.sections.generate_config import GenerateConfig
from winnow.tasks.text.canonical_json import sha256

OrderAggregation = Literal["tie", "mean"]
"""How to combine the two orders of a question."""

Aggregation = Literal["majority", "mean"]
"""How to combine several values of the same kind: first repeats, then judges."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparing:
    """Form of a panel that compares two answers; see `tasks.judges.asking.panel.Form`."""

    template: PairTemplate
    verdicts: VerdictFormat
    reads: Read
    presentation_orders: tuple[PresentationOrder, ...]
    order_aggregation: OrderAggregation
    aggregation: Aggregation
    weighs: bool = False

    @property
    def labels(self) -> Sequence[str]:
        """All verdict labels."""
        return self.verdicts.choices

    @property
    def identity(self) -> Mapping[str, object]:
        """Texts of the prompts, which may come from a file or change with a release."""
        return {"template": self.template.source, REPLY_FORMAT: self.verdicts.instructions(self.reads)}

    @property
    def is_deterministic(self) -> bool:
        """Whether both orders are shown; otherwise a coin decides which answer is A."""
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
        """Seed of a call, derived from the duel's seed."""
        return int(sha256([subject.seed, *place])[:8], 16) >> 1

    def read(self, call: JudgeCall, reply: Completed, /) -> tuple[float | None, str | None]:
        """The preference for A, whichever answer was shown first; else a reason."""
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
        """Name of the preferred answer, or the value if it is not 0, 0.5 or 1."""
        return SIDES.get(value, f"{value:.3f}")


def aggregate_orders(values: Sequence[float], rule: OrderAggregation) -> float:
    """Combine the values of a question's orders, or return the value of the only one.

    Under "tie", the result is a tie if the orders prefer different answers, or only one of them prefers
    neither answer; orders that agree keep their mean. Under "mean" it is always the mean. A judge that always
    prefers the same position gives 0.5 under both rules.
    """
    if rule == "tie" and len({_side(value) for value in values}) > 1:
        return 0.5
    return _mean(values)


def aggregate(values: Sequence[float], rule: Aggregation) -> float:
    """Combine one or more values; a single value is returned unchanged.

    Under "majority", a value above 0.5 is a vote for A, and a value below 0.5 a vote for B. The side with
    more than half of all values wins; otherwise the result is a tie.
    """
    if rule == "mean" or len(values) == 1:
        return _mean(values)
    sides = [_side(value) for value in values]
    for winner in (1, -1):
        if 2 * sides.count(winner) > len(sides):
            return (1 + winner) / 2
    return 0.5


def _side(value: float) -> int:
    """1 if A is preferred, -1 if B is, 0 if neither is."""
    return (value > 0.5) - (value < 0.5)


def _mean(values: Sequence[float]) -> float:
    return fsum(values) / len(values)


def llm_judge(
    *,
    models: Annotated[Sequence[Mapping[str, object]], Field(min_length=1)],
    template: str = "mt-bench",
    verdict_format: VerdictFormatName | None = None,
    score_mapping: Mapping[str, float] | None = None,
    verdict_pattern: str | None = None,
    read: Read = "text",
    position_swap: bool = True,
    order_aggregation: OrderAggregation = "tie",
    max_reasks: Annotated[int, Field(ge=0, le=10)] = 1,
    repeats: Annotated[int, Field(ge=1, le=100)] = 1,
    aggregation: Aggregation = "majority",
    min_valid_judges: Annotated[int, Field(ge=1)] = 1,
    max_tokens: Annotated[int, Field(ge=1)] = 1024,
    temperature: Annotated[float, Field(ge=0.0, le=10.0)] = 0.0,
) -> Panel[Duel]:
    """Preference of one or more language models, which see the answers in both orders.

    Args:
        models: The judge models, with the keys of a campaign's models and `judge_id`.
        template: "mt-bench", "arena-hard", "alpaca", a file that ends in .j2, .jinja, .jinja2 or .txt, or the
            text of a template; see `tasks.judges.pairwise.pair_template`.
        verdict_format: Format of the judge's verdict; by default the format of the built-in template.
        score_mapping: Your own labels instead of that format: label -> preference for the answer shown first.
        verdict_pattern: A regular expression that finds your own labels; by default [[label]].
        read: "text" reads the verdict at the end of a reply with reasoning; "choice" restricts the reply to
            one of the verdicts; "probabilities" reads the probability of each verdict, and gives outcomes
            between 0 and 1.
        position_swap: Whether every question is sent in both orders.
        order_aggregation: If the orders disagree: "tie", or the "mean" of their values.
        max_reasks: Maximum number of times that a question is sent again after a reply without a verdict.
        repeats: Number of times that every question is sent; above 1 only with a temperature above 0.
        aggregation: "majority" or "mean" over repeats and over judges.
        min_valid_judges: Minimum number of judges with an opinion for the duel to be scored.
        max_tokens: Maximum length of a reply, in tokens.
        temperature: Sampling temperature; 0 means greedy decoding.

    Raises:
        SpecError: If a parameter is invalid; the message names it and what to do.
    """
    defaults = GenerateConfig(temperature=temperature, max_tokens=max_tokens)
    judges = judge_models(models, defaults)
    check_counts(judges, repeats, min_valid_judges)
    loaded = load_template(template)
    verdicts = _verdicts(template, verdict_format, score_mapping, verdict_pattern)
    form = Comparing(
        template=loaded,
        verdicts=verdicts,
        reads=read,
        presentation_orders=("original", "swapped") if position_swap else ("original",),
        order_aggregation=order_aggregation,
        aggregation=aggregation,
    )
    return Panel(
        judges=judges if read == "text" else _choosing(judges, verdicts),
        form=form,
        max_reasks=max_reasks,
        repeats=repeats,
        min_valid_judges=min_valid_judges,
    )


def _verdicts(
    template: str,
    name: VerdictFormatName | None,
    score_mapping: Mapping[str, float] | None,
    pattern: str | None,
) -> VerdictFormat:
    if score_mapping is not None:
        if name is not None:
            raise JudgeError("set verdict_format or score_mapping, not both", "judge.verdict_format")
        return mapped_format(score_mapping, pattern)
    if pattern is not None:
        raise JudgeError("needs a score_mapping with the score of each label", "judge.verdict_pattern")
    if name is None:
        name = BUILT_IN.get(template)
    if name is None:
        raise JudgeError(
            "set the form of the template's verdicts: verdict_format '[[A]]', '[[A>>B]]' or 'm/M', or a "
            "score_mapping",
            "judge.verdict_format",
        )
    return named_format(name)


def _choosing(judges: Sequence[JudgeModel], verdicts: VerdictFormat) -> tuple[JudgeModel, ...]:
    if silent := [judge.ref.name for judge in judges if judge.ref.provider == "litellm"]:
        raise JudgeError(
            f"provider litellm of {silent[0]!r} returns no probabilities; set read: text",
            "judge.read",
        )
    try:
        return tuple(
            replace(judge, sampling=replace(judge.sampling, choices=verdicts.choices)) for judge in judges
        )
    except ValueError as error:
        raise JudgeError(str(error), "judge.score_mapping") from error
