"""How often statements about new examples are wrong, and how often they are made, beside those before them.

python -m tests.benchmarks.new_examples errors --runs 20000 --out tests/benchmarks/results/new-examples.csv
python -m tests.benchmarks.new_examples power --runs 600 --data FOLDER

An error cell draws tables in which all arms are equally good, and asks whether a statement is false at *any*
end: tests hold for all prefixes of a pair's orders and for the complete sample at once, so one look at a
complete sample with its orders finds an error wherever a campaign could have ended, one comparison at a time.
Cells of whole campaigns end where their selector ends.
"""

import argparse
import itertools
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.stats import binom

from tests.benchmarks.error_cells import Counted, rate, run_cells
from winnow.algorithms.bounds.averaged_bets import ratio_interval
from winnow.algorithms.bounds.mean_interval import mean_interval
from winnow.algorithms.new_examples import (
    PairedSample,
    Row,
    best_there,
    clustered_sample,
    difference_interval,
    is_above,
    is_higher,
    paired_sample,
)
from winnow.algorithms.protocols import round_rng
from winnow.algorithms.registry import create_selector

COLUMNS = ("cell", "runs", "wrong", "promised", "expected")
LEVEL = 0.05


class Cell(NamedTuple):
    """A statement in a world."""

    name: str
    is_wrong: Callable[[np.random.Generator], bool]
    promised: float
    share: float = 1.0
    """Share of the runs that are asked for."""
    expected: str = "kept"


def equal_arms(rng: np.random.Generator, n_arms: int, n: int, *, alike: float, low: float) -> np.ndarray:
    """0/1 scores of equally good arms, shape (K, N); on a share `alike` of the examples they are the same."""
    common, own = rng.random(n), rng.random((n_arms, n))
    return (np.where(rng.random(n) < alike, common, own) < low).astype(float)


def full_rows(rng: np.random.Generator, scores: np.ndarray) -> list[Row]:
    """Rows whose arms were asked on everything, each in an order of its own."""
    n = scores.shape[1]
    return [Row(rng.permutation(n), row, np.ones(n, dtype=bool)) for row in scores]


def pair(rows: list[Row], first: int, second: int, order: np.ndarray) -> PairedSample:
    return paired_sample(rows[first], rows[second], order, are_drawn=True)


def excludes_the_best(n_arms: int, n: int, alike: float, low: float, rng: np.random.Generator) -> bool:
    """Whether an arm with the highest mean is ever excluded."""
    rows, order = full_rows(rng, equal_arms(rng, n_arms, n, alike=alike, low=low)), rng.permutation(n)
    return any(is_higher(pair(rows, each, 0, order), LEVEL / (n_arms - 1)) for each in range(1, n_arms))


def names_a_better_one(n_arms: int, n: int, alike: float, low: float, rng: np.random.Generator) -> bool:
    """Whether one of equal arms is ever said to be better than every other."""
    rows, order = full_rows(rng, equal_arms(rng, n_arms, n, alike=alike, low=low)), rng.permutation(n)
    arms = range(n_arms)
    return any(
        all(is_higher(pair(rows, arm, each, order), LEVEL / n_arms) for each in arms if each != arm)
        for arm in arms
    )


def any_interval_misses(n_arms: int, n: int, alike: float, low: float, rng: np.random.Generator) -> bool:
    """Whether the interval of any pair ever misses 0."""
    rows, order = full_rows(rng, equal_arms(rng, n_arms, n, alike=alike, low=low)), rng.permutation(n)
    level = LEVEL / (n_arms * (n_arms - 1))
    samples = [pair(rows, *each, order) for each in itertools.permutations(range(n_arms), 2)]
    return any(_ever_above(sample, level) for sample in samples)


def _ever_above(sample: PairedSample, level: float) -> bool:
    """Whether the lower end was ever above 0, before or once the sample was complete."""
    parts = replace(sample, complete=None), replace(sample, in_order=())
    return any(is_above(each, 0.0, level) for each in parts)


def campaign_errs(selector: str, batch: int, n_arms: int, n: int, rng: np.random.Generator) -> bool:
    """Whether a campaign among equal arms ends with a false statement.

    Arm 0 is excluded, an arm is better, or the interval of any pair misses 0. Each has an error probability
    of its own, so the promise is three times that.
    """
    scores = equal_arms(rng, n_arms, n, alike=0.5, low=0.6)
    rows = play(selector, batch, scores, int(rng.integers(2**31)))
    order = rng.permutation(n)
    found = best_there(
        n_arms,
        range(n_arms),
        frozenset(),
        LEVEL,
        lambda first, second, level: is_higher(pair(rows, first, second, order), level),
    )
    pairs = itertools.combinations(range(n_arms), 2)
    ends = [
        difference_interval(pair(rows, *each, order), LEVEL / (n_arms * (n_arms - 1) / 2)) for each in pairs
    ]
    misses = any(each is not None and not each[0] <= 0.0 <= each[1] for each in ends)
    return 0 not in found.candidates or found.is_better or misses


def clusters_of_examples(
    rng: np.random.Generator, n_arms: int, n: int, largest: int
) -> tuple[np.ndarray, np.ndarray]:
    """0/1 scores of equally good arms, shape (K, N), and the cluster of each example.

    Each arm has a luck of its own in each cluster, which moves all of its examples.
    """
    sizes: list[int] = []
    while sum(sizes) < n:
        sizes.append(int(rng.integers(1, largest + 1)))
    cluster_of = np.repeat(np.arange(len(sizes)), sizes)
    chances = rng.beta(0.6, 0.4, size=(n_arms, len(sizes)))[:, cluster_of]
    return (rng.random(chances.shape) < chances).astype(float), cluster_of


def clusters_err(n_arms: int, n: int, largest: int, by_cluster: bool, rng: np.random.Generator) -> bool:
    """Whether arm 0 of equal arms is excluded, or the interval of arms 0 and 1 misses 0, each at its level.

    The promise is both together. Without `by_cluster` (broken) examples count one by one.
    """
    scores, cluster_of = clusters_of_examples(rng, n_arms, n, largest)
    order = rng.permutation(cluster_of.max() + 1)

    def sample(first: int, second: int) -> PairedSample:
        differences = scores[first] - scores[second]
        if by_cluster:
            return clustered_sample(differences, cluster_of, order)
        return PairedSample(rng.permutation(differences), begins_binary=True)

    if any(is_higher(sample(each, 0), LEVEL / (n_arms - 1)) for each in range(1, n_arms)):
        return True
    ends = difference_interval(sample(0, 1), LEVEL)
    return ends is not None and not ends[0] <= 0.0 <= ends[1]


def ratio_errs(n: int, largest: int, rng: np.random.Generator) -> bool:
    """Whether the interval for a mean misses it, where larger clusters are better."""
    sizes = rng.integers(1, largest + 1, size=max(30, 2 * n // (largest + 1)))
    sums = rng.binomial(sizes, rng.beta(2.0, 2.0, size=len(sizes)) * sizes / largest)
    mean = 0.5 * (2 * largest + 1) / 3.0 / largest  # E[s s / (2 M)] / E[s]
    lower, upper = ratio_interval(sums.astype(float), sizes, LEVEL)
    return not lower <= mean <= upper


def play(selector: str, batch: int, scores: np.ndarray, seed: int, delta: float = 0.2) -> list[Row]:
    """The rows of a campaign that its selector has ended."""
    n_arms, n = scores.shape
    playing = create_selector(selector, n_arms=n_arms, n_examples=n, batch_size=batch, delta=delta)
    orders: list[list[int]] = [[] for _ in range(n_arms)]
    number = 0
    while len(asked := playing.ask(round_rng(seed, number))):
        playing.tell(asked, scores[asked.arms, asked.examples])
        for arm, example in zip(asked.arms.tolist(), asked.examples.tolist(), strict=True):
            orders[arm].append(example)
        number += 1
    rows = []
    for arm, order in enumerate(orders):
        asked_on = np.zeros(n, dtype=bool)
        asked_on[order] = True
        rows.append(Row(np.array(order, dtype=int), np.where(asked_on, scores[arm], np.nan), asked_on))
    return rows


def chosen_pair_at_the_level_of_all(n_arms: int, n: int, rng: np.random.Generator) -> bool:
    """Broken: "better than R" of the pair that looks clearest, at alpha / (K - 1)."""
    scores = equal_arms(rng, n_arms, n, alike=0.0, low=0.5)
    gains = scores @ (1.0 - scores).T
    values = binom.sf(gains - 1, gains + gains.T, 0.5)[~np.eye(n_arms, dtype=bool)]
    return bool(values.min() <= LEVEL / 2.0 / (n_arms - 1))


def mcnemar_at_any_end(n: int, level: float, rng: np.random.Generator) -> bool:
    """Broken: McNemar's test for a fixed sample size, at an end that was chosen by it."""
    scores = equal_arms(rng, 2, n, alike=0.0, low=0.5)
    gains, losses = ((scores[0] - scores[1]) > 0).cumsum(), ((scores[0] - scores[1]) < 0).cumsum()
    values = binom.sf(np.maximum(gains, losses) - 1, gains + losses, 0.5)
    return bool((2.0 * values <= level).any())


def cells() -> Iterator[Cell]:
    """Every error cell."""
    worlds = {"independent": (0.0, 0.5), "alike, most right": (0.8, 0.9)}
    for n_arms, n in itertools.product((2, 5, 20), (100, 1_000, 10_000)):
        for world, (alike, low) in worlds.items():
            at = (n_arms, n, alike, low)
            name = f"K {n_arms}, N {n}, {world}"
            share = 1.0 if n_arms * n <= 20_000 else 0.1
            yield Cell(f"could be the best, {name}", partial(excludes_the_best, *at), LEVEL, share)
            yield Cell(f"better than every other, {name}", partial(names_a_better_one, *at), LEVEL, share)
            if n_arms * n_arms * n <= 25_000:
                share = 0.25 if n_arms * n <= 2_000 else 0.1
                yield Cell(f"interval of any pair, {name}", partial(any_interval_misses, *at), LEVEL, share)
    for selector, batch in itertools.product(("champion", "race", "ucb-e"), (1, 64)):
        name = f"all three at the end, {selector}, rounds of {batch}, K 5, N 100"
        share = 0.05 if batch == 1 else 0.1
        yield Cell(name, partial(campaign_errs, selector, batch, 5, 100), 3.0 * LEVEL, share)
    for largest, n_arms, n in itertools.product((1, 5, 20), (2, 5, 20), (100, 1_000)):
        name = f"clusters of 1 to {largest}, K {n_arms}, N {n}"
        at = (n_arms, n, largest, True)
        yield Cell(f"excluded or missed, {name}", partial(clusters_err, *at), 2.0 * LEVEL, 0.25)
    for largest in (5, 20):
        name = f"held out: interval of a mean, clusters of 1 to {largest}, N 1000"
        yield Cell(name, partial(ratio_errs, 1_000, largest), LEVEL, 0.25)
    name = "broken: clusters of 1 to 20 counted by example, K 5, N 1000"
    yield Cell(name, partial(clusters_err, 5, 1_000, 20, False), 2.0 * LEVEL, 0.1, "broken")
    name = 'broken: "better than R" of the clearest of K 20 equal arms at alpha / (K - 1), N 1000'
    yield Cell(name, partial(chosen_pair_at_the_level_of_all, 20, 1_000), LEVEL, 0.1, "broken")
    name = "broken: McNemar's test at an adaptive end, level 0.2, N 100"
    yield Cell(name, partial(mcnemar_at_any_end, 100, 0.2), 0.2, 0.1, "broken")


def _counted(cell: Cell, rngs: Iterator[np.random.Generator], runs: int) -> Counted:
    wrong = sum(cell.is_wrong(rng) for rng in rngs)
    return (wrong, cell.promised, cell.expected), f"{rate(wrong, runs, cell.promised)}, {cell.expected}"


def run_power(runs: int, data: Path) -> None:
    """Share of samples of real tables with a statement: the interval that there was before, and those of now.

    A table is the population. Its candidates are every second one by rank, from one of the first 40 on, so
    that the best two are close. Rows are complete, or end where a `champion` campaign ended.
    """
    tables = [table for file in sorted(data.glob("*.npz")) if (table := _zero_one(file)) is not None]
    print(f"{len(tables)} tables")
    print("| rows | n | K | interval, before | rival excluded | nobody better | better than all | false |")
    print("|---|---|---|---|---|---|---|---|")
    for rows, (n, n_arms) in itertools.product(
        ("complete", "champion"), ((300, 2), (300, 5), (300, 20), (1_000, 2), (1_000, 5), (1_000, 20))
    ):
        counts, rng = np.zeros(5), np.random.default_rng([n, n_arms])
        for number in range(runs):
            counts += _statements(rng, tables[number % len(tables)], rows, n_arms, n)
        shares = " | ".join(f"{100.0 * each / runs:.1f}%" for each in counts)
        print(f"| {rows} | {n:,} | {n_arms} | {shares} |", flush=True)


def _zero_one(file: Path) -> np.ndarray | None:
    """The 0/1 scores of a table with enough examples; None if it has others."""
    with np.load(file, allow_pickle=False) as found:
        name = next((each for each in ("true", "scores") if each in found.files), None)
        scores = None if name is None else found[name].astype(float)
    is_fit = scores is not None and scores.shape[1] >= 2_000 and bool(np.isin(scores, (0.0, 1.0)).all())
    return scores if is_fit else None


def _statements(rng: np.random.Generator, table: np.ndarray, kind: str, n_arms: int, n: int) -> np.ndarray:
    """Which statements a sample of a table leads to, and whether the first of those of now is false."""
    means = table.mean(axis=1)
    arms = np.argsort(-means)[int(rng.integers(40)) :][: 2 * n_arms : 2]
    scores = table[np.ix_(arms, rng.choice(table.shape[1], size=n, replace=False))]
    seed, order = int(rng.integers(2**31)), rng.permutation(n)
    rows = full_rows(rng, scores) if kind == "complete" else play("champion", 64, scores, seed, delta=0.05)
    promising = sorted(range(n_arms), key=lambda arm: (-len(rows[arm].order), -np.nanmean(rows[arm].scores)))
    best, *others = promising
    rival = max(others, key=lambda arm: np.nanmean(rows[arm].scores))
    differences = rows[best].scores - rows[rival].scores
    known = differences[~np.isnan(differences)]
    before = False
    if len(known) >= 30:
        ends = mean_interval((rng.permutation(known) + 1.0) / 2.0, LEVEL / (n_arms * (n_arms - 1) / 2))
        before = not ends[0] <= 0.5 <= ends[1]
    found = best_there(
        n_arms,
        promising[:8],
        frozenset(),
        LEVEL,
        lambda first, second, level: is_higher(pair(rows, first, second, order), level),
    )
    left, highest = found.candidates, means[arms]
    is_false = highest.max() > highest[list(left)].max()
    return np.array([before, rival not in left, len(left) == 1, found.is_better, is_false], dtype=float)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("errors", "power"))
    parser.add_argument("--runs", type=int, default=20_000)
    parser.add_argument("--out", type=Path, default=Path("new-examples.csv"))
    parser.add_argument("--data", type=Path, default=Path("."), help="folder of tables, .npz")
    parser.add_argument("--cells", default="", help="part of the names of the cells to run")
    options = parser.parse_args()
    if options.what == "power":
        run_power(options.runs, options.data)
    else:
        run_cells(cells(), _counted, runs=options.runs, out=options.out, names=options.cells, columns=COLUMNS)


if __name__ == "__main__":
    sys.exit(main())
