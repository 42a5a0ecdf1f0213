"""Checks of a checkpoint's or LoRA adapter's folder, before an expensive loader starts."""

import json
import re
from collections.abc import Sequence
from pathlib import Path

from winnow.storage.json_types import JsonObject
from winnow.storage.plain_files import read_text
from winnow.tasks.engines.errors import EngineLoadFailed
from winnow.tasks.engines.protocol import ModelRef


def refuse_missing_checkpoint(model: ModelRef) -> None:
    """Refuse a local path without a checkpoint; the loader checks a possible id on the hub.

    Raises:
        EngineLoadFailed: If `model.model` is a folder without `config.json`, or a local path that does not
            exist.
    """
    folder = Path(model.model)
    if folder.is_dir():
        if not (folder / "config.json").is_file():
            raise EngineLoadFailed(
                model.name, f"the folder {folder} holds no config.json; name the folder of a saved checkpoint"
            )
    elif not _may_be_hub_id(model.model):
        raise EngineLoadFailed(
            model.name,
            f"there is no folder {folder}; check the path of the checkpoint and the working folder",
        )


def both_readings(model: ModelRef) -> str:
    """Prefix for a loader's error if the model may be a mistyped path or an id on the hub.

    Empty if the folder exists. Otherwise the loader's error mentions only the hub, although a path may have
    been intended.
    """
    folder = Path(model.model)
    if folder.is_dir():
        return ""
    return (
        f"there is no folder {folder.absolute()}, and {model.model!r} cannot be loaded from the hub; "
        "correct the path, or check that the hub has this model and is reachable: "
    )


VISION = re.compile("vision|visual|image|img|pixel")
"""Occurs in a key of the configuration of every model that reads images."""


def reads_images(folder: Path) -> bool:
    """Whether the checkpoint in a folder can read images, or has no configuration that says so."""
    try:
        config = json.loads(read_text(folder / "config.json"))
    except (OSError, ValueError):
        return True
    return not isinstance(config, dict) or any(map(VISION.search, config))


def _may_be_hub_id(model: str) -> bool:
    return bool(model) and not model.startswith((".", "/", "~")) and model.count("/") <= 1


CONFIG = "adapter_config.json"
WEIGHTS = ("adapter_model.safetensors", "adapter_model.bin")
RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)
"""Values of the maximum rank that vLLM accepts."""
MOST_ON_DEVICE = 8
"""Maximum number of adapters on an engine's device; the others stay in main memory until requested."""


def adapter_rank(folder: Path) -> int:
    """Rank of the adapter in a folder, the largest if its layers differ.

    Raises:
        ValueError: If the folder holds no readable LoRA adapter; the message says what to do.
    """
    path = folder / CONFIG
    if not path.is_file():
        raise ValueError(
            f"there is no adapter in '{folder}' (looked for {path.absolute()}); give the folder that peft "
            "saved"
        )
    if not any((folder / name).is_file() for name in WEIGHTS):
        raise ValueError(f"the folder '{folder}' holds no {' or '.join(WEIGHTS)}; save the adapter again")
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
        if config.get("peft_type", "LORA") != "LORA":
            raise ValueError(
                f"'{path}' describes a {config['peft_type']} adapter; only LoRA adapters can be used"
            )
        ranks = [config["r"], *config.get("rank_pattern", {}).values()]
    except (KeyError, AttributeError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"'{path}' is not the configuration of a LoRA adapter; save it again") from error
    if not all(isinstance(rank, int) and 0 < rank <= RANKS[-1] for rank in ranks):
        raise ValueError(f"'{path}' has the rank {max(ranks, key=str)!r}; ranks go from 1 to {RANKS[-1]}")
    return int(max(ranks))


def adapter_args(adapters: Sequence[str]) -> JsonObject:
    """Arguments of `vllm.LLM` for an engine that serves these adapters; empty without adapters."""
    if not adapters:
        return {}
    rank = max(adapter_rank(Path(folder)) for folder in adapters)
    return {
        "enable_lora": True,
        "max_lora_rank": next(limit for limit in RANKS if limit >= rank),
        "max_loras": min(len(adapters), MOST_ON_DEVICE),
        "max_cpu_loras": len(adapters),
    }
