"""How long a step of the best-duel selectors takes, each beside a plain implementation in the same run."""

import itertools
import time
from collections.abc import Iterator

import numpy as np

from tests.benchmarks import best_duel_structured, best_duel_unstructured
from tests.benchmarks.plain_duels import PlainLlmPo, plain_structured_step
from tests.benchmarks.tables import Row
from winnow.algorithms.protocols import round_rng
from winnow.algorithms.registry import create_selector

STEPS, PLAIN_STEPS = 8_000, 300
STRUCTURED_STEPS, PLAIN_STRUCTURED_STEPS, PLAIN_SWEEPS = 4_000, 10, 300
UNREACHABLE = 1e-300
"""A delta at which no run stops before its steps are done."""


def measure() -> Iterator[Row]:
    """Rows of what, microseconds, plain microseconds, ratio and bar; processor time of one thread."""
    chances = best_duel_unstructured.preferences(0)
    plain = _plain_step(chances)
    for name in best_duel_unstructured.BATCH_SIZES:
        step = _step(name, chances, STEPS)
        beside = plain if name == best_duel_unstructured.OURS else None
        yield _row(f"{name}: a step, 16 arms, single duels", step, beside, "below 50 us")
    world = next(best_duel_structured.instances())
    chances = 1.0 / (1.0 + np.exp(world.scores - world.scores[:, np.newaxis]))
    step = _step(best_duel_structured.OURS, chances, STRUCTURED_STEPS, features=world.features)
    yield _row(
        f"{best_duel_structured.OURS}: a step, 32 arms, 6 features, single duels",
        step,
        _plain_structured_step(world.features, chances),
        "below 3000 us",
    )


def _step(name: str, chances: np.ndarray, steps: int, **params: np.ndarray) -> float:
    """Seconds per duel of asking and telling, over a run from the first duel on."""
    sizes = {"n_arms": len(chances), "n_examples": 1_000_000, "batch_size": 1}
    selector = create_selector(name, **sizes, delta=UNREACHABLE, **params)
    judge, draws = np.random.default_rng(1), round_rng(0, 0)
    outcomes = judge.random(steps)
    start = time.process_time()
    for drawn in outcomes:
        batch = selector.ask(draws)
        first, second = batch.arms[0]
        selector.tell(batch, [float(drawn < chances[first, second])])
    return (time.process_time() - start) / steps


def _plain_step(chances: np.ndarray) -> float:
    """Seconds per duel of the plain method after ten duels of every pair."""
    plain, judge = PlainLlmPo(len(chances), delta=UNREACHABLE), np.random.default_rng(1)
    for pair in itertools.combinations(range(len(chances)), 2):
        for _ in range(10):
            plain.tell(pair, float(judge.random() < chances[pair]))
    start = time.process_time()
    for _ in range(PLAIN_STEPS):
        pair = plain.ask()
        plain.tell(pair, float(judge.random() < chances[pair]))
    return (time.process_time() - start) / PLAIN_STEPS


def _plain_structured_step(features: np.ndarray, chances: np.ndarray) -> float:
    """Seconds per duel of the plain structured method after ten duels of every pair."""
    low, high = np.triu_indices(len(features), 1)
    z, counts = features[low] - features[high], np.full(len(low), 10)
    wins = np.random.default_rng(1).binomial(10, chances[low, high])
    best = int(chances.min(axis=1).argmax())
    rivals = np.delete(features, best, axis=0) - features[best]
    start = time.process_time()
    for _ in range(PLAIN_STRUCTURED_STEPS):
        plain_structured_step(z, wins, counts, rivals, lambda theta: rivals @ theta, sweeps=PLAIN_SWEEPS)
    return (time.process_time() - start) / PLAIN_STRUCTURED_STEPS


def _row(what: str, ours: float, plain: float | None, bar: str) -> Row:
    return {
        "what": what,
        "measured": f"{1e6 * ours:.1f} us",
        "plain": "-" if plain is None else f"{1e6 * plain:.0f} us",
        "ratio": "-" if plain is None else f"{plain / ours:.1f}",
        "bar": bar,
    }
