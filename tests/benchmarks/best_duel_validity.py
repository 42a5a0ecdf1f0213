"""How often campaigns of duels are confident of an arm that they should not name, on worlds made for that."""

import multiprocessing
import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import NamedTuple

import numpy as np

from tests.benchmarks.tables import Row
from winnow.algorithms.bounds.binomial import proportion_interval
from winnow.algorithms.protocols import round_rng
from winnow.algorithms.registry import create_selector
from winnow.tasks.simulation.simulate import THREAD_SETTINGS

DELTA, BUDGET = 0.05, 300
FIELD = ("llm-po", "round-robin")
RULES = ("own duels", "assume_winner")
RUNS_AT_ONCE, PARTS_AT_ONCE = 25, 4


class World(NamedTuple):
    name: str
    above_diagonal: tuple[float, ...]
    """P(arm i is preferred to j) for i < j, row by row."""

    def preferences(self) -> np.ndarray:
        n_arms = round((1 + np.sqrt(1 + 8 * len(self.above_diagonal))) / 2)
        matrix = np.full((n_arms, n_arms), 0.5)
        matrix[np.triu_indices(n_arms, 1)] = self.above_diagonal
        return np.triu(matrix) + np.tril(1.0 - matrix.T, -1)


WORLDS = (
    World("near tie: best by 0.51", (0.51, 0.53, 0.52)),
    World("near tie of two, far from the rest", (0.505, 0.8, 0.8, 0.8, 0.8, 0.5)),
    World("two equal arms at the top", (0.5, 0.8, 0.8)),
    World("no winner: cycle by 0.6", (0.6, 0.4, 0.6)),
    World("no winner: cycle with a weak link", (0.8, 0.45, 0.8)),
    World("all equal", (0.5, 0.5, 0.5)),
)


class Outcome(NamedTuple):
    confident: bool
    wrong: bool
    """Whether it was confident of an arm that does not beat every other, or, assuming one, of a loser."""
    undecided: bool
    """Whether it ended with its budget spent, and said so."""


def measure(runs: int = 2_000, minutes: float = 10.0, workers: int = 2) -> Iterator[Row]:
    """Rows per world, selector and rule; each has an equal part of the time and at least 100 runs."""
    part = 60.0 * minutes / (len(WORLDS) * len(FIELD) * len(RULES))
    os.environ.update(dict.fromkeys(THREAD_SETTINGS, "1"))  # what is spawned takes it over
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        for world in WORLDS:
            for name in FIELD:
                for rule in RULES:
                    found = _outcomes(pool, (world, name, rule), runs, part)
                    yield _row(world, name, rule, found)


def _outcomes(
    pool: ProcessPoolExecutor, of: tuple[World, str, str], runs: int, seconds: float
) -> list[Outcome]:
    end = time.monotonic() + seconds
    outcomes: list[Outcome] = []
    while len(outcomes) < runs and (not outcomes or time.monotonic() < end):
        first = len(outcomes)
        parts = [
            range(first + RUNS_AT_ONCE * i, first + RUNS_AT_ONCE * (i + 1)) for i in range(PARTS_AT_ONCE)
        ]
        for found in pool.map(_campaigns, *([each] * len(parts) for each in of), parts):
            outcomes += found
    return outcomes


def _campaigns(world: World, name: str, rule: str, seeds: Sequence[int]) -> list[Outcome]:
    return [_campaign(world.preferences(), name, rule, seed) for seed in seeds]


def _campaign(preferences: np.ndarray, name: str, rule: str, seed: int) -> Outcome:
    """A campaign of single duels, so that it may stop after every one of them."""
    selector = create_selector(
        name,
        n_arms=len(preferences),
        n_examples=1_000_000,
        batch_size=1,
        delta=DELTA,
        budget=BUDGET,
        assume_winner=rule == "assume_winner",
    )
    judge, draws = np.random.default_rng([seed, 1]), round_rng(seed, 0)
    while len(batch := selector.ask(draws)):
        first, second = batch.arms.T
        selector.tell(batch, judge.random(1) < preferences[first, second])
    decision = selector.decision()
    confident = decision.reason == "confident"
    against = np.delete(preferences[decision.best], decision.best)
    is_right = (against >= 0.5 if rule == "assume_winner" else against > 0.5).all()
    return Outcome(confident, confident and not is_right, decision.reason == "budget")


def _row(world: World, name: str, rule: str, outcomes: Sequence[Outcome]) -> Row:
    count = len(outcomes)
    total = Outcome(*np.array(outcomes).sum(axis=0))
    upper = proportion_interval(total.wrong, count, 0.1)[1]
    return {
        "world": world.name,
        "selector": name,
        "rule": rule,
        "runs": str(count),
        "confident": f"{total.confident / count:.4f}",
        "wrongly": f"{total.wrong / count:.4f} (below {upper:.4f} at 95%)",
        f"undecided after {BUDGET} duels": f"{total.undecided / count:.4f}",
        "bar": _bar(world, rule),
    }


def _bar(world: World, rule: str) -> str:
    has_winner = (world.preferences() >= 0.5).all(axis=1).any()
    return f"wrongly at most {DELTA}" if rule == "own duels" or has_winner else "none: the assumption fails"
