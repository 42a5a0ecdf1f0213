"""Which campaigns have the same scores, and how the one is called that fills another one's table."""

from collections.abc import Mapping

SUFFIX = "-exhaustive"

SEARCH = frozenset(
    {
        "name",
        "selector",
        "history",
        "history_fingerprint",
        "holdout",
        "groups",
        "constraints",
        "held_out_fingerprint",
        "batch_size",
        "stopping",
    }
)
"""What two campaigns may differ in whose scores are the same: how they search, and what they are called."""


def exhaustive_name(name: str) -> str:
    """How the campaign is called that scores every pair of the one with this name."""
    return f"{name}{SUFFIX}"


def has_the_same_scores(one: Mapping[str, object], other: Mapping[str, object]) -> bool:
    """Whether two stored identities differ in nothing that a score depends on."""
    return all(one.get(key) == other.get(key) for key in (one.keys() | other.keys()) - SEARCH)
