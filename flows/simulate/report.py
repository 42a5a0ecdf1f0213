"""Collect the runs of `winnow simulate`, and write its files and summary."""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from winnow.algorithms.best_mean.groups import Groups
from winnow.algorithms.best_mean.metrics import hardness, true_means, true_values
from winnow.algorithms.state.arrays import FloatArray
from winnow.flows.reports.output import print_json
from winnow.flows.reports.rows.writer import print_rows
from winnow.flows.simulate.plots import Stops, save_picks, save_plot, save_stops
from winnow.tasks.data.preference_tables import PreferenceTable
from winnow.tasks.data.score_tables import ScoreTable
from winnow.tasks.errors import WinnowError
from winnow.tasks.plugins.extras import missing_for
from winnow.tasks.simulation.results import IN_SCORE_UNITS, RIGHT_OR_WRONG, TARGET, Curve, Metric, average
from winnow.tasks.simulation.routes import ORACLE, RouteEnvironment, average_picks, parts
from winnow.tasks.simulation.simulate import Run

if TYPE_CHECKING:
    import pandas as pd

    from winnow.tasks.simulation.example_facts import PromptTypes

RUNS, PICTURE = "runs.parquet", "curve.png"
PICKS, PICKS_PICTURE = "picks.parquet", "picks.png"
"""Files with each candidate's share of each type of prompt; written if types are known."""
STOPS_PICTURE = "stops.png"
"""Picture of selectors' stopping times and errors; drawn if a selector may stop by itself."""

BY_ITSELF = ("confident", "exhausted")
"""Reasons for which a run ends by itself, before its budget is spent."""

FILLING = "to fill the table, run winnow run SPEC --exhaustive, which reuses all stored outputs"

A_TRACE = (
    "a trace, not an estimate: the campaign stopped before it scored all pairs, and chose the pairs by "
    "earlier scores, so this shows neither how often a selector is wrong nor how much it saves; "
    f"{FILLING}"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """Facts about the simulated table, for the report."""

    source: str
    candidates: tuple[str, ...]
    n_examples: int | None
    """Number of examples; None for a table of averages."""
    facts: Mapping[str, float]
    """Further facts about the table: name -> number."""
    grid: int | None
    """Number of comparisons in the whole table; None if comparisons can be repeated without limit."""
    unit: str
    """Word for comparisons, in the plural."""
    types: tuple[str, ...] = ()
    """Names of the G types of examples; empty if types are unknown."""
    is_partial: bool = False
    """Whether scores are missing that the table's campaign never evaluated, so that runs are only traces."""

    @property
    def size(self) -> str:
        """The size of the table as text."""
        candidates = f"{len(self.candidates)} candidates"
        return f"{candidates} x {self.n_examples} examples" if self.n_examples else candidates

    @property
    def axis(self) -> str:
        """Title of the axis of budgets, which shows percentages of all pairs, or counts."""
        return "budget, % of all pairs" if self.unit == "pairs" else f"budget, {self.unit}"

    @property
    def axis_of_stops(self) -> str:
        """Title of the axis of stopping times, in two lines that fit a phone."""
        return self.axis.replace("budget, ", "comparisons to a stop (bar: mean),\n")

    def places(self, budgets: Sequence[int]) -> FloatArray:
        """Positions of budgets on the axis."""
        counts = np.asarray(budgets, dtype=np.float64)
        return 100.0 * counts / self.grid if self.unit == "pairs" and self.grid else counts


def score_subject(table: ScoreTable, groups: Groups | None = None) -> Subject:
    """The subject of a table of scores; if there are groups, candidates' values are computed from them."""
    facts = {"filled": table.filled}
    if not table.is_partial:
        facts = {"hardness": hardness(true_values(table.scores, groups))}
    if groups is not None:
        facts["groups"] = groups.n_groups
    return Subject(
        source=table.source,
        candidates=table.candidates,
        n_examples=table.scores.shape[1],
        facts=facts,
        grid=table.grid,
        unit="pairs",
        is_partial=table.is_partial,
    )


def preference_subject(table: PreferenceTable) -> Subject:
    """The subject of a table of preferences."""
    worst = np.nanmin(np.where(np.eye(len(table.candidates), dtype=bool), np.nan, table.preferences), axis=1)
    return Subject(
        source=table.source,
        candidates=table.candidates,
        n_examples=None,
        facts={"best_wins": float(worst.max())},
        grid=None,
        unit="duels",
    )


def route_subject(table: ScoreTable, environment: RouteEnvironment, types: "PromptTypes | None") -> Subject:
    """The subject of a table of prompts; its facts are the best mean, and the mean of the best per prompt."""
    return Subject(
        source=table.source,
        candidates=table.candidates,
        n_examples=table.scores.shape[1],
        facts={
            "best_mean": float(true_means(table.scores).max()),
            "best_for_each": float(environment.expected().max(axis=0).mean()),
        },
        grid=table.scores.shape[1],
        unit="prompts",
        types=() if types is None else types.names,
    )


class Stop(NamedTuple):
    """How one run ended."""

    spent: int
    has_stopped: bool
    """Whether the run stopped by itself, or had no pairs left, with an exact or proven answer."""
    right: bool | None
    """Whether the run's claim is true; None without a claim about the best."""


class SimulationReport:
    """Collects runs, and prints or writes them; selectors are in the order of their first run.

    Args:
        subject: Facts about the table.
        metric: The metric.
        budgets: Budgets at which runs are evaluated.
        delta: Error probability requested of all selectors; None if none was requested.
        may_stop: Labels of selectors that may stop at an error probability.
    """

    def __init__(
        self,
        *,
        subject: Subject,
        metric: Metric,
        budgets: Sequence[int],
        delta: float | None,
        may_stop: Collection[str],
    ) -> None:
        self._subject = subject
        self._delta, self._may_stop = delta, may_stop
        self._metric = metric
        self._budgets = tuple(budgets)
        self._rows: list[dict[str, object]] = []
        self._stops: dict[str, list[Stop]] = defaultdict(list)
        self._values: dict[str, list[FloatArray]] = defaultdict(list)
        self._picks: dict[str, list[FloatArray]] = defaultdict(list)
        self._undrawn = missing_for("report", "a picture")

    def add(
        self, run: Run, values: FloatArray, picks: FloatArray | None = None, right: bool | None = None
    ) -> None:
        """Add a run.

        Args:
            run: A run of one of the selectors.
            values: The run's metric at every budget, shape (T,).
            picks: Shares of candidates as `picks_by` returns them, shape (W, G, K); None without types.
            right: Whether the run's final claim is true; None without a claim about the best.
        """
        self._values[run.label].append(values)
        if picks is not None and run.label != ORACLE:
            self._picks[run.label].append(picks)
        self._stops[run.label].append(
            Stop(
                spent=int(run.spent[-1]), has_stopped=run.is_decided and run.reason in BY_ITSELF, right=right
            )
        )
        for position, budget in enumerate(self._budgets):
            best = int(run.best[position])
            self._rows.append(
                {
                    "selector": run.label,
                    "seed": run.seed,
                    "budget": budget,
                    "share": budget / self._subject.grid if self._subject.grid else None,
                    "spent": int(run.spent[position]),
                    "best": self._subject.candidates[best] if best >= 0 else None,
                    "metric": self._metric,
                    "value": float(values[position]),
                    "is_estimate": not self._subject.is_partial,
                    "ended": run.reason,
                }
            )

    def write(self, folder: Path) -> None:
        """Write the runs, one row per selector, seed and budget, and the pictures to an existing folder.

        If matplotlib is not installed, no pictures are written, and `print` reports this.

        Raises:
            WinnowError: If a file cannot be written.
        """
        trace = "; a trace, not an estimate" if self._subject.is_partial else ""
        title = f"{self._subject.source}: {self._subject.size}{trace}"
        try:
            for name in {RUNS, PICTURE, STOPS_PICTURE, PICKS, PICKS_PICTURE}.difference(self._files):
                (folder / name).unlink(missing_ok=True)  # left by an earlier, different simulation
            print_rows(self._rows, "parquet", folder / RUNS)
            self._write_picks(folder)
            if self._undrawn is None:
                self._draw(folder, title)
        except OSError as error:
            problem = error.strerror or error
            raise WinnowError(
                f"{folder} cannot be written: {problem}; name another folder by --out"
            ) from error

    def _draw(self, folder: Path, title: str) -> None:
        save_plot(
            folder / PICTURE,
            self._curves(),
            self._subject.places(self._budgets),
            axis=self._subject.axis,
            metric=self._metric,
            limits=None if self._metric in IN_SCORE_UNITS else (0.0, 1.0),
            title=title,
        )
        if self._has_stops:
            self._draw_stops(folder, title)
        if self._picks:
            shares, until = self._shares_by_part()
            names, types = self._subject.candidates, self._subject.types
            save_picks(folder / PICKS_PICTURE, shares, until, types=types, candidates=names)

    def _draw_stops(self, folder: Path, title: str) -> None:
        found = [
            Stops(
                label=label,
                places=self._subject.places([stop.spent for stop in stops]),
                stopped=np.array([stop.has_stopped for stop in stops]),
                wrong=sum(stop.has_stopped and not stop.right for stop in stops),
            )
            for label, stops in self._stops.items()
            if label in self._may_stop and stops[0].right is not None
        ]
        axis = self._subject.axis_of_stops
        save_stops(folder / STOPS_PICTURE, found, axis=axis, delta=self._delta, title=title)

    @property
    def _has_stops(self) -> bool:
        """Whether a selector can stop by itself, and the metric shows whether its answer was right."""
        stopping = [stops for label, stops in self._stops.items() if label in self._may_stop]
        return self._metric in RIGHT_OR_WRONG and any(stops[0].right is not None for stops in stopping)

    @property
    def _files(self) -> list[str]:
        wanted = {PICTURE: True, STOPS_PICTURE: self._has_stops, PICKS_PICTURE: bool(self._picks)}
        pictures = [name for name, is_there in wanted.items() if is_there and self._undrawn is None]
        return [RUNS, *([PICKS] if self._picks else []), *pictures]

    def _shares_by_part(self) -> tuple[dict[str, FloatArray], Sequence[int]]:
        """Selector -> average shares by part, type and candidate; and the ends of the parts, in prompts."""
        return {label: average_picks(found) for label, found in self._picks.items()}, parts(self._budgets[-1])

    def _write_picks(self, folder: Path) -> None:
        if not self._picks:
            return
        names, types = self._subject.candidates, self._subject.types
        shares, until = self._shares_by_part()
        rows = [
            {
                "selector": label,
                "until": until[part],
                "type": types[kind],
                "candidate": names[arm],
                "share": float(share),
            }
            for label, found in shares.items()
            for (part, kind, arm), share in np.ndenumerate(found)
        ]
        print_rows(rows, "parquet", folder / PICKS)

    @property
    def runs(self) -> "pd.DataFrame":
        """A frame with a row for each selector, seed and budget."""
        import pandas as pd

        return pd.DataFrame(self._rows)

    @property
    def summary(self) -> dict[str, object]:
        """Facts about the table, and averages of each selector, as JSON values."""
        return self._summary(None)

    def __repr__(self) -> str:
        with redirect_stdout(StringIO()) as shown:
            self.print(None, json=False)
        return shown.getvalue().rstrip()

    def print(self, folder: Path | None, *, json: bool) -> None:
        """Print averages over seeds, and the paths of the files in `folder` (None if none were written)."""
        if json:
            print_json(self._summary(folder))
            return
        facts = "".join(f", {key} {value:.4g}" for key, value in self._subject.facts.items())
        print(f"{self._subject.source}: {self._subject.size}{facts}")
        print_rows([self._line(curve) for curve in self._curves()], "table")
        if self._subject.is_partial:
            print(A_TRACE)
        where = "" if folder is None else f"; runs in {folder / RUNS}{self._where_pictures_are(folder)}"
        print(f"{self._metric}{where}")

    def _where_pictures_are(self, folder: Path) -> str:
        if self._undrawn is not None:
            shares = f"; candidates by type of prompt in {folder / PICKS}" if self._picks else ""
            return f"{shares}; {self._undrawn}"
        shares = f"; candidates by type of prompt in {folder / PICKS_PICTURE}" if self._picks else ""
        stops = f", of stops in {folder / STOPS_PICTURE}" if self._has_stops else ""
        return f", picture in {folder / PICTURE}{stops}{shares}"

    def _curves(self) -> list[Curve]:
        return [average(label, values) for label, values in self._values.items()]

    def _line(self, curve: Curve) -> dict[str, object]:
        line: dict[str, object] = {"selector": curve.label, "runs": curve.runs}
        for budget, mean, error in zip(self._budgets, curve.means, curve.errors, strict=True):
            spread = f" ±{error:.3f}" if curve.runs > 1 else ""
            share = f" ({budget / self._subject.grid:.3g})" if self._subject.grid else ""
            line[f"{budget}{share}"] = f"{mean:.3f}{spread}"
        if self._subject.is_partial:
            return line | {"picks": self._most_picked(curve.label)}
        line[f"reaches {TARGET:g} at"] = self._budget_to_target(curve)
        return line | self._stopping(curve.label)

    def _most_picked(self, label: str) -> str:
        """The candidate that most runs named at their end, with the number of these runs."""
        picks = Counter(
            row["best"]
            for row in self._rows
            if row["selector"] == label and row["budget"] == self._budgets[-1]
        )
        ((best, count),) = picks.most_common(1)
        return f"{best or 'no candidate'} ({count} of {picks.total()})"

    def _budget_to_target(self, curve: Curve) -> int | None:
        return curve.budget_to_target(self._budgets) if self._has_target else None

    @property
    def _has_target(self) -> bool:
        return self._metric not in IN_SCORE_UNITS and not self._subject.is_partial

    def _stopping(self, label: str) -> dict[str, object]:
        """Columns on the runs that stopped by themselves; all None if the selector may not stop."""
        if label not in self._may_stop:
            return {"stopped": None, "after": None, "wrong": None}
        stops = [stop for stop in self._stops[label] if stop.has_stopped]
        claims_best = bool(stops) and stops[0].right is not None
        return {
            "stopped": f"{len(stops)} of {len(self._stops[label])}",
            "after": round(sum(stop.spent for stop in stops) / len(stops)) if stops else None,
            "wrong": sum(not stop.right for stop in stops) if claims_best else None,
        }

    def _summary(self, folder: Path | None) -> dict[str, object]:
        return {
            "table": self._subject.source,
            "candidates": len(self._subject.candidates),
            "examples": self._subject.n_examples,
            **self._subject.facts,
            "metric": self._metric,
            "budgets": list(self._budgets),
            "target": TARGET if self._has_target else None,
            "is_estimate": not self._subject.is_partial,
            "note": A_TRACE if self._subject.is_partial else None,
            "selectors": [
                {
                    "selector": curve.label,
                    "runs": curve.runs,
                    "means": curve.means.tolist(),
                    "standard_errors": curve.errors.tolist() if curve.runs > 1 else None,
                    **(
                        {"picks": self._most_picked(curve.label)}
                        if self._subject.is_partial
                        else {
                            "budget_to_target": self._budget_to_target(curve),
                            **self._stopping(curve.label),
                        }
                    ),
                }
                for curve in self._curves()
            ],
            "files": [] if folder is None else [str(folder / name) for name in self._files],
        }
