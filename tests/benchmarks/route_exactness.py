"""Means and deviations against a solve of their definition from scratch."""

import time
from collections.abc import Iterator

import numpy as np

from tests.benchmarks.route_experts import Stream, stream
from tests.benchmarks.tables import Row
from winnow.algorithms.protocols import round_rng
from winnow.algorithms.registry import create_selector
from winnow.algorithms.route.posteriors.kernels import Kernel, fourier

ALPHA, N_ARMS = 1.0, 5
PARAMETERS = {"linear": {}, "poly3": {"gamma": 5.0}, "rbf": {"bandwidth": 0.5}}
"""Of kernels that are hard to invert, or hard to predict by."""


def by_definition(
    kernel: Kernel, contexts: np.ndarray, scores: np.ndarray, context: np.ndarray
) -> tuple[float, float]:
    """Mean and deviation of Algorithm 2, the whole system solved anew."""
    matrix = kernel.at(contexts @ contexts.T) + ALPHA * np.eye(len(contexts))
    column = kernel.at(contexts @ context)
    solved = np.linalg.solve(matrix, np.column_stack([scores, column]))
    mean, explained = column @ solved
    return float(mean), float(np.sqrt(max(kernel.peak - explained, 0.0) / ALPHA))


def measure(embeddings: np.ndarray, rounds: int = 2_000, long: int = 100_000) -> Iterator[Row]:
    """Largest difference at any round for PAK-UCB, after every 10 000 updates for RFF-UCB."""
    types = np.random.default_rng(0).integers(N_ARMS, size=long)
    world = stream(embeddings, types, 0)
    for name, params in PARAMETERS.items():
        started = time.perf_counter()
        worst = _worst_of_kernels(world, rounds, name, params)
        yield _row(f"PAK-UCB-{name} {params or ''}".strip(), rounds, worst, 1e-8, started)
    started = time.perf_counter()
    yield _row(
        "RFF-UCB, D = 200, all scores to one arm", long, _worst_of_features(world, long), 1e-6, started
    )


def _row(what: str, rounds: int, worst: np.ndarray, bar: float, started: float) -> Row:
    return {
        "what": what,
        "rounds": str(rounds),
        "largest error of a mean": f"{worst[0]:.1e}",
        "of a deviation": f"{worst[1]:.1e}",
        "bar": f"{bar:g}",
        "seconds with the solves": f"{time.perf_counter() - started:.0f}",
    }


def _worst_of_kernels(world: Stream, rounds: int, name: str, params: dict[str, float]) -> np.ndarray:
    dim = world.contexts.shape[1]
    router = create_selector("pak-ucb", n_arms=N_ARMS, n_examples=rounds, dim=dim, kernel=name, **params)
    kernel = Kernel(**{"name": name, "gamma": 1.0, "bandwidth": 1.0, **params})
    told: list[list[int]] = [[] for _ in range(N_ARMS)]
    worst = np.zeros(2)
    for t in range(rounds):
        batch = router.ask(round_rng(0, t), world.contexts[t : t + 1])
        arm = int(batch.arms[0])
        means, deviations = router.predict(world.contexts[t])
        if told[arm]:
            rows = told[arm]
            wanted = by_definition(kernel, world.contexts[rows], world.scores[rows, arm], world.contexts[t])
            worst = np.maximum(worst, np.abs(np.array(wanted) - (means[arm], deviations[arm])))
        router.tell(batch, world.scores[t, batch.arms])
        told[arm].append(t)
    return worst


def _worst_of_features(world: Stream, rounds: int) -> np.ndarray:
    dim = world.contexts.shape[1]
    router = create_selector("rff-ucb", n_arms=1, n_examples=rounds, dim=dim, bandwidth=0.5)
    frequencies = router.policy().arrays["frequencies"]
    gram, moments = ALPHA * np.eye(2 * len(frequencies)), np.zeros(2 * len(frequencies))
    worst = np.zeros(2)
    for t in range(rounds):
        batch = router.ask(round_rng(0, t), world.contexts[t : t + 1])
        router.tell(batch, world.scores[t, :1])
        phi = fourier(frequencies, world.contexts[t])
        gram += np.outer(phi, phi)
        moments += world.scores[t, 0] * phi
        # Just before the inverse is computed anew, when most errors have added up.
        if (t + 1) % 10_000 == 9_999:
            for context in world.contexts[:5]:
                phi = fourier(frequencies, context)
                solved = np.linalg.solve(gram, np.column_stack([moments, phi]))
                mean, square = phi @ solved
                found = np.ravel(router.predict(context))
                worst = np.maximum(worst, np.abs(found - (mean, np.sqrt(square))))
    return worst
