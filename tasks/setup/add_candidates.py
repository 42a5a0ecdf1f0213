"""Candidates that join a campaign which was begun without them, where its selector has a way with them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from winnow.storage.records.values import NewCandidate
from winnow.tasks.objectives.resolved import ResolvedCampaign

GROWING = (
    "models",
    "prompts",
    "guardrails",
    "generate_configs",
    "exclude",
    "model_fingerprints",
    "served_at",
    "few_shot_examples",
)
"""Keys of an identity that say which candidates there are."""


def joining_candidates(
    checked: ResolvedCampaign, stored: Mapping[str, object], candidates: Sequence[NewCandidate]
) -> list[NewCandidate]:
    """The candidates that a stored campaign has not yet, in the order of the new definition.

    Args:
        checked: The new definition.
        stored: The identity the campaign was stored with.
        candidates: Its candidates as they are stored.

    Returns:
        Nothing if the definitions differ in anything else, or a stored candidate is not among the new ones.
    """
    if _without(stored) != _without(checked.identity()):
        return []
    given = {each.name: each.as_record() for each in checked.candidates}
    if any(each.name not in given or _content(given[each.name]) != _content(each) for each in candidates):
        return []
    known = {each.name for each in candidates}
    return [each for name, each in given.items() if name not in known]


def _without(identity: Mapping[str, object]) -> dict[str, object]:
    return {key: value for key, value in identity.items() if key not in GROWING}


def _content(candidate: NewCandidate) -> str:
    """As JSON, which is how a database gives it back."""
    return json.dumps(asdict(candidate), sort_keys=True)
