"""Base URL and API key of a served model, and the APIs that litellm reaches; imports no litellm.

A server may move to another port during a campaign, so both settings are stored among the execution fields,
by the key of their model. A campaign's identity holds each model's first server. A spec never holds an API
key, only the name of its environment variable.
"""

import os
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlsplit


class Api(NamedTuple):
    """One of the APIs that litellm supports."""

    origin: str | None
    """Base URL of the API; None if each customer has a different address."""
    variable: str
    """Environment variable that usually holds the key."""
    top_k: bool = False
    """Whether litellm passes `top_k` to the API."""
    base: str | None = None
    """Base URL to give to litellm; None if all versions of litellm use the same one by default."""


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
    "together_ai": Api("https://api.together.xyz", "$TOGETHERAI_API_KEY", base="https://api.together.xyz/v1"),
    "xai": Api("https://api.x.ai", "$XAI_API_KEY"),
}
"""Known APIs, by the part of `model` before the first slash, as litellm spells it. APIs that report a failed
text as finished (cohere) or need more than one key are excluded."""

ARGS = frozenset(
    {"api_version", "max_completion_tokens", "reasoning_effort", "safety_settings", "service_tier",
     "thinking", "user", "verbosity"}
)  # fmt: skip
"""Keys allowed in `model_args`; none of them can set another address, key, file or code."""

REMOVABLE = frozenset({"max_tokens", "seed", "temperature"})
"""Keys that a null in `model_args` removes from a request."""

UNKNOWN = ("min_p", "repetition_penalty", "stop_token_ids")
"""Sampling keys that litellm does not support."""


def api_of(model: str) -> Api | None:
    """API of a model such as "anthropic/claude-x"; None if it is not among `APIS`."""
    name, slash, rest = model.partition("/")
    return APIS.get(name) if slash and rest else None


def api_origin(model: str) -> str | None:
    """Base URL of a model's API; None if the API is unknown or has no common address."""
    api = api_of(model)
    return None if api is None else api.origin


def unsupported_key(model: str, *, chat: bool, model_args: Mapping[str, object]) -> tuple[str, str] | None:
    """Key of a spec that litellm does not support, with a message; None if it supports all."""
    if api_of(model) is None:
        return "model", f"provider litellm needs API/MODEL, with API one of {', '.join(APIS)}"
    if not chat:
        return "chat", "provider litellm supports only chat models; set chat: true"
    removed = {key for key, value in model_args.items() if value is None}
    if unknown := sorted((model_args.keys() - ARGS) - (removed & REMOVABLE)):
        return (
            "model_args",
            f"provider litellm does not accept {unknown[0]!a}; it accepts "
            f"{', '.join(sorted(ARGS))}, and null for {', '.join(sorted(REMOVABLE))}",
        )
    return None


DEFAULT_VARIABLE = "$OPENAI_API_KEY"

OPENAI_URL = "https://api.openai.com/v1"

DEFAULT_PORTS = {"http": 80, "https": 443}

SERVER_KEYS = ("model_base_url", "api_key")


def server_url(base_url: str | None) -> str:
    """Normal form of a server's base URL: lower-case host, no default port.

    Two host names of one machine count as two servers, because Winnow cannot recognise that they are the
    same.
    """
    parts = urlsplit(base_url or OPENAI_URL)
    host = parts.hostname or ""
    if ":" in host:
        host = f"[{host}]"
    if parts.port not in (None, DEFAULT_PORTS.get(parts.scheme)):
        host = f"{host}:{parts.port}"
    return f"{parts.scheme}://{host}{parts.path.rstrip('/')}"


def base_url_of(provider: object, model: object, base_url: str | None) -> str | None:
    """Base URL of a model's server, from its spec; None means OpenAI's own.

    Raises:
        ValueError: If the model's API is unknown or has no common address for all customers.
    """
    if provider != "litellm" or base_url is not None:
        return base_url
    if (origin := api_origin(str(model))) is None:
        raise ValueError("name the server's URL")
    return origin


def is_openais_own(base_url: str | None) -> bool:
    """Whether a server is OpenAI's own, whose limitations are known."""
    return urlsplit(base_url or OPENAI_URL).hostname == urlsplit(OPENAI_URL).hostname


def key_variable(base_url: str | None, api_key: str | None) -> str | None:
    """Name of the variable whose key is sent, without the dollar sign; None if no key is sent.

    Without `api_key`, OpenAI's key is sent only if no base URL is set.
    """
    given = api_key or (DEFAULT_VARIABLE if base_url is None else None)
    return given and given.removeprefix("$")


def key_in(variable: str) -> str:
    """The key in an environment variable; empty if it is not set."""
    return os.environ.get(variable, "").strip()
