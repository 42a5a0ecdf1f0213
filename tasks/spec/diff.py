"""What changed between two definitions, key by key."""

from collections.abc import Mapping
from itertools import takewhile
from typing import NamedTuple

SHOWN = 80
"""Longest value printed; a template can be pages."""
LEAD = 20
"""Characters printed before the first one that differs."""


class Difference(NamedTuple):
    """One key whose value changed, with both values as they are printed."""

    key: str
    before: str
    after: str


def differences(before: object, after: object, key: str = "") -> list[Difference]:
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
    if before == after:
        return []
    texts = repr(before), repr(after)
    alike = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(*texts, strict=False)))
    start = max(0, alike - LEAD)
    return [Difference(key, *(_shown(text, start) for text in texts))]


def _shown(text: str, start: int) -> str:
    """At most `SHOWN` characters, those from `start` on among them."""
    if len(text) <= SHOWN:
        return text
    start = min(start, len(text) - SHOWN)
    head = "..." if start else ""
    tail = "..." if start + SHOWN < len(text) else ""
    return head + text[start + len(head) : start + SHOWN - len(tail)] + tail
