"""LoRA adapters as peft saves them: a folder with adapter_config.json and the adapter's weights."""

import json
from collections.abc import Sequence
from pathlib import Path

from winnow.storage.json_types import JsonObject

CONFIG = "adapter_config.json"
WEIGHTS = ("adapter_model.safetensors", "adapter_model.bin")
RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)
"""Limits of the rank that vLLM can be given."""
MOST_ON_DEVICE = 8
"""Adapters that an engine keeps on its device; others are in the machine's memory until they are asked."""


def adapter_rank(folder: Path) -> int:
    """The rank of the adapter in a folder, the largest where its layers differ.

    Raises:
        ValueError: If the folder does not hold a LoRA adapter that can be read, with what to do.
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
                f"'{path}' is of a {config['peft_type']} adapter; only LoRA adapters can be used"
            )
        ranks = [config["r"], *config.get("rank_pattern", {}).values()]
    except (KeyError, AttributeError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"'{path}' is not the configuration of a LoRA adapter; save it again") from error
    if not all(isinstance(rank, int) and 0 < rank <= RANKS[-1] for rank in ranks):
        raise ValueError(f"'{path}' has the rank {max(ranks, key=str)!r}; ranks go from 1 to {RANKS[-1]}")
    return int(max(ranks))


def adapter_args(adapters: Sequence[str]) -> JsonObject:
    """Arguments of `vllm.LLM` for an engine that serves these adapters; none where there are no adapters."""
    if not adapters:
        return {}
    rank = max(adapter_rank(Path(folder)) for folder in adapters)
    return {
        "enable_lora": True,
        "max_lora_rank": next(limit for limit in RANKS if limit >= rank),
        "max_loras": min(len(adapters), MOST_ON_DEVICE),
        "max_cpu_loras": len(adapters),
    }
