"""Outputs that have to be rated until a race has its answer, with and without `judge.spare: equal-outputs`.

Tables hold scores, not texts. Right outputs of an example are taken to be the same; wrong ones are the same
as well ("labels"), or all different ("texts"). A distinct output of an example is rated once.

python -m tests.benchmarks.spared_verdicts --data FOLDER [--runs 5] [--out spared-verdicts.csv]
"""

import argparse
import csv
import sys
from pathlib import Path

import numpy as np

from tests.benchmarks.champion.worlds import tables
from winnow.algorithms.protocols import SPARED, round_rng
from winnow.algorithms.registry import create_selector

SIZES = (2, 5, 10)
"""Best arms of a table that are compared."""
DELTA, BATCH_SIZE = 0.05, 64
MOST_EXAMPLES = 1000


def rated(outputs: np.ndarray, scores: np.ndarray, seed: int, *, spares: bool) -> int:
    """Number of outputs to be rated in a race."""
    n_arms, n = scores.shape
    params = {"delta": DELTA, "batch_size": BATCH_SIZE, "max_unscored": 1.0, "ties": "open"}
    race = create_selector("race", n_arms=n_arms, n_examples=n, spares=spares, **params)
    count = round_ = 0
    while len(batch := race.ask(round_rng(seed, round_))):
        told, common = scores[batch.arms, batch.examples].copy(), race.compares_all(batch)
        for example in np.unique(batch.examples):
            mine = batch.examples == example
            written = set(outputs[batch.arms[mine], example].tolist())
            if spares and common and len(written) == 1:
                told[mine] = SPARED
            else:
                count += len(written)
        race.tell(batch, told)
        round_ += 1
    return count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path("spared-verdicts.csv"))
    options = parser.parse_args()
    with options.out.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(
            ("table", "candidates", "examples", "wrong outputs", "runs", "rated", "rated, spared")
        )
        for table in tables(options.data):
            if not np.isin(table.scores, (0.0, 1.0)).all():
                continue
            ranked = table.scores[np.argsort(-table.scores.mean(axis=1), kind="stable"), :MOST_EXAMPLES]
            for size in SIZES:
                scores = ranked[:size]
                own = np.where(scores == 1.0, 1, 2 + np.arange(size)[:, np.newaxis])
                for kind, outputs in (("labels", scores), ("texts", own)):
                    counts = [
                        sum(rated(outputs, scores, seed, spares=spares) for seed in range(options.runs))
                        for spares in (False, True)
                    ]
                    writer.writerow((table.name, *scores.shape, kind, options.runs, *counts))
                    file.flush()
                    print(f"{table.name}, {size}, {kind}: {counts[0] / max(1, counts[1]):.1f}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
