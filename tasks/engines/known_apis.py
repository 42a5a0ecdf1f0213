"""The APIs that are asked through litellm, and what a spec may say to them; this imports no litellm."""

from collections.abc import Mapping
from typing import NamedTuple


class Api(NamedTuple):
    """One of the APIs that litellm knows."""

    origin: str | None
    """The URL that it listens at; None where each customer has an address of their own."""
    variable: str
    """The environment variable that its users usually keep the key in."""
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
"""Known APIs, by the word before the first slash of a `model`, in litellm's spelling. Left out are those that
take a failed text for a finished one (cohere), and those that want more than one key."""

ARGS = frozenset(
    {"api_version", "max_completion_tokens", "reasoning_effort", "safety_settings", "service_tier",
     "thinking", "user", "verbosity"}
)  # fmt: skip
"""Keys that `model_args` may hold: none of them can name another address, key, file or piece of code."""

REMOVABLE = frozenset({"max_tokens", "seed", "temperature"})
"""Keys that a null in `model_args` may leave out of a request."""

UNKNOWN = ("min_p", "repetition_penalty", "stop_token_ids")
"""Keys of sampling that litellm has no word for."""


def api_of(model: str) -> Api | None:
    """The API of a model such as "anthropic/claude-x"; None where it is none of ours."""
    name, slash, rest = model.partition("/")
    return APIS.get(name) if slash and rest else None


def api_origin(model: str) -> str | None:
    """The URL that the API of a model listens at; None where it is not known."""
    api = api_of(model)
    return None if api is None else api.origin


def why_unaskable(model: str, *, chat: bool, model_args: Mapping[str, object]) -> tuple[str, str] | None:
    """The key of a spec by which a model cannot be asked through litellm, and why; None where it can be."""
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
