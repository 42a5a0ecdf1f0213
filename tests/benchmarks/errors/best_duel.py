"""Preferences by which a best-duel campaign could be led astray, and what is true of each."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from tests.benchmarks.errors.cells import Scene
from winnow.algorithms.decision import Decision
from winnow.algorithms.protocols import Batch
from winnow.algorithms.registry import create_selector

DELTA, BATCH, BUDGET = 0.2, 12, 420
SAME = 1e-9
BARELY = 1e-6  # too little to be seen, and enough for the other one not to be the best


class World(NamedTuple):
    """How the arms do against each other, and what a judge cannot tell."""

    says: str
    """What is in it."""
    chances: np.ndarray
    """Shape (K, K), that the row is preferred to the column."""
    unread: float = 0.0
    """The share of the first arm's wins that stay unscored."""
    ties: float = 0.0
    """The share of duels that the judge calls a tie."""
    n_examples: int | None = None
    """How many examples there are for arms that answer each the same whenever asked; None where duels are
    drawn anew each time."""


def _chances(*above_diagonal: float) -> np.ndarray:
    """Preferences of arm i over j for i < j, row by row, as a whole table."""
    n_arms = round((1 + np.sqrt(1 + 8 * len(above_diagonal))) / 2)
    chances = np.full((n_arms, n_arms), 0.5)
    rows, columns = np.triu_indices(n_arms, 1)
    chances[rows, columns] = above_diagonal
    chances[columns, rows] = 1.0 - np.array(above_diagonal)
    return chances


def _first_is_better(n_arms: int, edge: float) -> np.ndarray:
    n_pairs = n_arms * (n_arms - 1) // 2
    return _chances(*[0.5 + edge] * (n_arms - 1), *[0.5] * (n_pairs - n_arms + 1))


WORLDS: Mapping[str, World] = {
    "level, K = 2": World("No arm is preferred to any other.", _first_is_better(2, 0.0)),
    "level, K = 4": World("No arm is preferred to any other.", _first_is_better(4, 0.0)),
    "level at the top": World("Two arms are level, and far ahead of a third.", _chances(0.5, 0.8, 0.8)),
    "near tie, K = 2": World("The first arm is better by one in a million.", _first_is_better(2, BARELY)),
    "near tie, K = 6": World("The first arm is better by one in a million.", _first_is_better(6, BARELY)),
    "just better, K = 3": World("The first arm wins 53% of its duels.", _first_is_better(3, 0.03)),
    "near tie, half called ties": World(
        "The first arm is better by one in a million, and half of all duels are called a tie.",
        _first_is_better(2, BARELY),
        ties=0.5,
    ),
    **{
        f"unread wins {share:.0%}": World(
            "Two arms, the first better by one in a million, are far ahead of a third; so many of the first"
            " one's wins cannot be read.",
            _chances(0.5 + BARELY, 0.8, 0.8),
            unread=share,
        )
        for share in (0.0, 0.1, 0.2, 0.4)
    },
    "best is dropped": World(
        "The first arm is the best, and nine in ten of its wins cannot be read; of the others the next is"
        " better by one in a million.",
        _chances(0.8, 0.8, 0.8, 0.5 + BARELY, 0.8, 0.8),
        unread=0.9,
    ),
    "no replacement, near tie": World(
        "Arms that answer each of 60 examples the same whenever asked; the first wins 31 duels of 60 against"
        " each other arm.",
        _chances(31 / 60, 31 / 60, 30 / 60),
        n_examples=60,
    ),
    "no replacement, tied": World(
        "Arms that answer each of 60 examples the same whenever asked; two are level, and each wins 36 duels"
        " of 60 against the third.",
        _chances(30 / 60, 36 / 60, 36 / 60),
        n_examples=60,
    ),
}

CYCLES: Mapping[str, World] = {
    "cycle": World("Each of three arms wins 70% of its duels with the next.", _chances(0.7, 0.3, 0.7)),
    "cycle with a weak link": World(
        "Each of three arms is preferred to the next, but one of them barely.",
        _chances(0.8, 0.5 - BARELY, 0.8),
    ),
}
"""Where nobody beats or ties every other arm."""


def scene(
    selector: str, world: str, assume_winner: bool, rng: np.random.Generator, *, left_out: bool = False
) -> Scene:
    """Duels of a world, and a selector at its start.

    Args:
        selector: A name of the registry.
        world: A key of `WORLDS` or `CYCLES`.
        assume_winner: See `Setting`.
        rng: Draws the outcomes of duels that come out the same whenever they are fought.
        left_out: Whether unscored duels are fought again until they are scored, on purpose: what leaving them
            out comes to.
    """
    of = {**WORLDS, **CYCLES}[world]
    n_arms = len(of.chances)
    fixed = None if of.n_examples is None else _fixed(of.chances, of.n_examples, rng)

    def outcomes(batch: Batch, rng: np.random.Generator) -> np.ndarray:
        first, second = batch.arms.T
        chances, unread_first, unread_second = (
            of.chances[first, second],
            *(of.unread * (arms == 0) for arms in (first, second)),
        )
        if left_out:
            read = chances * (1.0 - unread_first) + (1.0 - chances) * (1.0 - unread_second)
            return (rng.random(len(batch)) < chances * (1.0 - unread_first) / read).astype(float)
        if fixed is not None:
            return fixed[first, second, batch.examples]
        won = rng.random(len(batch)) < chances
        is_unread = rng.random(len(batch)) < np.where(won, unread_first, unread_second)
        is_tie = rng.random(len(batch)) < of.ties
        return np.where(is_unread, np.nan, np.where(is_tie, 0.5, won))

    return Scene(
        create_selector(
            selector,
            n_arms=n_arms,
            n_examples=of.n_examples or 10**6,
            batch_size=BATCH,
            budget=BUDGET,
            delta=DELTA,
            assume_winner=assume_winner,
            deterministic=None if fixed is None else np.ones(n_arms, dtype=np.bool_),
        ),
        outcomes,
        lambda decision: _is_wrong(decision, of.chances),
    )


def _fixed(chances: np.ndarray, n_examples: int, rng: np.random.Generator) -> np.ndarray:
    """Shape (K, K, n): who wins on which example, as often as the chances say."""
    fixed = np.full((*chances.shape, n_examples), 0.5)
    for first, second in zip(*np.triu_indices(len(chances), 1), strict=True):
        wins = round(chances[first, second] * n_examples)
        fixed[first, second] = rng.permutation(np.arange(n_examples) < wins)
        fixed[second, first] = 1.0 - fixed[first, second]
    return fixed


def _is_wrong(decision: Decision, chances: np.ndarray) -> bool:
    """Whether an arm that is named does not beat every other one that was not dropped.

    To tie is enough where all is known, or where some arm was taken to beat or tie all others. Where no arm
    is named, one that is as good as that makes the answer wrong.
    """
    counted = [arm for arm, status in enumerate(decision.status) if status != "dropped"]
    worst = {
        arm: min(chances[arm, other] for other in counted if other != arm) for arm in counted
    }  # of their preferences
    named = [arm for arm in counted if decision.status[arm] in ("best", "tied")]
    if not named:
        return max(worst.values()) >= 0.5 - SAME
    may_tie = decision.claim.kind == "exact" or "winner-exists" in decision.claim.assumptions
    least = 0.5 - SAME if may_tie else 0.5 + SAME
    return any(worst[arm] < least for arm in named)
