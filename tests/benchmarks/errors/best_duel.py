"""Preferences by which a best-duel campaign could be led astray, and what is true of each."""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import numpy as np

from algorithms.decision import Decision
from algorithms.protocols import Batch
from algorithms.registry import create_selector
from tests.benchmarks.errors.cells import Cell, Scene

SAME = 1e-12


class Preferences(NamedTuple):
    """How the arms do against each other, and what a judge cannot read."""

    chances: np.ndarray
    """Shape (K, K), that the row is preferred to the column."""
    unread: np.ndarray
    """Shape (K,), the share of an arm's wins that stay unscored."""


def even(n_arms: int) -> Preferences:
    """No arm is preferred over any other: whoever is named is level with all, and nobody beats all."""
    return Preferences(np.full((n_arms, n_arms), 0.5), np.zeros(n_arms))


def just_better(n_arms: int, edge: float = 0.05) -> Preferences:
    """The first arm is a little better than every other one."""
    chances = np.full((n_arms, n_arms), 0.5)
    chances[0, 1:], chances[1:, 0] = 0.5 + edge, 0.5 - edge
    return Preferences(chances, np.zeros(n_arms))


def cycle(n_arms: int = 3, edge: float = 0.2) -> Preferences:
    """Each arm beats the next one; nobody beats all."""
    chances = np.full((n_arms, n_arms), 0.5)
    for arm in range(n_arms):
        chances[arm, (arm + 1) % n_arms] = 0.5 + edge
        chances[(arm + 1) % n_arms, arm] = 0.5 - edge
    return Preferences(chances, np.zeros(n_arms))


def unread_wins(share: float, n_arms: int = 4) -> Preferences:
    """The first arm is a little better, but a share of its wins cannot be read."""
    chances, _ = just_better(n_arms, 0.1)
    unread = np.zeros(n_arms)
    unread[0] = share
    return Preferences(chances, unread)


WORLDS: Mapping[str, Preferences] = {
    "even, K = 2": even(2),
    "even, K = 4": even(4),
    "just better, K = 2": just_better(2),
    "just better, K = 6": just_better(6),
    **{f"unread wins {share:.0%}": unread_wins(share) for share in (0.1, 0.3, 0.4)},
}


def cells(runs: int, whole_runs: int) -> Iterator[Cell]:
    """Worlds by both rules, sampled evenly and by LLM-PO; and a cycle, where the assumption is false."""
    for selector, count in (("round-robin", runs), ("llm-po", whole_runs)):
        for assume_winner in (False, True):
            rule = "product" if assume_winner else "own duels"
            for name, world in WORLDS.items():
                yield Cell(
                    name=f"best-duel, {selector}, {rule}, {name}",
                    build=_scenes(selector, world, assume_winner),
                    runs=count,
                    delta=0.2,
                )
        yield Cell(
            name=f"best-duel, {selector}, own duels, cycle",
            build=_scenes(selector, cycle(), False),
            runs=count,
            delta=0.2,
        )
    yield Cell(
        name="best-duel, round-robin, product, cycle (assumption false)",
        build=_scenes("round-robin", cycle(), True),
        runs=whole_runs,
        delta=0.2,
        expected="broken",
    )


def _scenes(selector: str, world: Preferences, assume_winner: bool) -> Callable[[np.random.Generator], Scene]:
    n_arms = len(world.unread)

    def outcomes(batch: Batch, rng: np.random.Generator) -> np.ndarray:
        first, second = batch.arms.T
        won = rng.random(len(batch)) < world.chances[first, second]
        unread = rng.random(len(batch)) < world.unread[np.where(won, first, second)]
        return np.where(unread, np.nan, won.astype(float))

    def scene(rng: np.random.Generator) -> Scene:
        return Scene(
            create_selector(
                selector,
                n_arms=n_arms,
                n_examples=10**6,
                batch_size=8,
                budget=600,
                delta=0.2,
                assume_winner=assume_winner,
            ),
            outcomes,
            lambda decision: _is_wrong(decision, world.chances),
        )

    return scene


def _is_wrong(decision: Decision, chances: np.ndarray) -> bool:
    """Whether some arm that was not dropped is preferred over the one that is named."""
    counted = [arm for arm, status in enumerate(decision.status) if status != "dropped"]
    return any(chances[arm, decision.best] > 0.5 + SAME for arm in counted)
