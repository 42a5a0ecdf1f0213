"""Differences between two definitions of a campaign, by their identities.

An identity also has values that follow from the file's keys or from other files, such as digests. Their
changes are described in words, and only if the keys do not show the difference already.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

from winnow.storage.json_types import JsonView
from winnow.tasks.engines.known_providers import ELSEWHERE, FUNCTION
from winnow.tasks.errors import SpecError
from winnow.tasks.spec.identity_keys import FOLLOWS, GROWING, IN_WORDS
from winnow.tasks.spec.judge_tree import judge_trees, model_name
from winnow.tasks.spec.stored_spec import ONLY, fork_command

SHOWN = 80
"""Maximum length of a printed value, in characters; a template can be pages long."""


LEAD = 20
"""Number of characters printed before the first difference."""


class Difference(NamedTuple):
    """A key with a changed value, and both values as printed.

    In a list of named entries, each entry is a key, `models[NAME]`; its value is None if the entry is
    missing.
    """

    key: str
    before: str | None
    after: str | None

    @property
    def line(self) -> str:
        """The change as one line of text."""
        if self.before is None or self.after is None:
            return f"{self.key} is {'new' if self.before is None else 'gone'}"
        return f"{self.key}: {self.before} -> {self.after}"


def differences(before: object, after: object, key: str = "") -> list[Difference]:
    """All keys whose values differ between two JSON values, sorted.

    A missing key counts as null.
    """
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
    """Entries of a list by name; empty for None.

    None if the value is not a list of entries with unique names.
    """
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
    """At most `SHOWN` characters of a text, including those from `start` on."""
    if len(text) <= SHOWN:
        return text
    start = min(start, len(text) - SHOWN)
    head = "..." if start else ""
    tail = "..." if start + SHOWN < len(text) else ""
    return head + text[start + len(head) : start + SHOWN - len(tail)] + tail


DIGEST = re.compile("'[0-9a-f]{64}'")
"""Pattern of a printed SHA-256."""

OF_CANDIDATES = re.compile(r"(?:model_fingerprints|served_at|few_shot_examples)\..+")
"""Keys that exist only while a candidate uses what they are about."""

VERSION_OF_JUDGE = re.compile(r"(judge|metric)_(?:identity\.)?code\..*\bversion")
"""Key of a built-in judge's version."""


class Change(NamedTuple):
    """A key with a changed value, and the line that describes it."""

    key: str
    line: str


def changes(before: JsonView, after: JsonView) -> list[Change]:
    """Changes to report between the identities of two campaigns, sorted by key.

    Two kinds of differences are left out: keys that changed only because another key changed, and keys of
    candidates that appear or disappear because `exclude` changed.
    """
    found = differences(before, after)
    keys = [each.key for each in found]
    told = (each for each in found if not (_follows(each.key, keys) or _is_excluded(each, keys)))
    return [Change(each.key, _line(each)) for each in told]


def _is_excluded(found: Difference, keys: list[str]) -> bool:
    """Whether a key appeared or disappeared because an exclusion changed its use."""
    is_there_once = OF_CANDIDATES.fullmatch(found.key) and str(None) in (found.before, found.after)
    return bool(is_there_once) and any(_is_in(each, "exclude") for each in keys)


def _follows(key: str, keys: list[str]) -> bool:
    """Whether a key changed only because another key changed."""
    for pattern, causes in FOLLOWS:
        if match := re.fullmatch(pattern, key):
            places = [cause.format(*match.groups()) for cause in causes]
            return any(_is_in(each, place) for each in keys for place in places)
    return False


def _is_in(key: str, place: str) -> bool:
    return key == place or key.startswith((f"{place}.", f"{place}["))


def _line(found: Difference) -> str:
    values = (found.before, found.after)
    if (match := VERSION_OF_JUDGE.fullmatch(found.key)) and None not in values:
        place, of_versions = (
            "judge" if match.group(1) == "judge" else "metrics",
            " -> ".join(map(str, values)),
        )
        return f"{place}: the judge of this release reads some outputs differently (version {of_versions})"
    if not any(value is not None and DIGEST.fullmatch(value) for value in values):
        return found.line
    for pattern, words in IN_WORDS:
        if match := re.fullmatch(pattern, found.key):
            return words.format(*match.groups())
    return f"{found.key}: its content changed"


FILES = re.compile(r"(?:model_fingerprints|judge_identity\.fingerprints|metric_fingerprints)\.(.+)")
"""Keys that identify a model's files."""


class IdentityChanged(SpecError):
    """The spec differs from the stored campaign in a part that must not change.

    Attributes:
        what: The message without its remedy.
        found: The changes; empty if they are not known by key.
    """

    has_lines = True

    def __init__(self, what: str, remedy: str, found: Sequence[Change] = ()) -> None:
        lines = "".join(f"\n  {each.line}" for each in found)
        super().__init__(f"{what}:{lines}\n{remedy}" if found else f"{what}: {remedy}")
        self.what = what
        self.found = tuple(found)


def refuse_other_identity(name: str, stored: JsonView, given: JsonView) -> None:
    """Compare identities; the error lists each difference and the command to fork.

    Raises:
        IdentityChanged: The identities differ.
    """
    _refuse(name, given, [_without_folder(each, given) for each in changes(stored, given)])


def refuse_other_texts(name: str, stored: object, given: object, identity: JsonView) -> None:
    """Refuse to start or stop generating in a campaign with stored outputs only.

    A campaign that uses only stored outputs draws examples differently and reports comparisons without an
    output. After a change, the answer would be about only a part of the comparisons.

    Args:
        name: Name of the campaign.
        stored: The campaign's value of `reuse`.
        given: The new value of `reuse`.
        identity: The new identity.

    Raises:
        IdentityChanged: The campaign would start or stop generating.
    """
    if (stored == ONLY) != (given == ONLY):
        _refuse(name, identity, changes({"reuse": stored}, {"reuse": given}))


def _without_folder(change: Change, given: JsonView) -> Change:
    """Reword a change if a model's files are missing instead of changed.

    If its folder is missing, it is taken for a name on a hub.
    """
    match = FILES.fullmatch(change.key)
    for model in _models(given):
        is_it = match is not None and model_name(model) == match.group(1)
        if is_it and _is_weights_alone(model) and not (folder := Path(model["model"])).is_dir():
            looked = f"does not exist (looked for {folder.absolute()})"
            return Change(change.key, f"the folder of model {model_name(model)}, {folder}, {looked}")
    return change


def _models(identity: JsonView) -> Iterator[JsonView]:
    """Yield the models of candidates, of the judge and of metrics."""
    yield from identity.get("models") or ()
    for judge in judge_trees(identity):
        yield from judge.models


def _is_weights_alone(model: JsonView) -> bool:
    """Whether a model's files are only those of its folder, if it has one."""
    parts = (model.get("lora"), model.get("chat_template"))
    return model.get("provider") not in (*ELSEWHERE, FUNCTION) and parts == (None, None)


def _refuse(name: str, given: JsonView, found: Sequence[Change]) -> None:
    if found:
        raise IdentityChanged(
            f"campaign '{name}' began with another definition, which cannot change",
            "undo the change, or start a new campaign that reuses the outputs of this one: "
            f"{fork_command(given)}",
            found,
        )


def without_growing(identity: Mapping[str, object]) -> dict[str, object]:
    """An identity without the parts that change when candidates join."""
    return {key: value for key, value in identity.items() if key not in GROWING}
