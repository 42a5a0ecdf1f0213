"""How often intervals miss and stopped campaigns err, on tables made to bring that about."""

import multiprocessing
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import NamedTuple

import numpy as np
from scipy.stats import norm

from tests.benchmarks.score_worlds import World, adversarial
from winnow.algorithms.best_mean.metrics import best_arms, true_means
from winnow.algorithms.bounds.binomial import proportion_interval
from winnow.algorithms.protocols import round_rng
from winnow.algorithms.registry import create_selector, describe

DELTA, N_EXAMPLES, BATCH_SIZE = 0.05, 60, 4
SELECTORS = ("ucb-e", "ucb-e-lrf", "pulse", "naive-pooling")
ROUNDING = 1e-12
RUNS_AT_ONCE, PARTS_AT_ONCE = 10, 4


class Outcome(NamedTuple):
    """What happened in one campaign; each is counted."""

    missed: bool
    """Any of its intervals, in any round."""
    naive_missed: bool
    """Any interval for one look with the same delta, looked at in every round: what the check can see."""
    separated: bool
    """Whether it stopped as separated before everything was known."""
    wrong: bool
    """Whether it named an arm that is not best when it stopped as separated."""


def measure(names: Sequence[str], runs: int, seconds: float) -> Iterator[dict[str, str]]:
    """Rows per selector and table; each has its part of the time, and at least 40 runs."""
    worlds = adversarial(N_EXAMPLES)
    field = [name for name in SELECTORS if name in names]
    with ProcessPoolExecutor(mp_context=multiprocessing.get_context("spawn")) as pool:
        for name in field:
            of_all: list[Outcome] = []
            for world in worlds:
                part = seconds / len(field) / len(worlds)
                of_world = _outcomes(pool, name, world, runs, part)
                of_all += of_world
                yield _row(name, world.name, of_world)
            yield _row(name, "all of these", of_all)


def _outcomes(pool: ProcessPoolExecutor, name: str, world: World, runs: int, seconds: float) -> list[Outcome]:
    end = time.monotonic() + seconds
    outcomes: list[Outcome] = []
    while len(outcomes) < runs and (not outcomes or time.monotonic() < end):
        first = len(outcomes)
        parts = [
            range(first + RUNS_AT_ONCE * i, first + RUNS_AT_ONCE * (i + 1)) for i in range(PARTS_AT_ONCE)
        ]
        for found in pool.map(_campaigns, [name] * len(parts), [world] * len(parts), parts):
            outcomes += found
    return outcomes


def _row(name: str, table: str, outcomes: list[Outcome]) -> dict[str, str]:
    count = len(outcomes)
    total = Outcome(*np.array(outcomes).sum(axis=0))
    return {
        "selector": name,
        "table": table,
        "runs": str(count),
        "an interval ever missed": f"{total.missed / count:.4f} ({_upper(total.missed, count)})",
        "intervals for one look missed": f"{total.naive_missed / count:.4f}",
        "separated early": f"{total.separated / count:.2f}",
        "named a wrong arm": f"{total.wrong / count:.4f} ({_upper(total.wrong, count)})",
        "bar": f"at most {DELTA}",
    }


def _campaigns(name: str, world: World, seeds: Sequence[int]) -> list[Outcome]:
    return [_campaign(name, world, seed) for seed in seeds]


def _campaign(name: str, world: World, seed: int) -> Outcome:
    takes_history = any(parameter.name == "history" for parameter in describe(name).parameters)
    params = {"history": world.history} if takes_history else {}
    n_arms, n_examples = world.scores.shape
    selector = create_selector(
        name, n_arms=n_arms, n_examples=n_examples, batch_size=BATCH_SIZE, delta=DELTA, **params
    )
    means = true_means(world.scores)
    told = np.zeros(world.scores.shape, dtype=bool)
    missed = naive_missed = False
    decision, round_ = selector.decision(), 0
    while len(batch := selector.ask(round_rng(seed, round_))):
        selector.tell(batch, world.scores[batch.arms, batch.examples])
        told[batch.arms, batch.examples] = True
        decision = selector.decision()
        missed |= _misses(decision.lower, decision.upper, means)
        naive_missed |= _misses(*_intervals_for_one_look(world.scores, told), means)
        round_ += 1
    separated = decision.reason == "confident"
    wrong = separated and not best_arms(means)[decision.best]
    return Outcome(missed, naive_missed, separated and not told.all(), bool(wrong))


def _misses(lower: np.ndarray, upper: np.ndarray, means: np.ndarray) -> bool:
    return bool(((means < lower - ROUNDING) | (means > upper + ROUNDING)).any())


def _intervals_for_one_look(scores: np.ndarray, told: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Normal approximation with the finite-population correction, delta shared by the arms."""
    n_arms, n_examples = scores.shape
    counts = np.maximum(told.sum(axis=1), 1)
    means = np.where(told, scores, 0.0).sum(axis=1) / counts
    variances = (np.where(told, scores - means[:, np.newaxis], 0.0) ** 2).sum(axis=1) / np.maximum(
        counts - 1, 1
    )
    halves = norm.isf(DELTA / (2 * n_arms)) * np.sqrt(variances / counts * (1.0 - counts / n_examples))
    untried = ~told.any(axis=1)
    return np.where(untried, 0.0, means - halves), np.where(untried, 1.0, means + halves)


def _upper(errors: int, count: int) -> str:
    """The exact 95% upper limit of the probability."""
    return f"below {proportion_interval(errors, count, 0.1)[1]:.4f} at 95%"
