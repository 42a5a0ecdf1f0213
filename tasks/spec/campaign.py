"""What a campaign is: the fields of its YAML file, what each may hold, and which of them are its identity.

Identity fields are frozen at the first run. Everything under `execution`, the storage URL, the
budget and `reuse` may change from one run to the next: they never change what an outcome means.
"""

import math
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationInfo,
    field_validator,
    model_validator,
)

from winnow.storage.json_types import JsonObject, JsonView
from winnow.tasks.campaign.budget_kinds import Kind, limits_of, own_kind
from winnow.tasks.candidates.server_keys import BaseUrl, KeyVariable, with_servers, without_servers
from winnow.tasks.engines.providers import REMOTE
from winnow.tasks.spec.budget import Budget, BudgetSpec, refuse_unfit
from winnow.tasks.spec.execution import ExecutionSpec
from winnow.tasks.spec.prompts import FieldNames, Name, PromptSpec
from winnow.tasks.spec.reuse import Reuse
from winnow.tasks.spec.spec_model import SpecModel


def _scalar(value: object) -> object:
    """One complaint in place of one per type of a union."""
    if value is None or isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise ValueError("must be text, a finite number, true, false or null")


JsonScalar = Annotated[str | int | float | bool | None, BeforeValidator(_scalar)]

DEFAULT_STORAGE = "sqlite:///winnow.db"

Objective = Literal["best-mean", "best-duel", "certify", "route"]

OutputType = Literal["generate", "multiple-choice", "perplexity"]

FOREIGN_KEYS: dict[Objective, tuple[str, ...]] = {
    "best-mean": ("fresh_generations", "certify", "embedder", "prompt_type"),
    "best-duel": (
        "output_type",
        "choices",
        "target_delimiter",
        "history",
        "holdout",
        "certify",
        "embedder",
        "prompt_type",
    ),
    "certify": ("fresh_generations", "history", "holdout", "embedder", "prompt_type"),
    "route": ("fresh_generations", "history", "holdout", "certify"),
}
"""Keys of the file that an objective has no use for."""


class GenerateConfig(SpecModel):
    """How text is sampled."""

    temperature: float = Field(default=0.0, ge=0.0, le=10.0)
    top_p: float = Field(default=1.0, gt=0.0, le=1.0)
    top_k: int = Field(default=0, ge=0)
    """0 keeps the whole vocabulary."""
    max_tokens: int = Field(default=256, ge=1)
    stop_seqs: list[Annotated[str, Field(min_length=1)]] = []


class NamedGenerateConfig(GenerateConfig):
    """A way of sampling that candidates are crossed with; the model's own settings fill in the rest."""

    name: Name


class ReasoningSpec(SpecModel):
    """How what a model thinks is told apart from its answers, and kept beside them."""

    parser: Literal["think-tags", "server"]
    """think-tags: it stands between <think> and </think>; server: the server of provider openai tells it."""
    strip: bool = True
    """Take it out of the text that judges are given."""
    begins_inside: bool = False
    """For think-tags: a text begins within it, because the chat template or the prompt ends with <think>."""

    @model_validator(mode="after")
    def _fits_its_parser(self) -> Self:
        if self.parser == "server" and (self.begins_inside or not self.strip):
            raise ValueError("a server tells reasoning apart by itself; leave strip and begins_inside out")
        return self


class ModelSpec(SpecModel):
    """A checkpoint and the engine that runs it."""

    name: Name
    provider: str = "vllm"
    model: str = Field(min_length=1)
    """Folder of a checkpoint, or its id on a model hub; for provider openai, what the server calls it."""
    model_base_url: BaseUrl = None
    """For provider openai: the server. None is OpenAI's own."""
    api_key: KeyVariable = None
    """For provider openai: `$NAME` of the environment variable that holds the key. None is $OPENAI_API_KEY
    for OpenAI's own server, and no key for any other."""
    served_identity: Annotated[str, StringConstraints(min_length=1, max_length=200)] | None = None
    """For provider openai: what is served, such as "llama-3-8b fp16". Models of one id at different servers
    are then the same model if it is the same, and different ones if it is not; without it, each server's is
    a model of its own."""
    revision: str | None = None
    model_args: dict[str, JsonScalar] = {}
    """Passed to the engine as they are; for provider openai, put into the body of each request, null to leave
    a key out of it."""
    chat: bool = False
    """Send each prompt as the messages of a chat, through the checkpoint's chat template; a prompt that is a
    text is the one message of a user."""
    chat_template: str | None = Field(default=None, min_length=1)
    """A file with a chat template in jinja2, which takes the place of the checkpoint's own."""
    chat_template_args: dict[str, JsonScalar] = {}
    """Variables of the chat template, such as `enable_thinking`."""
    reasoning: ReasoningSpec | None = None
    """For models that think before they answer; None takes texts as they are."""
    lora: str | None = Field(default=None, min_length=1)
    """Folder of a LoRA adapter that is put on the checkpoint; all adapters of one share its engine."""
    generate_config: GenerateConfig = GenerateConfig()

    @field_validator("model_base_url", "api_key", "served_identity")
    @classmethod
    def _is_asked_at_a_server(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value is not None and info.data.get("provider") not in REMOTE:
            raise ValueError("is for provider: openai; leave it out, or choose that provider")
        return value

    @field_validator("chat_template", "chat_template_args")
    @classmethod
    def _is_for_chats(cls, value: object, info: ValidationInfo) -> object:
        if value and not info.data.get("chat"):
            raise ValueError("is for models that chat; set chat: true, or leave it out")
        return value

    @field_validator("reasoning")
    @classmethod
    def _has_who_tells_it(cls, value: ReasoningSpec | None, info: ValidationInfo) -> ReasoningSpec | None:
        if value is None or value.parser != "server":
            return value
        if info.data.get("provider") not in REMOTE or not info.data.get("chat"):
            raise ValueError(
                "parser: server is for provider: openai with chat: true; use parser: think-tags elsewhere"
            )
        return value


class GuardrailSpec(SpecModel):
    """Text put around every prompt, such as a safety rule: a jinja2 template of `prompt`."""

    name: Name
    template: str = Field(min_length=1)


class DatasetSpec(SpecModel):
    """A file of examples: .jsonl, .json, .csv or .parquet."""

    path: str = Field(min_length=1)
    fields: FieldNames = FieldNames()
    limit: int | None = Field(default=None, ge=1)


class ChoicesSpec(SpecModel):
    """Between which texts a model chooses, each of which may follow the prompt."""

    field: str | None = Field(default=None, min_length=1)
    """A list of texts in each example; `choices.text` is the key `text` of the field `choices`."""
    texts: list[Annotated[str, Field(min_length=1)]] = []
    """jinja2 templates over the fields of an example, one for each choice, in the place of `field`."""

    @model_validator(mode="after")
    def _come_from_one_place(self) -> Self:
        if (self.field is None) == (not self.texts):
            raise ValueError(
                "give one of field (a list in each example) and texts (a template for each choice)"
            )
        return self


class JudgeSpec(BaseModel):
    """A judge by name; the other keys are its parameters and are checked by the judge itself."""

    model_config = ConfigDict(extra="allow", frozen=True, strict=True)

    type: str

    @property
    def params(self) -> JsonObject:
        """The judge's own parameters."""
        return dict(self.model_extra or {})


class SelectorSpec(SpecModel):
    """An algorithm by name; its parameters are checked by the algorithm itself."""

    name: str
    params: JsonObject = {}


class AutoevaluatorSpec(SpecModel):
    """A model that answers every example in the place of a human, right or wrong."""

    model: ModelSpec
    prompt: str = Field(min_length=1)
    """A jinja2 template over the fields of an example."""
    extract: str | None = None
    """A pattern whose last match in the model's text is its answer; without it, the whole text is."""


class CertifySpec(SpecModel):
    """Which risk is allowed, what a candidate costs, and what stands in for humans."""

    alpha: float | None = Field(default=None, gt=0.0, lt=1.0)
    """The highest mean of 1 - score that a certified candidate may have."""
    drop: float | None = Field(default=None, gt=0.0, lt=1.0)
    """The highest mean of max(0, score of `baseline` - score), in the place of `alpha`."""
    baseline: str | None = None
    """Name of a candidate."""
    cost: Literal["size", "prompt-length", "price", "custom"]
    """What makes a candidate dear; see `tasks.objectives.certify.costs`."""
    costs: dict[str, Annotated[float, Field(ge=0.0)]] = {}
    """By candidate, for "price" and "custom"."""
    labellable: int | None = Field(default=None, ge=1)
    """How many examples a human may label; see `tasks.objectives.certify.split`."""
    unlabelled_per_label: int = Field(default=1, ge=1)
    """Unlabelled examples that belong to each labelled one, r."""
    autoevaluator: AutoevaluatorSpec | None = None

    @model_validator(mode="after")
    def _states_one_risk(self) -> Self:
        if (self.alpha is None) == (self.drop is None):
            raise ValueError("give one of alpha (an absolute risk) and drop (against a baseline)")
        if (self.drop is None) != (self.baseline is None):
            raise ValueError("drop and baseline go together: name the candidate that a drop is measured from")
        if bool(self.costs) != (self.cost in ("price", "custom")):
            raise ValueError("costs is for cost: price and cost: custom, which need it")
        return self

    @property
    def risk(self) -> float:
        """The risk that a certified candidate may have."""
        return self.alpha if self.alpha is not None else self.drop or 0.0


BUILT_IN_EMBEDDERS = ("transformers", "vllm", "precomputed")


class EmbedderSpec(SpecModel):
    """What makes a vector of a prompt, so that prompts that are alike can be routed alike."""

    type: str = Field(default="transformers", min_length=1)
    """One of `BUILT_IN_EMBEDDERS`, or an embedder of a package or a program."""
    model: str | None = None
    """Folder of a checkpoint; None for the sentence-embedding model that Winnow installs."""
    pooling: Literal["mean", "cls", "last"] = "mean"
    """For transformers: how the vectors of a text's tokens become one."""
    path: str | None = None
    """For precomputed: a file with the columns id and vector."""
    params: dict[str, JsonScalar] = {}
    """For an embedder of a package or a program: what it is made with."""
    text: str = Field(default="{{ input }}", min_length=1)
    """A jinja2 template over the fields of an example: what is embedded of it."""

    @model_validator(mode="after")
    def _has_what_its_type_needs(self) -> Self:
        if (self.path is not None) != (self.type == "precomputed"):
            raise ValueError("path is for type: precomputed, which needs it")
        if self.model is None and self.type == "vllm":
            raise ValueError("type: vllm needs the folder of a checkpoint as model")
        # A stored spec has every key, so that a default is as good as nothing.
        given = {key for key, field in type(self).model_fields.items() if getattr(self, key) != field.default}
        if self.type == "precomputed" and {"model", "pooling", "text"} & given:
            raise ValueError("precomputed vectors need no model, pooling or text; leave them out")
        if self.type == "vllm" and "pooling" in given:
            raise ValueError("vLLM pools as the checkpoint says; leave pooling out")
        if self.type in BUILT_IN_EMBEDDERS and self.params:
            raise ValueError("params is for an embedder of a package or a program; leave it out")
        if self.type not in BUILT_IN_EMBEDDERS and {"model", "pooling"} & given:
            raise ValueError("an embedder of a package or a program takes what it needs from params")
        return self


class StoppingSpec(SpecModel):
    """When a campaign ends: the budget is spent, or the best stands out at error probability `delta`."""

    budget: Budget
    """Comparisons whose texts could be made (for certify, human labels), or limits by name."""
    delta: float | None = Field(default=None, gt=0.0, lt=1.0)
    epsilon: float = Field(default=0.0, ge=0.0, lt=1.0)
    """A candidate this close to the best is good enough: in mean score for best-mean, and for best-duel one
    that no other beats by more than this above 1/2, where it is below 1/2."""

    @property
    def stored_budget(self) -> int | JsonObject:
        """The budget as JSON values."""
        budget = self.budget
        return budget.model_dump(exclude_none=True) if isinstance(budget, BudgetSpec) else budget


class Exclusion(SpecModel):
    """Candidates to leave out: those that match all of the names given."""

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
    """One campaign, as its file states it."""

    name: Name
    objective: Objective
    seed: int = Field(default=0, ge=0, lt=2**63)
    storage: str = DEFAULT_STORAGE
    models: list[ModelSpec] = Field(min_length=1)
    prompts: list[PromptSpec] = Field(min_length=1)
    guardrails: list[GuardrailSpec] = []
    generate_configs: list[NamedGenerateConfig] = []
    exclude: list[Exclusion] = []
    dataset: DatasetSpec
    output_type: OutputType = "generate"
    """What models are asked for: a text, how probable each choice is, or how probable the prompt is."""
    choices: ChoicesSpec | None = None
    """For multiple-choice."""
    target_delimiter: str | None = None
    """For multiple-choice: what stands between prompt and choice; None is a space, and nothing where a chat
    template ends the prompt."""
    judge: JudgeSpec
    certify: CertifySpec | None = None
    embedder: EmbedderSpec = EmbedderSpec()
    """For route."""
    prompt_type: str | None = None
    """For route: the field of an example that says of which kind its prompt is, for reports alone."""
    fresh_generations: bool = True
    """For best-duel: whether a candidate that meets an example again answers it anew."""
    selector: SelectorSpec
    history: list[str] = []
    """Score tables or `campaign:NAME`: earlier results on the same examples, for selectors that learn."""
    holdout: float | None = Field(default=None, gt=0.0, lt=1.0)
    """For best-mean: the share of the examples that selection never sees; the winner and the runner-up are
    scored on them at the end. Their comparisons are part of the budget."""
    batch_size: int = Field(default=32, ge=1)
    stopping: StoppingSpec
    fail_on_error: float = Field(default=0.5, ge=0.0, le=1.0)
    """A candidate is dropped when more than this share of its comparisons is unscored (at least 8); 1 drops
    nobody."""
    reuse: Reuse = "all"
    """Which texts of earlier campaigns are used in the place of new ones; see `tasks.campaign.reuse`."""
    execution: ExecutionSpec = ExecutionSpec()

    @field_validator("models", "prompts", "guardrails", "generate_configs")
    @classmethod
    def _unique_names(cls, entries: list[Any]) -> list[Any]:
        seen: set[str] = set()
        for entry in entries:
            if entry.name in seen:
                raise ValueError(f"the name '{entry.name}' is used twice; every name must be different")
            seen.add(entry.name)
        return entries

    @field_validator(
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
        if objective and info.field_name in FOREIGN_KEYS[objective]:
            raise ValueError(f"means nothing to {objective}; leave it out")
        return value

    @field_validator("fail_on_error")
    @classmethod
    def _ends(cls, share: float, info: ValidationInfo) -> float:
        if share == 1.0 and info.data.get("objective") == "best-duel":
            raise ValueError("must be below 1 for best-duel, since duels never run out; lower it")
        return share

    @field_validator("stopping")
    @classmethod
    def _fits_the_question(cls, stopping: StoppingSpec, info: ValidationInfo) -> StoppingSpec:
        objective = info.data.get("objective")
        if stopping.epsilon and objective in ("certify", "route"):
            raise ValueError(f"epsilon means nothing to {objective}; leave it out")
        if stopping.epsilon >= 0.5 and objective == "best-duel":
            raise ValueError(f"epsilon must be below 0.5 for best-duel, got {stopping.epsilon:g}; lower it")
        if stopping.delta is None and objective == "certify":
            raise ValueError("certify needs delta, the chance that a certificate may be wrong; add it")
        if objective and isinstance(stopping.budget, BudgetSpec):
            refuse_unfit(stopping.budget, objective)
        return stopping

    @field_validator("stopping")
    @classmethod
    def _budget_covers_a_round(cls, stopping: StoppingSpec, info: ValidationInfo) -> StoppingSpec:
        batch_size = info.data.get("batch_size", 1)
        comparisons = limits_of(stopping.stored_budget, info.data.get("objective", "")).get("comparisons")
        if comparisons is not None and comparisons < batch_size:
            raise ValueError(
                f"the budget ({comparisons}) is smaller than one round (batch_size {batch_size}); "
                "raise the budget or lower batch_size"
            )
        return stopping

    @property
    def limits(self) -> dict[Kind, float]:
        """What may be spent, by kind."""
        return limits_of(self.stopping.stored_budget, self.objective)

    @property
    def own_budget(self) -> int | None:
        """What the algorithm may spend: human labels to certify, else comparisons; None where that is all."""
        limit = self.limits.get(own_kind(self.objective))
        return None if limit is None else int(limit)

    def identity(self) -> JsonObject:
        """What may not change once the campaign has begun, as JSON values.

        To certify, the number of labels is part of it: bets look ahead to the last one, so that a budget
        raised in sight of the losses would change the bets that were made.
        """
        identity, _ = without_servers(self.model_dump(mode="json", exclude={"storage", "execution", "reuse"}))
        del identity["stopping"]["budget"]
        if self.objective == "certify":
            identity["stopping"]["budget"] = self.own_budget
        for key in FOREIGN_KEYS[self.objective]:
            del identity[key]
        # A campaign without guardrails is the same as before there were any.
        if not self.guardrails:
            del identity["guardrails"]
            for rule in identity["exclude"]:
                del rule["guardrail"]
        # A default written out would count as given, and take the place of the model's own setting.
        identity["generate_configs"] = [
            config.model_dump(mode="json", exclude_unset=True) for config in self.generate_configs
        ]
        return identity

    def execution_fields(self) -> JsonObject:
        """What may change from one run to the next, as JSON values."""
        _, servers = without_servers(self.model_dump(mode="json"))
        return {
            "budget": self.stopping.stored_budget,
            "reuse": self.model_dump(mode="json", include={"reuse"})["reuse"],
            "execution": self.execution.model_dump(mode="json"),
            **({"servers": servers} if servers else {}),
        }

    @classmethod
    def from_stored(cls, identity: JsonView, execution: JsonView, storage: str) -> Self:
        """The spec of a stored campaign: `identity()` and `execution_fields()` put together again."""
        return cls.model_validate(stored_values(identity, execution, storage))


def stored_values(identity: JsonView, execution: JsonView, storage: str) -> JsonObject:
    """The spec of a stored campaign as a file would hold it."""
    return {
        **with_servers(identity, execution.get("servers", {})),
        "stopping": {**identity["stopping"], "budget": execution["budget"]},
        "reuse": execution["reuse"],
        "execution": execution["execution"],
        "storage": storage,
    }
