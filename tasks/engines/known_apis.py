"""APIs reached through litellm, and the settings a spec may pass to them; imports no litellm."""

from collections.abc import Mapping
from typing import NamedTuple


class Api(NamedTuple):
    """One of the APIs that litellm supports."""

    origin: str | None
    """Its base URL; None if each customer has a separate address."""
    variable: str
    """Environment variable in which its users usually keep the key."""
    top_k: bool = False
    """Whether litellm passes `top_k` on to it."""


APIS: Mapping[str, Api] = {
    "anthropic": Api("https://api.anthropic.com", "$ANTHROPIC_API_KEY", top_k=True),
    "azure": Api(None, "$AZURE_API_KEY"),
    "bedrock": Api(None, "$AWS_BEARER_TOKEN_BEDROCK"),
    "deepseek": Api("https://api.deepseek.com", "$DEEPSEEK_API_KEY"),
    "fireworks_ai": Api("https://api.fireworks.ai", "$FIREWORKS_API_KEY"),
    "gemini": Api("https://generativelanguage.googleapis.com", "$GEMINI_API_KEY", top_k=True),
    "groq": Api("https://api.groq.com", "$GROQ_API_KEY"),
    "mistral": Api("https://api.mistral.ai", "$MISTRAL_API_KEY"),
    "openai": Api("https://api.openai.com", "$OPENAI_API_KEY"),
    "openrouter": Api("https://openrouter.ai", "$OPENROUTER_API_KEY"),
    "together_ai": Api("https://api.together.xyz", "$TOGETHERAI_API_KEY"),
    "xai": Api("https://api.x.ai", "$XAI_API_KEY"),
}
"""Known APIs, by the part of `model` before the first slash, in litellm's spelling. Excluded are APIs that
report a failed text as finished (cohere), and those that need more than one key."""

ARGS = frozenset(
    {"api_version", "max_completion_tokens", "reasoning_effort", "safety_settings", "service_tier",
     "thinking", "user", "verbosity"}
)  # fmt: skip
"""Keys allowed in `model_args`: none of them can set another address, key, file or piece of code."""

REMOVABLE = frozenset({"max_tokens", "seed", "temperature"})
"""Keys that a null in `model_args` removes from a request."""

UNKNOWN = ("min_p", "repetition_penalty", "stop_token_ids")
"""Sampling keys that litellm does not support."""


def api_of(model: str) -> Api | None:
    """API of a model such as "anthropic/claude-x"; None if it is not among `APIS`."""
    name, slash, rest = model.partition("/")
    return APIS.get(name) if slash and rest else None


def api_origin(model: str) -> str | None:
    """Base URL of a model's API; None if it is not known."""
    api = api_of(model)
    return None if api is None else api.origin


def why_unaskable(model: str, *, chat: bool, model_args: Mapping[str, object]) -> tuple[str, str] | None:
    """Key of a spec that prevents a model's use through litellm, and the reason; None if nothing does."""
    if api_of(model) is None:
        return "model", f"provider litellm wants API/MODEL, where API is one of {', '.join(APIS)}"
    if not chat:
        return "chat", "provider litellm is for models that chat; set chat: true"
    removed = {key for key, value in model_args.items() if value is None}
    if unknown := sorted((model_args.keys() - ARGS) - (removed & REMOVABLE)):
        return (
            "model_args",
            f"provider litellm takes no {unknown[0]!a}; it takes {', '.join(sorted(ARGS))}, and null for "
            f"{', '.join(sorted(REMOVABLE))}",
        )
    return None
