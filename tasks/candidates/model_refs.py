"""Model references and sampling settings for engines, from the spec of a candidate or a judge.

Settings that a provider does not support raise an error with the reason.
"""

from collections.abc import Callable
from pathlib import Path

from winnow.algorithms.state.plugin_registry import object_at
from winnow.storage.plain_files import read_text
from winnow.tasks.engines.chat import Reasoning, own_template
from winnow.tasks.engines.checkpoints import adapter_rank
from winnow.tasks.engines.errors import one_sentence
from winnow.tasks.engines.known_providers import ELSEWHERE, FUNCTION, PROVIDERS, REMOTE
from winnow.tasks.engines.openai.requests import reserved_args
from winnow.tasks.engines.protocol import ModelRef, Sampling
from winnow.tasks.engines.providers import ADAPTING, is_provider, provider_names
from winnow.tasks.engines.server_keys import (
    APIS,
    UNKNOWN,
    api_of,
    base_url_of,
    is_openais_own,
    key_in,
    key_variable,
    unsupported_key,
)
from winnow.tasks.errors import SpecError, unknown_name
from winnow.tasks.spec.sections.generate_config import GenerateConfig, StructuredOutput
from winnow.tasks.spec.sections.models import AgentModelSpec, ModelSpec

IS_SCORING = "winnow.tasks.engines.external.scoring_function:is_scoring"
"""Import path of `is_scoring`, whose module only runs of `winnow.select` load."""

COMPLETING = ("gpt-3.5-turbo-instruct", "babbage-002", "davinci-002")
"""Names in completion models on OpenAI's own server, and in models fine-tuned from them."""

SERVERS = frozenset({"llama.cpp", "llamacpp", "lmstudio", "ollama", "sglang", "tgi"})
"""Servers with OpenAI's API whose names are often mistaken for providers."""


def model_ref(model: ModelSpec, place: str) -> ModelRef:
    """Reference to a model: everything needed to load it or send it requests.

    Args:
        model: The model as in the spec.
        place: The model's key in the spec, such as "models[0]".

    Raises:
        SpecError: If the provider does not exist, the folder has no checkpoint, the adapter is missing, or
            the server's key is not set.
    """
    if isinstance(model, AgentModelSpec):
        return _agent_ref(model, place)
    if not is_provider(model.provider):
        raise SpecError(_no_provider(model), path=f"{place}.provider")
    remote = model.provider in REMOTE
    if model.provider == "litellm":
        _check_litellm(model, place)
    if model.provider == "openai":
        _refuse_reserved(model, place)
    url = base_url_of(model.provider, model.model, model.model_base_url)
    variable = key_variable(url, model.api_key) if remote else None
    if variable is not None:
        _refuse_missing_key(variable, place)
    refuse_missing_function(model.provider, place)
    if model.provider not in ELSEWHERE and model.provider != FUNCTION:
        _refuse_missing_checkpoint(model.model, place)
    _check_adapter(model, place)
    template = None if model.chat_template is None else _template(model.chat_template, place)
    _check_chat(model, template, place)
    return ModelRef(
        name=model.name,
        provider=model.provider,
        model=model.model,
        revision=model.revision,
        model_args=model.model_args,
        chat=model.chat,
        chat_template=template,
        chat_template_args=model.chat_template_args,
        model_base_url=url,
        api_key=variable,
        served_identity=model.served_identity,
        lora=model.lora,
        reasoning=None
        if model.reasoning is None
        else Reasoning(model.reasoning.parser, model.reasoning.strip, model.reasoning.begins_inside),
    )


def _agent_ref(model: AgentModelSpec, place: str) -> ModelRef:
    """Reference to an agent: everything needed to run it.

    Raises:
        SpecError: If the agent cannot run on this machine.
    """
    try:
        model.settings.check()
    except ValueError as error:
        raise SpecError(str(error), path=place) from error
    return ModelRef(
        name=model.name,
        provider=model.provider,
        model=model.settings.shown,
        chat=True,
        entry=model.settings.entry,
        params=model.settings.params,
        setup=model.setup,
    )


def _no_provider(model: ModelSpec) -> str:
    """Message for an unknown provider, with what to write instead."""
    name = model.provider
    if name in APIS:
        return f"unknown provider {name!r}; its API is that of provider: litellm, model: {name}/{model.model}"
    if name in SERVERS:
        return f"unknown provider {name!r}; its server is one of provider: openai, model_base_url: URL/v1"
    return unknown_name("provider", name, provider_names())


def _check_litellm(model: ModelSpec, place: str) -> None:
    """Refuse settings that litellm does not support, or that need more than the spec sets."""
    if why := unsupported_key(model.model, chat=model.chat, model_args=model.model_args):
        raise SpecError(why[1], path=f"{place}.{why[0]}")
    api = api_of(model.model)
    assert api is not None
    if model.model_base_url is None and api.origin is None:
        raise SpecError(
            "this API has a different address for each customer, and a key is sent only to a named address; "
            "set model_base_url",
            path=f"{place}.model_base_url",
        )
    if model.model_base_url is None and model.api_key is None:
        raise SpecError(
            f"litellm receives only the key named here; set its variable, such as {api.variable}",
            path=f"{place}.api_key",
        )
    for key in ("chat_template", "chat_template_args", "revision"):
        if getattr(model, key):
            raise SpecError(f"no API of litellm accepts {key}; remove {key}", path=f"{place}.{key}")


def _refuse_reserved(model: ModelSpec, place: str) -> None:
    if taken := reserved_args(model.model_args):
        path = f"{place}.model_args.{taken[0]}"
        but = ", or set it to null for a server that takes none" if taken[0] == "seed" else ""
        raise SpecError(f"is set by Winnow in each request; remove it{but}", path=path)


def _refuse_missing_key(variable: str, place: str) -> None:
    if not key_in(variable):
        raise SpecError(
            f"the environment variable {variable} is not set; export it with the key of the server",
            path=f"{place}.api_key",
        )


def refuse_missing_function(provider: str, place: str) -> None:
    """Refuse a model that represents a program's function if that function is missing.

    Args:
        provider: The model's provider.
        place: The model's key in the spec, such as "models[0]".

    Raises:
        SpecError: If the function is missing.
    """
    if provider == FUNCTION and not object_at(IS_SCORING)():
        raise SpecError(
            "scores come from a function of a program, which is not here; continue in that program, by "
            "calling winnow.select with this storage and name",
            path=f"{place}.provider",
        )


def _refuse_missing_checkpoint(model: str, place: str) -> None:
    folder = Path(model)
    is_local = folder.is_dir() or model.startswith((".", "/", "~")) or model.count("/") != 1
    if is_local and not (folder / "config.json").is_file():
        raise SpecError(
            f"there is no checkpoint in '{model}' (looked for config.json in "
            f"{folder.absolute()}); set a saved model's folder or an id on a hub (owner/name)",
            path=f"{place}.model",
        )


def _check_adapter(model: ModelSpec, place: str) -> None:
    if model.lora is None:
        return
    if model.provider not in ADAPTING:
        able = " or ".join(sorted(ADAPTING))
        raise SpecError(
            f"provider '{model.provider}' does not support adapters; use provider {able}",
            path=f"{place}.lora",
        )
    try:
        adapter_rank(Path(model.lora))
    except ValueError as error:
        raise SpecError(str(error), path=f"{place}.lora") from error


def _template(path: str, place: str) -> str:
    try:
        return read_text(path)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or one_sentence(error)
        raise SpecError(
            f"the chat template {path} cannot be read as text ({why}); correct the path",
            path=f"{place}.chat_template",
        ) from error


def _check_chat(model: ModelSpec, template: str | None, place: str) -> None:
    """Refuse `chat: true` for a model that cannot chat, and a chat-only model without it."""
    if model.provider == "litellm":
        return
    if model.provider in REMOTE:
        completes = any(each in model.model for each in COMPLETING)
        if is_openais_own(model.model_base_url) and not (model.chat or completes):
            raise SpecError(
                f"OpenAI's own server offers {model.model} only for chats; set chat: true",
                path=f"{place}.chat",
            )
        return
    folder = Path(model.model)
    needs_one = model.chat and template is None and model.provider in PROVIDERS  # a plug-in may have its own
    if needs_one and folder.is_dir() and own_template(folder) is None:
        raise SpecError(
            f"the checkpoint in {folder} has no chat template; set chat: false, name a chat_template, or "
            "choose a checkpoint trained to chat",
            path=f"{place}.chat",
        )


HIGHEST_TEMPERATURE = {"openai": 2.0, "vllm": 2.0}
"""Maximum temperature by provider; above it, the provider refuses every request."""

UNKNOWN_TO_OPENAI = ("top_k", "min_p", "repetition_penalty", "stop_token_ids")
"""Keys that OpenAI's own server refuses; other servers may support them."""

BESIDE_DRAFTS = ("min_p", "logit_bias")
"""Keys that vLLM refuses with a draft model."""


def sampling_of(config: GenerateConfig, model: ModelSpec, place_of: Callable[[str], str]) -> Sampling:
    """Sampling settings in the form that engines use.

    Args:
        config: The settings as in the spec.
        model: The model to sample from.
        place_of: Returns the full spec key of a key of `config`.

    Raises:
        SpecError: If the provider would refuse every request, or interpret a key differently.
    """
    highest = HIGHEST_TEMPERATURE.get(model.provider, config.temperature)
    if config.temperature > highest:
        raise SpecError(
            f"provider {model.provider} accepts temperatures up to {highest:g}, got {config.temperature:g}; "
            "lower it",
            path=place_of("temperature"),
        )
    _refuse_unknown_keys(config, model, place_of)
    if config.structured_output is not None and (why := _why_unstructured(config.structured_output, model)):
        raise SpecError(why, path=place_of("structured_output"))
    return Sampling(
        temperature=config.temperature,
        top_p=config.top_p,
        top_k=config.top_k,
        max_tokens=config.max_tokens,
        stop=tuple(config.stop_seqs),
        min_p=config.min_p,
        presence_penalty=config.presence_penalty,
        frequency_penalty=config.frequency_penalty,
        repetition_penalty=config.repetition_penalty,
        logit_bias=tuple(sorted(config.logit_bias.items())),
        stop_token_ids=tuple(config.stop_token_ids),
        structure=None if config.structured_output is None else config.structured_output.structure,
        logprobs=config.logprobs,
    )


def _refuse_unknown_keys(config: GenerateConfig, model: ModelSpec, place_of: Callable[[str], str]) -> None:
    refused: dict[str, str] = {}
    if _is_openais(model):
        refused = dict.fromkeys(UNKNOWN_TO_OPENAI, "OpenAI's own server has no such setting; remove it")
    if model.provider == "litellm":
        refused = dict.fromkeys(UNKNOWN, "litellm has no such setting; remove it")
        refused["logprobs"] = "log-probabilities are not available through litellm; remove logprobs"
        if (api := api_of(model.model)) and not api.top_k:
            refused["top_k"] = "litellm sends top_k only to anthropic and gemini; remove top_k"
    if model.provider == "vllm" and model.model_args.get("speculative_config") is not None:
        why = "vLLM has no such setting with speculative_config; remove one of the two"
        refused = dict.fromkeys(BESIDE_DRAFTS, why)
    for key, why in refused.items():
        if getattr(config, key) != GenerateConfig.model_fields[key].default:
            raise SpecError(why, path=place_of(key))


def _why_unstructured(given: StructuredOutput, model: ModelSpec) -> str | None:
    """Reason why output cannot be restricted to a structure; None if no reason is known."""
    if model.provider == "transformers":
        return "provider transformers does not support structured output; choose provider vllm, or remove it"
    if model.reasoning is not None and model.reasoning.parser == "think-tags":
        return "the whole output must have this form, so the model cannot think before; remove reasoning"
    if model.provider == "litellm" and given.structure.kind != "json_schema":
        return "litellm supports only json_schema; set json_schema, or choose provider vllm"
    if not _is_openais(model):
        return None
    if given.structure.kind != "json_schema":
        return "OpenAI's own server supports only json_schema; set json_schema, or choose provider vllm"
    return None if model.chat else "OpenAI's own server supports a json_schema only in chats; set chat: true"


def _is_openais(model: ModelSpec) -> bool:
    return model.provider == "openai" and is_openais_own(model.model_base_url)
