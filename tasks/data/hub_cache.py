"""Pin models and datasets of a hub to the commit in the hub's cache.

The content of a name on a hub can change. So a downloaded model without a revision in the spec is loaded, and
identified, by its commit. A model that is not downloaded yet has no commit, because no request is sent to the
hub. A dataset always has a commit: from the cache, or else from the hub. A stored campaign keeps the commits
with which it began.
"""

import os
import re
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Literal, TypeVar

from winnow.algorithms.state.plugin_registry import in_words
from winnow.storage.json_types import JsonObject, JsonView
from winnow.tasks.engines.known_providers import AGENTS, FUNCTION, REMOTE
from winnow.tasks.engines.protocol import ModelRef
from winnow.tasks.errors import DatasetError
from winnow.tasks.plugins.extras import require
from winnow.tasks.spec.campaign import CampaignSpec, JudgeSpec
from winnow.tasks.spec.judge_tree import judge_place, judge_tree, judging_models, metric_place
from winnow.tasks.spec.sections.dataset import DatasetSpec, LmEvalSpec, SolvedSpec
from winnow.tasks.spec.sections.models import ModelSpec
from winnow.tasks.spec.sections.prompts import PromptSpec

COMMIT = re.compile(r"[0-9a-f]{40}")

ON_HUB = frozenset({"transformers", "vllm"})
"""Providers whose models can be on the hub.

Models of plug-ins are not checked.
"""

ELSEWHERE = frozenset({"cache_dir", "download_dir"})
"""Keys of `model_args` that name another cache instead of the hub's own."""

HUB_TIMEOUT = 30.0
"""Seconds to wait for the hub's response about a model."""

Kind = Literal["models", "datasets"]
"""Kinds of repositories on the hub."""

Revisions = Mapping[str, str | None]
"""Revisions by the model's key in the stored spec; see `revisions_of`."""


def pinned(spec: CampaignSpec, begun: Revisions, *, asks_hub: bool = False) -> CampaignSpec:
    """Pin each model and hub dataset without a revision in the spec to its commit.

    A model without a known commit is not pinned.

    The datasets are the campaign's own and those of prompts' solved examples.

    Args:
        spec: The spec as in the file.
        begun: Revisions of the stored campaign of this name; empty if no campaign has this name.
        asks_hub: Whether to ask the hub for the commit of a dataset that is not in its cache.

    Raises:
        DatasetError: The commit of a dataset cannot be determined.
    """
    models = [_pinned(model, f"models.{model.name}", begun) for model in spec.models]
    metrics = [
        each.model_copy(update={"judge": _pinned_judge(each.judge, metric_place(each.name), begun)})
        for each in spec.metrics
    ]
    parts = {
        "judge": _pinned_judge(spec.judge, "judge", begun),
        "metrics": metrics,
        "dataset": _pinned_dataset(spec.dataset, begun, asks_hub),
        "prompts": [
            _pinned_prompt(each, f"prompts[{index}]", begun, asks_hub)
            for index, each in enumerate(spec.prompts)
        ],
    }
    return spec.model_copy(update={"models": models, **parts, **_pinned_certify(spec, begun)})


def revisions_of(identity: JsonView) -> dict[str, str | None]:
    """The revisions at the start of a stored campaign, by the model's key."""
    found = {f"models.{model['name']}": model["revision"] for model in identity["models"]}
    for place, model in judging_models(identity):
        found[place] = model.get("revision")
    shown = [(each.get("few_shot") or {}).get("from") for each in identity["prompts"]]
    for dataset in (identity["dataset"], *filter(None, shown)):
        if commit := (dataset.get("lm_eval") or dataset)["commit"]:
            found[_dataset_place(dataset)] = commit
    if autoevaluator := (identity.get("certify") or {}).get("autoevaluator"):
        found["autoevaluator"] = autoevaluator["model"]["revision"]
    return found


def cached_commit(name: str, kind: Kind = "models", revision: str = "main") -> str | None:
    """The commit of a branch or tag in the hub's cache; None if there is none."""
    try:
        commit = (_folder(name, kind) / "refs" / revision).read_text("utf-8").strip()
    except (OSError, ValueError):
        return None
    return commit if COMMIT.fullmatch(commit) and cached_folder(name, kind, commit) else None


def why_unknown_to_hub(model: ModelRef) -> str | None:
    """The reason why a hub's model cannot be loaded; None if none is known.

    Reasons are that the model is not on the hub, or that the hub does not answer. None also for a model in
    the hub's cache or in a folder, and for one that another hub may have.
    """
    name, revision = model.model, model.revision or "main"
    is_elsewhere = bool(ELSEWHERE & model.model_args.keys()) or "VLLM_USE_MODELSCOPE" in os.environ
    if model.provider not in ON_HUB or not _may_be_on_hub(name) or is_elsewhere:
        return None
    is_commit = COMMIT.fullmatch(revision) is not None
    if cached_folder(name, "models", revision) if is_commit else cached_commit(name, "models", revision):
        return None
    if _is_offline():
        return f"{name} is not in the hub's cache, and HF_HUB_OFFLINE forbids requests to the hub"
    from huggingface_hub import HfApi
    from huggingface_hub.errors import RepositoryNotFoundError, RevisionNotFoundError

    try:
        HfApi().model_info(name, revision=model.revision, timeout=HUB_TIMEOUT)
    except RepositoryNotFoundError:
        return f"the hub has no model {name}, or your account cannot read it"
    except RevisionNotFoundError:
        return f"the hub has no revision {revision} of {name}"
    except Exception as error:  # from the hub or the network
        return f"the hub did not answer about {name}: {in_words(error)}"
    return None


def _is_offline() -> bool:
    return os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE")


def _may_be_on_hub(name: str) -> bool:
    return name.count("/") == 1 and not name.startswith((".", "/", "~")) and not Path(name).is_dir()


def cached_folder(name: str, kind: Kind, commit: str) -> Path | None:
    """The cache folder of a commit; None if it does not exist.

    Files that were not downloaded can be missing from it.
    """
    folder = _folder(name, kind) / "snapshots" / commit
    return folder if folder.is_dir() else None


def _folder(name: str, kind: Kind) -> Path:
    return _cache() / f"{kind}--{name.replace('/', '--')}"


def _pinned(model: ModelSpec, place: str, begun: Revisions) -> ModelSpec:
    revision = _revision(model.model_dump(include={"provider", "model", "revision"}), place, begun)
    return model if revision == model.revision else model.model_copy(update={"revision": revision})


def _pinned_dataset(dataset: DatasetSpec, begun: Revisions, asks_hub: bool) -> DatasetSpec:
    place = _dataset_place(dataset.model_dump())
    if (task := dataset.lm_eval) is None:
        return _pinned_source(dataset, place, begun, asks_hub)
    return dataset.model_copy(update={"lm_eval": _pinned_source(task, place, begun, asks_hub)})


def _pinned_prompt(prompt: PromptSpec, path: str, begun: Revisions, asks_hub: bool) -> PromptSpec:
    if (few_shot := prompt.few_shot) is None or (source := few_shot.source) is None:
        return prompt
    place = _dataset_place(source.model_dump())
    try:
        shown = few_shot.model_copy(update={"source": _pinned_source(source, place, begun, asks_hub)})
    except DatasetError as error:
        raise DatasetError(error.message, f"{path}.few_shot.from") from error
    return prompt.model_copy(update={"few_shot": shown})


Source = TypeVar("Source", LmEvalSpec, DatasetSpec, SolvedSpec)


def _pinned_source(source: Source, place: str, begun: Revisions, asks_hub: bool) -> Source:
    if source.hub is None or source.commit is not None or Path(source.hub).is_dir():
        return source
    commit = begun.get(place) or dataset_commit(source.hub, source.revision, asks_hub=asks_hub)
    return source.model_copy(update={"commit": commit})


def dataset_commit(hub: str, revision: str | None, *, asks_hub: bool) -> str:
    """The commit of a hub's dataset, from the hub's cache or else from the hub.

    Raises:
        DatasetError: The commit is not in the cache, and the hub does not answer or requests are not allowed.
    """
    if revision is not None and COMMIT.fullmatch(revision):
        return revision
    if commit := cached_commit(hub, "datasets", revision or "main"):
        return commit
    if not asks_hub or _is_offline():
        raise DatasetError(
            f"the dataset {hub} is not in the hub's cache, and downloads are off; download it first (hf "
            f"download --repo-type dataset {hub}), or name a folder",
            "dataset.hub",
        )
    require("hub", f"the dataset {hub}")
    from huggingface_hub import HfApi

    try:
        return str(HfApi().dataset_info(hub, revision=revision).sha)
    except Exception as error:  # from the hub or the network
        raise DatasetError(f"the hub did not answer about {hub}: {in_words(error)}", "dataset.hub") from error


def _dataset_place(dataset: JsonView) -> str:
    """Key of a hub dataset and its revision; each combination has its own commit."""
    source = dataset.get("lm_eval") or dataset
    return f"dataset {source['hub']}@{source['revision']}"


def _pinned_judge(judge: JudgeSpec, place: str, begun: Revisions) -> JudgeSpec:
    tree = judge_tree(deepcopy(judge.model_dump()))
    for model in tree.models:
        if (found := _revision(model, judge_place(place, model), begun)) != model.get("revision"):
            model["revision"] = found
    return JudgeSpec.model_validate(tree.params)


def _pinned_certify(spec: CampaignSpec, begun: Revisions) -> JsonObject:
    if spec.certify is None or (autoevaluator := spec.certify.autoevaluator) is None:
        return {}
    model = _pinned(autoevaluator.model, "autoevaluator", begun)
    certify = {"autoevaluator": autoevaluator.model_copy(update={"model": model})}
    return {"certify": spec.certify.model_copy(update=certify)}


def _revision(model: JsonView, place: str, begun: Revisions) -> object:
    given, name = model.get("revision"), model.get("model")
    if (
        given is not None
        or model.get("provider", "vllm") in {FUNCTION, *AGENTS, *REMOTE}
        or not isinstance(name, str)
    ):
        return given
    if not _may_be_on_hub(name):
        return None
    return begun[place] if place in begun else cached_commit(name)


def _cache() -> Path:
    """The folder to which the hub's own library downloads."""
    if own := os.environ.get("HF_HUB_CACHE") or os.environ.get("HUGGINGFACE_HUB_CACHE"):
        return Path(own)
    home = os.environ.get("HF_HOME") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "huggingface"
    )
    return Path(home) / "hub"
