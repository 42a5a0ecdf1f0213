"""Models of a hub that a spec names without a revision, pinned to the commit that lies in the hub's cache.

What a hub serves under a name may be replaced. So a model that was downloaded already is loaded, and known,
by its commit. One that was not keeps its name alone: nothing is asked of the hub. A campaign that is stored
keeps what it was begun with.
"""

import os
import re
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path

from winnow.storage.json_types import JsonObject, JsonView
from winnow.tasks.candidates.judge_entries import judge_entries, judge_place
from winnow.tasks.engines.providers import REMOTE
from winnow.tasks.spec.campaign import CampaignSpec, JudgeSpec, ModelSpec

Revisions = Mapping[str, str | None]
"""By the place of a model in the stored spec; see `revisions_of`."""


def pinned(spec: CampaignSpec, begun: Revisions) -> CampaignSpec:
    """The spec with the revision of each model that it names no revision of, where one is known.

    Args:
        spec: As in the file.
        begun: Of the campaign of this name that is stored already; empty where there is none.
    """
    models = [_pinned(model, f"models.{model.name}", begun) for model in spec.models]
    return spec.model_copy(
        update={"models": models, "judge": _pinned_judge(spec.judge, begun), **_pinned_certify(spec, begun)}
    )


def revisions_of(identity: JsonView) -> dict[str, str | None]:
    """The revisions that a stored campaign was begun with, by the place of the model."""
    found = {f"models.{model['name']}": model["revision"] for model in identity["models"]}
    for model in judge_entries(identity["judge"]):
        found[judge_place(model)] = model.get("revision")
    if autoevaluator := (identity.get("certify") or {}).get("autoevaluator"):
        found["autoevaluator"] = autoevaluator["model"]["revision"]
    return found


def cached_commit(model: str) -> str | None:
    """The commit that the hub's cache holds of a model's main branch; None where there is none."""
    folder = _cache() / f"models--{model.replace('/', '--')}"
    try:
        commit = (folder / "refs" / "main").read_text("utf-8").strip()
    except (OSError, ValueError):
        return None
    is_there = re.fullmatch(r"[0-9a-f]{40}", commit) and (folder / "snapshots" / commit).is_dir()
    return commit if is_there else None


def _pinned(model: ModelSpec, place: str, begun: Revisions) -> ModelSpec:
    revision = _revision(model.model_dump(include={"provider", "model", "revision"}), place, begun)
    return model if revision == model.revision else model.model_copy(update={"revision": revision})


def _pinned_judge(judge: JudgeSpec, begun: Revisions) -> JudgeSpec:
    params = deepcopy(judge.params)
    for model in judge_entries(params):
        if (found := _revision(model, judge_place(model), begun)) != model.get("revision"):
            model["revision"] = found
    return JudgeSpec.model_validate({"type": judge.type, **params})


def _pinned_certify(spec: CampaignSpec, begun: Revisions) -> JsonObject:
    if spec.certify is None or (autoevaluator := spec.certify.autoevaluator) is None:
        return {}
    model = _pinned(autoevaluator.model, "autoevaluator", begun)
    certify = {"autoevaluator": autoevaluator.model_copy(update={"model": model})}
    return {"certify": spec.certify.model_copy(update=certify)}


def _revision(model: JsonView, place: str, begun: Revisions) -> object:
    given, name = model.get("revision"), model.get("model")
    if given is not None or model.get("provider", "vllm") in REMOTE or not isinstance(name, str):
        return given
    if name.count("/") != 1 or name.startswith((".", "/", "~")) or Path(name).is_dir():
        return None
    return begun[place] if place in begun else cached_commit(name)


def _cache() -> Path:
    """Where the hub's own library keeps what it downloads."""
    if own := os.environ.get("HF_HUB_CACHE") or os.environ.get("HUGGINGFACE_HUB_CACHE"):
        return Path(own)
    home = os.environ.get("HF_HOME") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "huggingface"
    )
    return Path(home) / "hub"
