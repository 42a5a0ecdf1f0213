"""Simulated experts on real prompts: each arm is best on one of five types, and one is best on average."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tests.benchmarks.tables import Row
from winnow.algorithms.protocols import round_rng
from winnow.algorithms.registry import create_selector
from winnow.algorithms.route.metrics import (
    cumulative_regret,
    is_optimal,
    optimal_pick_ratio,
    outscore_the_best,
    pick_shares,
)

EXPERT = 0.85
"""Chance that an expert solves a prompt of its type."""
OTHERWISE = np.array([0.5, 0.45, 0.4, 0.4, 0.35])
"""Chance that each arm solves a prompt of another type."""
NEWCOMER = 0.95
"""Chance that an arm that comes later solves a prompt of one type; elsewhere it is like the last arm."""
OUTDONE = 0.65
"""Chance that the expert of that type solves a prompt of it, where a better arm is to come."""
ROUNDS = 2_000
ROUNDS_PER_TYPE = 1_000
WINDOW = 250
LAST = 500

METHODS: dict[str, tuple[str, dict[str, object]]] = {
    "PAK-UCB-poly3": ("pak-ucb", {"kernel": "poly3"}),
    "PAK-UCB-rbf": ("pak-ucb", {"kernel": "rbf"}),
    "PAK-UCB-rbf, bandwidth 3": ("pak-ucb", {"kernel": "rbf", "bandwidth": 3.0}),
    "PAK-UCB-linear": ("pak-ucb", {"kernel": "linear"}),
    "RFF-UCB-rbf": ("rff-ucb", {}),
    "RFF-UCB-rbf, bandwidth 3": ("rff-ucb", {"bandwidth": 3.0}),
    "Sup-PAK-UCB-rbf": ("sup-pak-ucb", {}),
    "Sup-RFF-UCB-rbf": ("sup-rff-ucb", {}),
    "Naive-KRR-poly3": ("naive-krr", {"kernel": "poly3"}),
    "KernelUCB-poly3": ("kernel-ucb", {"kernel": "poly3"}),
    "KernelUCB-poly3, gamma 1 (published)": ("kernel-ucb", {"kernel": "poly3", "gamma": 1.0}),
    "KernelUCB-poly3, gamma 0.2, eta 1 (best found)": (
        "kernel-ucb",
        {"kernel": "poly3", "gamma": 0.2, "eta": 1.0},
    ),
    "LinUCB": ("lin-ucb", {}),
    "Random": ("random", {}),
}

SETTINGS: dict[str, tuple[str, dict[str, object]]] = {
    **{
        f"poly3, gamma {gamma:g}": ("pak-ucb", {"kernel": "poly3", "gamma": gamma})
        for gamma in (0.02, 0.05, 0.1, 1.0, 5.0)
    },
    **{f"rbf, bandwidth {width:g}": ("rff-ucb", {"bandwidth": width}) for width in (0.5, 1.0, 3.0, 5.0, 8.0)},
    **{f"rbf, bandwidth 3, eta {eta:g}": ("rff-ucb", {"bandwidth": 3.0, "eta": eta}) for eta in (0.3, 1.0)},
    **{f"rbf, D {n}": ("rff-ucb", {"n_features": n}) for n in (50, 100, 400)},
}


@dataclass(frozen=True)
class Stream:
    """Prompts in the order they come, and what every arm scores on them."""

    contexts: np.ndarray
    """Shape (T, d)."""
    types: np.ndarray
    """Shape (T,)."""
    expected: np.ndarray
    """Shape (T, K)."""
    scores: np.ndarray
    """Shape (T, K), 0 or 1."""


@dataclass(frozen=True)
class Played:
    """What a router did on a stream."""

    arms: np.ndarray
    """Shape (T,)."""
    scores: np.ndarray
    """Shape (T,)."""


def stream(embeddings: np.ndarray, types: np.ndarray, seed: int, newcomer: int | None = None) -> Stream:
    """Prompts of the given types, drawn with replacement, and scores; a newcomer is best on its type."""
    rng = np.random.default_rng([seed, 1])
    contexts = embeddings[types, rng.integers(embeddings.shape[1], size=len(types))]
    otherwise = OTHERWISE if newcomer is None else np.append(OTHERWISE, OTHERWISE[-1])
    expected = np.tile(otherwise, (len(types), 1))
    expected[np.arange(len(types)), types] = EXPERT
    if newcomer is not None:
        expected[types == newcomer, newcomer] = OUTDONE
        expected[types == newcomer, -1] = NEWCOMER
    scores = (rng.random(expected.shape) < expected).astype(float)
    return Stream(contexts, types, expected, scores)


def play(world: Stream, name: str, seed: int, newcomer_at: int | None = None, **params: object) -> Played:
    """One prompt a round; the last arm is added at the given round, if any."""
    n_arms = world.expected.shape[1] - (newcomer_at is not None)
    router = create_selector(
        name, n_arms=n_arms, n_examples=len(world.types), dim=world.contexts.shape[1], **params
    )
    arms = np.empty(len(world.types), dtype=np.int64)
    for t in range(len(arms)):
        if t == newcomer_at:
            router.add_arm()
        batch = router.ask(round_rng(seed, t), world.contexts[t : t + 1])
        arms[t] = batch.arms[0]
        router.tell(batch, 2.0 * world.scores[t, batch.arms] - 1.0)  # as a campaign does
    return Played(arms, world.scores[np.arange(len(arms)), arms])


def uniform(seed: int) -> np.ndarray:
    return np.random.default_rng([seed, 0]).integers(len(OTHERWISE), size=ROUNDS)


def one_by_one(seed: int) -> np.ndarray:
    """A type more after every 1 000 rounds."""
    known = np.repeat(1 + np.arange(len(OTHERWISE)), ROUNDS_PER_TYPE)
    return np.random.default_rng([seed, 0]).integers(known)


def measure(
    embeddings: np.ndarray, seeds: int, methods: dict[str, tuple[str, dict[str, object]]]
) -> Iterator[Row]:
    """Means over seeds, with the standard error of the score over the best arm's."""
    yield from rows([stream(embeddings, uniform(seed), seed) for seed in range(seeds)], methods)


def rows(worlds: list[Stream], methods: dict[str, tuple[str, dict[str, object]]]) -> Iterator[Row]:
    """A row for each method, and one for the arm that is best on average."""
    for label, (name, params) in methods.items():
        played = [play(world, name, seed, **params) for seed, world in enumerate(worlds)]
        yield _row(label, worlds, played)
    oracle = int(np.mean([world.expected.mean(axis=0) for world in worlds], axis=0).argmax())
    alone = [
        Played(np.full(len(world.types), oracle), world.scores[:, oracle].astype(float)) for world in worlds
    ]
    yield _row("One-arm oracle", worlds, alone)


def _row(label: str, worlds: list[Stream], played: list[Played]) -> Row:
    pairs = list(zip(worlds, played, strict=True))
    lead = np.array([outscore_the_best(each.scores, world.expected)[-1] for world, each in pairs])
    ratio = np.array([optimal_pick_ratio(each.arms, world.expected)[-1] for world, each in pairs])
    late = np.array([is_optimal(each.arms, world.expected)[-LAST:].mean() for world, each in pairs])
    regret = np.array([cumulative_regret(each.arms, world.expected)[-1] for world, each in pairs])
    error = lead.std(ddof=1) / np.sqrt(len(lead)) if len(lead) > 1 else np.nan
    return {
        "method": label,
        "seeds": str(len(lead)),
        "outscores the best arm by": f"{lead.mean():+.3f} ± {error:.3f}",
        "optimal picks": f"{ratio.mean():.3f}",
        f"of the last {LAST}": f"{late.mean():.3f}",
        "regret": f"{regret.mean():.0f}",
    }


def measure_newcomer(embeddings: np.ndarray, seeds: int) -> Iterator[Row]:
    """What a sixth arm gets that comes at half; its type differs from seed to seed."""
    for label in ("PAK-UCB-poly3", "RFF-UCB-rbf"):
        name, params = METHODS[label]
        own, others = [], []
        for seed in range(seeds):
            world = stream(embeddings, uniform(seed), seed, newcomer=seed % 5)
            arms = play(world, name, seed, newcomer_at=ROUNDS // 2, **params).arms
            shares = pick_shares(arms, world.types, 6, WINDOW)  # (8, types, arms)
            own.append(shares[:, seed % 5, 5])
            others.append(np.delete(shares[:, np.arange(5), np.arange(5)], seed % 5, axis=1).mean(axis=1))
        for what, found in (
            ("of its type, to the new arm", own),
            ("of the others, to their experts", others),
        ):
            cells = [f"{share:.2f}" for share in np.mean(found, axis=0)]
            heads = [f"rounds to {WINDOW * (w + 1)}" for w in range(len(cells))]
            yield {"method": label, "share of prompts": what, **dict(zip(heads, cells, strict=True))}


def measure_new_types(embeddings: np.ndarray, seeds: int) -> Iterator[Row]:
    """Share of each type that its expert gets, by thousand rounds; a type is new in each."""
    for label in ("PAK-UCB-poly3", "RFF-UCB-rbf"):
        name, params = METHODS[label]
        worlds = [stream(embeddings, one_by_one(seed), seed) for seed in range(seeds)]
        shares = np.mean(
            [
                pick_shares(play(world, name, seed, **params).arms, world.types, 5, ROUNDS_PER_TYPE)
                for seed, world in enumerate(worlds)
            ],
            axis=0,
        )
        for kind in range(5):
            cells = [f"{share:.2f}" if w >= kind else "" for w, share in enumerate(shares[:, kind, kind])]
            heads = [f"rounds to {(w + 1) * ROUNDS_PER_TYPE}" for w in range(5)]
            yield {"method": label, "type": str(kind), **dict(zip(heads, cells, strict=True))}
