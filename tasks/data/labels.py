"""Labels: targets with few different values."""

from collections.abc import Iterable, Sequence

MOST_LABELS = 20
"""Maximum number of different targets to count as labels; with more, targets are free answers."""

LONGEST_LABEL = 40
"""Maximum length of a label in characters; targets with a longer value are free answers."""


def labels_of(targets: Iterable[Sequence[str]]) -> list[str]:
    """The labels among the targets of all examples; empty if targets are free answers.

    Targets are free answers if they have one value only, too many or too long values, or more than one value
    for two examples.
    """
    labels: dict[str, str] = {}
    examples = 0
    for some in targets:
        examples += 1
        for label in filter(None, map(str.strip, some)):
            labels.setdefault(label.casefold(), label)
            if len(labels) > MOST_LABELS or len(label) > LONGEST_LABEL:
                return []
    return list(labels.values()) if 2 <= len(labels) <= examples / 2 else []


def as_options(labels: Sequence[str]) -> str:
    """The labels as the options of a judge, in YAML."""
    return f"[{', '.join(map(_in_yaml, labels))}]"


def _in_yaml(label: str) -> str:
    plain = label.replace("_", "").isalpha() and label.casefold() not in _OTHERWISE
    return label if plain else "'" + label.replace("'", "''") + "'"


_OTHERWISE = frozenset({"yes", "no", "on", "off", "y", "n", "true", "false", "null"})
"""Words that YAML does not parse as text."""
