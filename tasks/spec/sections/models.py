"""A model in a campaign's file: a checkpoint, the engine that runs it, and the form of its requests."""

from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, ValidationInfo, field_validator, model_validator

from winnow.tasks.engines.known_providers import REMOTE
from winnow.tasks.engines.providers import is_provider
from winnow.tasks.spec.sections.generate_config import GenerateConfig
from winnow.tasks.spec.sections.prompts import Name
from winnow.tasks.spec.spec_model import BaseUrl, FilePath, JsonScalar, JsonTree, KeyVariable, SpecModel


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

    @field_validator("model_base_url", "api_key", "served_identity")
    @classmethod
    def _is_asked_at_a_server(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value is not None and _runs_here(info):
            raise ValueError("is for provider: openai or litellm; leave it out, or choose one of them")
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
