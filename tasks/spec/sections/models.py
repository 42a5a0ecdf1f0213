"""A model or an agent in a campaign's file."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Annotated, Literal, Self, Union

from pydantic import (
    Field,
    SerializeAsAny,
    StringConstraints,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    create_model,
    field_validator,
    model_validator,
)
from pydantic_core import InitErrorDetails, PydanticCustomError

from winnow.storage.json_types import JsonObject
from winnow.tasks.engines.agents.kit.engine import provider_of
from winnow.tasks.engines.agents.kit.settings import AgentSettings
from winnow.tasks.engines.known_providers import AGENTS, REMOTE, is_agent
from winnow.tasks.engines.providers import is_provider
from winnow.tasks.spec.sections.generate_config import GenerateConfig
from winnow.tasks.spec.sections.prompts import Name
from winnow.tasks.spec.shorthands import crossed, models_of
from winnow.tasks.spec.spec_model import (
    SECRET,
    BaseUrl,
    FilePath,
    JsonScalar,
    JsonTree,
    KeyVariable,
    SpecModel,
)


class ReasoningSpec(SpecModel):
    """How to separate a model's reasoning from its answer; both are stored."""

    parser: Literal["think-tags", "server"]
    """think-tags: the reasoning is between <think> and </think>. server: the server, of provider openai or
    litellm, returns it separately.
    """
    strip: bool = True
    """Whether judges receive the output without the reasoning."""
    begins_inside: bool = False
    """For think-tags: whether an output begins inside the reasoning, because the chat template or the prompt
    ends with <think>.
    """

    @model_validator(mode="after")
    def _fits_its_parser(self) -> Self:
        if self.parser == "server" and (self.begins_inside or not self.strip):
            raise ValueError(
                "parser: server leaves the separation to the server; remove strip and begins_inside"
            )
        return self


class ModelSpec(SpecModel):
    """A checkpoint and the engine that runs it."""

    name: Name
    provider: str = "vllm"
    model: FilePath = Field(min_length=1)
    """Folder of a checkpoint, or its id on a model hub.
    For provider openai, the model's name on the server; for litellm, API/MODEL, such as anthropic/claude-x.
    """
    model_base_url: BaseUrl = None
    """For provider openai or litellm: base URL of the server.
    None is the URL of OpenAI, or of the API.
    """
    api_key: KeyVariable = None
    """For provider openai or litellm: `$NAME` of the environment variable with the API key. None is
    $OPENAI_API_KEY for OpenAI's own server under provider openai, and no key for any other server.
    """
    served_identity: Annotated[str, StringConstraints(min_length=1, max_length=200)] | None = None
    """For provider openai or litellm: a text that identifies the served model, such as "llama-3-8b fp16".
    Models with the same id on different servers count as the same model if and only if this text is the
    same. Without it, each server has a model of its own.
    """
    revision: str | None = None
    model_args: dict[str, JsonTree] = {}
    """Arguments passed to the engine unchanged.
    For provider openai, they are put into the body of each request, and null omits a key; for litellm, a few
    arguments of its calls are allowed, see the documentation.
    """
    chat: bool = False
    """Whether to send each prompt as chat messages, through the checkpoint's chat template; a text prompt
    becomes one user message.
    """
    chat_template: FilePath | None = Field(default=None, min_length=1)
    """File with a jinja2 chat template that replaces the checkpoint's own."""
    chat_template_args: dict[str, JsonScalar] = {}
    """Variables of the chat template, such as `enable_thinking`."""
    reasoning: ReasoningSpec | None = None
    """For models that reason before they answer: how to separate the reasoning.
    None leaves outputs unchanged.
    """
    lora: FilePath | None = Field(default=None, min_length=1)
    """Folder of a LoRA adapter for the checkpoint; all adapters of one checkpoint share its engine."""
    generate_config: GenerateConfig = GenerateConfig()

    @field_validator("provider")
    @classmethod
    def _is_for_models(cls, provider: str) -> str:
        if is_agent(provider) and not issubclass(cls, AgentModelSpec):
            raise ValueError(
                f"{provider} is a provider of agents, which can only be candidates under models; choose a "
                "provider of models"
            )
        return provider

    @field_validator("model_base_url", "api_key", "served_identity")
    @classmethod
    def _applies_to_servers(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value is not None and _runs_here(info):
            raise ValueError(
                "is only for provider: openai or litellm; remove it, or choose one of these providers"
            )
        return value

    @field_validator("chat_template", "chat_template_args")
    @classmethod
    def _applies_to_chats(cls, value: object, info: ValidationInfo) -> object:
        if value and not info.data.get("chat"):
            raise ValueError("is only for chat models; set chat: true, or remove it")
        return value

    @field_validator("reasoning")
    @classmethod
    def _is_separable(cls, value: ReasoningSpec | None, info: ValidationInfo) -> ReasoningSpec | None:
        if value is None or value.parser != "server":
            return value
        if _runs_here(info) or not info.data.get("chat"):
            raise ValueError(
                "parser: server needs provider: openai or litellm and chat: true; set these, or use parser: "
                "think-tags"
            )
        return value


def _runs_here(info: ValidationInfo) -> bool:
    """Whether a model's provider uses no server.

    False for an unknown provider, which has its own error.
    """
    provider = info.data.get("provider")
    return provider is not None and provider not in REMOTE and is_provider(provider)


class AgentModelSpec(ModelSpec):
    """An agent: a program, endpoint or function, with its provider's keys."""

    model: FilePath = ""

    @model_validator(mode="after")
    def _has_no_keys_of_models(self) -> Self:
        for key in OF_MODELS:
            if getattr(self, key) != ModelSpec.model_fields[key].default and key in self.model_fields_set:
                raise ValueError(
                    f"{key} needs a model, and provider {self.provider} runs no model; remove {key}"
                )
        return self

    @property
    def settings(self) -> AgentSettings:
        """The agent's keys as an instance of its provider's settings class."""
        assert isinstance(self, AgentSettings)
        return self

    @property
    def setup(self) -> JsonObject:
        """The agent's settings as JSON values."""
        keys = set(provider_of(self.provider).settings.model_fields)
        return self.model_dump(mode="json", include=keys)


OF_MODELS = (
    "model_base_url",
    "api_key",
    "served_identity",
    "revision",
    "model_args",
    "chat",
    "chat_template",
    "chat_template_args",
    "reasoning",
    "lora",
)
"""Keys that models have and agents do not."""


@cache
def agent_class(provider: str) -> type[AgentModelSpec]:
    """Create the class that validates agents of a provider."""
    settings = provider_of(provider).settings
    found: type[AgentModelSpec] = create_model(
        f"{provider.title()}Agent",
        __base__=(settings, AgentModelSpec),  # type: ignore[arg-type]  # the settings are keys of it
        __doc__=settings.__doc__,
        provider=(Literal[provider], ...),  # type: ignore[arg-type]  # known at run time
    )
    return found


def knobs_of(model: Mapping[str, object]) -> tuple[str, ...]:
    """Keys of an agent, other than server keys, that can change between runs.

    Empty for a model.
    """
    provider = model.get("provider")
    return provider_of(str(provider)).settings.KNOBS if is_agent(provider) else ()


def _of_its_provider(value: object, handler: ValidatorFunctionWrapHandler) -> object:
    """Validate a model or an agent with the class of its provider."""
    if isinstance(value, AgentModelSpec):
        return value
    if isinstance(value, Mapping) and is_agent(value.get("provider")):
        return agent_class(str(value["provider"])).model_validate(dict(value))
    return handler(value)


def each_crossed(given: object, handler: ValidatorFunctionWrapHandler) -> object:
    """Expand each agent of a file into one for each combination of its `params`.

    An error that occurs in several combinations is reported once, at the entry's position in the file.
    """
    listed = models_of(given)
    if not isinstance(listed, list):
        return handler(listed)
    found = [(place, each) for place, entry in enumerate(listed) for each in crossed(entry)]
    try:
        return handler([each for _, each in found])
    except ValidationError as error:
        raise _moved(error, [place for place, _ in found]) from None


def _moved(error: ValidationError, places: Sequence[int]) -> ValidationError:
    """Replace list indices in validation errors by positions in the file; drop duplicates."""
    moved: dict[tuple[object, ...], InitErrorDetails] = {}
    for each in error.errors():
        first, *rest = each["loc"] or (None,)
        loc = (places[first], *rest) if isinstance(first, int) else each["loc"]
        kind: str | PydanticCustomError = each["type"]
        if each["type"] == SECRET:
            kind = PydanticCustomError(SECRET, each["msg"])
        details = InitErrorDetails(type=kind, loc=loc, input=each["input"], ctx=each.get("ctx", {}))
        moved.setdefault((loc, each["msg"]), details)
    return ValidationError.from_exception_data(error.title, list(moved.values()))


def places_of(models: Sequence[ModelSpec]) -> list[str]:
    """The key in the file of each model, such as "models[0]".

    All combinations of one entry have the same key.
    """
    entries = [getattr(each, "entry", None) or each.name for each in models]
    order = list(dict.fromkeys(entries))
    return [f"models[{order.index(entry)}]" for entry in entries]


if TYPE_CHECKING:
    _Any = ModelSpec | AgentModelSpec
else:
    _Any = Union[ModelSpec, *(agent_class(provider) for provider in sorted(AGENTS))]

AnyModel = Annotated[SerializeAsAny[ModelSpec], WrapValidator(_of_its_provider, json_schema_input_type=_Any)]
"""A model, or an agent."""
