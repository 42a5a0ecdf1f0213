"""Whether routing pays, as the interval says it: where it does by construction, and on AlpacaEval 2."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from tests.benchmarks.route_experts import Stream, stream
from tests.benchmarks.tables import Row
from winnow.algorithms.protocols import round_rng
from winnow.algorithms.registry import create_selector
from winnow.algorithms.route.contexts import unit_rows
from winnow.tasks.embedding.protocol import of_unit_length
from winnow.tasks.embedding.sentence_model import SentenceModel

MODELS = (
    "FuseChat-Gemma-2-9B-Instruct",
    "FuseChat-Qwen-2.5-7B-Instruct",
    "FuseChat-Llama-3.1-8B-Instruct",
    "FuseChat-Llama-3.2-3B-Instruct",
    "gpt4_1106_preview",
)
"""The four best that answer, and the one that they are judged against."""
LONG = 20_000
"""Prompts of a long stream; AlpacaEval 2 has 805, each once."""
SHARES = (0.05, 0.2)
BATCH = 32


def alpaca(folder: Path, cache: Path, seed: int) -> Stream:
    """All instructions in random order, with the preference for each model's answer over GPT-4's."""
    with np.load(folder / "alpacaeval2.npz", allow_pickle=False) as file:
        names = [str(name) for name in file["models"]]
        scores = file["scores"][[names.index(name) for name in MODELS]].T.astype(float)  # (805, 5)
        texts = [str(text) for text in file["instructions"]]
    stored = cache / "alpaca-embeddings.npy"
    if not stored.exists():
        cache.mkdir(parents=True, exist_ok=True)
        np.save(stored, of_unit_length(SentenceModel(None, "mean").embed(texts), texts))
    order = np.random.default_rng([seed, 2]).permutation(len(texts))
    contexts = unit_rows(np.load(stored, allow_pickle=False))
    scores = np.nan_to_num(scores, nan=0.5)[order]
    return Stream(contexts[order], np.zeros(len(texts), dtype=np.int64), scores, scores)


def measure(embeddings: np.ndarray, folder: Path, cache: Path, seeds: int) -> Iterator[Row]:
    """The interval at the end of a stream, and what it should hold."""
    for share in SHARES:
        for seed in range(seeds):
            yield _row("AlpacaEval 2, five models", alpaca(folder, cache, seed), share, seed)
        types = np.random.default_rng([0, 0]).integers(5, size=LONG)
        yield _row("five types, an expert for each", stream(embeddings, types, 0), share, 0)


def _row(label: str, world: Stream, share: float, seed: int) -> Row:
    n_prompts, n_arms = world.scores.shape
    router = create_selector(
        "rff-ucb", n_arms=n_arms, n_examples=n_prompts, dim=world.contexts.shape[1], explore=share
    )
    scores = []
    for start in range(0, n_prompts, BATCH):
        batch = router.ask(round_rng(seed, start // BATCH), world.contexts[start : start + BATCH])
        found = world.scores[batch.examples, batch.arms]
        scores.append(found)
        router.tell(batch, 2.0 * found - 1.0)
    advantage = router.advantage()
    alone = world.scores.mean(axis=0).max()
    return {
        "world": label,
        "explored": f"{share:g}",
        "seed": str(seed),
        "prompts": str(n_prompts),
        "routing scored": f"{np.concatenate(scores).mean():.3f}",
        "the best single arm would have": f"{alone:.3f}",
        "difference": f"{np.concatenate(scores).mean() - alone:+.3f}",
        "estimated": f"{advantage.estimate / 2.0:+.3f}",
        "95% interval": f"{advantage.lower / 2.0:+.3f} to {advantage.upper / 2.0:+.3f}",
        "shown to pay": "yes" if advantage.lower > 0.0 else "no",
    }
