"""The paper's Examples 1 and 2: an autoevaluator that is right with a given probability."""

from collections.abc import Iterator

import numpy as np

from tests.benchmarks.sample_complexity import growth_rates
from winnow.algorithms.certify.e_values import EValues
from winnow.algorithms.certify.label_record import effective_losses

RISK, ALPHA, RATIO = 0.1, 0.12, 10
FACTORS = np.linspace(0.0, 1.0, 10)
BARS = (2.0, 4.0, 8.0, 16.0)
METHODS = {"r-eval": FACTORS[:1], "r-autoeval": FACTORS[-1:], "r-autoeval-plus": FACTORS}


def outcomes_of(accuracy: float, runs: int, labels: int, seed: int = 0) -> np.ndarray:
    """Shape (runs, labels, 3)."""
    rng = np.random.default_rng(seed)
    human = rng.random((runs, labels)) < RISK
    auto = np.where(rng.random(human.shape) < accuracy, human, ~human)
    mean = RISK * accuracy + (1.0 - RISK) * (1.0 - accuracy)
    return np.stack([human, auto, rng.binomial(RATIO, mean, human.shape) / RATIO], axis=-1)


def measure_examples(runs: int, labels: int) -> Iterator[dict[str, str]]:
    """Labels until the e-value reaches 1 / delta, by log(1 / delta); and where the weights went."""
    for accuracy in (0.99, 0.9, 0.7):
        outcomes = outcomes_of(accuracy, runs, labels)
        for name, factors in METHODS.items():
            evidence = EValues(runs, factors, ALPHA, betting="up", level=0.1, horizon=labels)
            reached = np.full((len(BARS), runs), np.nan)
            done = 0
            while done < labels and np.isnan(reached).any():
                path = evidence.update(slice(None), effective_losses(outcomes[:, done : done + 500], factors))
                for look, bar in enumerate(BARS):
                    new = np.isnan(reached[look]) & (path >= bar).any(axis=1)
                    reached[look, new] = done + 1 + (path >= bar).argmax(axis=1)[new]
                done += path.shape[1]
            fastest = growth_rates(outcomes[:, :4_000].reshape(-1, 3), factors, ALPHA).max()
            row = {"accuracy": str(accuracy), "method": name, "runs": str(runs)}
            for bar, found in zip(BARS, reached, strict=True):
                missing = int(np.isnan(found).sum())
                row[f"log 1/delta = {bar:g}"] = f"{np.where(np.isnan(found), labels, found).mean():.0f}"
                if missing:
                    row[f"log 1/delta = {bar:g}"] += f" ({missing} not yet)"
            row["limit per unit"] = f"{1.0 / fastest:.0f}"
            row["mean reliance"] = f"{(evidence.weights @ factors).mean():.2f} after {done}"
            yield row
