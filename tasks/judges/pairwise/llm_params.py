"""The parameters of the LLM judge of duels; see `tasks.judges.asking.panel`."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated

from pydantic import Field

from winnow.tasks.errors import JudgeError
from winnow.tasks.judges.asking.judge_models import JudgeModel, check_counts, judge_models
from winnow.tasks.judges.asking.panel import Panel
from winnow.tasks.judges.pairwise.comparing import Aggregation, Comparing, OrderAggregation
from winnow.tasks.judges.pairwise.pair_prompt import BUILT_IN, load_template
from winnow.tasks.judges.pairwise.verdicts import (
    Read,
    VerdictFormat,
    VerdictFormatName,
    mapped_format,
    named_format,
)
from winnow.tasks.judges.protocol import Duel
from winnow.tasks.spec.sections.generate_config import GenerateConfig


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
    """One or more language models prefer an answer, shown both orders; orders that disagree are a tie.

    Args:
        models: The judges, with the keys of a campaign's models and `judge_id`.
        template: "mt-bench", "arena-hard", "alpaca", a file that ends in .j2, .jinja, .jinja2 or .txt, or the
            text of a template; see `tasks.judges.pairwise.pair_prompt`.
        verdict_format: Format of the judge's verdict; by default that which a built-in template is for.
        score_mapping: Labels of one's own in its place: label -> preference for the answer shown first.
        verdict_pattern: A regular expression that finds those labels; by default [[label]].
        read: The verdict that ends a reasoned text, one of the verdicts by constrained decoding, or the
            verdicts' probabilities, which make outcomes between 0 and 1.
        position_swap: Whether every question is asked in both orders.
        order_aggregation: Orders that disagree are a "tie", or the "mean" is taken.
        max_reasks: Number of times that a reply without a verdict is requested again, at most.
        repeats: Number of times that every question is asked; above 1 only at a temperature.
        aggregation: "majority" or "mean" over repeats and over judges.
        min_valid_judges: Judges that must have an opinion for the duel to be scored.
        max_tokens: Length of a reply, in tokens.
        temperature: 0 is greedy.

    Raises:
        SpecError: Naming the parameter, what is wrong and what to do.
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
            raise JudgeError("give a verdict_format or a score_mapping, not both", "judge.verdict_format")
        return mapped_format(score_mapping, pattern)
    if pattern is not None:
        raise JudgeError("needs a score_mapping with the score of each label", "judge.verdict_pattern")
    if name is None:
        name = BUILT_IN.get(template)
    if name is None:
        raise JudgeError(
            "give the form of the template's verdicts: verdict_format '[[A]]', '[[A>>B]]' or 'm/M', or a "
            "score_mapping",
            "judge.verdict_format",
        )
    return named_format(name)


def _choosing(judges: Sequence[JudgeModel], verdicts: VerdictFormat) -> tuple[JudgeModel, ...]:
    if silent := [judge.ref.name for judge in judges if judge.ref.provider == "litellm"]:
        raise JudgeError(
            f"litellm tells no probabilities, and {silent[0]!r} is asked through it; set read: text",
            "judge.read",
        )
    try:
        return tuple(
            replace(judge, sampling=replace(judge.sampling, choices=verdicts.choices)) for judge in judges
        )
    except ValueError as error:
        raise JudgeError(str(error), "judge.score_mapping") from error
