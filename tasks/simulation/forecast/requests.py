"""Count a campaign's comparisons, by simulating its selector on a table of scores."""

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from winnow.algorithms.best_mean.arm_status import ROUNDING
from winnow.algorithms.best_mean.metrics import NOBODY, true_means, true_values
from winnow.algorithms.protocols import Batch
from winnow.algorithms.state.arrays import FloatArray, IntArray
from winnow.tasks.campaign.resolved import common_params
from winnow.tasks.data.score_tables import ScoreTable
from winnow.tasks.errors import SpecError
from winnow.tasks.objectives.best_mean.holdout.split import selection_budget
from winnow.tasks.objectives.best_mean.objective import BestMean
from winnow.tasks.simulation.environments import ScoreEnvironment
from winnow.tasks.simulation.simulate import KNOWLEDGE, ComparedSelector, Run, simulate

DEFAULT = "best=0.8,worst=0.4"
KEYS = ("best", "rest", "worst", "alike")
OPTION = "assume"


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumption:
    """Assumed means of candidates whose scores are 0 or 1.

    One candidate has the mean `best`. All others have `rest`, or are evenly spread from `best` down to
    `worst`.
    """

    best: float
    rest: float | None = None
    worst: float | None = None
    alike: float = 0.0
    """How much candidates fail on the same examples, as a correlation of latent values, in [0, 1). At 0 they
    fail independently, which makes them hard to separate.
    """

    def means(self, n_arms: int) -> FloatArray:
        """Means by arm, the best first, shape (K,)."""
        if self.worst is not None:
            return np.linspace(self.best, self.worst, n_arms)
        others = np.full(n_arms - 1, self.best if self.rest is None else self.rest)
        return np.concatenate(([self.best], others))

    def __str__(self) -> str:
        others = (
            f"the others {self.rest:g}"
            if self.worst is None
            else f"the others evenly spread down to {self.worst:g}"
        )
        alike = f", alike {self.alike:g}" if self.alike else ", failing independently"
        return f"scores of 0 and 1, the best mean {self.best:g}, {others}{alike}"


def read_assumption(text: str) -> Assumption:
    """Parse `--assume`, such as "best=0.8,rest=0.7" or "best=0.8,worst=0.4,alike=0.5".

    Raises:
        SpecError: The text is unreadable or inconsistent.
    """
    values: dict[str, float] = {}
    for part in text.split(","):
        key, _, value = part.strip().partition("=")
        try:
            values[key] = float(value)
        except ValueError:
            values[key] = np.nan
        if key not in KEYS or not 0.0 <= values[key] <= 1.0:
            raise SpecError(
                f"{OPTION} {text}: {part.strip()!r} is not one of {', '.join(KEYS)} with a number in [0, 1]; "
                f"for example {DEFAULT}"
            )
    if "best" not in values or ("rest" in values) == ("worst" in values):
        raise SpecError(
            f"{OPTION} {text}: give best and exactly one of rest and worst; for example {DEFAULT}"
        )
    if max(values.get("rest", 0.0), values.get("worst", 0.0)) > values["best"]:
        raise SpecError(f"{OPTION} {text}: best must be the highest; raise it")
    if values.get("alike", 0.0) == 1.0:
        raise SpecError(
            f"{OPTION} {text}: alike must be below 1, because equal rows have no best; lower alike"
        )
    return Assumption(**values)


class StandIn(NamedTuple):
    """Scores that are used instead of a campaign's."""

    scores: FloatArray
    """Shape (K, n)."""
    is_of_candidates: bool
    """Whether each row belongs to the candidate of that name, so that a candidate's share of the work is
    known.
    """


def stand_in(
    table: ScoreTable, candidates: Sequence[str], examples: Sequence[str], rng: np.random.Generator
) -> StandIn:
    """Scores for a campaign's candidates and examples, from a table of scores.

    If the table lacks one of the candidates, as many of its own candidates are drawn, always including its
    best one. If it lacks one of the examples, as many of its own examples are drawn, with repetition if it
    has fewer. Pairs that its campaign never evaluated get a score drawn from the candidate's own scores, or
    from all scores if the candidate has none.

    Raises:
        SpecError: The table has too few candidates.
    """
    scores = _completed(table.scores, rng) if table.is_partial else table.scores
    rows, is_of_candidates = _places(candidates, table.candidates), True
    if rows is None:
        rows, is_of_candidates = _drawn_candidates(table, scores, len(candidates), rng), False
    columns = _places(examples, table.examples or ())
    if columns is None:
        width, count = scores.shape[1], len(examples)
        columns = np.arange(width) if width == count else rng.choice(width, count, replace=width < count)
    return StandIn(np.asarray(scores[np.ix_(rows, columns)]), is_of_candidates)


def _places(wanted: Sequence[str], names: Sequence[str]) -> IntArray | None:
    """Positions of the wanted names; None if a name is missing."""
    places = {name: place for place, name in enumerate(names)}
    found = [places.get(name, -1) for name in wanted]
    return None if -1 in found else np.array(found)


def _drawn_candidates(
    table: ScoreTable, scores: FloatArray, count: int, rng: np.random.Generator
) -> IntArray:
    if len(scores) < count:
        raise SpecError(
            f"{table.source} has {len(scores)} candidates, and the campaign has {count}; give a table with "
            f"at least {count} candidates"
        )
    best = int(_means(scores).argmax())
    others = np.delete(np.arange(len(scores)), best)
    drawn = others if len(others) == count - 1 else rng.choice(others, count - 1, replace=False)
    return np.sort(np.append(drawn, best))


def _completed(scores: FloatArray, rng: np.random.Generator) -> FloatArray:
    full = scores.copy()
    everything = scores[~np.isnan(scores)]
    for row in full:
        known = row[~np.isnan(row)]
        missing = np.isnan(row)
        row[missing] = rng.choice(known if known.size else everything, missing.sum())
    return full


def _means(scores: FloatArray) -> FloatArray:
    known = ~np.isnan(scores)
    means: FloatArray = np.where(known, scores, 0.0).sum(axis=1) / np.maximum(known.sum(axis=1), 1)
    return means


ORDER = 2
"""Seed component that separates the generator of a run's row order from those of selectors."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Played:
    """The results of R runs."""

    comparisons: IntArray
    """Number of comparisons per run, including held-out examples; shape (R,)."""
    by_arm: FloatArray
    """Mean number of comparisons per arm, shape (K,)."""
    decided: int
    """Number of runs that ended within the budget with an exact or proven answer."""
    right: int
    """Number of runs, decided or not, that name the best arm, or the m best: no other mean is higher by more
    than epsilon.
    """
    decided_right: int
    """Number of runs that are both decided and right."""

    @property
    def runs(self) -> int:
        """Number R of runs."""
        return len(self.comparisons)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ShuffledScores(ScoreEnvironment):
    """A table whose rows are assigned to arms at random in each run.

    The best candidate's position in a campaign's file is unknown. If it were always the first, selectors that
    take the first of equal arms would look better than they are.
    """

    def outcomes(self, batch: Batch, seed: int, round_: int) -> FloatArray:
        """Scores of the rows that are assigned to the arms in this run."""
        return self.scores[self.rows(seed)[batch.arms], batch.examples]

    def rows(self, seed: int) -> IntArray:
        """The table's row of each arm, shape (K,)."""
        return np.random.default_rng((seed, ORDER)).permutation(len(self.scores))


class Player:
    """Simulates a checked campaign's selector on tables.

    Args:
        checked: The campaign.
        seeds: Seeds of the runs.
        workers: Number of processes; None for one per core.
        pool: Processes for all tables, as in `simulate`; None for new ones per table.
    """

    def __init__(
        self,
        checked: BestMean,
        *,
        seeds: Sequence[int],
        workers: int | None,
        pool: ProcessPoolExecutor | None = None,
    ) -> None:
        self._checked, self._seeds, self._workers, self._pool = checked, seeds, workers, pool
        self.n_arms = len(checked.candidates)
        self.n_examples = checked.n_selection_examples
        self._compared = _compared(checked)
        self.top_m: int = checked.spec.selector.params.get("top_m", 1)
        """Number of best arms to find."""

    @property
    def grid(self) -> int:
        """Maximum number of pairs for selection."""
        return self.n_arms * self.n_examples

    @property
    def n_held_out(self) -> int:
        """Number of held-out examples."""
        return 0 if self._checked.split is None else len(self._checked.split.held_out)

    @property
    def held_out_comparisons(self) -> int:
        """Number of pairs that are evaluated after selection has ended."""
        return 0 if self._checked.split is None else self._checked.split.comparisons

    @property
    def limit(self) -> int:
        """Number of pairs for selection within the budget."""
        budget, split = self._checked.spec.own_budget, self._checked.split
        own = budget if split is None else selection_budget(budget, split)
        return self.grid if own is None else min(own, self.grid)

    def play(self, scores: FloatArray, *, is_of_candidates: bool) -> Played:
        """Run every seed on a table.

        Args:
            scores: Shape (K, n), with n selection examples.
            is_of_candidates: Whether row k belongs to candidate k; else each run assigns rows at random.
        """
        history = self._checked.found_params().get("history")
        shuffled = ShuffledScores(scores=scores, history=history)
        environment = ScoreEnvironment(scores=scores, history=history) if is_of_candidates else shuffled
        runs = list(
            simulate(
                environment,
                [self._compared],
                budgets=[self.limit],
                seeds=self._seeds,
                workers=self._workers,
                pool=self._pool,
            )
        )
        own = np.arange(self.n_arms)
        rows = [own if is_of_candidates else shuffled.rows(run.seed) for run in runs]
        is_right = np.array(list(map(self._are_right(scores), runs, rows)))
        is_decided = np.array([run.is_decided for run in runs])
        means = true_means(scores)
        counts = np.array(
            [self._counts(run, means[of_arms]) for run, of_arms in zip(runs, rows, strict=True)]
        )  # (R, K)
        return Played(
            comparisons=counts.sum(axis=1),
            by_arm=counts.mean(axis=0),
            decided=int(is_decided.sum()),
            right=int(is_right.sum()),
            decided_right=int((is_decided & is_right).sum()),
        )

    def _are_right(self, scores: FloatArray) -> Callable[[Run, IntArray], bool]:
        """Create a test whether a run, with its assignment of rows, names the best arms."""
        groups = None if self._checked.groups is None else self._checked.groups.as_selectors_have_them
        values = true_values(scores, groups)
        within = self._checked.epsilon + ROUNDING
        return lambda run, rows: are_the_best(named_by(run, self.top_m), values[rows], within)

    def _counts(self, run: Run, means: FloatArray) -> IntArray:
        """Number of comparisons of each arm in a run, shape (K,).

        The arm with the second highest mean is used as the runner-up.
        """
        counts, split = np.bincount(run.told.arms, minlength=self.n_arms), self._checked.split
        if split is not None and (winner := int(run.best[-1])) != NOBODY:
            others = np.where(np.arange(self.n_arms) == winner, -np.inf, means)
            counts[[winner, int(others.argmax())][: split.finalists]] += len(split.held_out)
        return counts


def named_by(run: Run, top_m: int) -> list[int]:
    """The arms that a run names at its end.

    For the m best, the first of those tied for the last places fill up the number.
    """
    if top_m == 1:
        return [] if run.best[-1] == NOBODY else [int(run.best[-1])]
    places = {"top": 0, "tied": 1}
    ranks = np.nan_to_num(run.ranking[-1], nan=-np.inf)
    return sorted(range(len(ranks)), key=lambda arm: (places.get(run.status[arm], 2), -ranks[arm]))[:top_m]


def are_the_best(named: Sequence[int], values: FloatArray, within: float) -> bool:
    """Whether arms are named, and no other value is above theirs by over a margin."""
    others = np.delete(values, named)
    return bool(named) and bool(others.max(initial=-np.inf) <= values[list(named)].min() + within)


def _compared(checked: BestMean) -> ComparedSelector:
    """The campaign's selector with all of its resolved parameters."""
    spec = checked.spec
    params = {**common_params(spec), **spec.selector.params, **checked.found_params()}
    if params["delta"] is None:
        del params["delta"]  # a selector that does not stop by intervals needs none
    set_by_simulation = {"budget", *KNOWLEDGE}
    return ComparedSelector(
        label=spec.selector.name,
        selector=spec.selector.name,
        objective=spec.objective,
        params={key: value for key, value in params.items() if key not in set_by_simulation},
        uses=frozenset(KNOWLEDGE),
    )
