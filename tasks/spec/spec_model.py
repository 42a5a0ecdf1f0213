"""Base class of the sections of a campaign's file, and shared value types."""

import math
import re
from collections.abc import Mapping
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, JsonValue
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError

from winnow.storage.text import in_home, url_in_home


class SpecModel(BaseModel):
    """Base class of the sections of a campaign's file.

    It rejects unknown keys and does not convert types.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


def keys_of(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """Fields of a section, by their keys in the file.

    A field has an alias if its key is a Python keyword.
    """
    return {field.alias or name: field for name, field in model.model_fields.items()}


def _scalar(value: object) -> object:
    """Validate a scalar, with one error message instead of one for each type."""
    if value is None or isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise ValueError("must be text, a finite number, true, false or null")


JsonScalar = Annotated[str | int | float | bool | None, BeforeValidator(_scalar)]


def _tree(value: object) -> object:
    """Validate scalars, and lists and mappings of them, with one error message."""
    if isinstance(value, list):
        return [_tree(each) for each in value]
    if isinstance(value, Mapping):
        return {str(key): _tree(each) for key, each in value.items()}
    return _scalar(value)


JsonTree = Annotated[JsonValue, BeforeValidator(_tree)]


def _in_home(value: object) -> object:
    return in_home(value) if isinstance(value, str) else value


FilePath = Annotated[str, BeforeValidator(_in_home)]
"""Path of a file or folder; a leading `~` is replaced by the home folder."""


def _url_in_home(value: object) -> object:
    return url_in_home(value) if isinstance(value, str) else value


StorageUrl = Annotated[str, BeforeValidator(_url_in_home)]
"""URL of a results database; a leading `~` in the path of a SQLite file is replaced by the home folder."""


def matching(pattern: str, words: str) -> tuple[AfterValidator, FieldInfo]:
    """Annotations for a text that must match a pattern.

    Args:
        pattern: The regular expression; it is also part of the JSON schema.
        words: The error message.
    """

    def matched(value: str) -> str:
        if re.fullmatch(pattern, value) is None:
            raise ValueError(words)
        return value

    info: FieldInfo = Field(json_schema_extra={"pattern": f"^{pattern}$"})
    return AfterValidator(matched), info


SAME_NAME = "same_name"
"""Type of the error for two entries with one name; its context has their numbers."""

SECRET = "secret"
"""Type of validation errors whose message must not contain the value."""


def _variable(value: object) -> object:
    if value is None or (isinstance(value, str) and re.fullmatch(r"\$[A-Za-z_][A-Za-z0-9_]*", value)):
        return value
    raise PydanticCustomError(
        SECRET,
        "must be the name of an environment variable, written with a dollar sign such as $OPENAI_API_KEY; "
        "put the key itself into that variable, not into a file",
    )


def _base_url(value: Any) -> object:  # noqa: ANN401 -- any value of the file
    if value is None:
        return None
    try:
        value = value.strip()
        parts = urlsplit(value)
        is_url = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except (AttributeError, TypeError, ValueError):
        is_url = False
    if not is_url:
        raise PydanticCustomError(
            SECRET, "must be the base URL of a server, such as http://127.0.0.1:8000/v1"
        )
    if parts.path.rstrip("/").endswith("/completions"):
        raise PydanticCustomError(
            SECRET,
            "must end with the version, as in http://127.0.0.1:8000/v1; remove what follows it",
        )
    if "api-version=" in parts.query:
        raise PydanticCustomError(
            SECRET,
            "must have no query; for Azure use provider: litellm and model: azure/DEPLOYMENT with the "
            "version as model_args.api_version",
        )
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise PydanticCustomError(
            SECRET,
            "must have no user, password or query, because it is stored and shown; set api_key to the name "
            "of the environment variable that holds the key",
        )
    return value.rstrip("/")


BaseUrl = Annotated[str | None, BeforeValidator(_base_url)]
"""Base URL of an OpenAI-compatible server, including the version; None is OpenAI's own server."""

KeyVariable = Annotated[str | None, BeforeValidator(_variable)]
"""`$NAME` of the environment variable that holds an API key."""
