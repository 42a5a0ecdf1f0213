"""Differences between two definitions of a campaign, in lines for whoever wrote them.

What an identity holds beside the keys of a file, such as digests, follows from these or from other files. It
is told in words, and only where the keys do not tell it already.
"""

import re
from collections.abc import Mapping
from itertools import takewhile
from typing import NamedTuple

from winnow.storage.json_types import JsonView

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


DIGEST = re.compile("'[0-9a-f]{64}'")
"""SHA-256, as it is printed."""

PARTS = ("models", "prompts", "guardrails", "generate_configs", "exclude")
"""Keys of a file that candidates are made of."""

FOLLOWS = (
    (r"model_fingerprints\.(.+)", ("models[{}]",)),
    (r"served_at\.(.+)", ("models[{}]", "judge", "metrics", "certify")),
    (r"few_shot_examples\.(.+)", ("prompts[{}]",)),
    (r"history_(fingerprint|rounds)", ("history", "dataset_fingerprint")),
    (r"held_out_fingerprint", ("holdout", "seed", "dataset_fingerprint")),
    (r"judge_identity\..+", ("judge",)),
    (r"(?:metric_code|metric_fingerprints)(?:\..+)?", ("metrics",)),
    (r"selector_code(?:\..+)?", ("selector.name",)),
    (r"embedder_identity(?:\..+)?", ("embedder",)),
    (r"candidate_costs(?:\..+)?", ("certify", "dataset_fingerprint", *PARTS)),
    (r"execution", ("streaming",)),
    (r"betting_rule", ("selector",)),
    (r"target_forms", ("dataset_fingerprint", "objective")),
    (r"text_rules", ("models", "judge", "metrics", "certify")),
    (r"cut_at_stop", PARTS),
    (r"deterministic(?:\[\d+\])?", ("judge", "fresh_generations", "selector", *PARTS)),
)
"""Keys that no file has, and those of a file by whose change they change."""

OF_CANDIDATES = re.compile(r"(?:model_fingerprints|served_at|few_shot_examples)\..+")
"""Keys that are there as long as a candidate is made of what they name."""

IN_WORDS = (
    (r"dataset_fingerprint", "the examples changed"),
    (r"model_fingerprints\.(.+)", "models[{}]: its files changed (weights, adapter or chat template)"),
    (r"few_shot_examples\.(.+)", "prompts[{}]: the solved examples that it shows changed"),
    (r"history_(fingerprint|rounds)", "history: the earlier scores changed"),
    (r"held_out_fingerprint", "holdout: the examples that are held out changed"),
    (r"judge_identity\.fingerprints\.(.+)", "judge: the files of model {} changed"),
    (r"judge_identity\.code\.(?:.*\.)?files\.(.+)", "judge: the code of {} changed"),
    (r"metric_fingerprints\.(.+)", "metrics: the files of model {} changed"),
    (r"metric_code\.(?:.*\.)?files\.(.+)", "metrics: the code of {} changed"),
    (r"selector_code\.(.+)", "selector: the code of {} changed"),
    (r"embedder_identity\.code\.(.+)", "embedder: the code of {} changed"),
    (r"embedder_identity\.model", "embedder: the files of its model changed"),
    (r"embedder_identity\.vectors", "embedder: the vectors changed"),
)
"""The words for a digest that changed, by its key."""


VERSION_OF_JUDGE = re.compile(r"(judge|metric)_(?:identity\.)?code\..*\bversion")
"""The version of a judge of Winnow's own."""


class Change(NamedTuple):
    """A key whose value changed, and the line that says so."""

    key: str
    line: str


def changes(before: JsonView, after: JsonView) -> list[Change]:
    """The differences between the identities of two campaigns, sorted; none where they are the same."""
    found = differences(before, after)
    keys = [each.key for each in found]
    told = (each for each in found if not (_follows(each.key, keys) or _is_excluded(each, keys)))
    return [Change(each.key, _line(each)) for each in told]


def _is_excluded(found: Difference, keys: list[str]) -> bool:
    """Whether a key is gone or new because no candidate was made of what it names, before or after."""
    is_there_once = OF_CANDIDATES.fullmatch(found.key) and str(None) in (found.before, found.after)
    return bool(is_there_once) and any(_is_in(each, "exclude") for each in keys)


def _follows(key: str, keys: list[str]) -> bool:
    """Whether a key changed because another one did."""
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
        return f"{place}: this Winnow's judge reads some outputs differently (version {of_versions})"
    if not any(value is not None and DIGEST.fullmatch(value) for value in values):
        return found.line
    for pattern, words in IN_WORDS:
        if match := re.fullmatch(pattern, found.key):
            return words.format(*match.groups())
    return f"{found.key}: its content changed"
