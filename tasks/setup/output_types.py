"""Checking what a campaign asks its models for: a text, or the log-likelihoods of an example's choices."""

from collections.abc import Iterator, Mapping
from typing import Any

from winnow.tasks.candidates.choices import Choices, compile_choices
from winnow.tasks.engines.providers import REMOTE
from winnow.tasks.errors import SpecError
from winnow.tasks.judges.protocol import Judge, Sample
from winnow.tasks.objectives.resolved import ResolvedCampaign
from winnow.tasks.spec.campaign import CampaignSpec, GenerateConfig

LIKELIHOOD_JUDGES = frozenset({"acc", "acc_norm"})
"""Judges that read log-likelihoods, and no text."""


def check_output_type(checked: ResolvedCampaign) -> Choices | None:
    """The choices of a campaign's examples; None where its models write texts.

    Raises:
        SpecError: If the spec's other keys do not fit its output_type, or an example has no choices, or none
            that is its target.
    """
    spec = checked.spec
    if spec.output_type == "generate":
        _refuse_without_choices(spec)
        return None
    if spec.choices is None:
        raise SpecError(
            "output_type: multiple-choice needs choices; add choices: {field: NAME}, or texts", path="choices"
        )
    _refuse_unfit(spec)
    choices = compile_choices(spec.choices, spec.target_delimiter, checked.dataset.field_names)
    for example in checked.dataset.examples:
        found = choices.of(example.fields, example.key)
        sample = Sample(output="", targets=example.targets, choices=found, loglikelihoods=[0.0] * len(found))
        if spec.judge.type in LIKELIHOOD_JUDGES and _is_unreadable(checked.judge, sample):
            raise SpecError(
                f"the target {example.targets[0]!r} of example {example.key!r} is none of its choices "
                f"({', '.join(map(repr, found))[:200]}); correct it, or choose between judge.target: text "
                "(a choice) and index (its position, from 0)",
                path="judge.target",
            )
    return choices


def _refuse_without_choices(spec: CampaignSpec) -> None:
    for key in ("choices", "target_delimiter"):
        if getattr(spec, key) is not None:
            raise SpecError(f"{key} is for output_type: multiple-choice; add that, or leave it out", path=key)
    for judge in LIKELIHOOD_JUDGES.intersection(_judge_types(spec.judge.model_dump())):
        raise SpecError(
            f"judge {judge} reads log-likelihoods of choices; add output_type: multiple-choice and choices, "
            "or choose a judge of texts",
            path="judge.type",
        )


def _refuse_unfit(spec: CampaignSpec) -> None:
    if spec.generate_configs:
        raise SpecError(
            "nothing is sampled with output_type: multiple-choice; leave generate_configs out",
            path="generate_configs",
        )
    for index, model in enumerate(spec.models):
        if model.generate_config != GenerateConfig():
            raise SpecError(
                "nothing is sampled with output_type: multiple-choice; leave it out",
                path=f"models[{index}].generate_config",
            )
        if model.chat and model.provider in REMOTE:
            raise SpecError(
                "a server tells no log-likelihoods of a chat; leave chat out, or choose provider vllm or "
                "transformers",
                path=f"models[{index}].chat",
            )
    if spec.judge.type in LIKELIHOOD_JUDGES and spec.judge.params.get("extract") is not None:
        raise SpecError(
            f"judge {spec.judge.type} reads log-likelihoods and no text; leave extract out",
            path="judge.extract",
        )


def _judge_types(value: object) -> Iterator[str]:
    """The judges that a judge's spec names, those within it too."""
    if isinstance(value, Mapping):
        if isinstance(value.get("type"), str):
            yield value["type"]
        for each in value.values():
            yield from _judge_types(each)
    elif isinstance(value, list):
        for each in value:
            yield from _judge_types(each)


def _is_unreadable(judge: Any, sample: Sample) -> bool:  # noqa: ANN401 -- of texts or of pairs
    scorer: Judge = judge
    return scorer.judge(sample).reason == "unreadable_target"
