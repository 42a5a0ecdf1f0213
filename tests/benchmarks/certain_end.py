"""How often a campaign with open ties is wrong, and how often one that ends because it is certain.

python -m tests.benchmarks.certain_end --runs 20000 --out tests/benchmarks/results/certain-end.csv

Most arms are nearly always right, so that what was observed soon rules out a higher mean. A cell counts two
errors: a named arm that another one exceeds by more than epsilon, at most in a share delta of all campaigns;
and such an arm under a claim that says "exact", which must never happen.
"""

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tests.benchmarks.error_cells import Counted, rate, run_cells
from winnow.algorithms.best_mean.config import BestMeanConfig
from winnow.algorithms.champion.selector import Champion, RaceOnly
from winnow.algorithms.protocols import round_rng

COLUMNS = ("cell", "runs", "ended certain", "wrong", "promised", "wrong though certain", "expected")
DELTA = 0.2
MISSED = 1e-9

Rng = np.random.Generator
Scores = np.ndarray


class End(NamedTuple):
    """How a campaign ended."""

    is_certain: bool
    is_wrong: bool


class Cell(NamedTuple):
    """A world, and how campaigns in it are played."""

    name: str
    end: Callable[[Rng], End]
    share: float = 1.0
    """Share of the runs that are asked for."""
    expected: str = "kept"


def saturated(rng: Rng, n_arms: int, n_examples: int, misses: int) -> Scores:
    """Scores of arms that are right on all examples but a few; the first one on one more than the others."""
    wrong = np.arange(n_examples) < misses + (np.arange(n_arms) > 0)[:, np.newaxis]
    return 1.0 - rng.permuted(wrong, axis=1).astype(float)


def told_of(rng: Rng, scores: Scores, unscored: float) -> Scores:
    """What is told of the scores: a share of the first arm's is missing, and of the others' wrong ones."""
    hidden = rng.random(scores.shape) < unscored
    hidden[1:] &= scores[1:] == 0.0
    return np.where(hidden, np.nan, scores)


def campaign(
    selector: type[Champion],
    n_arms: int,
    n_examples: int,
    misses: Sequence[int],
    rng: Rng,
    *,
    batch: int = 64,
    epsilon: float = 0.0,
    unscored: float = 0.0,
    takes_for_known: bool = False,
    params: Mapping[str, Any] | None = None,
) -> End:
    """A campaign to its end.

    Args:
        selector: Its class.
        n_arms: K.
        n_examples: N.
        misses: Examples on which the first arm is wrong, one of these numbers; the others are on one more.
        rng: Draws the world and the campaign.
        batch: Size of a round.
        epsilon: The tolerance.
        unscored: Share of the first arm's cells without a score, and of those where others are wrong.
        takes_for_known: Whether unscored cells are told as wrong outputs, on purpose.
        params: The selector's own.
    """
    given = dict(params or {})
    scores = saturated(rng, n_arms, n_examples, int(rng.choice(misses)))
    told = told_of(rng, scores, unscored)
    value = scores.mean(axis=1)
    if "groups" in given:
        parts = given["groups"]
        of_parts = np.stack([scores[:, parts == part].mean(axis=1) for part in np.unique(parts)])
        weights = given.get("group_weights")
        value = of_parts.min(axis=0) if weights is None else np.average(of_parts, axis=0, weights=weights)
    if takes_for_known:
        told = np.nan_to_num(told)
    if "constraints" in given:
        may_be = np.arange(n_arms) > 0  # the first arm misses it by one example
        least = round(float(given["constraints"][0]) * n_examples)
        met = np.arange(n_examples) < least - ~may_be[:, np.newaxis]
        told = np.stack([told, rng.permuted(met, axis=1).astype(float)], axis=2)
        value = np.where(may_be, value, -np.inf)
    config = BestMeanConfig(
        n_arms=n_arms,
        n_examples=n_examples,
        batch_size=batch,
        delta=DELTA,
        epsilon=epsilon,
        max_unscored=1.0,
    )
    playing, number, seed = selector(config, ties="open", **given), 0, int(rng.integers(2**31))
    playing._verdict._intervals = None  # nothing is decided by them, and they take half of the time
    while len(asked := playing.ask(round_rng(seed, number))):
        playing.tell(asked, told[asked.arms, asked.examples])
        number += 1
    found = playing.decision()
    if found.claim.kind == "none":
        return End(is_certain=False, is_wrong=False)  # nothing is said
    named = [arm for arm, status in enumerate(found.status) if status in ("best", "top", "tied", "chosen")]
    if not named:  # it says that no arm meets the constraint
        return End(found.claim.kind == "exact", is_wrong=True)
    others = np.delete(value, named)
    is_wrong = others.size > 0 and bool(value[named].min() < others.max() - epsilon - MISSED)
    return End(found.claim.kind == "exact", is_wrong)


def cells() -> Iterator[Cell]:
    """Every cell."""
    parts = np.arange(40) % 3
    small = {"n_arms": 4, "n_examples": 40, "misses": (1, 10)}
    for name, selector, changes in (
        ("champion, rounds of 64", Champion, {}),
        ("champion, one by one", Champion, {"batch": 1}),
        ("champion, nobody is ever wrong", Champion, {"misses": (0,)}),
        ("champion, 30 arms on 12 examples", Champion, {"n_arms": 30, "n_examples": 12, "misses": (0,)}),
        ("champion, 5% unscored", Champion, {"unscored": 0.05}),
        ("champion, epsilon 0.05", Champion, {"epsilon": 0.05}),
        ("race", RaceOnly, {}),
        ("race, 5% unscored", RaceOnly, {"unscored": 0.05}),
        ("the 2 best", Champion, {"params": {"top_m": 2}}),
        ("weighted groups", Champion, {"params": {"groups": parts, "group_weights": np.ones(3)}}),
        ("least mean of groups", Champion, {"params": {"groups": parts}}),
        ("constraint", Champion, {"params": {"constraints": np.array([0.75])}}),
        (
            "the cheapest, epsilon 0.2",
            Champion,
            {"epsilon": 0.2, "params": {"prefer": "cost", "costs": np.array([4.0, 3.0, 2.0, 1.0])}},
        ),
    ):
        yield Cell(name, partial(_played, selector, {**small, **changes}))
    unknown = {**small, "misses": (0,), "unscored": 0.3, "takes_for_known": True}
    name = "broken: unscored cells of a full row taken as known"
    yield Cell(name, partial(_played, Champion, unknown), 0.1, "broken")


def _played(selector: type[Champion], settings: Mapping[str, Any], rng: Rng) -> End:
    return campaign(selector, rng=rng, **settings)


def _counted(cell: Cell, rngs: Iterator[Rng], runs: int) -> Counted:
    ends = [cell.end(rng) for rng in rngs]
    certain, wrong = sum(end.is_certain for end in ends), sum(end.is_wrong for end in ends)
    false = sum(end.is_certain and end.is_wrong for end in ends)
    shown = f"{rate(wrong, runs, DELTA)}; certain {certain}, {false} of them wrong; {cell.expected}"
    return (certain, wrong, DELTA, false, cell.expected), shown


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=20_000)
    parser.add_argument("--out", type=Path, default=Path("certain-end.csv"))
    parser.add_argument("--cells", default="", help="part of the names of the cells to run")
    options = parser.parse_args()
    run_cells(cells(), _counted, runs=options.runs, out=options.out, names=options.cells, columns=COLUMNS)


if __name__ == "__main__":
    main()
