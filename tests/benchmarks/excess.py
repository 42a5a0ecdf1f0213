"""How often "no candidate is better than A by more than x" is ever wrong in a campaign, or its answer is.

Small campaigns at delta = 0.2, on tables that are made to mislead. A run is wrong if a statement is false
after any of its rounds, or if the answer at its end is: each is promised at the error that it states.

python -m tests.benchmarks.excess [--runs 20000] [--out excess.csv] [--cells part of a name]
"""

import argparse
import itertools
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tests.benchmarks.error_cells import Counted, rate, run_cells
from winnow.algorithms.decision import Excess
from winnow.algorithms.protocols import round_rng
from winnow.algorithms.registry import create_selector

COLUMNS = ("cell", "runs", "wrong statements", "wrong answers", "either", "promised", "expected")
DELTA = 0.2


class World(NamedTuple):
    """A table and what is seen of it."""

    scores: np.ndarray
    """Shape (K, N)."""
    is_hidden: np.ndarray
    """Shape (K, N), scores that are never seen."""


class Cell(NamedTuple):
    """A kind of campaign in a kind of world."""

    name: str
    run: Callable[[np.random.Generator], tuple[bool, bool]]
    """Whether a statement is wrong, and whether the answer is."""
    promised: float
    share: float = 0.25
    """Share of the runs that are asked for; a campaign of two arms takes a quarter of the time of others."""
    expected: str = "kept"


def near_ties(rng: np.random.Generator, n_arms: int, n: int, ahead: int) -> np.ndarray:
    """0/1 scores of equally good arms but for one, which is right on some more examples."""
    right = np.full((n_arms, 1), n // 2)
    right[0] += ahead
    return rng.permuted(np.arange(n) < right, axis=1).astype(float)


def opposed(rng: np.random.Generator, n_arms: int, n: int, ahead: int) -> np.ndarray:
    """One arm is right where all others, which are right together, are wrong, and on some more."""
    order = rng.permutation(n)
    best = order < n // 2 + ahead
    return np.array([best, *(order >= n // 2 for _ in range(n_arms - 1))], dtype=float)


def alike(rng: np.random.Generator, n_arms: int, n: int, ahead: int) -> np.ndarray:
    """Arms that are right on nearly the same examples."""
    scores = np.tile(np.arange(n) < n // 2, (n_arms, 1))
    for arm in range(n_arms):
        flips = min(n // 8, n // 2 - ahead)
        scores[arm, rng.choice(n // 2, flips, replace=False)] = False
        gained = flips + (ahead if arm == 0 else 0)
        scores[arm, n // 2 + rng.choice(n - n // 2, gained, replace=False)] = True
    return scores.astype(float)


def rare(rng: np.random.Generator, n_arms: int, n: int, ahead: int) -> np.ndarray:
    """Arms that are nearly always wrong, and one that is right on a few examples."""
    scores = np.zeros((n_arms, n))
    scores[0, rng.choice(n, ahead, replace=False)] = 1.0
    return scores


def seen(rng: np.random.Generator, scores: np.ndarray, hidden: float) -> World:
    """A world in which the best arm lacks a share of its 1s, and the others of their 0s."""
    wants = np.zeros_like(scores)
    wants[0] = 1.0
    return World(scores, (scores == wants) & (rng.random(scores.shape) < hidden))


TABLES = {"near ties": near_ties, "opposed": opposed, "alike": alike, "rare": rare}


def campaign(
    table: str,
    n_arms: int,
    n: int,
    ahead: int,
    rng: np.random.Generator,
    *,
    selector: str = "champion",
    batch_size: int = 8,
    hidden: float = 0.0,
    joins: int = 0,
    is_best_last: bool = False,
    at_least: float | None = None,
    **params: object,
) -> tuple[bool, bool]:
    """Whether a statement of a campaign is ever wrong, and whether its answer is.

    Args:
        table: One of `TABLES`.
        n_arms: K.
        n: N.
        ahead: Examples on which the best arm is ahead.
        rng: For the world and the campaign.
        selector: champion or race.
        batch_size: Size of a round.
        hidden: See `seen`.
        joins: Arms that are added after some rounds, the best one the last of them.
        is_best_last: Whether the best arm is the last one; else it has a random place.
        at_least: Required mean of a second outcome, which all arms have but one that is better than them.
        params: Further ones of the selector.
    """
    world = seen(rng, TABLES[table](rng, n_arms, n, ahead), hidden)
    order = np.roll(np.arange(n_arms), -1) if joins or is_best_last else rng.permutation(n_arms)
    world, n_begun = World(world.scores[order], world.is_hidden[order]), n_arms - joins
    told = np.where(world.is_hidden, np.nan, world.scores)
    values = _values(world.scores, params)
    if at_least is not None:
        second, is_unfit = _second_outcomes(rng, n_arms, n, at_least)
        told[is_unfit] = world.scores[is_unfit] = (np.arange(n) < n - n // 8)[rng.permutation(n)]
        told, values = (
            np.stack([told, second], axis=2),
            np.where(is_unfit, -1.0, _values(world.scores, params)),
        )
        params = {**params, "constraints": np.array([at_least])}
    common = {"delta": DELTA, "max_unscored": 1.0, "excess": True, "ties": "open"}
    playing = create_selector(
        selector, n_arms=n_begun, n_examples=n, batch_size=batch_size, **(common | params)
    )
    playing._verdict.leave_out_intervals()  # what is shown of means, a quarter of the time; no claim needs it
    seed, at, number = int(rng.integers(2**31)), int(rng.integers(1, 12)), 0
    is_wrong = False
    while len(batch := playing.ask(round_rng(seed, number))):
        playing.tell(batch, told[batch.arms, batch.examples])
        number += 1
        is_wrong = is_wrong or _is_false(playing.excess, playing.evidence.active, values, params)
        if joins and number == at:
            playing.add_arms(joins)
    decision = playing.decision()
    is_wrong = is_wrong or _is_false(decision.excess, playing.evidence.active, values, params)
    if decision.claim.kind not in ("exact", "proven"):
        return is_wrong, False
    if decision.best is None:  # that no arm meets the constraint, which most do
        return is_wrong, at_least is not None
    left = np.array([each != "dropped" for each in decision.status])
    best = np.where(left, values[: len(left)], -1.0).max()
    epsilon = float(params.get("epsilon", 0.0))
    if params.get("top_m", 1) != 1:
        top = np.array([each in ("top", "tied") for each in decision.status])
        last, others = values[: len(left)][top].min(), values[: len(left)][~top].max(initial=-1.0)
        return is_wrong, bool(others > last + epsilon + 1e-9)
    chosen = decision.status.index("chosen") if "chosen" in decision.status else decision.best
    return is_wrong, bool(values[chosen] < best - epsilon - 1e-9)


def _values(scores: np.ndarray, params: Mapping[str, object]) -> np.ndarray:
    """What the arms are compared by, shape (K,)."""
    groups, weights = params.get("groups"), params.get("group_weights")
    if groups is None:
        return np.asarray(scores.mean(axis=1))
    means = np.stack([scores[:, groups == each].mean(axis=1) for each in range(int(groups.max()) + 1)])
    return np.asarray(means.min(axis=0) if weights is None else np.average(means, axis=0, weights=weights))


def _second_outcomes(
    rng: np.random.Generator, n_arms: int, n: int, at_least: float
) -> tuple[np.ndarray, np.ndarray]:
    """0/1 outcomes with just the required mean, but for one arm with one less; and which arm that is."""
    is_unfit = np.arange(n_arms) == rng.integers(n_arms)
    enough = math.ceil(at_least * n) - is_unfit
    return rng.permuted(np.arange(n) < enough[:, np.newaxis], axis=1).astype(float), is_unfit


def _is_false(
    found: Excess | None, active: np.ndarray, values: np.ndarray, params: Mapping[str, object]
) -> bool:
    """Whether a statement is false, of all arms that are not dropped."""
    if found is None:
        return False
    values = values[: len(active)]
    higher = active & (values > values[found.over] + found.most + 1e-9)
    return int(higher.sum()) >= int(params.get("top_m", 1))


def cells() -> Iterator[Cell]:
    """Every error cell."""
    for (table, n_arms), (selector, epsilon) in itertools.product(
        itertools.product(TABLES, (2, 5)),
        (("champion", 0.0), ("champion", 0.1), ("race", 0.0), ("race", 0.1)),
    ):
        name = f"{table}, K {n_arms}, N 60, {selector}, epsilon {epsilon:g}"
        at = partial(campaign, table, n_arms, 60, 12, selector=selector, epsilon=epsilon)
        yield Cell(name, at, DELTA, 1.0 if n_arms == 2 else 0.25)
    for table, hidden in itertools.product(("near ties", "alike"), (0.1, 0.4)):
        for start, epsilon in (("auto", 0.0), ("champion", 0.0), ("auto", 0.1)):
            name = f"{hidden:.0%} unscored, {table}, K 5, N 60, start {start}, epsilon {epsilon:g}"
            at = partial(campaign, table, 5, 60, 12, hidden=hidden, start=start, epsilon=epsilon)
            yield Cell(name, at, DELTA)
    for table, start in itertools.product(("near ties", "alike"), ("auto", "champion")):
        name = f"best joins later, {table}, K 3 + 2, N 60, start {start}"
        yield Cell(name, partial(campaign, table, 5, 60, 12, joins=2, start=start), 2.0 * DELTA)
        expected = {"joins": 2, "start": start, "additions": "expected"}
        yield Cell(f"expected, {name}", partial(campaign, table, 5, 60, 12, **expected), DELTA)
    for table in ("near ties", "alike"):
        drops = {"hidden": 0.4, "max_unscored": 0.3}
        name = f"dropped, {table}, K 5, N 60"
        yield Cell(name, partial(campaign, table, 5, 60, 12, **drops), 3.0 * DELTA)
        reserved = drops | {"dropping": "reserved"}
        yield Cell(f"{name}, reserved", partial(campaign, table, 5, 60, 12, **reserved), DELTA)
        name = f"best 2 of 5, {table}, N 60"
        yield Cell(name, partial(campaign, table, 5, 60, 12, top_m=2), DELTA)
        name = f"one by one, {table}, K 5, N 40"
        yield Cell(name, partial(campaign, table, 5, 40, 8, batch_size=1), DELTA)
        name = f"{table}, K 20, N 60, champion alone"
        yield Cell(name, partial(campaign, table, 20, 60, 12, batch_size=32), DELTA)
    three = np.tile([0, 0, 0, 1, 1, 2], 10)
    for table in ("near ties", "alike"):
        for epsilon in (0.0, 0.1):
            name = f"constraint, {table}, K 5, N 60, epsilon {epsilon:g}"
            yield Cell(name, partial(campaign, table, 5, 60, 12, at_least=0.5, epsilon=epsilon), DELTA)
        for selector in ("champion", "race"):
            grouped = {"groups": three, "group_weights": np.ones(3), "selector": selector}
            name = f"weighted groups, {table}, K 5, N 60, {selector}"
            yield Cell(name, partial(campaign, table, 5, 60, 12, **grouped), DELTA)
        name = f"least mean of groups, {table}, K 5, N 60"
        yield Cell(name, partial(campaign, table, 5, 60, 12, groups=three), DELTA)
        for epsilon in (0.1, 0.3):  # half of delta is for the best, and for what is said of it
            cheap = {"prefer": "cost", "costs": np.arange(5.0), "epsilon": epsilon, "is_best_last": True}
            name = f"cheapest, {table}, K 5, N 60, epsilon {epsilon:g}"
            yield Cell(name, partial(campaign, table, 5, 60, 12, **cheap), DELTA / 2.0)


def _counted(cell: Cell, rngs: Iterator[np.random.Generator], runs: int) -> Counted:
    found = np.array([cell.run(rng) for rng in rngs])
    statements, answers = found.sum(axis=0).tolist()
    either = int(found.any(axis=1).sum())
    shown = (
        f"{rate(statements, runs, cell.promised)}, answers {answers / runs:.4f}, either {either / runs:.4f}"
    )
    return (statements, answers, either, f"{cell.promised:g}", cell.expected), shown


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=20_000)
    parser.add_argument("--out", type=Path, default=Path("excess.csv"))
    parser.add_argument("--cells", default="", help="part of the names of the cells to run")
    options = parser.parse_args()
    run_cells(cells(), _counted, runs=options.runs, out=options.out, names=options.cells, columns=COLUMNS)


if __name__ == "__main__":
    sys.exit(main())
