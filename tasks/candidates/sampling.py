"""From a way of sampling in a spec to what an engine is asked for, or why its provider cannot do that."""

from collections.abc import Callable

from winnow.tasks.candidates.server_keys import is_openais_own
from winnow.tasks.engines.litellm.apis import UNKNOWN, api_of
from winnow.tasks.engines.protocol import Sampling
from winnow.tasks.errors import SpecError
from winnow.tasks.spec.sections.generate_config import GenerateConfig, StructuredOutput
from winnow.tasks.spec.sections.models import ModelSpec

HIGHEST_TEMPERATURE = {"openai": 2.0, "vllm": 2.0}
"""Provider -> the temperature above which it refuses every request."""

UNKNOWN_TO_OPENAI = ("top_k", "min_p", "repetition_penalty", "stop_token_ids")
"""Keys that OpenAI's own server refuses; those of others may know them."""

BESIDE_DRAFTS = ("min_p", "logit_bias")
"""Keys that vLLM refuses where another model drafts the tokens."""


def sampling_of(config: GenerateConfig, model: ModelSpec, place_of: Callable[[str], str]) -> Sampling:
    """How text is sampled, as an engine takes it.

    Args:
        config: As in the spec.
        model: Which is to be sampled from.
        place_of: Where a key of `config` stands in the spec.

    Raises:
        SpecError: If the provider would refuse every request, or take a key for something else.
    """
    highest = HIGHEST_TEMPERATURE.get(model.provider, config.temperature)
    if config.temperature > highest:
        raise SpecError(
            f"provider {model.provider} takes temperatures up to {highest:g}, got {config.temperature:g}; "
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
    )


def _refuse_unknown_keys(config: GenerateConfig, model: ModelSpec, place_of: Callable[[str], str]) -> None:
    refused: dict[str, str] = {}
    if _is_openais(model):
        refused = dict.fromkeys(UNKNOWN_TO_OPENAI, "OpenAI's own server has no such setting; leave it out")
    if model.provider == "litellm":
        refused = dict.fromkeys(UNKNOWN, "litellm has no word for it; leave it out")
        if (api := api_of(model.model)) and not api.top_k:
            refused["top_k"] = "litellm passes it on to anthropic and gemini alone; leave it out"
    if model.provider == "vllm" and model.model_args.get("speculative_config") is not None:
        why = "vLLM has no such setting where speculative_config drafts the tokens; leave one of the two out"
        refused = dict.fromkeys(BESIDE_DRAFTS, why)
    for key, why in refused.items():
        if getattr(config, key) != GenerateConfig.model_fields[key].default:
            raise SpecError(why, path=place_of(key))


def _why_unstructured(given: StructuredOutput, model: ModelSpec) -> str | None:
    """Why texts of a model cannot be held to a structure; None where they can, as far as is known."""
    if model.provider == "transformers":
        return "provider transformers holds no text to a structure; choose provider vllm, or leave it out"
    if model.reasoning is not None and model.reasoning.parser == "think-tags":
        return "the whole text is held to it, so that a model cannot think before; leave reasoning out"
    if model.provider == "litellm" and given.structure.kind != "json_schema":
        return "litellm holds texts to a json_schema alone; give that, or choose provider vllm"
    if not _is_openais(model):
        return None
    if given.structure.kind != "json_schema":
        return "OpenAI's own server holds texts to a json_schema alone; give that, or choose provider vllm"
    return None if model.chat else "OpenAI's own server holds chats alone to a json_schema; set chat: true"


def _is_openais(model: ModelSpec) -> bool:
    return model.provider == "openai" and is_openais_own(model.model_base_url)
