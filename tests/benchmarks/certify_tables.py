"""Losses of quantised models and of prompts, as the published experiments draw them from full tables."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from winnow.algorithms.certify.label_record import HUMAN, UNLABELLED

FOLDER = "rautoeval"
N_PROMPTS, LEAST_EXAMPLES = 25, 2_100


@dataclass(frozen=True)
class LossTable:
    """Losses of K candidates, from the dearest to the cheapest, on all n examples."""

    name: str
    quality: str
    human: np.ndarray
    """Shape (K, n)."""
    auto: np.ndarray
    """Shape (K, n), by an autoevaluator of this quality."""
    costs: np.ndarray
    """Shape (K,)."""

    @property
    def risks(self) -> np.ndarray:
        """Shape (K,), over the whole table."""
        return self.human.mean(axis=1)

    def drawn(self, draws: int, n_labels: int, ratio: int, seed: int = 0) -> Iterator[np.ndarray]:
        """Outcomes of one candidate after the other, shape (draws, n_labels, 3), on the same examples."""
        n = self.human.shape[1]
        size = n_labels * (1 + ratio)
        order = np.array([np.random.default_rng([seed, draw]).permutation(n)[:size] for draw in range(draws)])
        labelled, rest = order[:, :n_labels], order[:, n_labels:].reshape(draws, n_labels, ratio)
        for human, auto in zip(self.human, self.auto, strict=True):
            yield np.stack([human[labelled], auto[labelled], auto[rest].mean(axis=-1)], axis=-1)


def quantised(folder: Path) -> list[LossTable]:
    """How much worse than the full model each quantised one answers TriviaQA; one table per autoevaluator."""
    tables = np.load(folder / FOLDER / "quantization_triviaqa.npz")

    def lost(labels: str) -> np.ndarray:
        return np.maximum(tables[f"{labels}_full"].astype(float) - tables[labels], 0.0)

    human = lost("true")
    return [
        LossTable("TriviaQA", quality, human, lost(f"fake_{quality}"), tables["spec"])
        for quality in ("bad", "med", "best")
    ]


def prompts(folder: Path) -> list[list[LossTable]]:
    """Every fourth of 100 prompts by length; per task with enough examples a table per autoevaluator."""
    tasks = []
    for path in sorted((folder / FOLDER / "prompting").glob("*.npz")):
        tables = np.load(path)
        longest_first = np.argsort(tables["spec"], kind="stable")[:: 100 // N_PROMPTS][::-1]
        if tables["true"].shape[1] >= LEAST_EXAMPLES:
            human = 1.0 - tables["true"][longest_first].astype(float)
            tasks.append(
                [
                    LossTable(
                        path.stem,
                        str(quality),
                        human,
                        1.0 - tables[f"fake_{quality}"][longest_first].astype(float),
                        tables["spec"][longest_first],
                    )
                    for quality in tables["qualities"]
                ]
            )
    return tasks


def means(outcomes: np.ndarray, n_labels: int) -> dict[str, np.ndarray]:
    """What the naive methods compare with alpha, shape (draws,) each."""
    first = outcomes[:, :n_labels]
    return {"eval": first[..., HUMAN].mean(axis=1), "autoeval": first[..., UNLABELLED].mean(axis=1)}
