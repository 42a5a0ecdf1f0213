"""Which candidate five methods choose on repeated draws from a table, all draws at once."""

from collections.abc import Sequence

import numpy as np

from tests.benchmarks.certify_tables import LossTable, means
from winnow.algorithms.certify.e_values import EValues
from winnow.algorithms.certify.label_record import effective_losses

FACTORS = np.linspace(0.0, 1.0, 10)
RELIABLE = {"r-eval": FACTORS[:1], "r-autoeval": FACTORS[-1:], "r-autoeval-plus": FACTORS}
"""Their reliance factors."""
METHODS = ("eval", "autoeval", *RELIABLE)


def passed(
    outcomes: np.ndarray, alpha: float, level: float, n_labels: Sequence[int], betting: str
) -> dict[str, np.ndarray]:
    """Whether a candidate passes each reliable test with so many labels; shape (looks, draws) each."""
    found: dict[str, list[np.ndarray]] = {method: [] for method in RELIABLE}
    path: dict[str, np.ndarray] | None = None
    for n in n_labels:
        if betting != "up" or path is None:  # the others bet for so many labels
            path = _paths(outcomes if betting == "up" else outcomes[:, :n], alpha, level, betting)
        for method in RELIABLE:
            found[method].append(path[method][:, :n].max(axis=1) >= -np.log(level))
    return {method: np.array(flags) for method, flags in found.items()}


def _paths(outcomes: np.ndarray, alpha: float, level: float, betting: str) -> dict[str, np.ndarray]:
    """The logarithms of e-values by method, shape (draws, n) each, for outcomes of (draws, n, 3)."""
    draws, labels, _ = outcomes.shape
    return {
        method: EValues(draws, factors, alpha, betting=betting, level=level, horizon=labels).update(
            slice(None), effective_losses(outcomes, factors)
        )
        for method, factors in RELIABLE.items()
    }


def fixed_sequence(
    table: LossTable,
    alpha: float,
    delta: float,
    n_labels: Sequence[int],
    ratio: int,
    draws: int,
    betting: str,
) -> dict[str, np.ndarray]:
    """The last candidate before the first that fails, shape (looks, draws) per method; -1 for none.

    The naive methods trust every mean and take the last candidate that passes, as in the published program.
    """
    chosen = {method: np.full((len(n_labels), draws), -1) for method in METHODS}
    alive = {method: np.ones((len(n_labels), draws), dtype=bool) for method in RELIABLE}
    for arm, outcomes in enumerate(table.drawn(draws, max(n_labels), ratio)):
        for look, n in enumerate(n_labels):
            for method, mean in means(outcomes, n).items():
                chosen[method][look, mean <= alpha] = arm
        if any(each.any() for each in alive.values()):
            for method, flags in passed(outcomes, alpha, delta, n_labels, betting).items():
                alive[method] &= flags
                chosen[method][alive[method]] = arm
    return chosen


def bonferroni(
    table: LossTable, alpha: float, delta: float, n_labels: int, ratio: int, draws: int, betting: str
) -> dict[str, np.ndarray]:
    """The last candidate that passes at delta / K, shape (draws,) per method; -1 for none."""
    chosen = {method: np.full(draws, -1) for method in METHODS}
    level = delta / len(table.costs)
    for arm, outcomes in enumerate(table.drawn(draws, n_labels, ratio)):
        for method, flags in passed(outcomes, alpha, level, [n_labels], betting).items():
            chosen[method][flags[0]] = arm
        for method, mean in means(outcomes, n_labels).items():
            chosen[method][mean <= alpha] = arm
    return chosen


def summary(table: LossTable, chosen: np.ndarray, alpha: float) -> dict[str, float]:
    """Mean cost and risk of the chosen candidates, how often one is chosen falsely, and how often none is.

    Where none is, the dearest candidate stands in, as in the published experiments, and is no error.
    """
    standing = np.maximum(chosen, 0)
    costs, risks = table.costs[standing], table.risks[standing]
    return {
        "cost": float(costs.mean()),
        "cost error": float(costs.std() / np.sqrt(len(costs))),
        "risk": float(risks.mean()),
        "excess": float(risks.mean() - alpha),
        "false": float(((risks > alpha) & (chosen >= 0)).mean()),
        "none": float((chosen < 0).mean()),
    }


def dearer(table: LossTable, chosen: np.ndarray, other: np.ndarray) -> tuple[float, float]:
    """By how much what one method chooses costs more than what another chooses on the same draws.

    The mean and its standard error, with the dearest candidate where none is chosen.
    """
    differences = table.costs[np.maximum(chosen, 0)] - table.costs[np.maximum(other, 0)]
    return float(differences.mean()), float(differences.std() / np.sqrt(len(differences)))
