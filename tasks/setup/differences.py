"""Differences between two JSON values, key by key, and the lines in which they are printed."""

from collections.abc import Mapping
from itertools import takewhile
from typing import NamedTuple

SHOWN = 80
"""Longest value printed; a template can be pages."""


LEAD = 20
"""Characters printed before the first one that differs."""


class Difference(NamedTuple):
    """One key whose value changed, with both values as they are printed.

    Of a list of things with names each is a key, `models[NAME]`, and None stands for one that is not there.
    """

    key: str
    before: str | None
    after: str | None

    @property
    def line(self) -> str:
        """The difference in one line."""
        if self.before is None or self.after is None:
            return f"{self.key} is {'new' if self.before is None else 'gone'}"
        return f"{self.key}: {self.before} -> {self.after}"


def differences(before: object, after: object, key: str = "") -> list[Difference]:
    """Every key of two JSON values that differs, sorted; a key that one side lacks counts as null there."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        return [
            found
            for part in sorted(before.keys() | after.keys())
            for found in differences(before.get(part), after.get(part), f"{key}.{part}".lstrip("."))
        ]
    if before == after:
        return []
    named = _by_name(before), _by_name(after)
    if named[0] is not None and named[1] is not None and any(named):
        return _of_named(named[0], named[1], key)
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        return [
            found
            for index, (old, new) in enumerate(zip(before, after, strict=True))
            for found in differences(old, new, f"{key}[{index}]")
        ]
    return [_of_values(before, after, key)]


def _by_name(value: object) -> dict[str, object] | None:
    """The things of a list by their names, none where there is no list; None where names do not tell."""
    things = [] if value is None else value
    if not isinstance(things, list) or not all(isinstance(each, Mapping) for each in things):
        return None
    found = {each["name"]: each for each in things if isinstance(each.get("name"), str)}
    return found if len(found) == len(things) else None


def _of_named(before: Mapping[str, object], after: Mapping[str, object], key: str) -> list[Difference]:
    found: list[Difference] = []
    for name in sorted(before.keys() | after.keys()):
        place = f"{key}[{name}]"
        if name in before and name in after:
            found += differences(before[name], after[name], place)
        else:
            old, new = (_shown(repr(each[name]), 0) if name in each else None for each in (before, after))
            found.append(Difference(place, old, new))
    orders = [name for name in before if name in after], [name for name in after if name in before]
    return found if orders[0] == orders[1] else [*found, _of_values(*orders, key)]


def _of_values(before: object, after: object, key: str) -> Difference:
    texts = repr(before), repr(after)
    alike = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(*texts, strict=False)))
    start = max(0, alike - LEAD)
    return Difference(key, *(_shown(text, start) for text in texts))


def _shown(text: str, start: int) -> str:
    """At most `SHOWN` characters, those from `start` on among them."""
    if len(text) <= SHOWN:
        return text
    start = min(start, len(text) - SHOWN)
    head = "..." if start else ""
    tail = "..." if start + SHOWN < len(text) else ""
    return head + text[start + len(head) : start + SHOWN - len(tail)] + tail
