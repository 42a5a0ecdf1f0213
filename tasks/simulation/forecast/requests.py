"""A campaign's comparisons, by simulating its selector on a table used as its scores."""

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import numpy as np

from winnow.algorithms.best_mean.arm_status import ROUNDING
from winnow.algorithms.best_mean.metrics import NOBODY, true_means, true_values
from winnow.algorithms.protocols import Batch
from winnow.algorithms.state.arrays import FloatArray, IntArray
from winnow.tasks.campaign.resolved import common_params
from winnow.tasks.objectives.best_mean.holdout.split import selection_budget
from winnow.tasks.objectives.best_mean.objective import BestMean
from winnow.tasks.simulation.environments import ScoreEnvironment
from winnow.tasks.simulation.simulate import KNOWLEDGE, ComparedSelector, Run, simulate

ORDER = 2
"""Distinguishes the generator of a run's row order from those of selectors."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Played:
    """The results of R runs."""

    comparisons: IntArray
    """Shape (R,), including held-out examples."""
    by_arm: FloatArray
    """Shape (K,), mean number per arm."""
    decided: int
    """Runs that ended within the budget with an answer that is known or proven."""
    right: int
    """Runs, decided or not, that name the best arm, or the m best: no other mean is higher by more than
    epsilon."""
    decided_right: int
    """Runs that are both decided and right."""

    @property
    def runs(self) -> int:
        """R."""
        return len(self.comparisons)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ShuffledScores(ScoreEnvironment):
    """A table whose rows are assigned to arms at random in each run.

    A campaign's file does not know the best candidate. If it were always the first one, selectors that take
    the first of equal arms would look better than they are.
    """

    def outcomes(self, batch: Batch, seed: int, round_: int) -> FloatArray:
        """The scores of the rows assigned to the arms in this run."""
        return self.scores[self.rows(seed)[batch.arms], batch.examples]

    def rows(self, seed: int) -> IntArray:
        """The row of each arm, shape (K,)."""
        return np.random.default_rng((seed, ORDER)).permutation(len(self.scores))


class Player:
    """Simulate a checked campaign's selector on tables.

    Args:
        checked: The campaign.
        seeds: One run per seed.
        workers: Processes; one per core if None.
        pool: Processes for all tables, as in `simulate`; new ones per table if None.
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
        """Pairs evaluated after selection has ended."""
        return 0 if self._checked.split is None else self._checked.split.comparisons

    @property
    def limit(self) -> int:
        """Number of pairs for selection within its budget."""
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
        """A test whether a run with a given assignment of rows names the best."""
        groups = None if self._checked.groups is None else self._checked.groups.as_selectors_have_them
        values = true_values(scores, groups)
        within = self._checked.epsilon + ROUNDING
        return lambda run, rows: are_the_best(named_by(run, self.top_m), values[rows], within)

    def _counts(self, run: Run, means: FloatArray) -> IntArray:
        """Comparisons of each arm in a run, shape (K,); the second best is used as runner-up."""
        counts, split = np.bincount(run.told.arms, minlength=self.n_arms), self._checked.split
        if split is not None and (winner := int(run.best[-1])) != NOBODY:
            others = np.where(np.arange(self.n_arms) == winner, -np.inf, means)
            counts[[winner, int(others.argmax())][: split.finalists]] += len(split.held_out)
        return counts


def named_by(run: Run, top_m: int) -> list[int]:
    """The arms that a run names at the end: the m best, with the first of those tied for the last places."""
    if top_m == 1:
        return [] if run.best[-1] == NOBODY else [int(run.best[-1])]
    places = {"top": 0, "tied": 1}
    ranks = np.nan_to_num(run.ranking[-1], nan=-np.inf)
    return sorted(range(len(ranks)), key=lambda arm: (places.get(run.status[arm], 2), -ranks[arm]))[:top_m]


def are_the_best(named: Sequence[int], values: FloatArray, within: float) -> bool:
    """Whether arms are named, and no other has a value above one of theirs by more than a margin."""
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
