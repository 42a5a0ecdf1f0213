"""The campaigns that meet faults: one of each objective, and variants whose engines or judges can fail."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import campaign_processes as processes
import certify_campaigns as certify
import duel_campaigns as duels
import route_campaigns as routes
from tiny_models import save_tiny_llama

from tests.faults.model_servers import SERVER

LENIENT = 0.8
"""A risk that random texts have, so that certifying takes several rounds."""


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A campaign in a folder of its own; its name is always "survivor"."""

    objective: str
    write: Callable[[Path, str], Path]
    """Writes models, data and campaign.yaml into a folder, for results at a URL."""


def _mean(folder: Path, storage: str, provider: str = "transformers") -> Path:
    return processes.write_campaign(folder, provider=provider, storage=storage)


def _large(folder: Path, storage: str) -> Path:
    """A model with a vocabulary of 200,000 tokens, whose drawn texts show the rounding of its logits."""
    spec = _mean(folder, storage)
    save_tiny_llama(folder / "model-1", seed=1, hidden=64, layers=2, n_words=200_000)
    text = re.sub(r"  - \{name: two,.*\n", "", spec.read_text())
    spec.write_text(text.replace("temperature: 0.9, max_tokens: 12", "temperature: 1.0, max_tokens: 6"))
    return spec


def _workers(folder: Path, storage: str) -> Path:
    """Engines in processes of their own, with little patience."""
    spec = _mean(folder, storage, provider="worker")
    patience = "max_restarts: 3, load_timeout: 5, batch_timeout: 2"
    spec.write_text(spec.read_text().replace("max_loaded: 2", f"max_loaded: 2, {patience}"))
    return spec


def _vllm(folder: Path, storage: str) -> Path:
    spec = _mean(folder, storage, provider="vllm")
    text = re.sub(r"  - \{name: two,.*\n", "", spec.read_text())
    spec.write_text(
        text.replace("max_model_len: 64", "max_model_len: 64, dtype: float32, enforce_eager: true")
    )
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


def _certify(folder: Path, storage: str, **changes: Any) -> Path:
    changes = {"labelled": certify.N_EXAMPLES, "storage": storage, **changes}
    return _noting(folder, storage, certify.write_certify(folder, **changes))


def _unlabelled(folder: Path, storage: str) -> Path:
    return _noting(folder, storage, certify.write_certify(folder, storage=storage))


def _route(folder: Path, storage: str, **changes: Any) -> Path:
    return _noting(folder, storage, routes.write_route(folder, storage=storage, **changes))


def _duels(folder: Path, storage: str, provider: str = "transformers", **changes: Any) -> Path:
    return duels.write_duels(folder, provider, storage=storage, **changes)


def _judged_by(provider: str, folder: Path, storage: str, **changes: Any) -> Path:
    """Duels of candidates on one engine, before a judge on the same."""
    judge = duels.model_judge(provider, template="mt-bench")
    return _duels(folder, storage, provider, judge=judge, **changes)


def _certify_on(provider: str, folder: Path, storage: str, **changes: Any) -> Path:
    """Three candidates and an autoevaluator, all on one engine, whose random texts are right now and then."""
    models = [certify.model(name, provider) for name in ("medium", "small", "large")]
    grader = {"model": certify.model("grader", provider), "prompt": "What is {{ input }}?"}
    section = {"autoevaluator": grader, "alpha": LENIENT}
    return _certify(folder, storage, models=models, certify=section, judge={"type": "contains"}, **changes)


def _route_on(provider: str, folder: Path, storage: str, **changes: Any) -> Path:
    models = [routes.model(name, provider) for name in ("counter", "speller")]
    return _route(folder, storage, models=models, **changes)


def _million(folder: Path, storage: str) -> Path:
    """Duels on a million examples."""
    spec = _judged_by("digest", folder, storage)
    duels.write_examples(folder, 1_000_000)
    return spec


def _worker_execution(folder: Path, storage: str) -> dict[str, Any]:
    """Execution of campaigns whose engines are processes, with little patience."""
    patience = {"max_restarts": 3, "load_timeout": 5, "batch_timeout": 2}
    return {"group_size": 4, "max_loaded": 4, "log_folder": f"{folder}/logs", **patience}


def _on_workers(write: Callable[..., Path], folder: Path, storage: str) -> Path:
    return write("worker", folder, storage, execution=_worker_execution(folder, storage))


def _ahead(folder: Path, storage: str) -> Path:
    """Engines in processes of their own, and two rounds in flight beside the one that is told next."""
    spec = _workers(folder, storage)
    spec.write_text(spec.read_text() + "lookahead: 2\n")
    return spec


def _vllm_model(name: str) -> dict[str, Any]:
    args = {"max_model_len": 64, "dtype": "float32", "enforce_eager": True}
    return {"name": name, "provider": "vllm", "model": name, "model_args": args}


def _vllm_duels(folder: Path, storage: str) -> Path:
    return _duels(folder, storage, models=[{**_vllm_model("one"), "model": "model-1"}])


def _vllm_certify(folder: Path, storage: str) -> Path:
    """One candidate, without an autoevaluator: an engine is slow to load."""
    section = {"autoevaluator": None, "unlabelled_per_label": None, "cost": "size", "costs": None}
    section |= {"alpha": LENIENT}
    selector = {"name": "r-eval", "params": {"betting": "wsr"}}
    models = [_vllm_model("medium")]
    judge = {"type": "contains"}
    return _certify(folder, storage, models=models, certify=section, selector=selector, judge=judge)


def _vllm_route(folder: Path, storage: str) -> Path:
    prompts = [
        {"name": "plain", "template": "{{ input }}="},
        {"name": "question", "template": "Q: {{ input }} A:"},
    ]
    return _route(folder, storage, models=[_vllm_model("counter")], prompts=prompts)


def _noting(folder: Path, storage: str, spec: Path) -> Path:
    (folder / processes.STORAGE).write_text(storage)
    return spec


KINDS = {
    "best-mean": Kind(objective="best-mean", write=_mean),
    "large vocabulary": Kind(objective="best-mean", write=_large),
    "workers": Kind(objective="best-mean", write=_workers),
    "workers ahead": Kind(objective="best-mean", write=_ahead),
    "served": Kind(objective="best-mean", write=_served),
    "vllm": Kind(objective="best-mean", write=_vllm),
    "vllm best-duel": Kind(objective="best-duel", write=_vllm_duels),
    "vllm certify": Kind(objective="certify", write=_vllm_certify),
    "vllm route": Kind(objective="route", write=_vllm_route),
    "scripted best-mean": Kind(objective="best-mean", write=partial(_mean, provider="digest")),
    "scripted best-duel": Kind(objective="best-duel", write=partial(_judged_by, "digest")),
    "million": Kind(objective="best-duel", write=_million),
    "workers best-duel": Kind(objective="best-duel", write=partial(_on_workers, _judged_by)),
    "workers certify": Kind(objective="certify", write=partial(_on_workers, _certify_on)),
    "workers route": Kind(objective="route", write=partial(_on_workers, _route_on)),
    "transformers certify": Kind(objective="certify", write=partial(_certify_on, "transformers")),
    "transformers route": Kind(objective="route", write=partial(_route_on, "transformers")),
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

ON_WORKERS = ("workers", "workers best-duel", "workers certify", "workers route")
"""Kinds of all four objectives whose engines are processes of their own, with scripted texts."""

BY_ENGINE = {
    "scripted": ("scripted best-mean", "scripted best-duel", "certify", "route"),
    "transformers": ("best-mean", "best-duel", "transformers certify", "transformers route"),
    "vllm": ("vllm", "vllm best-duel", "vllm certify", "vllm route"),
}
"""Kinds of all four objectives, in the order of `OBJECTIVES`, by what answers."""
