"""What `winnow simulate` leaves behind: every run in a file, a picture, and a summary."""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from algorithms.metrics import hardness, true_means
from algorithms.protocols import FloatArray
from flows.output import print_json, print_rows
from flows.simulation_plot import save_plot
from tasks.errors import WinnowError
from tasks.score_tables import ScoreTable
from tasks.simulation import Run
from tasks.simulation_results import TARGET, Curve, Metric, average

RUNS, PICTURE = "runs.parquet", "curve.png"


class SimulationReport:
    """Collects runs; what it writes and prints is in the order in which labels were first added."""

    def __init__(self, *, table: ScoreTable, metric: Metric, budgets: Sequence[int]) -> None:
        self._table = table
        self._metric = metric
        self._budgets = tuple(budgets)
        self._hardness = hardness(true_means(table.scores))
        self._rows: list[dict[str, Any]] = []
        self._values: dict[str, list[FloatArray]] = defaultdict(list)

    def add(self, run: Run, values: FloatArray) -> None:
        """Take in a run and its metric at every budget, shape (T,)."""
        self._values[run.label].append(values)
        for position, budget in enumerate(self._budgets):
            best = int(run.best[position])
            self._rows.append(
                {
                    "selector": run.label,
                    "seed": run.seed,
                    "budget": budget,
                    "share": budget / self._table.grid,
                    "spent": int(run.spent[position]),
                    "best": self._table.candidates[best] if best >= 0 else None,
                    "metric": self._metric,
                    "value": float(values[position]),
                }
            )

    def write(self, folder: Path) -> None:
        """Write the runs, one row per selector, seed and budget, and the picture into an existing folder.

        Raises:
            WinnowError: If a file cannot be written.
        """
        title = f"{self._table.source}: {self._size}"
        try:
            print_rows(self._rows, "parquet", folder / RUNS)
            save_plot(
                folder / PICTURE,
                self._curves(),
                self._budgets,
                grid=self._table.grid,
                metric=self._metric,
                title=title,
            )
        except OSError as error:
            problem = error.strerror or error
            raise WinnowError(f"{folder} cannot be written: {problem}; name another with --out") from error

    def print(self, folder: Path, *, json: bool) -> None:
        """Print the averages over seeds, and where the files are."""
        if json:
            print_json(self._summary(folder))
            return
        print(f"{self._table.source}: {self._size}, hardness {self._hardness:.4g}")
        print_rows([self._line(curve) for curve in self._curves()], "table")
        print(f"{self._metric}; runs in {folder / RUNS}, picture in {folder / PICTURE}")

    @property
    def _size(self) -> str:
        n_arms, n_examples = self._table.scores.shape
        return f"{n_arms} candidates x {n_examples} examples"

    def _curves(self) -> list[Curve]:
        return [average(label, values) for label, values in self._values.items()]

    def _line(self, curve: Curve) -> dict[str, Any]:
        line: dict[str, Any] = {"selector": curve.label, "runs": curve.runs}
        for budget, mean, error in zip(self._budgets, curve.means, curve.errors, strict=True):
            spread = f" ±{error:.3f}" if curve.runs > 1 else ""
            line[f"{budget} ({budget / self._table.grid:.3g})"] = f"{mean:.3f}{spread}"
        return {**line, f"reaches {TARGET:g} at": curve.budget_to_target(self._budgets)}

    def _summary(self, folder: Path) -> dict[str, Any]:
        n_arms, n_examples = self._table.scores.shape
        return {
            "table": self._table.source,
            "candidates": n_arms,
            "examples": n_examples,
            "hardness": self._hardness,
            "metric": self._metric,
            "budgets": list(self._budgets),
            "target": TARGET,
            "selectors": [
                {
                    "selector": curve.label,
                    "runs": curve.runs,
                    "means": curve.means.tolist(),
                    "standard_errors": curve.errors.tolist() if curve.runs > 1 else None,
                    "budget_to_target": curve.budget_to_target(self._budgets),
                }
                for curve in self._curves()
            ],
            "files": [str(folder / RUNS), str(folder / PICTURE)],
        }
