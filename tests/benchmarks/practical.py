"""What campaigns of a common size take and show: 2 to 20 candidates, 100 to 1 000 examples of real tables.

The columns of a table are split at random into two halves. The examples of a campaign are drawn from one of
them, and the other stands for new examples. Candidates are drawn at random until the best two of them are
within `CLOSE` on the whole table: a choice that is worth a campaign. The file also runs on an earlier Winnow
that is first on Python's path; what that cannot show counts as not shown.

python -m tests.benchmarks.practical --data FOLDER [--out .winnow/bench] [--instances 4] [--epsilon 0] ...
"""

import argparse
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tests.benchmarks.champion.runs import DELTA
from tests.benchmarks.champion.worlds import Table, tables
from tests.benchmarks.tables import Row, told, write
from winnow.algorithms.bounds.mean_interval import mean_interval
from winnow.algorithms.protocols import round_rng
from winnow.algorithms.registry import create_selector, describe

CANDIDATES = 2, 5, 10, 20
EXAMPLES = 100, 300, 1000
FEWEST_EXAMPLES = 2000
CLOSE = 0.02
TRIES = 2000
BATCH_SIZE = 64
LOOK = 0.4
"""Share of all evaluations that the second, cut campaign of each instance may spend."""
LEVEL = 0.05
"""Error probability of a statement on new examples."""
LEAST = 30


class Instance(NamedTuple):
    """A campaign and what stands for new examples."""

    scores: np.ndarray
    """Shape (K, n)."""
    truth: np.ndarray
    """Shape (K,), means on the other half."""
    seed: int


class Played(NamedTuple):
    """A selector at its end, and the scores it received."""

    selector: object
    comparisons: int
    orders: list[list[int]]
    """The examples of each candidate in the order of their draws."""


class Cut(NamedTuple):
    """What a campaign says that spent `LOOK` of all evaluations."""

    is_decided: bool
    interval: float
    """By how much another candidate can be ahead of the first by the intervals; NaN where it was decided."""
    within: float
    """By how much at most it can be ahead by the statement that is proven; NaN where none is made."""


class Found(NamedTuple):
    """How one campaign ended."""

    share: float
    """Comparisons to the stop, of all."""
    regret: float
    """How far the named candidate is below the best on new examples."""
    regret_of_grid: float
    """The same of the candidate with the highest mean on all examples of the campaign."""
    is_wrong: bool
    """Whether another one is better by more than epsilon on the campaign's examples."""
    shows_best: bool
    """Whether it is shown which candidate is the best on new examples."""
    shows_some: bool
    """Whether anything is shown of which candidates are not."""
    shows_wrong: bool
    """Whether the best on new examples is among those."""
    cut: Cut


def instances(table: Table, n_arms: int, n_examples: int, count: int) -> Iterator[Instance]:
    """Campaigns of one size on a table."""
    means = table.scores.mean(axis=1)
    half = table.scores.shape[1] // 2
    for number in range(count):
        rng = np.random.default_rng([n_arms, n_examples, number, *table.name.encode()])
        columns = rng.permutation(table.scores.shape[1])
        for _ in range(TRIES):
            arms = rng.choice(len(means), n_arms, replace=False)
            first, second = np.sort(means[arms])[::-1][:2]
            if 0.0 < first - second <= CLOSE:
                break
        scores = table.scores[np.ix_(arms, columns[:half][:n_examples])]
        truth = table.scores[np.ix_(arms, columns[half:])].mean(axis=1)
        yield Instance(scores, truth, number)


def play(instance: Instance, epsilon: float, budget: int | None = None) -> Played:
    """A campaign to its stop."""
    scores = instance.scores
    n_arms, n_examples = scores.shape
    params = {"batch_size": BATCH_SIZE, "delta": DELTA, "epsilon": epsilon, "budget": budget}
    if "excess" in {each.name for each in describe("champion").parameters}:
        params["excess"] = True
    selector = create_selector("champion", n_arms=n_arms, n_examples=n_examples, **params)
    comparisons, rounds = 0, 0
    orders: list[list[int]] = [[] for _ in range(n_arms)]
    while len(batch := selector.ask(round_rng(instance.seed, rounds))):
        selector.tell(batch, scores[batch.arms, batch.examples])
        comparisons, rounds = comparisons + len(batch), rounds + 1
        for arm, example in zip(batch.arms.tolist(), batch.examples.tolist(), strict=True):
            orders[arm].append(example)
    return Played(selector, comparisons, orders)


def found_of(instance: Instance, epsilon: float) -> Found:
    """The figures of one campaign, and of the same one cut at `LOOK`."""
    scores, truth = instance.scores, instance.truth
    played = play(instance, epsilon)
    decision = played.selector.decision()
    means = scores.mean(axis=1)
    out = excluded(scores, played.orders, decision)
    best = int(truth.argmax())
    return Found(
        share=played.comparisons / scores.size,
        regret=float(truth.max() - truth[decision.best]),
        regret_of_grid=float(truth.max() - truth[int(means.argmax())]),
        is_wrong=bool(means[decision.best] < means.max() - epsilon - 1e-9),
        shows_best=len(out) == len(truth) - 1,
        shows_some=bool(out),
        shows_wrong=best in out,
        cut=cut_of(instance, epsilon),
    )


def cut_of(instance: Instance, epsilon: float) -> Cut:
    """The same campaign, cut at `LOOK`."""
    early = play(instance, epsilon, int(LOOK * instance.scores.size)).selector.decision()
    if early.claim.kind in ("exact", "proven"):
        return Cut(is_decided=True, interval=np.nan, within=np.nan)
    return Cut(is_decided=False, interval=_reach(early), within=_within(early))


def _reach(decision) -> float:
    """By how much a candidate in question can be ahead of the first, by the intervals that are shown."""
    found = decision.differences
    open_ = [arm for arm, status in enumerate(decision.status) if status == "active" and arm != decision.best]
    if found is None or found.against != decision.best or not open_:
        return float("nan")
    return float(max(0.0, np.nanmax(np.asarray(found.upper)[open_])))


def _within(decision) -> float:
    """The same by the statement that is proven at any time; NaN of a Winnow without one."""
    found = getattr(decision, "excess", None)
    return float("nan") if found is None else float(found.most)


def excluded(scores: np.ndarray, orders: Sequence[Sequence[int]], decision) -> set[int]:
    """The candidates that are shown not to be the best on new examples.

    Before there were statements on all candidates this was the one rival of which a line was shown.
    """
    if find_spec("winnow.algorithms.new_examples") is None:
        return _excluded_rival(scores, orders, decision)
    from winnow.algorithms.new_examples import Row as Drawn
    from winnow.algorithms.new_examples import best_there, is_higher, paired_sample

    n_arms, n_examples = scores.shape
    rows = []
    for arm, drawn in enumerate(orders):
        known, asked = np.full(n_examples, np.nan), np.zeros(n_examples, dtype=np.bool_)
        known[drawn], asked[drawn] = scores[arm, drawn], True
        rows.append(Drawn(np.array(drawn, dtype=np.int64), known, asked))
    chance = np.random.default_rng(0).permutation(n_examples)
    means = [float(np.nanmean(row.scores)) if row.asked.any() else 0.0 for row in rows]
    by_rank = sorted(range(n_arms), key=lambda arm: (-len(rows[arm].order), -means[arm]))

    def higher(first: int, second: int, level: float) -> bool:
        return is_higher(paired_sample(rows[first], rows[second], chance, are_drawn=True), level)

    left = best_there(n_arms, by_rank[:8], frozenset(), LEVEL, higher).candidates
    return set(range(n_arms)) - set(left)


def _excluded_rival(scores: np.ndarray, orders: Sequence[Sequence[int]], decision) -> set[int]:
    n_arms, found = len(scores), decision.differences
    if found is None:
        return set()
    lower = np.where(np.arange(n_arms) == decision.best, -np.inf, np.nan_to_num(found.lower, nan=-2.0))
    rival = int(lower.argmax())
    both = sorted({*orders[decision.best]} & {*orders[rival]})
    if len(both) < LEAST:
        return set()
    differences = scores[decision.best, both] - scores[rival, both]
    order = np.random.default_rng(len(both)).permutation(len(both))
    values = (differences[order] + 1.0) / 2.0
    least, most = mean_interval(values, LEVEL / (n_arms * (n_arms - 1) / 2))
    if least > 0.5:
        return {rival}
    return {decision.best} if most < 0.5 else set()


def cells(
    worlds: Sequence[Table], epsilons: Sequence[str], count: int, *, is_cut: bool = False
) -> Iterator[Row]:
    """A row for each size and epsilon; with `is_cut` of the cut campaigns alone."""
    for n_examples in EXAMPLES:
        for n_arms in CANDIDATES:
            drawn = [each for table in worlds for each in instances(table, n_arms, n_examples, count)]
            for given in epsilons:
                epsilon = _auto(n_examples) if given == "auto" else float(given)
                if is_cut:
                    said = _summary_of_cuts([cut_of(each, epsilon) for each in drawn])
                else:
                    said = _summary([found_of(each, epsilon) for each in drawn])
                size = {"candidates": f"{n_arms}", "examples": f"{n_examples}", "epsilon": f"{epsilon:g}"}
                yield size | said


def _auto(n_examples: int) -> float:
    from winnow.tasks.setup.auto_epsilon import auto_epsilon

    return auto_epsilon(n_examples)


def _summary(found: Sequence[Found]) -> Row:
    regret = 100.0 * np.array([each.regret for each in found])
    of_grid = 100.0 * np.array([each.regret_of_grid for each in found])
    share = 100.0 * np.array([each.share for each in found])
    return {
        "grid, %": f"{share.mean():.1f} ± {_error(share):.1f}",
        "regret, points": f"{regret.mean():.2f} ± {_error(regret):.2f}",
        "regret of the grid": f"{of_grid.mean():.2f}",
        "more than the grid's": f"{(regret - of_grid).mean():+.2f} ± {_error(regret - of_grid):.2f}",
        "wrong": f"{sum(each.is_wrong for each in found)} of {len(found)}",
        "best shown on new, %": f"{100.0 * np.mean([each.shows_best for each in found]):.0f}",
        "some shown on new, %": f"{100.0 * np.mean([each.shows_some for each in found]):.0f}",
        "falsely": f"{sum(each.shows_wrong for each in found)}",
        **_summary_of_cuts([each.cut for each in found]),
    }


def _summary_of_cuts(cuts: Sequence[Cut]) -> Row:
    open_ = [each for each in cuts if not each.is_decided]
    reach, within = (
        100.0 * np.array([getattr(each, name) for each in open_]) for name in ("interval", "within")
    )
    stated = ~np.isnan(within) if open_ else np.zeros(0, dtype=np.bool_)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = within[stated] / reach[stated] if open_ else np.zeros(0)
    ratio = ratio[np.isfinite(ratio)]
    return {
        "decided at 40 %": f"{len(cuts) - len(open_)} of {len(cuts)}",
        "interval, points": _quartiles(reach),
        "x, points": _quartiles(within),
        "x to interval": _quartiles(ratio, 2),
        "with a claim at 40 %": f"{(len(cuts) - len(open_) + int(stated.sum())) / len(cuts):.0%}",
    }


def _error(values: np.ndarray) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values)))


def _quartiles(values: np.ndarray, decimals: int = 1) -> str:
    known = values[np.isfinite(values)]
    if not len(known):
        return "-"
    median, upper = np.quantile(known, [0.5, 0.75])
    return f"{median:.{decimals}f} ({upper:.{decimals}f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with the score tables")
    parser.add_argument("--out", type=Path, default=Path(".winnow/bench"))
    parser.add_argument("--instances", type=int, default=4, help="campaigns of a size on each table")
    parser.add_argument("--epsilon", action="append", help="a number or auto; may be repeated")
    parser.add_argument("--cut", action="store_true", help=f"only campaigns cut at {LOOK:.0%} of the grid")
    parser.add_argument("--name", default="practical", help="name of the files that are written")
    options = parser.parse_args()
    worlds = [each for each in tables(options.data) if each.scores.shape[1] >= FEWEST_EXAMPLES]
    worlds = [each for each in worlds if not each.name.startswith("leaderboard")]  # is no real one
    title = f"Campaigns by champion, delta = {DELTA}, rounds of {BATCH_SIZE}, {len(worlds)} tables x "
    title += f"{options.instances}: {', '.join(each.name for each in worlds)}"
    rows = told(cells(worlds, options.epsilon or ["0", "auto"], options.instances, is_cut=options.cut))
    write(options.name, {"cells": title}, {"cells": rows}, options.out)


if __name__ == "__main__":
    main()
