"""Rules fixed when a campaign begins: defaults by name, stored in its identity.

A later release can have other defaults. So every choice that a campaign's file leaves open is stored at the
start in its identity, at its key of the file or under its own name. If a stored campaign lacks a rule, the
behaviour before that choice was introduced applies. Each reader of a rule passes this older default.
"""

from collections.abc import Collection, Mapping

from winnow.storage.json_types import JsonObject, JsonView

TIES = "ties"
"""Rule at the key `stopping.ties`: whether a campaign ends although ties are still open."""
EXCESS = "excess"
"""Rule that decisions contain a bound on how much better another candidate can be; its value is 1."""


def kept_rules_of(identity: JsonView, names: Collection[str]) -> JsonObject:
    """The rules of a stored campaign, among the given names."""
    places = {name: identity["stopping"] if name == TIES else identity for name in names}
    return {name: place[name] for name, place in places.items() if name in place}


def with_rules(identity: JsonView, rules: Mapping[str, object]) -> JsonObject:
    """Add rules to an identity; `ties` is put under `stopping`."""
    ties = {name: value for name, value in rules.items() if name == TIES}
    own = {name: value for name, value in rules.items() if name != TIES}
    return {**identity, "stopping": {**identity["stopping"], **ties}, **own}
