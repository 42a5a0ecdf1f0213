"""LoRA adapters with random weights for the models of `tiny_models`, as peft saves them, made without it."""

import json
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

TARGETS = ("q_proj", "v_proj")
HIDDEN = 32
ALPHA = 8


def save_tiny_adapter(folder: Path, base: Path, *, seed: int, rank: int = 4) -> Path:
    """Save an adapter of the attention of a one-layer model."""
    folder.mkdir(parents=True, exist_ok=True)
    chance = torch.Generator().manual_seed(seed)
    tensors = {}
    for target in TARGETS:
        name = f"base_model.model.model.layers.0.self_attn.{target}"
        tensors[f"{name}.lora_A.weight"] = torch.randn(rank, HIDDEN, generator=chance)
        tensors[f"{name}.lora_B.weight"] = torch.randn(HIDDEN, rank, generator=chance)
    save_file(tensors, folder / "adapter_model.safetensors")
    config = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": str(base),
        "r": rank,
        "lora_alpha": ALPHA,
        "target_modules": list(TARGETS),
        "bias": "none",
    }
    (folder / "adapter_config.json").write_text(json.dumps(config))
    return folder


def merge(base: Path, adapter: Path, folder: Path) -> Path:
    """Save the base with the adapter's change added to its weights: W + alpha / rank * B A."""
    folder.mkdir()
    for file in base.iterdir():
        if file.name != "model.safetensors":
            (folder / file.name).write_bytes(file.read_bytes())
    weights, change = load_file(base / "model.safetensors"), load_file(adapter / "adapter_model.safetensors")
    rank = json.loads((adapter / "adapter_config.json").read_text())["r"]
    for target in TARGETS:
        name = f"model.layers.0.self_attn.{target}"
        a = change[f"base_model.model.{name}.lora_A.weight"]
        b = change[f"base_model.model.{name}.lora_B.weight"]
        weights[f"{name}.weight"] += ALPHA / rank * b @ a
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return folder
