"""The score tables on which best-mean selectors are measured: real, drawn from real factors, adversarial."""

from pathlib import Path
from typing import NamedTuple

import numpy as np

MODELS = 1000
"""Arms of the published comparison on the leaderboard."""
BEST_ROWS = 50
"""Models whose factors the dense variant mixes."""
CONCENTRATION, NOISE = 0.2, 0.1
"""Of the mixtures: a few of the best rows dominate each; noise in standard deviations of a factor."""


class World(NamedTuple):
    name: str
    scores: np.ndarray
    """Shape (K, n), NaN where missing."""
    history: np.ndarray | None
    """Shape (M, n), scores of other models on the same examples."""

    def gap(self):
        """Between the highest mean and the next."""
        second, best = np.sort(np.nanmean(self.scores, axis=1))[-2:]
        return best - second


def alpaca(data: Path, *, with_null_model: bool) -> World:
    """AlpacaEval 2: 58 models x 805 instructions; harder without the adversarial NullModel."""
    with np.load(data / "alpacaeval2.npz") as arrays:
        scores, models = arrays["scores"], arrays["models"]
    keep = with_null_model | (models != "NullModel")
    name = f"AlpacaEval 2 {'with' if with_null_model else 'without'} NullModel"
    return World(name, scores[keep], None)


def leaderboard_factors(data: Path) -> tuple[np.ndarray, np.ndarray]:
    """Factors of 2212 models and 12032 MMLU-Pro questions."""
    with np.load(data / "leaderboard_factors.npz") as arrays:
        return arrays["mmlu_U"], arrays["mmlu_V"]


def drawn(u: np.ndarray, v: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """0/1 scores of logistic factor models, single precision."""
    chances = 1.0 / (1.0 + np.exp(-(u @ v.T)))
    return (rng.random(chances.shape, dtype=np.float32) < chances).astype(np.float32)


def published_subset(table: np.ndarray, gap: float) -> World:
    """The paper's 1000 models: the best, the one nearest to `gap` below it, and the next 998 after that one.

    History is the rest of the table. Source: Tolochinsky et al. (2026), Section 4, "Datasets".
    """
    means = table.mean(axis=1)
    order = np.argsort(-means, kind="stable")
    second = 1 + int(np.abs(means[order[0]] - gap - means[order[1:]]).argmin())
    chosen = np.concatenate([order[:1], order[second : second + MODELS - 1]])
    rest = np.setdiff1d(order, chosen)
    return World(f"leaderboard subset, gap {gap:g}", table[chosen], table[rest])


def dense_variant(u: np.ndarray, v: np.ndarray, table: np.ndarray, rng: np.random.Generator) -> World:
    """1000 new models, mixtures of the 50 best rows of factors plus noise; history is all other rows."""
    order = np.argsort(-table.mean(axis=1), kind="stable")
    best = u[order[:BEST_ROWS]]
    weights = rng.dirichlet(np.full(BEST_ROWS, CONCENTRATION), size=MODELS)
    mixed = weights @ best + NOISE * u.std(axis=0) * rng.standard_normal((MODELS, u.shape[1]))
    return World("leaderboard, dense top", drawn(mixed.astype(np.float32), v, rng), table[order[BEST_ROWS:]])


def adversarial(n_examples: int) -> list[World]:
    """Small tables that tempt an interval into a mistake, each with a history that predicts the opposite."""
    rng = np.random.default_rng(0)
    constant = np.repeat([[0.0], [0.3], [0.5], [0.5], [1.0]], n_examples, axis=1)
    deviating = np.full((5, n_examples), 0.5)
    deviating[np.arange(5), np.arange(5)] = [1.0, 0.0, 1.0, 0.0, 0.5]
    rare = np.zeros((5, n_examples))
    rare[:, : n_examples // 20] = rng.random((5, n_examples // 20)) < 0.5
    even = (rng.random((5, n_examples)) < 0.5).astype(float)
    tables = {
        "constant rows": constant,
        "one deviating example": deviating,
        "rare successes": rare,
        "fair coins": even,
    }
    return [World(name, scores, 1.0 - scores) for name, scores in tables.items()]
