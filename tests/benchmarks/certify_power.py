"""How often each betting rule certifies the candidates that deserve it, and with how many labels."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from tests.benchmarks.certify_selection import FACTORS
from tests.benchmarks.certify_tables import LossTable, prompts, quantised
from winnow.algorithms.certify.e_values import EValues
from winnow.algorithms.certify.label_record import effective_losses

RULES = ("up", "wsr", "star", "mixture")
DELTA = 0.1
QUANTISED_ALPHA = 0.1
LONG = 1_000
"""Labels with which nearly all that can be certified is."""
EASY, HARD = 0.2, 0.8
"""Shares of alpha: candidates of lower risk are certified by every rule, those of higher risk by none."""


def measure_power(data: Path, draws: int, alphas: list[float]) -> Iterator[dict[str, str]]:
    """Share certified and mean labels used, by rule, over the candidates whose risk is well below alpha.

    Args:
        data: The folder of loss tables.
        draws: Independent draws of each candidate's outcomes.
        alphas: Of each task of the prompts, in the order of `prompts`.
    """
    for table in quantised(data):
        for n_labels in (100, 200, LONG):
            cells = {
                rule: _of_table(table, QUANTISED_ALPHA, DELTA, n_labels, 5, draws, rule) for rule in RULES
            }
            yield _row(f"quantised, {table.quality}, n = {n_labels}", [cells])
    tasks = prompts(data)
    for quality in ("bad", "gooderer"):
        found = [
            {rule: _of_table(table, alpha, DELTA / len(table.costs), 200, 9, draws, rule) for rule in RULES}
            for tables, alpha in zip(tasks, alphas, strict=True)
            for table in tables
            if table.quality == quality
        ]
        yield _row(f"prompts, {quality}, n = 200", found)


def _of_table(
    table: LossTable, alpha: float, level: float, n_labels: int, ratio: int, draws: int, rule: str
) -> np.ndarray:
    """Labels used, and whether it is certified, of each candidate in question and draw; shape (., 2)."""
    found = [np.empty((0, 2))]
    for risk, outcomes in zip(table.risks, table.drawn(draws, n_labels, ratio), strict=True):
        if EASY * alpha < risk < HARD * alpha:
            evidence = EValues(draws, FACTORS, alpha, betting=rule, level=level, horizon=n_labels)
            path = evidence.update(slice(None), effective_losses(outcomes, FACTORS))
            reached = path >= -np.log(level)
            passed = reached.any(axis=1)
            labels = np.where(passed, reached.argmax(axis=1) + 1, n_labels)
            found.append(np.column_stack([labels, passed]))
    return np.concatenate(found)


def _row(what: str, cells: list[dict[str, np.ndarray]]) -> dict[str, str]:
    row = {"what": what}
    for rule in RULES:
        labels, passed = np.concatenate([each[rule] for each in cells]).mean(axis=0)
        row[rule] = f"{passed:.3f} / {labels:.0f}"
    return row
