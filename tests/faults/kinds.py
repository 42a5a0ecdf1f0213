"""The campaigns that meet faults: one of each objective, and variants whose engines or judges can fail."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import campaign_processes as processes
import certify_campaigns as certify
import duel_campaigns as duels
import route_campaigns as routes

from tests.faults.model_servers import SERVER


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A campaign in a folder of its own; its name is always "survivor"."""

    objective: str
    write: Callable[[Path, str], Path]
    """Writes models, data and campaign.yaml into a folder, for results at a URL."""


def _mean(folder: Path, storage: str, provider: str = "transformers") -> Path:
    return processes.write_campaign(folder, provider=provider, storage=storage)


def _workers(folder: Path, storage: str) -> Path:
    """Engines in processes of their own, with little patience."""
    spec = _mean(folder, storage, provider="worker")
    patience = "max_restarts: 3, load_timeout: 5, batch_timeout: 2"
    spec.write_text(spec.read_text().replace("max_loaded: 2", f"max_loaded: 2, {patience}"))
    return spec


def _vllm(folder: Path, storage: str) -> Path:
    spec = _mean(folder, storage, provider="vllm")
    text = re.sub(r"  - \{name: two,.*\n", "", spec.read_text())
    spec.write_text(text.replace("max_model_len: 64", "max_model_len: 64, dtype: float32"))
    return spec


def _served(folder: Path, storage: str) -> Path:
    """Models that a server runs, which is there and well when the campaign is written."""
    SERVER.start()
    spec = _mean(folder, storage, provider="openai")
    text = re.sub(
        r"model: \S+, model_args: .*", f"model: served, model_base_url: '{SERVER.url}'}}", spec.read_text()
    )
    patience = "max_restarts: 3, max_retries: 3, request_timeout: 1"
    spec.write_text(text.replace("max_loaded: 2", f"max_loaded: 2, {patience}"))
    return spec


def _judged(folder: Path, storage: str) -> Path:
    """Duels whose judge is a model in a process of its own."""
    execution = {"group_size": 4, "max_loaded": 3, "log_folder": f"{folder}/logs", "batch_timeout": 2}
    judge = duels.model_judge("worker", template="mt-bench")
    return duels.write_duels(folder, storage=storage, judge=judge, execution=execution)


def _unreadable(folder: Path, storage: str) -> Path:
    """Duels before a judge with random weights, whose replies hold no verdict."""
    judge = duels.model_judge("transformers", template="mt-bench", max_tokens=8)
    return duels.write_duels(folder, storage=storage, judge=judge)


def _certify(folder: Path, storage: str) -> Path:
    return _noting(
        folder, storage, certify.write_certify(folder, labelled=certify.N_EXAMPLES, storage=storage)
    )


def _unlabelled(folder: Path, storage: str) -> Path:
    return _noting(folder, storage, certify.write_certify(folder, storage=storage))


def _route(folder: Path, storage: str) -> Path:
    return _noting(folder, storage, routes.write_route(folder, storage=storage))


def _noting(folder: Path, storage: str, spec: Path) -> Path:
    (folder / processes.STORAGE).write_text(storage)
    return spec


KINDS = {
    "best-mean": Kind(objective="best-mean", write=_mean),
    "workers": Kind(objective="best-mean", write=_workers),
    "served": Kind(objective="best-mean", write=_served),
    "vllm": Kind(objective="best-mean", write=_vllm),
    "best-duel": Kind(
        objective="best-duel", write=lambda folder, storage: duels.write_duels(folder, storage=storage)
    ),
    "judged": Kind(objective="best-duel", write=_judged),
    "unreadable": Kind(objective="best-duel", write=_unreadable),
    "certify": Kind(objective="certify", write=_certify),
    "unlabelled": Kind(objective="certify", write=_unlabelled),
    "route": Kind(objective="route", write=_route),
}
OBJECTIVES = ("best-mean", "best-duel", "certify", "route")
"""Kinds that stand for their objective."""
