"""The server that a model is asked at now, and the key that is sent to it.

A server may move to another port in the middle of a campaign. So both keys are stored among the execution
fields, by the place of their model; the identity of a campaign holds where each model was asked first. A key
itself is never in a spec: only the name of the environment variable that holds it is.
"""

import os
from urllib.parse import urlsplit

from winnow.tasks.engines.known_apis import api_origin

DEFAULT_VARIABLE = "$OPENAI_API_KEY"

OPENAI_URL = "https://api.openai.com/v1"

DEFAULT_PORTS = {"http": 80, "https": 443}

SERVER_KEYS = ("model_base_url", "api_key")


def server_url(base_url: str | None) -> str:
    """The base URL of a server in one spelling: no capitals in the host, no port that goes without saying.

    Two names of one machine stay two servers, for nobody can tell from here.
    """
    parts = urlsplit(base_url or OPENAI_URL)
    host = parts.hostname or ""
    if ":" in host:
        host = f"[{host}]"
    if parts.port not in (None, DEFAULT_PORTS.get(parts.scheme)):
        host = f"{host}:{parts.port}"
    return f"{parts.scheme}://{host}{parts.path.rstrip('/')}"


def base_url_of(provider: object, model: object, base_url: str | None) -> str | None:
    """The base URL that a model is asked at, as a spec has it; None is OpenAI's own.

    Raises:
        ValueError: If the API of the model has no address that is the same for everybody.
    """
    if provider != "litellm" or base_url is not None:
        return base_url
    if (origin := api_origin(str(model))) is None:
        raise ValueError("name the server's URL")
    return origin


def is_openais_own(base_url: str | None) -> bool:
    """Whether a server is OpenAI's, of which it is known what it does not do."""
    return urlsplit(base_url or OPENAI_URL).hostname == urlsplit(OPENAI_URL).hostname


def key_variable(base_url: str | None, api_key: str | None) -> str | None:
    """Name of the variable whose key is sent, without the dollar sign; None where none is.

    OpenAI's own key goes to OpenAI alone, unless a spec says otherwise.
    """
    given = api_key or (DEFAULT_VARIABLE if base_url is None else None)
    return given and given.removeprefix("$")


def key_in(variable: str) -> str:
    """The key that an environment variable holds; empty where it is not set."""
    return os.environ.get(variable, "").strip()
