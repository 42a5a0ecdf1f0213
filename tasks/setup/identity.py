"""What makes a campaign the same one when its file is read again, and where two files differ."""

from collections.abc import Mapping
from itertools import takewhile
from typing import NamedTuple

from winnow.storage.json_types import JsonView
from winnow.tasks.errors import SpecError
from winnow.tasks.spec.stored_spec import baseline_name

GROWING = (
    "models",
    "prompts",
    "guardrails",
    "generate_configs",
    "exclude",
    "model_fingerprints",
    "served_at",
    "few_shot_examples",
)
"""Keys of an identity that say which candidates there are."""


class IdentityChanged(SpecError):
    """The spec differs from the stored campaign in what may not change."""

    has_lines = True


def refuse_other_identity(name: str, stored: JsonView, given: JsonView) -> None:
    """Compare identities; the error shows each difference and how to fork.

    Raises:
        IdentityChanged: If they differ.
    """
    if found := differences(stored, given):
        lines = "\n".join(f"  {key}: {before} -> {after}" for key, before, after in found)
        raise IdentityChanged(
            f"campaign '{name}' was begun with another definition, which may not change:\n{lines}\n"
            "undo the change, or begin a new campaign that reuses the generations of this one: "
            f"{fork_command(given)}"
        )


def fork_command(identity: JsonView) -> str:
    """What begins a campaign of this identity under another name; a file need not name a gate's baseline."""
    selector = identity.get("selector")
    baseline = None if selector is None else baseline_name(selector)
    if baseline is None:
        return "winnow run SPEC --fork NEW_NAME"
    return f"winnow gate SPEC --baseline {baseline} --fork NEW_NAME"


def without_growing(identity: Mapping[str, object]) -> dict[str, object]:
    """An identity without what grows when candidates join."""
    return {key: value for key, value in identity.items() if key not in GROWING}


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
