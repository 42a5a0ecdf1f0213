"""The published unstructured comparison: duels until the best of 16 arms is known.

The paper draws its latent scores once and does not give the seed. So the replications are spread evenly over
several draws; all selectors meet the same draws and the same replications.
"""

import multiprocessing
import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import NamedTuple

import numpy as np
from scipy.stats import t

from tests.benchmarks.best_duel_hardness import characteristic_time
from tests.benchmarks.practical_rule import practical_threshold
from tests.benchmarks.tables import Row
from winnow.algorithms.best_duel.preference_intervals import bernoulli_kl
from winnow.algorithms.bounds.binomial import proportion_interval
from winnow.algorithms.protocols import round_rng
from winnow.algorithms.registry import create_selector
from winnow.tasks.simulation.simulate import THREAD_SETTINGS

N_ARMS, NOISE, DELTA, CAP = 16, 0.005, 0.05, 30_000
BUDGETS = (500, 1_000, 2_000, 4_000, 8_000, 16_000)
OURS = "llm-po"
BATCH_SIZES = {OURS: 1, "rucb": 1, "thompson": 32, "eps-greedy": 32, "round-robin": 32, "random-pair": 32}
"""Where nearly no run ends before the cap, batches save time and cost little but when the end is noticed."""
DRAWS = 10
"""Of the latent scores."""


class Outcome(NamedTuple):
    """What happened in one campaign."""

    duels: int
    separated: bool
    right: bool
    """Whether the arm named at the end is the best one."""
    right_at: tuple[bool, ...]
    """The same at each of the budgets, or at the end where that came sooner."""
    seconds: float
    """Processor time."""


class Measured(NamedTuple):
    """Outcomes by selector, one per replication; replication r has the draw r modulo `DRAWS`."""

    outcomes: dict[str, list[Outcome]]
    seconds: float


def run(replications: int = 200, minutes: float = 60.0, workers: int = 2) -> Measured:
    """The replications one draw of all selectors after the other, as many as the time allows."""
    found: dict[str, list[Outcome]] = {name: [] for name in BATCH_SIZES}
    start = time.monotonic()
    os.environ.update(dict.fromkeys(THREAD_SETTINGS, "1"))  # what is spawned takes it over
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        for first in range(0, replications, DRAWS):
            if first > 0 and time.monotonic() - start > 60.0 * minutes:
                break
            jobs = [
                (name, seed)
                for name in BATCH_SIZES
                for seed in range(first, min(first + DRAWS, replications))
            ]
            outcomes = pool.map(campaign, *zip(*jobs, strict=True))
            for (name, _), outcome in zip(jobs, outcomes, strict=True):
                found[name].append(outcome)
    return Measured(found, time.monotonic() - start)


def preferences(draw: int) -> np.ndarray:
    """P(row is preferred to column), shape (K, K), arm 0 being the best."""
    noise = np.random.default_rng(draw).normal(scale=NOISE, size=N_ARMS)
    scores = 0.55 - 1.90 * np.arange(N_ARMS) / 15.0 + noise
    return 1.0 / (1.0 + np.exp(scores - scores[:, np.newaxis]))


def campaign(name: str, replication: int) -> Outcome:
    """One campaign, until it is separated or at the cap."""
    chances = preferences(replication % DRAWS)
    selector = create_selector(
        name,
        n_arms=N_ARMS,
        n_examples=1_000_000,
        batch_size=BATCH_SIZES[name],
        delta=DELTA,
        budget=CAP,
    )
    judge, draws = np.random.default_rng([replication, 1]), round_rng(replication, 0)
    duels, right_at, start = 0, [], time.process_time()
    while len(batch := selector.ask(draws)):
        first, second = batch.arms.T
        selector.tell(batch, judge.random(len(batch)) < chances[first, second])
        duels += len(batch)
        while len(right_at) < len(BUDGETS) and duels >= BUDGETS[len(right_at)]:
            right_at.append(selector.decision().best == 0)
    decision = selector.decision()
    right = decision.best == 0
    right_at += [right] * (len(BUDGETS) - len(right_at))
    separated = decision.reason == "confident"
    return Outcome(duels, separated, right, tuple(right_at), time.process_time() - start)


def methods(measured: Measured) -> Iterator[Row]:
    """A row per selector over all draws."""
    for name, outcomes in measured.outcomes.items():
        runs = len(outcomes)
        duels = np.array([outcome.duels for outcome in outcomes])
        hardness = np.array([characteristic_time(preferences(seed % DRAWS)) for seed in range(runs)])
        half = t.ppf(0.975, runs - 1) * duels.std(ddof=1) / np.sqrt(runs)
        at_best = np.array([duels_at_best(each) for each in hardness])
        lower_bound = hardness * bernoulli_kl(DELTA, 1.0 - DELTA)
        stopped = [outcome for outcome in outcomes if outcome.separated]
        wrong = sum(not outcome.right for outcome in stopped)
        upper = proportion_interval(wrong, runs, 0.1)[1]
        right_at = np.mean([outcome.right_at for outcome in outcomes], axis=0)
        yield {
            "selector": name,
            "batch": str(BATCH_SIZES[name]),
            "runs": str(runs),
            f"separated within {CAP}": f"{len(stopped) / runs:.3f}",
            "duels": f"{'' if len(stopped) == runs else 'at least '}{duels.mean():.0f} ± {half:.0f}",
            "over T* x threshold": f"{(duels / at_best).mean():.2f}",
            "over T* x kl": f"{(duels / lower_bound).mean():.2f}",
            "named a wrong arm": f"{wrong} (below {upper:.3f} at 95%)",
            **{f"right at {each}": f"{share:.3f}" for each, share in zip(BUDGETS, right_at, strict=True)},
        }


def draws(measured: Measured) -> Iterator[Row]:
    """A row per draw of the latent scores, with mean duels; runs at the cap count as such."""
    runs = len(measured.outcomes[OURS])
    for draw in range(min(DRAWS, runs)):
        hardness = characteristic_time(preferences(draw))
        yield {
            "draw": str(draw),
            "runs": str(len(range(draw, runs, DRAWS))),
            "T*": f"{hardness:.0f}",
            "T* x threshold": f"{duels_at_best(hardness):.0f}",
            **{name: f"{_mean(found[draw::DRAWS]):.0f}" for name, found in measured.outcomes.items()},
        }


def cost(measured: Measured, workers: int = 2) -> Row:
    """How long the experiment took."""
    outcomes = [outcome for found in measured.outcomes.values() for outcome in found]
    runs, told = len(measured.outcomes[OURS]), sum(outcome.duels for outcome in outcomes)
    busy = sum(outcome.seconds for outcome in outcomes)
    return {
        "what": f"unstructured experiment, {runs} replications x {len(BATCH_SIZES)} selectors, {told} duels",
        "measured": f"{measured.seconds:.0f} s in {workers} processes, {busy:.0f} s of processor time",
        "plain": "-",
        "ratio": "-",
        "bar": f"200 replications below 180 s; processor time makes {busy * 200 / runs / workers:.0f} s",
    }


def duels_at_best(hardness: float) -> float:
    """The n with n = T* threshold(n), for the threshold of the published experiments."""
    duels = CAP
    for _ in range(50):
        duels = round(hardness * practical_threshold(DELTA, duels))
    return float(duels)


def _mean(outcomes: Sequence[Outcome]) -> float:
    return float(np.mean([outcome.duels for outcome in outcomes]))
