"""Duels to a stop of LLM-PO by the published rule, by the arm's own duels and by the product."""

import multiprocessing
import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import NamedTuple

import numpy as np

from tests.benchmarks.practical_rule import PracticalEvidence
from tests.benchmarks.tables import Row
from winnow.algorithms.best_duel.config import BestDuelConfig
from winnow.algorithms.best_duel.llm_po import LlmPo
from winnow.algorithms.protocols import round_rng
from winnow.tasks.simulation.simulate import THREAD_SETTINGS

DELTA, CAP = 0.05, 60_000
PRACTICAL, OWN_DUELS, PRODUCT = RULES = ("practical, as published", "own duels", "product, assume_winner")
RUNS_AT_ONCE = 2


class Outcome(NamedTuple):
    duels: int
    stopped: bool
    wrong: bool
    """Whether it stopped with an arm that does not beat every other."""


def two_arms() -> np.ndarray:
    return np.array([[0.5, 0.55], [0.45, 0.5]])


def published(n_arms: int) -> np.ndarray:
    """The latent scores of the published experiment, spread over so many arms; arm 0 is the best."""
    scores = 0.55 - 1.90 * np.arange(n_arms) / (n_arms - 1)
    scores += np.random.default_rng(0).normal(scale=0.005, size=n_arms)
    return 1.0 / (1.0 + np.exp(scores - scores[:, np.newaxis]))


def cyclic_losers(n_arms: int = 6, *, best: float = 0.6, cycle: float = 0.7) -> np.ndarray:
    """Arm 0 beats every other by a little, and each of those beats the next two in a circle by more."""
    matrix = np.full((n_arms, n_arms), 0.5)
    matrix[0, 1:], matrix[1:, 0] = best, 1.0 - best
    for place in range(n_arms - 1):
        for step in (1, 2):
            i, j = 1 + place, 1 + (place + step) % (n_arms - 1)
            matrix[i, j], matrix[j, i] = cycle, 1.0 - cycle
    return matrix


WORLDS = {
    "K = 2, 0.55": two_arms(),
    "published, K = 6": published(6),
    "published, K = 16": published(16),
    "cyclic losers, K = 6": cyclic_losers(),
}


def measure(runs: int = 16, minutes: float = 10.0, workers: int = 2) -> Iterator[Row]:
    """A row per world and rule; each world has an equal part of the time and at least two runs a rule."""
    os.environ.update(dict.fromkeys(THREAD_SETTINGS, "1"))  # what is spawned takes it over
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        for world in WORLDS:
            found = _outcomes(pool, world, runs, 60.0 * minutes / len(WORLDS))
            usual = np.mean([outcome.duels for outcome in found[PRACTICAL]])
            yield from (_row(world, rule, found[rule], float(usual)) for rule in RULES)


def _outcomes(pool: ProcessPoolExecutor, world: str, runs: int, seconds: float) -> dict[str, list[Outcome]]:
    end, found = time.monotonic() + seconds, {rule: list[Outcome]() for rule in RULES}
    for first in range(0, runs, RUNS_AT_ONCE):
        if first > 0 and time.monotonic() > end:
            break
        jobs = [(world, rule, seed) for rule in RULES for seed in range(first, first + RUNS_AT_ONCE)]
        for (_, rule, _), outcome in zip(jobs, pool.map(campaign, *zip(*jobs, strict=True)), strict=True):
            found[rule].append(outcome)
    return found


def campaign(world: str, rule: str, seed: int) -> Outcome:
    """One campaign of single duels, to its stop or the cap."""
    chances = WORLDS[world]
    config = BestDuelConfig(
        n_arms=len(chances),
        n_examples=1_000_000,
        batch_size=1,
        delta=DELTA,
        budget=CAP,
        assume_winner=rule == PRODUCT,
    )
    selector = LlmPo(config)
    if rule == PRACTICAL:
        stopping = selector._stopping
        stopping.evidence = PracticalEvidence(config, stopping.record)
    judge, draws, duels = np.random.default_rng([seed, 1]), round_rng(seed, 0), 0
    while len(batch := selector.ask(draws)):
        first, second = batch.arms.T
        selector.tell(batch, judge.random(1) < chances[first, second])
        duels += 1
    decision = selector.decision()
    stopped = decision.reason == "confident"
    return Outcome(duels, stopped, stopped and decision.best != 0)


def _row(world: str, rule: str, outcomes: Sequence[Outcome], usual: float) -> Row:
    duels = np.array([outcome.duels for outcome in outcomes])
    half = 1.96 * duels.std(ddof=1) / np.sqrt(len(duels))
    return {
        "world": world,
        "rule": rule,
        "runs": str(len(outcomes)),
        "stopped": str(sum(outcome.stopped for outcome in outcomes)),
        "wrong": str(sum(outcome.wrong for outcome in outcomes)),
        "duels": f"{duels.mean():.0f} ± {half:.0f}",
        "ratio to the practical rule": f"{duels.mean() / usual:.2f}",
    }
