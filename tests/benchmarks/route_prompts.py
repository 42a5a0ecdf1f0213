"""Prompts of five types of tasks with their sentence embeddings."""

import json
from pathlib import Path

import numpy as np

from winnow.algorithms.route.contexts import unit_rows
from winnow.tasks.embedding.protocol import of_unit_length
from winnow.tasks.embedding.sentence_model import SentenceModel

TYPES = ("negation", "sentiment", "active_to_passive", "object_counting", "word_in_context")
PROMPTS_PER_TYPE = 400


def prompts(folder: Path) -> list[list[str]]:
    """The first inputs of each type; none of them says which task it belongs to."""
    found = []
    for task in TYPES:
        with (folder / "tasks" / f"{task}.jsonl").open() as lines:
            inputs = [json.loads(line)["input"] for line in lines]
        found.append(inputs[:PROMPTS_PER_TYPE])
    return found


def embedded(folder: Path, cache: Path) -> np.ndarray:
    """Embeddings of length 1, shape (types, prompts, 384); a second run finds them in the cache."""
    stored = cache / "route-embeddings.npy"
    if not stored.exists():
        texts = [text for each in prompts(folder) for text in each]
        rows = of_unit_length(SentenceModel(None, "mean").embed(texts), texts)
        cache.mkdir(parents=True, exist_ok=True)
        np.save(stored, rows.reshape(len(TYPES), PROMPTS_PER_TYPE, -1))
    found: np.ndarray = np.load(stored, allow_pickle=False)
    return unit_rows(found.reshape(-1, found.shape[-1])).reshape(found.shape)
