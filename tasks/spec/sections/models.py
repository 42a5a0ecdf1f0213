"""A model in a campaign's file: a checkpoint, its engine and the form of its requests; or an agent."""

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
    """How to separate a model's reasoning from its answers; the reasoning is stored next to them."""

    parser: Literal["think-tags", "server"]
    """think-tags: the reasoning is between <think> and </think>; server: the server of provider openai or
    litellm returns it."""
    strip: bool = True
    """Remove the reasoning from the output for judges."""
    begins_inside: bool = False
    """For think-tags: an output begins within the reasoning, because chat template or prompt ends with
    <think>."""

    @model_validator(mode="after")
    def _fits_its_parser(self) -> Self:
        if self.parser == "server" and (self.begins_inside or not self.strip):
            raise ValueError("a server separates the reasoning itself; remove strip and begins_inside")
        return self


class ModelSpec(SpecModel):
    """A checkpoint and the engine that runs it."""

    name: Name
    provider: str = "vllm"
    model: FilePath = Field(min_length=1)
    """Folder of a checkpoint, or its id on a model hub; for provider openai, the server's name for it; for
    litellm, API/MODEL, such as anthropic/claude-x."""
    model_base_url: BaseUrl = None
    """For provider openai or litellm: URL of the server. None is OpenAI's own, or that of the API."""
    api_key: KeyVariable = None
    """For provider openai or litellm: `$NAME` of the environment variable with the key. None is
    $OPENAI_API_KEY for OpenAI's own server under provider openai, and no key for any other."""
    served_identity: Annotated[str, StringConstraints(min_length=1, max_length=200)] | None = None
    """For provider openai or litellm: what is served, such as "llama-3-8b fp16". Models with one id on
    different servers are the same model if this text is the same, and different ones if it is not; without
    it, each server has its own model."""
    revision: str | None = None
    model_args: dict[str, JsonTree] = {}
    """Passed to the engine unchanged; for provider openai, put into the body of each request, null to omit a
    key; for litellm, a few arguments of its calls, see the documentation."""
    chat: bool = False
    """Send each prompt as the messages of a chat, through the checkpoint's chat template; a text prompt
    becomes one user message."""
    chat_template: FilePath | None = Field(default=None, min_length=1)
    """A file with a chat template in jinja2, which replaces the checkpoint's own."""
    chat_template_args: dict[str, JsonScalar] = {}
    """Variables of the chat template, such as `enable_thinking`."""
    reasoning: ReasoningSpec | None = None
    """For models that reason before they answer; None leaves outputs unchanged."""
    lora: FilePath | None = Field(default=None, min_length=1)
    """Folder of a LoRA adapter applied to the checkpoint; all adapters of one checkpoint share its engine."""
    generate_config: GenerateConfig = GenerateConfig()

    @field_validator("provider")
    @classmethod
    def _is_for_models(cls, provider: str) -> str:
        if is_agent(provider) and not issubclass(cls, AgentModelSpec):
            raise ValueError(f"{provider} is for the candidates under models; choose a provider of models")
        return provider

    @field_validator("model_base_url", "api_key", "served_identity")
    @classmethod
    def _is_asked_at_a_server(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value is not None and _runs_here(info):
            raise ValueError(
                "is only for provider: openai or litellm; remove it, or choose one of these providers"
            )
        return value

    @field_validator("chat_template", "chat_template_args")
    @classmethod
    def _is_for_chats(cls, value: object, info: ValidationInfo) -> object:
        if value and not info.data.get("chat"):
            raise ValueError("is only for chat models; set chat: true, or remove it")
        return value

    @field_validator("reasoning")
    @classmethod
    def _has_who_tells_it(cls, value: ReasoningSpec | None, info: ValidationInfo) -> ReasoningSpec | None:
        if value is None or value.parser != "server":
            return value
        if _runs_here(info) or not info.data.get("chat"):
            raise ValueError(
                "parser: server is for provider: openai or litellm with chat: true; use parser: think-tags "
                "elsewhere"
            )
        return value


def _runs_here(info: ValidationInfo) -> bool:
    """Whether a model's provider uses no server; False for an unknown provider, which is reported instead."""
    provider = info.data.get("provider")
    return provider is not None and provider not in REMOTE and is_provider(provider)


class AgentModelSpec(ModelSpec):
    """An agent: a program, an endpoint or a function; its keys are those of its provider."""

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
        """The agent's keys as an object of its provider's settings class."""
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
"""Keys of a model that an agent does not have."""


@cache
def agent_class(provider: str) -> type[AgentModelSpec]:
    """Create the class that validates an agent's entry: the keys of all agents and those of its provider."""
    settings = provider_of(provider).settings
    found: type[AgentModelSpec] = create_model(
        f"{provider.title()}Agent",
        __base__=(settings, AgentModelSpec),  # type: ignore[arg-type]  # the settings are keys of it
        __doc__=settings.__doc__,
        provider=(Literal[provider], ...),  # type: ignore[arg-type]  # known at run time
    )
    return found


def knobs_of(model: Mapping[str, object]) -> tuple[str, ...]:
    """Keys of a model's mapping, besides those of its server, that may change between runs."""
    provider = model.get("provider")
    return provider_of(str(provider)).settings.KNOBS if is_agent(provider) else ()


def _of_its_provider(value: object, handler: ValidatorFunctionWrapHandler) -> object:
    """Validate an entry with the class of its provider."""
    if isinstance(value, AgentModelSpec):
        return value
    if isinstance(value, Mapping) and is_agent(value.get("provider")):
        return agent_class(str(value["provider"])).model_validate(dict(value))
    return handler(value)


def each_crossed(given: object, handler: ValidatorFunctionWrapHandler) -> object:
    """Expand each agent in a file's list of models into one agent for each combination of its `params`.

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
    """The place in the file of each model, such as "models[0]"; combinations of one entry share it."""
    entries = [getattr(each, "entry", None) or each.name for each in models]
    order = list(dict.fromkeys(entries))
    return [f"models[{order.index(entry)}]" for entry in entries]


if TYPE_CHECKING:
    _Any = ModelSpec | AgentModelSpec
else:
    _Any = Union[ModelSpec, *(agent_class(provider) for provider in sorted(AGENTS))]

AnyModel = Annotated[SerializeAsAny[ModelSpec], WrapValidator(_of_its_provider, json_schema_input_type=_Any)]
"""A model, or an agent."""
