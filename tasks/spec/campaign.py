"""Keys of a campaign's YAML file with their types, and those of its identity.

Identity fields are fixed at the first run. The storage URL, the budget, `reuse`, `tags` and everything under
`execution` can change between runs, because they never change the meaning of an outcome.
"""

from collections.abc import Iterator
from copy import deepcopy
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from winnow.storage.json_types import JsonObject, JsonView
from winnow.storage.objectives import OBJECTIVES, Kind, traits_of
from winnow.tasks.engines.server_keys import SERVER_KEYS
from winnow.tasks.spec.judge_tree import SPARE, JudgeNode, judge_tree, judging_models
from winnow.tasks.spec.sections.budget import Budget, BudgetSpec, refuse_unfit
from winnow.tasks.spec.sections.dataset import DatasetSpec, TaskSpec
from winnow.tasks.spec.sections.execution import ExecutionSpec, Reuse
from winnow.tasks.spec.sections.generate_config import NamedGenerateConfig, Samples
from winnow.tasks.spec.sections.models import AgentModelSpec, AnyModel, each_crossed, knobs_of
from winnow.tasks.spec.sections.objectives import CertifySpec, ConstraintSpec, EmbedderSpec, GroupsSpec
from winnow.tasks.spec.sections.prompts import Name, PromptSpec
from winnow.tasks.spec.shorthands import (
    dataset_of,
    judge_of,
    prompts_of,
    selector_of,
    with_defaults,
)
from winnow.tasks.spec.spec_model import SAME_NAME, FilePath, SpecModel, StorageUrl
from winnow.tasks.spec.stored_spec import DEFAULT_STORAGE, limits_of, own_kind
from winnow.tasks.spec.types_alone import read_by_types

if TYPE_CHECKING:
    Objective = str
else:
    Objective = Literal[*OBJECTIVES]

OutputType = Literal["generate", "multiple-choice", "loglikelihood", "perplexity"]

MOST_AHEAD = 1000
"""Maximum of `lookahead`: rounds in flight behind the current one."""

ONE_TEXT_A_DUEL = (
    "a duel compares one output of each candidate; for several outputs use several duels "
    "(fresh_generations); remove samples"
)


NO_IDENTITY = {"storage", "execution", "reuse", "tags"}
"""Keys that can change between runs, in addition to the budget."""


class GuardrailSpec(SpecModel):
    """Text around every prompt, such as a safety rule.

    `template` is a jinja2 template with the variable `prompt`.
    """

    name: Name
    template: str = Field(min_length=1)


class ChoicesSpec(SpecModel):
    """Answer choices of a multiple-choice prompt, each a possible continuation of it."""

    field: str | None = Field(default=None, min_length=1)
    """Field of an example with its list of choices; `choices.text` is the key `text` of the field
    `choices`.
    """
    texts: list[Annotated[str, Field(min_length=1)]] = []
    """Instead of `field`: jinja2 templates over the fields of an example, one for each choice."""

    @model_validator(mode="after")
    def _come_from_one_place(self) -> Self:
        if (self.field is None) == (not self.texts):
            raise ValueError(
                "give exactly one of field (a list in each example) and texts (a template for each choice)"
            )
        return self


class JudgeSpec(BaseModel):
    """A judge's name and parameters; the judge itself checks the parameters."""

    model_config = ConfigDict(extra="allow", frozen=True, strict=True)

    type: str

    @property
    def params(self) -> JsonObject:
        """The judge's own parameters."""
        return {key: value for key, value in (self.model_extra or {}).items() if key != SPARE}

    @property
    def spare(self) -> object:
        """Value of the key `spare`, which names the verdicts that are not requested.

        None if every verdict is requested.
        """
        return (self.model_extra or {}).get(SPARE)

    @property
    def judging_all(self) -> "JudgeSpec":
        """The same judge without the key `spare`, so that every verdict is requested."""
        return JudgeSpec(type=self.type, **self.params)

    def tree(self, place: str = "judge") -> JudgeNode:
        """The judge with all nested judges and models; `place` is its key in the file."""
        return judge_tree({"type": self.type, **self.params}, place)


Part = TypeVar("Part")
Listed = Annotated[list[Part | str], Field(min_length=1)] | str
"""A list of parts of the file, each of which can be a short text; a single text is a list of one."""

Judge = Annotated[JudgeSpec, BeforeValidator(judge_of, json_schema_input_type=JudgeSpec | str)]


class MetricSpec(SpecModel):
    """A further judge whose values are reported; they affect decisions only by constraints."""

    name: Name
    judge: Judge


class SelectorSpec(SpecModel):
    """A selector's name and parameters; the selector itself checks the parameters."""

    name: str
    params: JsonObject = {}


def _auto_or_number(value: object, number: ValidatorFunctionWrapHandler) -> object:
    """Validate a number or "auto" with one error message, not one for each type."""
    if value == "auto":
        return value
    if isinstance(value, str) and value.strip().casefold() == "auto":
        raise ValueError("write auto, in small letters")
    return number(value)


if TYPE_CHECKING:
    Epsilon = float | Literal["auto"]
    Lookahead = int | Literal["auto"]
else:
    Epsilon = Annotated[
        float,
        Field(ge=0.0, lt=1.0),
        WrapValidator(
            _auto_or_number,
            json_schema_input_type=Annotated[float, Field(ge=0.0, lt=1.0)] | Literal["auto"],
        ),
        PlainSerializer(lambda value: value, return_type=float | str),
    ]
    Lookahead = Annotated[
        int,
        Field(ge=0, le=MOST_AHEAD),
        WrapValidator(
            _auto_or_number,
            json_schema_input_type=Annotated[int, Field(ge=0, le=MOST_AHEAD)] | Literal["auto"],
        ),
        PlainSerializer(lambda value: value, return_type=int | str),
    ]


class StoppingSpec(SpecModel):
    """Conditions that end a campaign: a spent budget, or an answer with error probability `delta`."""

    budget: Budget | None = None
    """Maximum number of comparisons (for certify, of human labels), or limits by name.
    Comparisons whose outputs could not be generated do not count. For best-mean, None allows every candidate
    on every example.
    """
    delta: float | None = Field(default=None, gt=0.0, lt=1.0)
    ties: Literal["open", "resolve"] | None = None
    """For champion and race: "open" ends the campaign once no other candidate can have a higher mean;
    "resolve" continues until it is known which candidates have the same mean. The default is "open".
    """
    epsilon: Epsilon = 0.0
    """Tolerance within which a candidate is good enough.
    For best-mean: distance of its mean score from the best; "auto" is computed from the number of examples
    when the campaign begins. For best-duel, below 1/2: no other candidate beats it with a preference above
    1/2 plus this.
    """

    @property
    def stored_budget(self) -> int | JsonObject:
        """The budget as JSON values; an empty mapping if the file sets no budget."""
        if self.budget is None:
            return {}
        budget = self.budget
        return budget.model_dump(exclude_none=True) if isinstance(budget, BudgetSpec) else budget


class Exclusion(SpecModel):
    """Candidates to exclude: all that match every name given here."""

    model: str | None = None
    prompt: str | None = None
    guardrail: str | None = None
    generate_config: str | None = None

    @model_validator(mode="after")
    def _names_something(self) -> Self:
        if not any((self.model, self.prompt, self.guardrail, self.generate_config)):
            raise ValueError("must name a model, a prompt, a guardrail or a generate_config")
        return self


class CampaignSpec(SpecModel):
    """A campaign as defined by its file."""

    name: Name
    objective: Objective
    seed: int = Field(default=0, ge=0, lt=2**63)
    storage: StorageUrl = DEFAULT_STORAGE
    models: Annotated[
        list[AnyModel], WrapValidator(each_crossed, json_schema_input_type=Listed[AnyModel])
    ] = Field(min_length=1)
    """Each entry is a mapping, or a text such as openai:gpt-x, http://host/v1#served-name, ./folder or a
    model id of a hub.
    """
    prompts: Annotated[
        list[PromptSpec], BeforeValidator(prompts_of, json_schema_input_type=Listed[PromptSpec])
    ]
    """Each entry is a mapping, or only a template.
    Can be left out if all models are agents.
    """
    guardrails: list[GuardrailSpec] = []
    generate_configs: list[NamedGenerateConfig] = []
    exclude: list[Exclusion] = []
    dataset: Annotated[
        DatasetSpec, BeforeValidator(dataset_of, json_schema_input_type=DatasetSpec | str | list[str])
    ]
    output_type: OutputType = "generate"
    """Output requested from models: generated text, or log-likelihoods of the choices, the target or the
    prompt.
    """
    choices: ChoicesSpec | None = None
    """For multiple-choice: the answer choices."""
    target_delimiter: str | None = None
    """For multiple-choice and loglikelihood: text between the prompt and a choice or target. None is a space,
    or no text if a chat template ends the prompt."""
    samples: Samples = None
    """Not for best-duel: number of outputs per candidate and example, and how their scores are reduced to
    one. A number alone requests that many outputs and takes the mean of their scores.
    """
    judge: Judge
    metrics: list[MetricSpec] = []
    """Not for best-duel: further judges, whose means are reported in addition to the score."""
    constraints: list[ConstraintSpec] = []
    """For best-mean: bounds on the means of metrics, all of which the best candidate must meet."""
    certify: CertifySpec | None = None
    embedder: EmbedderSpec = EmbedderSpec()
    """For route: the embedder that turns prompts into vectors."""
    prompt_type: str | None = None
    """For route: field of an example that names the type of its prompt; used only in reports."""
    fresh_generations: bool = True
    """For best-duel: whether a candidate generates a new output when an example is repeated."""
    selector: Annotated[SelectorSpec, BeforeValidator(selector_of, json_schema_input_type=SelectorSpec | str)]
    history: list[FilePath] = []
    """Earlier results on the same examples, for selectors that learn from them: score tables or
    `campaign:NAME`.
    """
    groups: GroupsSpec | None = None
    """For best-mean: candidates are compared by a weighted mean of group means, or by the lowest group mean.
    The groups are groups of examples.
    """
    holdout: float | None = Field(default=None, gt=0.0, lt=1.0)
    """For best-mean: share of the examples that selection does not use.
    At the end the winner and the runner-up are scored on them; these comparisons are part of the budget.
    """
    batch_size: int = Field(default=32, ge=1)
    lookahead: Lookahead = 0
    """For best-mean: number of further rounds that are sent to the engines before the current one is
    finished. A round is planned from the scores observed so far. "auto" is computed when the campaign begins,
    from the number of concurrent requests of the engines and the number of pairs.
    """
    streaming: bool = True
    """Whether new requests join those that an engine is working on.
    If false, an engine receives one group of `execution.group_size` requests after another, and the groups
    are the same in every run.
    """
    stopping: StoppingSpec
    fail_on_error: float = Field(default=0.5, ge=0.0, le=1.0)
    """A candidate is dropped once it has at least 8 comparisons and more than this share of them is unscored;
    1 drops no candidate.
    """
    reuse: Reuse = "all"
    """Stored outputs that can be used instead of generating new ones; see `tasks.campaign.reuse`."""
    tags: list[Annotated[str, Field(min_length=1)]] = []
    """For best-mean: fields of examples; reports show separate scores for each value of such a field."""
    execution: ExecutionSpec = ExecutionSpec()

    @model_validator(mode="before")
    @classmethod
    def _with_defaults(cls, values: object) -> object:
        return with_defaults(values)

    @field_validator("models", "prompts", "guardrails", "generate_configs", "metrics")
    @classmethod
    def _unique_names(cls, entries: list[Any]) -> list[Any]:
        seen: dict[str, int] = {}
        for number, entry in enumerate(entries):
            if entry.name in seen:
                raise PydanticCustomError(
                    SAME_NAME,
                    "the name '{name}' is used twice; every name must be different",
                    {"name": entry.name, "entries": (seen[entry.name], number)},
                )
            seen[entry.name] = number
        return entries

    @field_validator("prompts")
    @classmethod
    def _are_there_for_models(cls, prompts: list[PromptSpec], info: ValidationInfo) -> list[PromptSpec]:
        models = info.data.get("models")
        if not prompts and models and not all(isinstance(each, AgentModelSpec) for each in models):
            raise ValueError("must have at least 1 entry: a model needs a prompt, and only agents need none")
        return prompts

    @field_validator("judge")
    @classmethod
    def _spares_for_best_mean(cls, judge: JudgeSpec, info: ValidationInfo) -> JudgeSpec:
        objective = info.data.get("objective")
        if judge.spare is not None and objective and not traits_of(objective).scores_a_benchmark:
            raise ValueError(
                f"{SPARE} is only for best-mean: {objective} needs every verdict; remove {SPARE}"
            )
        return judge

    @field_validator("lookahead")
    @classmethod
    def _is_for_best_mean(cls, rounds: int | str, info: ValidationInfo) -> int | str:
        objective = info.data.get("objective")
        if rounds and objective and "lookahead" in traits_of(objective).unused_keys:
            raise ValueError(
                f"is only for best-mean: {objective} plans each round from all earlier results; remove "
                "lookahead"
            )
        return rounds

    @field_validator(
        "samples",
        "metrics",
        "constraints",
        "groups",
        "tags",
        "output_type",
        "choices",
        "target_delimiter",
        "fresh_generations",
        "history",
        "holdout",
        "certify",
        "embedder",
        "prompt_type",
    )
    @classmethod
    def _fits_the_objective(cls, value: object, info: ValidationInfo) -> object:
        objective = info.data.get("objective")
        if value is None or not objective or info.field_name not in traits_of(objective).unused_keys:
            return value
        if info.field_name == "samples":
            raise ValueError(ONE_TEXT_A_DUEL)
        fitting = [each for each in OBJECTIVES if info.field_name not in traits_of(each).unused_keys]
        instead = f", or write objective: {fitting[0]}" if len(fitting) == 1 else ""
        raise ValueError(f"does not apply to {objective}; remove it{instead}")

    @field_validator("fail_on_error")
    @classmethod
    def _ends(cls, share: float, info: ValidationInfo) -> float:
        objective = info.data.get("objective")
        if share == 1.0 and objective and traits_of(objective).compares_pairs:
            raise ValueError(f"must be below 1 for {objective}, since duels never run out; lower it")
        return share

    @field_validator("stopping")
    @classmethod
    def _fits_the_question(cls, stopping: StoppingSpec, info: ValidationInfo) -> StoppingSpec:
        if not (objective := info.data.get("objective")):
            return stopping
        traits = traits_of(objective)
        if stopping.budget is None and traits.default_selector is None:
            raise ValueError(f"{objective} needs a budget; add stopping.budget")
        if stopping.epsilon and not traits.takes_epsilon:
            raise ValueError(f"epsilon does not apply to {objective}; remove epsilon")
        if stopping.epsilon != "auto" and stopping.epsilon >= 0.5 and traits.compares_pairs:
            raise ValueError(f"epsilon must be below 0.5 for {objective}, got {stopping.epsilon:g}; lower it")
        if stopping.delta is None and traits.measures_risk:
            raise ValueError(
                f"{objective} needs delta, the probability that a certificate is wrong; add delta"
            )
        if isinstance(stopping.budget, BudgetSpec):
            refuse_unfit(stopping.budget, objective)
        return stopping

    @field_validator("stopping")
    @classmethod
    def _budget_covers_a_round(cls, stopping: StoppingSpec, info: ValidationInfo) -> StoppingSpec:
        batch_size = info.data.get("batch_size", 1)
        comparisons = limits_of(stopping.stored_budget, info.data.get("objective")).get("comparisons")
        if comparisons is not None and comparisons < batch_size:
            raise ValueError(
                f"the budget ({comparisons}) is smaller than one round (batch_size {batch_size}); "
                "raise the budget or lower batch_size"
            )
        return stopping

    @property
    def limits(self) -> dict[Kind, float]:
        """Limits on spending, by kind."""
        return limits_of(self.stopping.stored_budget, self.objective)

    @property
    def own_budget(self) -> int | None:
        """The limit on what the selector counts; None for no limit.

        A selector counts human labels for certify, and comparisons for other objectives.
        """
        limit = self.limits.get(own_kind(self.objective))
        return None if limit is None else int(limit)

    @property
    def texts_each(self) -> int:
        """Number of outputs per candidate and example."""
        return 1 if self.samples is None else self.samples.n

    def identity(self) -> JsonObject:
        """The fields that are fixed once the campaign has begun, as JSON values.

        For certify, the number of labels is included: every bet depends on it, so raising the budget after
        seeing losses would change earlier bets.
        """
        identity, _ = without_servers(self.model_dump(mode="json", exclude=NO_IDENTITY))
        del identity["stopping"]["budget"]
        del identity["stopping"]["ties"]  # a rule that the campaign keeps
        if traits_of(self.objective).measures_risk:
            identity["stopping"]["budget"] = self.own_budget
        for key in traits_of(self.objective).unused_keys:
            identity.pop(key, None)
        for key in ("samples", "metrics", "constraints", "groups"):
            if not getattr(self, key):
                identity.pop(key, None)
        if self.dataset.cluster is None:
            del identity["dataset"]["cluster"]
        if not self.dataset.images:
            del identity["dataset"]["images"]
        # A campaign without guardrails is the same as before there were any.
        if not self.guardrails:
            del identity["guardrails"]
            for rule in identity["exclude"]:
                del rule["guardrail"]
        if self.streaming:
            del identity["streaming"]
        else:  # outputs can depend on the other requests of the same call
            identity["execution"] = {"group_size": self.execution.group_size}
        # A default written out would count as set in the file, and replace the model's own setting.
        identity["generate_configs"] = [
            config.model_dump(mode="json", exclude_unset=True) for config in self.generate_configs
        ]
        return identity

    def execution_fields(self) -> JsonObject:
        """The fields that can change between runs, as JSON values."""
        _, servers = without_servers(self.model_dump(mode="json"))
        execution = self.execution.model_dump(mode="json")
        for key in ("allow_missing", "allow_all_zero"):
            if not execution[key]:  # stored as before there was such a key
                del execution[key]
        if execution["canaries"]:
            del execution["canaries"]
        if execution["currency"] is None:
            del execution["currency"]
        return {
            "budget": self.stopping.stored_budget,
            "reuse": self.model_dump(mode="json", include={"reuse"})["reuse"],
            "execution": execution,
            **({"tags": self.tags} if self.tags else {}),
            **({"servers": servers} if servers else {}),
        }

    @classmethod
    def from_stored(cls, identity: JsonView, execution: JsonView, storage: str) -> Self:
        """Read a stored campaign's spec, from `identity()` and `execution_fields()`.

        Only its types are checked; see `tasks.spec.types_alone`.
        """
        return read_by_types(cls, stored_values(identity, execution, storage))


class CampaignFile(CampaignSpec):
    """The keys of a campaign's file: those of a campaign, and `task`, which sets several of them."""

    task: TaskSpec | None = None
    """A benchmark that sets dataset, prompts, output_type and judge.
    The file can also set filter, limit, sample and shuffle under dataset, and prompts and a judge that
    replace those of the benchmark.
    """


def stored_values(identity: JsonView, execution: JsonView, storage: str) -> JsonObject:
    """The keys of a campaign's file, from the stored identity and settings."""
    return {
        **with_servers(identity, execution.get("servers", {})),
        "stopping": {**identity["stopping"], "budget": execution["budget"]},
        "reuse": execution["reuse"],
        "execution": execution["execution"],
        **({"tags": execution["tags"]} if "tags" in execution else {}),
        "storage": storage,
    }


def judges_of(spec: CampaignSpec) -> Iterator[JudgeNode]:
    """The judges of a campaign and its metrics, including nested judges."""
    yield from spec.judge.tree().walk()
    for index, metric in enumerate(spec.metrics):
        yield from metric.judge.tree(f"metrics[{index}].judge").walk()


def without_servers(spec: JsonView) -> tuple[JsonObject, JsonObject]:
    """Split a spec, as JSON values, into one without server keys, and these keys.

    The server keys are those of models, by the model's key in storage.
    """
    bare = deepcopy(dict(spec))
    servers: dict[str, JsonObject] = {}
    for place, model in _models(bare):
        taken = {key: model.pop(key, None) for key in (*SERVER_KEYS, *knobs_of(model))}
        if given := {key: value for key, value in taken.items() if value is not None}:
            servers[place] = given
    return bare, servers


def with_servers(spec: JsonView, servers: JsonView) -> JsonObject:
    """The inverse of `without_servers`."""
    whole = deepcopy(dict(spec))
    for place, model in _models(whole):
        model.update(servers.get(place, {}))
    return whole


def _models(spec: JsonView) -> Iterator[tuple[str, JsonObject]]:
    """Yield each model's mapping with its key in storage.

    Malformed models of judges are skipped.
    """
    for model in spec.get("models", []):
        yield f"models.{model['name']}", model
    yield from judging_models(spec)
    if autoevaluator := (spec.get("certify") or {}).get("autoevaluator"):
        yield "autoevaluator", autoevaluator["model"]
