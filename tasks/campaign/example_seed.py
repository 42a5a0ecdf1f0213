"""The seed for drawing examples, derived from everything that scores depend on."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import chain

from winnow.storage.json_types import JsonView
from winnow.storage.objectives import traits_of
from winnow.storage.records.record_types import CampaignRecord
from winnow.tasks.engines.known_providers import WIDTH_ARGS
from winnow.tasks.spec.identity_keys import MADE_OF
from winnow.tasks.spec.judge_tree import judge_tree
from winnow.tasks.spec.stored_spec import ONLY
from winnow.tasks.text.canonical_json import sha256

CONSTRAINED = ("constraints", "metric_code")
"""Further keys that define the claim with constraints: the bounds, and the code that computes the values."""

ASKED = {"baseline": None, "top_m": 1}
"""Selector parameters that define the claim, with their default values."""

MODELS = frozenset({"model", "models"})
"""Keys that hold a judge's models."""
ASKED_AS = ("model_args", "chat", "chat_template_args", "reasoning", "generate_config")
"""Keys of a model that affect its outputs, besides its fingerprint, which covers weights, chat template and
adapter.
"""
OF_MACHINES = {
    *WIDTH_ARGS,
    "device",
    "enforce_eager",
    "gpu_memory_utilization",
    "max_model_len",
    "max_num_batched_tokens",
    "max_num_seqs",
}
"""Arguments of engines that fit a model to a machine.
They are ignored, because a campaign can move to another machine.
"""
USUAL = {"temperature": 0.0, "top_p": 1.0, "top_k": 0, "max_tokens": 256, "stop_seqs": []}
"""Stored form of an empty `generate_config`."""
PLACES = frozenset({"from"})
"""Keys for the source of a prompt's solved examples."""


def seed_of_draws(campaign: CampaignRecord) -> int:
    """Derive the seed of the draws from the seed and everything that scores depend on.

    A claim is valid only if the scores were fixed before, and independently of, the draws. Suppose that a
    prompt was improved after an earlier campaign showed its failures. It is then right on the examples that
    the earlier campaign drew, and with the same draws it would look right everywhere. The same holds for a
    judge, for targets and for a history. So if any of these differs, other examples are drawn.

    Groups and constraints change no score. But weights, a bound, a baseline or a `top_m` could be chosen
    after seeing an earlier campaign's results, and would then be tested on the draws that they were chosen
    by. Without constraints, metrics decide nothing, and do not change the draws. A served model counts by its
    id, not its address. Every model counts with its request settings.

    For certify, human labels are requested for the same examples again. Routed prompts are not drawn. But
    with `explore`, the answering candidate is drawn, and the estimated advantage of routing depends on these
    draws.

    If only stored outputs are used, the seed is different from that of every other campaign. A pair without
    an output counts at its worst, and other campaigns generated the outputs of the pairs that they drew.
    """
    explores = campaign.spec["selector"].get("params", {}).get("explore")
    apart_from = made_of(campaign) if explores or traits_of(campaign.objective).looks_for_best else {}
    if campaign.execution.get("reuse") == ONLY:
        apart_from["draws of"] = campaign.name
    return int(sha256({**apart_from, "seed": campaign.seed}), 16) if apart_from else campaign.seed


def made_of(campaign: CampaignRecord) -> dict[str, object]:
    """Everything that a campaign's scores depend on, without server addresses.

    See `seed_of_draws`.
    """
    spec = campaign.spec
    found = {key: spec.get(key) for key in MADE_OF}
    served = frozenset(spec.get("served_at") or ())
    judges = [spec.get("judge")]
    found["prompts"] = _without(PLACES, spec.get("prompts"))
    found["judge"] = _without(MODELS, judges[0])
    if isinstance(identity := spec.get("judge_identity"), Mapping):
        fingerprints = _without(served, identity.get("fingerprints"))
        found["judge_identity"] = {**identity, "fingerprints": fingerprints}
    found["model_fingerprints"] = _without(served, spec.get("model_fingerprints"))
    if groups := spec.get("groups"):
        found["groups"] = groups
    params = spec["selector"].get("params", {})
    if asked := {key: params[key] for key, plain in ASKED.items() if params.get(key, plain) != plain}:
        found["asked"] = asked
    if spec.get("constraints"):
        found |= {key: spec.get(key) for key in CONSTRAINED}
        asking = spec.get("metrics")
        found["metrics"] = _without(MODELS, asking)
        if fingerprints := spec.get("metric_fingerprints"):
            found["metric_fingerprints"] = _without(served, fingerprints)
            judges.append(asking)
        by_metrics = chain.from_iterable(judge_tree(each["judge"]).models for each in asking or ())
        found |= _asked_as("metrics_asked_as", by_metrics)
    found |= _asked_as("models_asked_as", spec.get("models") or ())
    found |= _asked_as("judge_asked_as", judge_tree(judges[0]).models)
    found["served"] = sorted(_ids((spec.get("models"), judges), served))
    return found


def _asked_as(what: str, models: Iterable[JsonView]) -> dict[str, object]:
    """The request settings of models by name, without default settings."""
    found = {str(each.get("name")): settings for each in models if (settings := _settings(each))}
    return {what: found} if found else {}


def _settings(model: JsonView) -> dict[str, object]:
    """The settings of a model that differ from the defaults.

    It does not matter whether the file writes defaults out.
    """
    found = {key: model[key] for key in ASKED_AS if model.get(key)}
    if isinstance(args := found.get("model_args"), Mapping):
        found["model_args"] = {key: value for key, value in args.items() if key not in OF_MACHINES}
    if isinstance(config := found.get("generate_config"), Mapping):
        found["generate_config"] = {key: value for key, value in config.items() if value != USUAL.get(key)}
    return {key: value for key, value in found.items() if value}


def _without(keys: Collection[str], value: object) -> object:
    """Remove keys from a value at any depth.

    Such keys can change their location; fingerprints identify their content.
    """
    if isinstance(value, Mapping):
        return {key: _without(keys, each) for key, each in value.items() if key not in keys}
    return [_without(keys, each) for each in value] if isinstance(value, list | tuple) else value


def _ids(value: object, served: Collection[str]) -> Iterator[str]:
    """Yield the ids of the served models that occur anywhere in a value."""
    if isinstance(value, Mapping):
        if value.get("name") in served and "model" in value:
            yield f"{value['model']} {value.get('revision')}"
        value = tuple(value.values())
    if isinstance(value, list | tuple):
        for each in value:
            yield from _ids(each, served)
