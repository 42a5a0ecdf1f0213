"""What every part of a campaign's file has in common, and the values that any of them may hold."""

import math
from collections.abc import Mapping
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, JsonValue


class SpecModel(BaseModel):
    """A part of the file: unknown keys are refused and nothing is converted silently."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


def _scalar(value: object) -> object:
    """One complaint in place of one per type of a union."""
    if value is None or isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise ValueError("must be text, a finite number, true, false or null")


JsonScalar = Annotated[str | int | float | bool | None, BeforeValidator(_scalar)]


def _tree(value: object) -> object:
    """The same for what may hold lists and mappings."""
    if isinstance(value, list):
        return [_tree(each) for each in value]
    if isinstance(value, Mapping):
        return {str(key): _tree(each) for key, each in value.items()}
    return _scalar(value)


JsonTree = Annotated[JsonValue, BeforeValidator(_tree)]
