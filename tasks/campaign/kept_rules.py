"""Rules that a campaign keeps: defaults that were settled when it began, by name, in its stored identity.

A later release may choose other defaults. So what a campaign's file leaves open is settled when it begins and
stored at its key of the file. A rule that a stored campaign lacks is the one of releases before there was a
choice; whoever reads a rule gives that one.
"""

from collections.abc import Mapping

from winnow.storage.json_types import JsonObject, JsonView

TIES = "ties"
"""Name of the rule at the key `stopping.ties`: whether a campaign ends while only ties are open."""


def rules_of(identity: JsonView) -> JsonObject:
    """Rules of a stored campaign, by name."""
    return {name: value for name, value in identity["stopping"].items() if name == TIES}


def with_rules(identity: JsonView, rules: Mapping[str, object]) -> JsonObject:
    """Add rules to an identity."""
    return {**identity, "stopping": {**identity["stopping"], **rules}}
