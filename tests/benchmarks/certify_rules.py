"""Betting rules of certificates on human labels alone: share certified / mean labels, and errors at alpha.

python -m tests.benchmarks.certify_rules [--runs 3000]
"""

import argparse
from collections.abc import Iterator

import numpy as np

from winnow.algorithms.certify.config import Rule
from winnow.algorithms.certify.e_values import EValues

RULES: tuple[Rule, ...] = ("star", "up", "mixture")
CELLS = (
    *((0.1, 0.1, 600, risk) for risk in (0.02, 0.05, 0.07, 0.1)),
    *((0.1, 0.05, 1_000, risk) for risk in (0.05, 0.07, 0.1)),
    *((0.05, 0.1, 1_000, risk) for risk in (0.025, 0.035, 0.05)),
    *((0.1, 0.1, 100, risk) for risk in (0.02, 0.05)),
    *((0.1, 0.1, 200, risk) for risk in (0.02, 0.05)),
    *((0.1, 0.1, 300, risk) for risk in (0.02, 0.05, 0.07, 0.1)),
    *((0.2, 0.1, 300, risk) for risk in (0.1, 0.14)),
)
"""alpha, delta, labels, risk."""
HUMAN_ALONE = np.zeros(1)  # rho: no autoevaluator


def measured(
    alpha: float, delta: float, labels: int, risk: float, runs: int
) -> dict[Rule, tuple[float, float]]:
    """Share of the runs that certify and mean labels used, by rule; all rules have the same losses."""
    losses = (np.random.default_rng(0).random((runs, labels, 1)) < risk).astype(float)
    found = {}
    for rule in RULES:
        evidence = EValues(runs, HUMAN_ALONE, alpha, betting=rule, level=delta, horizon=labels)
        reached = evidence.update(slice(None), losses) >= -np.log(delta)
        is_certified = reached.any(axis=1)
        used = np.where(is_certified, reached.argmax(axis=1) + 1, labels)
        found[rule] = float(is_certified.mean()), float(used.mean())
    return found


def lines(runs: int) -> Iterator[str]:
    """The table, in Markdown."""
    yield f"| alpha, delta, labels | risk | {' | '.join(RULES)} |"
    yield "|---|---|" + "---|" * len(RULES)
    for alpha, delta, labels, risk in CELLS:
        found = measured(alpha, delta, labels, risk, runs).values()
        cells = " | ".join(f"{share:.3f} / {used:.0f}" for share, used in found)
        yield f"| {alpha:g}, {delta:g}, {labels:,} | {risk:g} | {cells} |"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=3_000)
    for line in lines(parser.parse_args().runs):
        print(line, flush=True)
