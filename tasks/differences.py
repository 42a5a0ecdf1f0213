"""What changed between two definitions, key by key."""

from collections.abc import Mapping
from typing import Any, NamedTuple

SHOWN = 80
"""Longest value printed; a template can be pages."""


class Difference(NamedTuple):
    """One key whose value changed, with both values as they are printed."""

    key: str
    before: str
    after: str


def differences(before: Any, after: Any, key: str = "") -> list[Difference]:  # noqa: ANN401 -- JSON values
    """Every key of two JSON values that differs, sorted; a key that one side lacks counts as null there."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        return [
            found
            for part in sorted(before.keys() | after.keys())
            for found in differences(before.get(part), after.get(part), f"{key}.{part}".lstrip("."))
        ]
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        return [
            found
            for index, (old, new) in enumerate(zip(before, after, strict=True))
            for found in differences(old, new, f"{key}[{index}]")
        ]
    return [] if before == after else [Difference(key, _shown(before), _shown(after))]


def _shown(value: Any) -> str:  # noqa: ANN401
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}..."
