"""Models of an LLM judge: the keys of a campaign's models, and an id."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import ValidationError, model_validator
from pydantic_core import ErrorDetails

from winnow.tasks.candidates.model_refs import model_ref, sampling_of
from winnow.tasks.engines.protocol import ModelRef, Sampling
from winnow.tasks.errors import JudgeError, unknown_name
from winnow.tasks.spec.sections.generate_config import GenerateConfig
from winnow.tasks.spec.sections.models import ModelSpec
from winnow.tasks.spec.sections.prompts import Name
from winnow.tasks.spec.spec_model import SECRET

_PLACE = "judge.models"


class JudgeModelSpec(ModelSpec):
    """A judge model; `judge_id` or `name` alone serves as both.

    Its `generate_config` overrides the judge's `temperature` and `max_tokens`.
    """

    judge_id: Name

    @model_validator(mode="before")
    @classmethod
    def _one_name_is_enough(cls, values: object) -> object:
        if isinstance(values, Mapping) and ("name" in values) != ("judge_id" in values):
            name = values.get("name", values.get("judge_id"))
            return {**values, "name": name, "judge_id": name}
        return values


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeModel:
    """Checked model of a judge."""

    id: str
    """Id of the model, unique in its judge."""
    ref: ModelRef
    """The model to load."""
    sampling: Sampling
    """Sampling settings of its replies."""


def judge_models(specs: Sequence[Mapping[str, object]], defaults: GenerateConfig) -> tuple[JudgeModel, ...]:
    """Check and convert the models of a judge.

    Args:
        specs: The models as in the spec.
        defaults: Sampling settings of replies, unless a model sets its own.

    Raises:
        SpecError: If a model is invalid; the message names the model, the key and what to do.
    """
    judges = tuple(judge_model(spec, defaults, f"{_PLACE}[{index}]") for index, spec in enumerate(specs))
    for index, judge in enumerate(judges):
        for other in judges[:index]:
            _refuse_confusion(judge, other, f"{_PLACE}[{index}]")
    return judges


def check_counts(judges: Sequence[JudgeModel], repeats: int, min_valid_judges: int) -> None:
    """Refuse repeats without randomness, and more required opinions than judges.

    Raises:
        JudgeError: If a count is invalid; the message names the parameter and what to do.
    """
    if min_valid_judges > len(judges):
        raise JudgeError(
            f"must be at most the number of models ({len(judges)}), got {min_valid_judges}",
            "judge.min_valid_judges",
        )
    greedy = [judge.id for judge in judges if judge.sampling.temperature == 0.0]
    if repeats > 1 and greedy:
        raise JudgeError(
            f"{greedy[0]!r} is greedy, so {repeats} repeats would be equal; set a temperature or repeats: 1",
            "judge.repeats",
        )


def _refuse_confusion(judge: JudgeModel, other: JudgeModel, place: str) -> None:
    if judge.id == other.id:
        raise JudgeError(f"the id {judge.id!r} is used twice; give every judge its own", f"{place}.judge_id")
    if judge.ref.name == other.ref.name and judge.ref != other.ref:
        raise JudgeError(f"two models have the name {judge.ref.name!r}; rename one", f"{place}.name")


def judge_model(given: Mapping[str, object], defaults: GenerateConfig, place: str) -> JudgeModel:
    """Check and convert one model of a judge; `place` is its key in the spec.

    Raises:
        SpecError: As `judge_models` does.
    """
    spec = _checked(given, place)
    ref = model_ref(spec, place)
    own = spec.generate_config.given()
    if own.get("structured_output") is not None:
        raise JudgeError(
            "a judge sets the form of its models' replies itself; remove structured_output",
            f"{place}.generate_config.structured_output",
        )

    def place_of(key: str) -> str:
        return f"{place}.generate_config.{key}" if key in own else f"judge.{key}"

    config = defaults.model_copy(update=own)
    return JudgeModel(id=spec.judge_id, ref=ref, sampling=sampling_of(config, spec, place_of))


def _checked(spec: Mapping[str, object], place: str) -> JudgeModelSpec:
    try:
        return JudgeModelSpec.model_validate(spec)
    except ValidationError as error:
        detail = error.errors()[0]
        key = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in detail["loc"])
        raise JudgeError(_sentence(detail), f"{place}{key}") from error


def _sentence(detail: ErrorDetails) -> str:
    if detail["type"] == "extra_forbidden":
        model = JudgeModelSpec if len(detail["loc"]) == 1 else GenerateConfig
        return unknown_name("key", str(detail["loc"][-1]), model.model_fields)
    if detail["type"] == "missing":
        return "is missing; add it"
    message = detail["msg"].removeprefix("Value error, ").replace("Input should", "must", 1)
    return message if detail["type"] == SECRET else f"{message}, got {detail['input']!r}"
