"""The score tables, and what the prototypes of the design needed on them."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tests.benchmarks.score_worlds import drawn, leaderboard_factors
from winnow.tasks.campaign.earlier_scores import load_score_table

LEAST_EXAMPLES = 100
DRAWN_MODELS, DRAWN_EXAMPLES = 100, 2000


class Table(NamedTuple):
    name: str
    scores: np.ndarray
    """Shape (K, N); what is missing counts 0, for all selectors alike."""


class Prototype(NamedTuple):
    """Percent of the grid to a stop in the design's table; the last two are of the fused selector."""

    race: float
    champion: float
    fused: float
    rounds: float


PROTOTYPES = {
    "demo": Prototype(23.2, 15.8, 13.95, 15.6),
    "alpacaeval2": Prototype(3.82, 4.30, 3.36, 3.73),
    "antonyms": Prototype(8.97, 7.49, 7.03, 7.60),
    "larger_animal": Prototype(6.86, 4.67, 4.19, 4.90),
    "negation": Prototype(17.8, 14.4, 13.95, 14.6),
    "sentiment": Prototype(26.5, 18.4, 17.6, 18.5),
    "second_word_letter": Prototype(2.84, 2.41, 2.28, 2.40),
    "sum": Prototype(19.1, 10.6, 7.89, 8.33),
    "translation_en-de": Prototype(13.1, 9.21, 8.60, 9.21),
    "word_in_context": Prototype(3.45, 3.05, 2.94, 3.07),
    "mmlu_pro": Prototype(0.87, 4.75, 0.87, 0.90),
    "zeroeval_crux": Prototype(8.98, 6.40, 4.95, 5.19),
    "eqbench_v2": Prototype(25.2, 20.5, 12.6, 13.6),
    "llmbar_judges": Prototype(20.9, 16.4, 14.4, 15.2),
    "cifar10_1_v6": Prototype(24.2, 19.9, 20.5, 22.2),
    "livecodebench_execution": Prototype(7.98, 6.31, 4.28, 4.48),
}


def tables(data: Path) -> Iterator[Table]:
    """Every score table of a folder, and one drawn from the leaderboard's factors."""
    for path in sorted(data.rglob("*.npz")):
        table = _read(path)
        if table is not None:
            yield table
    if (data / "leaderboard_factors.npz").exists():
        yield _drawn_from_the_leaderboard(data)


def named(given: str, storage: str) -> Table:
    """A full table, given as NAME=TABLE in the words of `winnow simulate`."""
    name, _, source = given.partition("=")
    found = load_score_table(source, storage)
    if found.is_partial:
        raise SystemExit(f"{source} lacks scores; winnow run SPEC --exhaustive makes the rest")
    return Table(name, np.nan_to_num(found.scores.astype(np.float64)))


def _read(path: Path) -> Table | None:
    with np.load(path) as arrays:
        if path.stem.startswith(("auto_", "quantization", "pair_")):
            return None  # the same tables again, losses, duels
        scores = next((arrays[key] for key in ("true", "scores") if key in arrays), None)
        if path.stem == "alpacaeval2":
            scores = scores[arrays["models"] != "NullModel"]
            scores = scores[:, ~np.isnan(scores).any(axis=0)]
    if scores is None or scores.ndim != 2 or scores.shape[1] < LEAST_EXAMPLES:
        return None
    return Table(path.stem, np.nan_to_num(scores.astype(np.float64)))


def _drawn_from_the_leaderboard(data: Path) -> Table:
    u, v = leaderboard_factors(data)
    rng = np.random.default_rng(100)
    models, examples = (
        rng.choice(len(m), n, replace=False) for m, n in ((u, DRAWN_MODELS), (v, DRAWN_EXAMPLES))
    )
    return Table("leaderboard 100 x 2000", drawn(u[models], v[examples], rng).astype(np.float64))
