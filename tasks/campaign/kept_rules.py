"""Rules that a campaign keeps: defaults that were settled when it began, by name, in its stored identity.

A later release may choose other defaults. So what a campaign's file leaves open is settled when it begins and
stored in its identity, at its key of the file or under its own name. A rule that a stored campaign lacks is
the one of releases before there was a choice; whoever reads a rule gives that one.
"""

from collections.abc import Collection, Mapping

from winnow.storage.json_types import JsonObject, JsonView

TIES = "ties"
"""Name of the rule at the key `stopping.ties`: whether a campaign ends while only ties are open."""


def kept_rules_of(identity: JsonView, names: Collection[str]) -> JsonObject:
    """Those rules of a stored campaign that have one of these names."""
    places = {name: identity["stopping"] if name == TIES else identity for name in names}
    return {name: place[name] for name, place in places.items() if name in place}


def with_rules(identity: JsonView, rules: Mapping[str, object]) -> JsonObject:
    """Add rules to an identity."""
    ties = {name: value for name, value in rules.items() if name == TIES}
    own = {name: value for name, value in rules.items() if name != TIES}
    return {**identity, "stopping": {**identity["stopping"], **ties}, **own}
