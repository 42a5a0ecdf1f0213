"""Campaigns with the same scores, and the name of the one that completes another's table."""

from collections.abc import Mapping

from winnow.tasks.spec.identity_keys import SEARCH

SUFFIX = "-exhaustive"


def exhaustive_name(name: str) -> str:
    """The name of the campaign that scores every pair of this one."""
    return f"{name}{SUFFIX}"


def has_the_same_scores(one: Mapping[str, object], other: Mapping[str, object]) -> bool:
    """Whether two stored identities agree in everything that a score depends on."""
    return all(one.get(key) == other.get(key) for key in (one.keys() | other.keys()) - SEARCH)
