"""Time and memory of rounds of one prompt, on one thread as on two."""

import time
import tracemalloc
from collections.abc import Iterator

import numpy as np

from tests.benchmarks.tables import Row
from winnow.algorithms.protocols import round_rng
from winnow.algorithms.registry import create_selector
from winnow.algorithms.route.protocol import RoutedBatch, Router

N_ARMS = 5
MOST_CONTEXTS = 30_000
PUBLISHED = {"pak-ucb": "about 10 minutes", "rff-ucb": "under 2 minutes"}
BARS = {"pak-ucb": "3 s", "rff-ucb": "1 s"}


def measure(long: int = 100_000) -> Iterator[Row]:
    """Rounds that spread over the arms, the rounds where one arm gets all, and a long stream."""
    for dim in (384, 512):
        for name in ("pak-ucb", "rff-ucb"):
            yield _row(name, dim, 2_000, f"under {BARS[name]}; published {PUBLISHED[name]}")
    yield _row("pak-ucb", 384, 2_000, "under 3 s", winner=True)
    for name in ("kernel-ucb", "lin-ucb", "sup-pak-ucb", "sup-rff-ucb"):
        yield _row(name, 384, 2_000, "")
    yield _row("rff-ucb", 384, long, "under 60 s, flat")


def measure_policy() -> Iterator[Row]:
    """Time of a choice by the exported arrays, 10 arms."""
    for name, rounds, params in (
        ("pak-ucb", 5_000, {}),
        ("pak-ucb", 30_000, {}),
        ("pak-ucb", 5_000, {"kernel": "linear"}),
        ("rff-ucb", 5_000, {}),
    ):
        router, contexts = _router(name, 384, rounds, n_arms=10, **params)
        arms = np.arange(rounds) % 10
        router.tell(RoutedBatch(arms, np.arange(rounds), contexts), np.cos(arms + contexts[:, 0]))
        policy = router.policy()
        started = time.perf_counter()
        for context in contexts[:200]:
            policy.choose(context)
        milliseconds = 1e3 * (time.perf_counter() - started) / 200
        size = sum(array.nbytes for array in policy.arrays.values()) / 1e6
        yield {
            "method": f"{name} {params.get('kernel', 'rbf')}",
            "scores learned": str(rounds),
            "milliseconds per choice": f"{milliseconds:.3f}",
            "megabytes": f"{size:.1f}",
        }


def _router(
    name: str, dim: int, rounds: int, n_arms: int = N_ARMS, **params: object
) -> tuple[Router, np.ndarray]:
    contexts = np.random.default_rng(1).standard_normal((min(rounds, MOST_CONTEXTS), dim))
    contexts += 0.2 * np.sqrt(dim)  # so that some are alike
    contexts /= np.linalg.norm(contexts, axis=1, keepdims=True)
    router = create_selector(name, n_arms=n_arms, n_examples=10 * rounds, dim=dim, **params)
    return router, contexts


def _row(name: str, dim: int, rounds: int, bar: str, winner: bool = False) -> Row:
    seconds = _play(name, dim, rounds, winner)
    tracemalloc.start()
    _play(name, dim, min(rounds, 2_000), winner)
    megabytes = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    tenth = max(1, rounds // 10)
    return {
        "method": f"{name}{', one arm gets all' if winner else ''}",
        "d": str(dim),
        "rounds": str(rounds),
        "seconds": f"{seconds.sum():.2f}",
        "microseconds per round, first tenth": f"{1e6 * seconds[:tenth].mean():.0f}",
        "last tenth": f"{1e6 * seconds[-tenth:].mean():.0f}",
        "slowest": f"{1e6 * seconds.max():.0f}",
        "peak megabytes, 2 000 rounds": f"{megabytes:.0f}",
        "bar": bar,
    }


def _play(name: str, dim: int, rounds: int, winner: bool) -> np.ndarray:
    """Seconds of each round."""
    router, contexts = _router(name, dim, rounds, **({"eta": 0.0} if winner else {}))
    scores = np.random.default_rng(2).random((rounds, N_ARMS)) - 0.5
    if winner:
        scores[:] = [1.0, -1.0, -1.0, -1.0, -1.0]
    seconds = np.empty(rounds)
    for t in range(rounds):
        row = t % len(contexts)
        rng = round_rng(0, t)
        started = time.perf_counter()
        batch = router.ask(rng, contexts[row : row + 1])
        router.tell(batch, scores[t, batch.arms])
        seconds[t] = time.perf_counter() - started
    return seconds
