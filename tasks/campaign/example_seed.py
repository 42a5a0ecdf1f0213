"""The seed for drawing examples, derived also from everything that scores depend on."""

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
"""Further keys of the claim with constraints: the bounds, and the source of the values."""

ASKED = {"baseline": None, "top_m": 1}
"""Selector parameters that define the claim, with their default values."""

MODELS = frozenset({"model", "models"})
"""Keys that hold a judge's models."""
ASKED_AS = ("model_args", "chat", "chat_template_args", "reasoning", "generate_config")
"""Keys of a model that affect its outputs besides fingerprints, which cover weights, chat template and
adapter."""
OF_MACHINES = {
    *WIDTH_ARGS,
    "device",
    "enforce_eager",
    "gpu_memory_utilization",
    "max_model_len",
    "max_num_batched_tokens",
    "max_num_seqs",
}
"""Arguments of engines that fit a model to a machine: a campaign can move to another one."""
USUAL = {"temperature": 0.0, "top_p": 1.0, "top_k": 0, "max_tokens": 256, "stop_seqs": []}
"""The stored form of an empty `generate_config`."""
PLACES = frozenset({"from"})
"""Keys for the source of the examples in a prompt."""


def seed_of_draws(campaign: CampaignRecord) -> int:
    """The seed of the draws, from the campaign's seed and everything that its scores depend on.

    A claim is valid if the scores were fixed before, and independently of, the draws. If a prompt was
    improved after an earlier campaign showed its failures, it is right on the examples that the earlier one
    drew; the same draws would make it seem right everywhere. The same holds for a judge, targets and a
    history. So if any of these differs, other examples are drawn. Groups and constraints change no score. But
    weights, a bound, a baseline or a `top_m` could be chosen after an earlier campaign's results, and would
    then be tested by the draws that they were chosen by. Without constraints, metrics decide nothing, and
    change no draw. A served model counts by its id, not its address; every model counts with its request
    settings. For certify, human labels are requested for the same examples again. Routed prompts are not
    drawn; but with `explore`, the answering candidate is drawn, and the estimated advantage of routing
    depends on that.

    If only stored outputs are used, no other campaign uses this seed: a pair without an output counts at its
    worst, and other campaigns generated the outputs of the pairs that they drew.
    """
    explores = campaign.spec["selector"].get("params", {}).get("explore")
    apart_from = made_of(campaign) if explores or traits_of(campaign.objective).looks_for_best else {}
    if campaign.execution.get("reuse") == ONLY:
        apart_from["draws of"] = campaign.name
    return int(sha256({**apart_from, "seed": campaign.seed}), 16) if apart_from else campaign.seed


def made_of(campaign: CampaignRecord) -> dict[str, object]:
    """Everything that scores depend on, without addresses of served models; see `seed_of_draws`."""
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
    """The request settings of models by name, without the usual ones."""
    found = {str(each.get("name")): settings for each in models if (settings := _settings(each))}
    return {what: found} if found else {}


def _settings(model: JsonView) -> dict[str, object]:
    """The settings of a model that differ from the defaults, whether written out or not."""
    found = {key: model[key] for key in ASKED_AS if model.get(key)}
    if isinstance(args := found.get("model_args"), Mapping):
        found["model_args"] = {key: value for key, value in args.items() if key not in OF_MACHINES}
    if isinstance(config := found.get("generate_config"), Mapping):
        found["generate_config"] = {key: value for key, value in config.items() if value != USUAL.get(key)}
    return {key: value for key, value in found.items() if value}


def _without(keys: Collection[str], value: object) -> object:
    """A value without some keys, at any depth: these can move, and fingerprints identify their content."""
    if isinstance(value, Mapping):
        return {key: _without(keys, each) for key, each in value.items() if key not in keys}
    return [_without(keys, each) for each in value] if isinstance(value, list | tuple) else value


def _ids(value: object, served: Collection[str]) -> Iterator[str]:
    """Ids of the served models that occur anywhere in a value."""
    if isinstance(value, Mapping):
        if value.get("name") in served and "model" in value:
            yield f"{value['model']} {value.get('revision')}"
        value = tuple(value.values())
    if isinstance(value, list | tuple):
        for each in value:
            yield from _ids(each, served)
