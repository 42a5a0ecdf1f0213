"""Keys of a stored identity and their properties, in one table.

Most keys come from a campaign's file. Others, such as digests, are determined when the campaign begins. A key
that is not in the table comes from the file and has none of these properties. Patterns are regular
expressions for the rest of a key's path; `{}` is replaced by their groups.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from winnow.tasks.spec.stored_spec import CUT_AT_STOP, LAST_ROUNDS

PARTS = ("models", "prompts", "guardrails", "generate_configs", "exclude")
"""Keys of a campaign's file that define the candidates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityKey:
    """Properties of a key of a stored identity."""

    is_found: bool = False
    """Whether the key is determined when a campaign begins, instead of being in its file."""
    grows: bool = False
    """Whether the key defines the set of candidates, so that it changes when candidates are added."""
    makes_scores: bool = False
    """Whether the key affects scores, or the earlier scores that the selector uses; then it also affects
    draws.
    """
    is_of_search: bool = False
    """Whether the key defines the search or the name only: campaigns with the same scores can differ in
    it.
    """
    follows: tuple[str, tuple[str, ...]] | None = None
    """A pattern, and the keys of a file that change this key when they change."""
    words: tuple[tuple[str, str], ...] = ()
    """Pattern of a path within the key, with the message about a changed digest at that path."""


_PART = IdentityKey(grows=True, makes_scores=True)
_SCORES = IdentityKey(makes_scores=True)
_SEARCH = IdentityKey(is_of_search=True)
_ANY = r"(?:\..+)?"
_EARLIER = ((r"", "history: the earlier scores changed"),)

KEYS = {
    "name": _SEARCH,
    "models": IdentityKey(grows=True),
    "prompts": _PART,
    "guardrails": _PART,
    "generate_configs": _PART,
    "exclude": _PART,
    "output_type": _SCORES,
    "choices": _SCORES,
    "target_delimiter": _SCORES,
    "samples": _SCORES,
    "few_shot_examples": IdentityKey(
        is_found=True,
        grows=True,
        makes_scores=True,
        follows=(r"\.(.+)", ("prompts[{}]",)),
        words=((r"\.(.+)", "prompts[{}]: the solved examples that it shows changed"),),
    ),
    "model_fingerprints": IdentityKey(
        is_found=True,
        grows=True,
        makes_scores=True,
        follows=(r"\.(.+)", ("models[{}]",)),
        words=((r"\.(.+)", "models[{}]: its files changed (weights, adapter or chat template)"),),
    ),
    "served_at": IdentityKey(
        is_found=True, grows=True, follows=(r"\.(.+)", ("models[{}]", "judge", "metrics", "certify"))
    ),
    "judge": _SCORES,
    "judge_identity": IdentityKey(
        is_found=True,
        makes_scores=True,
        follows=(r"\..+", ("judge",)),
        words=(
            (r"\.fingerprints\.(.+)", "judge: the files of model {} changed"),
            (r"\.code\.(?:.*\.)?files\.(.+)", "judge: the code of {} changed"),
        ),
    ),
    "metric_code": IdentityKey(
        is_found=True,
        follows=(_ANY, ("metrics",)),
        words=((r"\.(?:.*\.)?files\.(.+)", "metrics: the code of {} changed"),),
    ),
    "metric_fingerprints": IdentityKey(
        is_found=True,
        follows=(_ANY, ("metrics",)),
        words=((r"\.(.+)", "metrics: the files of model {} changed"),),
    ),
    "dataset_fingerprint": IdentityKey(
        is_found=True, makes_scores=True, words=((r"", "the examples changed"),)
    ),
    "history": _SEARCH,
    "history_fingerprint": IdentityKey(
        is_found=True,
        makes_scores=True,
        is_of_search=True,
        follows=(r"", ("history", "dataset_fingerprint")),
        words=_EARLIER,
    ),
    LAST_ROUNDS: IdentityKey(
        is_found=True, is_of_search=True, follows=(r"", ("history", "dataset_fingerprint")), words=_EARLIER
    ),
    "holdout": _SEARCH,
    "held_out_fingerprint": IdentityKey(
        is_found=True,
        is_of_search=True,
        follows=(r"", ("holdout", "seed", "dataset_fingerprint")),
        words=((r"", "holdout: the examples that are held out changed"),),
    ),
    "groups": _SEARCH,
    "constraints": _SEARCH,
    "selector": _SEARCH,
    "selector_code": IdentityKey(
        is_found=True,
        follows=(_ANY, ("selector.name",)),
        words=((r"\.(.+)", "selector: the code of {} changed"),),
    ),
    "batch_size": _SEARCH,
    "stopping": _SEARCH,
    "betting_rule": IdentityKey(is_found=True, follows=(r"", ("selector",))),
    "excess": IdentityKey(is_found=True, is_of_search=True, follows=(r"", ("selector",))),
    "halving_schedule": IdentityKey(is_found=True, is_of_search=True, follows=(r"", ("selector",))),
    "candidate_costs": IdentityKey(is_found=True, follows=(_ANY, ("certify", "dataset_fingerprint", *PARTS))),
    "embedder_identity": IdentityKey(
        is_found=True,
        follows=(_ANY, ("embedder",)),
        words=(
            (r"\.code\.(.+)", "embedder: the code of {} changed"),
            (r"\.model", "embedder: the files of its model changed"),
            (r"\.vectors", "embedder: the vectors changed"),
        ),
    ),
    "deterministic": IdentityKey(
        is_found=True, follows=(r"(?:\[\d+\])?", ("judge", "fresh_generations", "selector", *PARTS))
    ),
    "left_out": IdentityKey(is_found=True, grows=True),
    "text_rules": IdentityKey(is_found=True, follows=(r"", ("models", "judge", "metrics", "certify"))),
    "target_forms": IdentityKey(is_found=True, follows=(r"", ("dataset_fingerprint", "objective"))),
    CUT_AT_STOP: IdentityKey(is_found=True, grows=True, follows=(r"", PARTS)),
    "execution": IdentityKey(follows=(r"", ("streaming",))),
}
"""Keys of a stored identity with further properties.
A change of any key means another campaign.
"""

FOUND = frozenset(key for key, each in KEYS.items() if each.is_found)
GROWING = frozenset(key for key, each in KEYS.items() if each.grows)
MADE_OF = tuple(key for key, each in KEYS.items() if each.makes_scores)
SEARCH = frozenset(key for key, each in KEYS.items() if each.is_of_search)
FOLLOWS = tuple(
    (key + each.follows[0], each.follows[1]) for key, each in KEYS.items() if each.follows is not None
)
IN_WORDS = tuple((key + pattern, words) for key, each in KEYS.items() for pattern, words in each.words)


SUFFIX = "-exhaustive"


def exhaustive_name(name: str) -> str:
    """The name of the campaign that scores every pair of the given campaign."""
    return f"{name}{SUFFIX}"


def has_the_same_scores(one: Mapping[str, object], other: Mapping[str, object]) -> bool:
    """Whether two stored identities agree in every key that affects scores."""
    return all(one.get(key) == other.get(key) for key in (one.keys() | other.keys()) - SEARCH)
