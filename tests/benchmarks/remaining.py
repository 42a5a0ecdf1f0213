"""What undecided campaigns are said to take still, and what they took.

Campaigns of common sizes on real tables (see `tests.benchmarks.practical`) are looked at when a share of all
evaluations is spent, and then go on to their stop. `SEEN` are the tables that were looked at while the
estimate was written; the others are held.

python -m tests.benchmarks.remaining --data FOLDER [--tables seen] [--instances 2] [--out .winnow/bench]
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tests.benchmarks.champion.runs import DELTA
from tests.benchmarks.champion.worlds import tables
from tests.benchmarks.practical import BATCH_SIZE, CANDIDATES, EXAMPLES, Instance, instances
from tests.benchmarks.tables import Row, told, write
from winnow.algorithms.champion.continuations import Observed, remaining
from winnow.algorithms.protocols import round_rng
from winnow.algorithms.registry import create_selector
from winnow.tasks.setup.auto_epsilon import auto_epsilon

LOOKS = 0.05, 0.1, 0.2, 0.4, 0.6
"""Shares of all evaluations at which an undecided campaign is looked at."""
SEEN = frozenset(
    {
        "alpacaeval2",
        "antonyms",
        "larger_animal",
        "negation",
        "orthography_starts_with",
        "second_word_letter",
        "sentiment",
    }
)


class Found(NamedTuple):
    """One look at a campaign."""

    n_arms: int
    n_examples: int
    phase: str
    share: float
    """Of all evaluations, spent at the look."""
    said: int
    fewest: int
    most: int
    taken: int


def looks(instance: Instance, epsilon: float) -> Iterator[Found]:
    """The looks at one campaign."""
    scores, seed = instance.scores, instance.seed
    n_arms, n_examples = scores.shape
    selector = create_selector(
        "champion",
        n_arms=n_arms,
        n_examples=n_examples,
        batch_size=BATCH_SIZE,
        delta=DELTA,
        epsilon=epsilon,
        ties="open",
    )
    selector.leave_out_intervals()
    asked, comparisons, rounds = np.zeros(scores.shape, dtype=np.bool_), 0, 0
    ahead, found = [each * scores.size for each in LOOKS], []
    while len(batch := selector.ask(round_rng(seed, rounds))):
        selector.tell(batch, scores[batch.arms, batch.examples])
        asked[batch.arms, batch.examples] = True
        comparisons, rounds = comparisons + len(batch), rounds + 1
        if not ahead or comparisons < ahead[0] or selector.decision().stop:
            continue
        ahead = [each for each in ahead if each > comparisons]
        observed = Observed(np.where(asked, scores, np.nan), asked)
        said = remaining(selector, observed, np.random.default_rng([comparisons, seed]))
        evidence = selector.evidence
        phase = "race" if evidence.can_race else "search" if evidence.champion is None else "tests"
        found.append((phase, comparisons, said))
    for phase, spent, said in found:
        yield Found(
            n_arms=n_arms,
            n_examples=n_examples,
            phase=phase,
            share=spent / scores.size,
            said=said.comparisons,
            fewest=said.fewest,
            most=said.most,
            taken=comparisons - spent,
        )


def rows(found: Sequence[Found]) -> Iterator[Row]:
    """A row for all, and for each kind of look."""
    kinds: list[tuple[str, Callable[[Found], bool]]] = [("all", lambda _: True)]
    kinds += [(f"{n} examples", lambda each, n=n: each.n_examples == n) for n in EXAMPLES]
    kinds += [(f"{n} candidates", lambda each, n=n: each.n_arms == n) for n in CANDIDATES]
    kinds += [(phase, lambda each, phase=phase: each.phase == phase) for phase in ("race", "search", "tests")]
    kinds += [
        (f"{low:.0%} to {high:.0%} spent", lambda each, low=low, high=high: low <= each.share < high)
        for low, high in zip((0.0, 0.1, 0.2, 0.4), (0.1, 0.2, 0.4, 1.0), strict=True)
    ]
    for name, is_of in kinds:
        of_kind = [each for each in found if is_of(each)]
        if not of_kind:
            continue
        ratios = np.array([each.said / each.taken for each in of_kind])
        low, middle, high = np.quantile(ratios, [0.25, 0.5, 0.75])
        inside = np.mean([each.fewest <= each.taken <= each.most for each in of_kind])
        yield {
            "looks": name,
            "number": f"{len(of_kind)}",
            "said / taken, median": f"{middle:.2f}",
            "quartiles": f"{low:.2f} to {high:.2f}",
            "taken within the range": f"{inside:.0%}",
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with the score tables")
    parser.add_argument("--tables", choices=("seen", "held"), default="held")
    parser.add_argument("--instances", type=int, default=2, help="campaigns of a size on each table")
    parser.add_argument("--out", type=Path, default=Path(".winnow/bench"))
    options = parser.parse_args()
    worlds = [each for each in tables(options.data) if (each.name in SEEN) == (options.tables == "seen")]
    found: list[Found] = []
    for table in worlds:
        for n_examples in EXAMPLES:
            if table.scores.shape[1] < 2 * n_examples:
                continue
            for n_arms in (each for each in CANDIDATES if each <= len(table.scores)):
                for each in instances(table, n_arms, n_examples, options.instances):
                    for epsilon in (0.0, auto_epsilon(n_examples)):
                        found += looks(each, epsilon)
        print(table.name, len(found), flush=True)
    title = f"{len(worlds)} tables: {', '.join(each.name for each in worlds)}"
    write("remaining", {"looks": title}, {"looks": told(rows(found))}, options.out)


if __name__ == "__main__":
    main()
