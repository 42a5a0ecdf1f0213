"""Campaigns that have the same scores, and the name of the one that fills the table of another."""

from collections.abc import Mapping

SUFFIX = "-exhaustive"

SEARCH = frozenset(
    {
        "name",
        "selector",
        "history",
        "history_fingerprint",
        "history_rounds",
        "holdout",
        "groups",
        "constraints",
        "held_out_fingerprint",
        "batch_size",
        "stopping",
    }
)
"""Fields in which two campaigns with the same scores may differ: those of their searches, and their names."""


def exhaustive_name(name: str) -> str:
    """The name of the campaign that scores every pair of the one with this name."""
    return f"{name}{SUFFIX}"


def has_the_same_scores(one: Mapping[str, object], other: Mapping[str, object]) -> bool:
    """Whether two stored identities differ in nothing that a score depends on."""
    return all(one.get(key) == other.get(key) for key in (one.keys() | other.keys()) - SEARCH)
