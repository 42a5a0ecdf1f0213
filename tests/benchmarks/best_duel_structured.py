"""The published structured comparison: duels until the best of 32 arms with 6 features is known.

Beside the proven rule that campaigns stop by stands the rule of the published experiments, which no proof
covers: in the campaigns of LLM-PO, where it would have stopped, and with which arm.

Random instances of the published recipe differ a thousandfold in difficulty, and the paper does not say
which one it shows. So the instances are the first seeds whose optimum lies where the published mean stopping
time does.
"""

import multiprocessing
import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import count, islice
from typing import NamedTuple

import numpy as np
from scipy.stats import beta, t

from tests.benchmarks.best_duel_hardness import characteristic_time_bt
from tests.benchmarks.practical_rule import practical_threshold
from tests.benchmarks.practical_structured_rule import PracticalStructuredRule
from winnow.algorithms.protocols import round_rng
from winnow.algorithms.registry import create_selector
from winnow.tasks.simulation.simulate import THREAD_SETTINGS

N_ARMS, D, NOISE = 32, 6, 0.25
DELTA, CAP = 0.05, 30_000
OPTIMA = (3_000, 8_000)
BUDGETS = (500, 1_000, 2_000, 4_000, 8_000)
OURS = "llm-po-bt"
BATCH_SIZES = {
    OURS: 1,
    "round-robin": 32,
    "random-pair": 32,
    "eps-greedy": 32,
    "thompson": 32,
    "rucb": 32,
}
"""All have the features, so that they share the fitted theta and the statistic. Batches save the baselines'
time; next to the thousands of duels that they take, hearing of outcomes 32 duels late changes little."""
N_INSTANCES = 5


class Instance(NamedTuple):
    """A draw of the published recipe."""

    seed: int
    features: np.ndarray
    """Shape (K, d)."""
    scores: np.ndarray
    """Shape (K,), theta . x."""
    characteristic_time: float
    """U*."""
    optimum: float
    """U* times the practical threshold there: about where the published rule would stop at best."""


class Outcome(NamedTuple):
    """What happened in one campaign."""

    duels: int
    confident: bool
    right: bool
    """Whether the arm named at the end is the best one."""
    practical: tuple[int, bool] | None
    """Duels at which the published rule would have stopped, and whether rightly; None where it is not
    followed or would not."""
    right_at: tuple[bool, ...]
    """The same at each of the budgets, or at the end where that came sooner."""


def measure(replications: int = 200, minutes: float = 60.0, workers: int = 2) -> Iterator[dict[str, str]]:
    """Rows per instance and selector, then per selector over all instances.

    The replications are shared equally by the instances, and started one after the other for all instances
    and selectors alike, until there are as many as asked for or the time is up.
    """
    worlds = list(islice(instances(), N_INSTANCES))
    jobs = [(world, name) for world in worlds for name in BATCH_SIZES]
    found: dict[tuple[int, str], list[Outcome]] = {(world.seed, name): [] for world, name in jobs}
    end = time.monotonic() + 60.0 * minutes
    os.environ.update(dict.fromkeys(THREAD_SETTINGS, "1"))  # what is spawned takes it over
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        for replication in range(max(2, replications // N_INSTANCES)):
            if replication > 1 and time.monotonic() > end:
                break
            outcomes = pool.map(partial(campaign, seed=replication), *zip(*jobs, strict=True))
            for (world, name), outcome in zip(jobs, outcomes, strict=True):
                found[world.seed, name].append(outcome)
    for world in worlds:
        ours = _mean_duels(found[world.seed, OURS])
        yield from (_row(world, name, found[world.seed, name], ours) for name in BATCH_SIZES)
    yield from (_summary(worlds, name, found) for name in BATCH_SIZES)


def instances() -> Iterator[Instance]:
    """The published recipe, seed after seed, where the optimum lies in the range."""
    for seed in count():
        rng = np.random.default_rng(seed)
        theta = rng.normal(size=D)
        theta /= np.linalg.norm(theta)
        bases = np.linspace(0.3, -0.3, N_ARMS)
        features = bases[:, np.newaxis] * theta + rng.normal(scale=NOISE, size=(N_ARMS, D))
        hardness = characteristic_time_bt(features, theta)
        optimum = duels_at_best(hardness)
        if OPTIMA[0] <= optimum <= OPTIMA[1]:
            yield Instance(seed, features, features @ theta, hardness, optimum)


def duels_at_best(hardness: float) -> float:
    """The n with n = U* threshold(n)."""
    duels = OPTIMA[0]
    for _ in range(50):
        duels = max(1, round(hardness * practical_threshold(DELTA, duels)))
    return float(duels)


def campaign(world: Instance, name: str, seed: int) -> Outcome:
    """One campaign, until it is separated or at the cap."""
    selector = create_selector(
        name,
        n_arms=N_ARMS,
        n_examples=1_000_000,
        features=world.features,
        batch_size=BATCH_SIZES[name],
        delta=DELTA,
        budget=CAP,
    )
    judge, best = np.random.default_rng([seed, 1]), int(world.scores.argmax())
    published = PracticalStructuredRule(world.features, DELTA) if name == OURS else None
    draws, duels, right_at = round_rng(seed, 0), 0, []
    while len(batch := selector.ask(draws)):
        lead = world.scores[batch.arms[:, 0]] - world.scores[batch.arms[:, 1]]
        wins = judge.random(len(batch)) < 1.0 / (1.0 + np.exp(-lead))
        selector.tell(batch, wins.astype(float))
        duels += len(batch)
        if published is not None:
            published.tell(batch.arms, wins)
        if len(right_at) < len(BUDGETS) and duels >= BUDGETS[len(right_at)]:
            right_at.append(selector.decision().best == best)
    decision = selector.decision()
    right = decision.best == best
    right_at += [right] * (len(BUDGETS) - len(right_at))
    practical = None
    if published is not None and published.stopped_at is not None:
        practical = (published.stopped_at, published.best == best)
    return Outcome(duels, decision.reason == "confident", right, practical, tuple(right_at))


def _row(world: Instance, name: str, outcomes: Sequence[Outcome], ours: float) -> dict[str, str]:
    duels = np.array([outcome.duels for outcome in outcomes])
    half = t.ppf(0.975, len(duels) - 1) * duels.std(ddof=1) / np.sqrt(len(duels))
    return {
        "instance": f"seed {world.seed}",
        "U*": f"{world.characteristic_time:.0f}",
        "U* x threshold": f"{world.optimum:.0f}",
        "selector": name,
        "batch": str(BATCH_SIZES[name]),
        "runs": str(len(outcomes)),
        "duels": f"{duels.mean():.0f} ± {half:.0f}",
        "over the optimum": f"{duels.mean() / world.optimum:.2f}",
        "over llm-po-bt": f"{duels.mean() / ours:.2f}",
        **_shares(outcomes),
    }


def _summary(
    worlds: Sequence[Instance], name: str, found: dict[tuple[int, str], list[Outcome]]
) -> dict[str, str]:
    """Ratios are averaged over the instances, as the counts themselves are not comparable."""
    means = {world.seed: _mean_duels(found[world.seed, name]) for world in worlds}
    outcomes = [outcome for world in worlds for outcome in found[world.seed, name]]
    optimal = np.mean([means[world.seed] / world.optimum for world in worlds])
    relative = np.mean([means[world.seed] / _mean_duels(found[world.seed, OURS]) for world in worlds])
    return {
        "instance": "all",
        "U*": "-",
        "U* x threshold": "-",
        "selector": name,
        "batch": str(BATCH_SIZES[name]),
        "runs": str(len(outcomes)),
        "duels": f"{np.mean(list(means.values())):.0f}",
        "over the optimum": f"{optimal:.2f}",
        "over llm-po-bt": f"{relative:.2f}",
        **_shares(outcomes),
    }


def _shares(outcomes: Sequence[Outcome]) -> dict[str, str]:
    """How many stopped, erred when they did, and were right at each budget."""
    runs = len(outcomes)
    confident = sum(outcome.confident for outcome in outcomes)
    wrong = sum(outcome.confident and not outcome.right for outcome in outcomes)
    upper = beta.ppf(0.95, wrong + 1, runs - wrong) if wrong < runs else 1.0
    right_at = np.mean([outcome.right_at for outcome in outcomes], axis=0)
    return {
        f"confident within {CAP}": f"{confident / runs:.2f}",
        "named a wrong arm": f"{wrong / runs:.3f} (below {upper:.3f} at 95%)",
        **_practical(outcomes),
        **{f"right at {budget}": f"{share:.2f}" for budget, share in zip(BUDGETS, right_at, strict=True)},
    }


def _practical(outcomes: Sequence[Outcome]) -> dict[str, str]:
    """The published rule in the same campaigns: its duels, its errors, and what the proof costs."""
    stopped = [(outcome.duels, *outcome.practical) for outcome in outcomes if outcome.practical is not None]
    if not stopped:
        return {"published rule": "-", "wrong by it": "-", "proven over published": "-"}
    proven, published, right = np.array(stopped, dtype=float).T
    return {
        "published rule": f"{published.mean():.0f} ({len(stopped)} of {len(outcomes)} stopped)",
        "wrong by it": f"{1.0 - right.mean():.3f}",
        "proven over published": f"{(proven / published).mean():.2f}",
    }


def _mean_duels(outcomes: Sequence[Outcome]) -> float:
    return float(np.mean([outcome.duels for outcome in outcomes]))
