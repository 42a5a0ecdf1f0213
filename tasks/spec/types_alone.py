"""Read a stored spec by types only: it met all limits when its campaign began.

A file must meet all limits. Limits introduced later, such as a lower maximum or a rule on two keys, do not
invalidate stored campaigns. Patterns of names still apply, because folders are named after them.
"""

from functools import cache
from typing import TypeVar

from pydantic import BaseModel
from pydantic_core import SchemaValidator

_BOUNDS = ("ge", "gt", "le", "lt", "multiple_of")
_LENGTHS = ("min_length", "max_length")
LIMITS = {"int": _BOUNDS, "float": _BOUNDS, "str": _LENGTHS, "list": _LENGTHS, "dict": _LENGTHS}
"""Keys of pydantic's core schema that are limits, by type."""

Model = TypeVar("Model", bound=BaseModel)


def read_by_types(model: type[Model], values: object) -> Model:
    """Create an instance of a model, checking the types of its keys but no limits.

    Raises:
        ValidationError: A key is unknown, or a value has another type.
    """
    found: Model = _validator(model).validate_python(values)
    return found


@cache
def _validator(model: type[BaseModel]) -> SchemaValidator:
    schema = _without_limits(model.__pydantic_core_schema__)
    # Otherwise pydantic would read nested models by their own validators, with all limits.
    return SchemaValidator(schema, _use_prebuilt=False)  # type: ignore[arg-type]


def _without_limits(schema: object) -> object:
    if isinstance(schema, list):
        return [_without_limits(each) for each in schema]
    if isinstance(schema, tuple):
        return tuple(_without_limits(each) for each in schema)
    if not isinstance(schema, dict):
        return schema
    kind = schema.get("type")
    if kind == "function-after" and not _is_text(schema["schema"]):
        inner = _without_limits(schema["schema"])
        return {**inner, "ref": schema["ref"]} if "ref" in schema and isinstance(inner, dict) else inner
    limits = LIMITS.get(kind, ()) if isinstance(kind, str) else ()
    return {key: _without_limits(value) for key, value in schema.items() if key not in limits}


def _is_text(schema: dict[str, object]) -> bool:
    while isinstance(schema.get("schema"), dict):
        schema = schema["schema"]  # type: ignore[assignment]
    return schema.get("type") == "str"
