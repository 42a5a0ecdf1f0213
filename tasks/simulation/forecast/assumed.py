"""Score tables that replace the scores of a campaign that was not run: assumed or stored ones."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from winnow.algorithms.state.arrays import FloatArray, IntArray
from winnow.tasks.data.score_tables import ScoreTable
from winnow.tasks.errors import SpecError

DEFAULT = "best=0.8,worst=0.4"
KEYS = ("best", "rest", "worst", "alike")
OPTION = "assume"


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumption:
    """Assumed means of candidates with scores of 0 or 1.

    One candidate has the mean `best`; all others have `rest`, or are evenly spread from it down to `worst`.
    """

    best: float
    rest: float | None = None
    worst: float | None = None
    alike: float = 0.0
    """In [0, 1): how much candidates fail on the same examples, as a correlation of latent values. At 0 they
    fail independently, which makes them hard to separate."""

    def means(self, n_arms: int) -> FloatArray:
        """Means by arm, the best first, shape (K,)."""
        if self.worst is not None:
            return np.linspace(self.best, self.worst, n_arms)
        others = np.full(n_arms - 1, self.best if self.rest is None else self.rest)
        return np.concatenate(([self.best], others))

    def __str__(self) -> str:
        others = (
            f"the others {self.rest:g}"
            if self.worst is None
            else f"the others evenly spread down to {self.worst:g}"
        )
        alike = f", alike {self.alike:g}" if self.alike else ", failing independently"
        return f"scores of 0 and 1, the best mean {self.best:g}, {others}{alike}"


def read_assumption(text: str) -> Assumption:
    """Parse the assumption of `--assume`, such as "best=0.8,rest=0.7" or "best=0.8,worst=0.4,alike=0.5".

    Raises:
        SpecError: If it is unreadable or inconsistent.
    """
    values: dict[str, float] = {}
    for part in text.split(","):
        key, _, value = part.strip().partition("=")
        try:
            values[key] = float(value)
        except ValueError:
            values[key] = np.nan
        if key not in KEYS or not 0.0 <= values[key] <= 1.0:
            raise SpecError(
                f"{OPTION} {text}: {part.strip()!r} is none of {', '.join(KEYS)} with a number in [0, 1]; "
                f"for example {DEFAULT}"
            )
    if "best" not in values or ("rest" in values) == ("worst" in values):
        raise SpecError(f"{OPTION} {text}: give best and one of rest and worst; for example {DEFAULT}")
    if max(values.get("rest", 0.0), values.get("worst", 0.0)) > values["best"]:
        raise SpecError(f"{OPTION} {text}: best must be the highest; raise it")
    if values.get("alike", 0.0) == 1.0:
        raise SpecError(f"{OPTION} {text}: alike must be below 1, as equal rows have no best; lower it")
    return Assumption(**values)


class StandIn(NamedTuple):
    """Scores that replace a campaign's."""

    scores: FloatArray
    """Shape (K, n)."""
    is_of_candidates: bool
    """Whether each row belongs to the candidate of that name, so that a candidate's share of the work is
    known."""


def stand_in(
    table: ScoreTable, candidates: Sequence[str], examples: Sequence[str], rng: np.random.Generator
) -> StandIn:
    """Scores for a campaign's candidates and examples, from a table that has them, or else from others.

    If the table lacks some of these names, as many candidates are drawn, always including its best one, and
    as many examples; if it has fewer examples, they are drawn with repetition. Pairs that its campaign never
    evaluated get a score drawn from the candidate's own ones, or from all if it has none.

    Raises:
        SpecError: If it has too few candidates.
    """
    scores = _completed(table.scores, rng) if table.is_partial else table.scores
    rows, is_of_candidates = _places(candidates, table.candidates), True
    if rows is None:
        rows, is_of_candidates = _drawn_candidates(table, scores, len(candidates), rng), False
    columns = _places(examples, table.examples or ())
    if columns is None:
        width, count = scores.shape[1], len(examples)
        columns = np.arange(width) if width == count else rng.choice(width, count, replace=width < count)
    return StandIn(np.asarray(scores[np.ix_(rows, columns)]), is_of_candidates)


def _places(wanted: Sequence[str], names: Sequence[str]) -> IntArray | None:
    """Positions of the names wanted; None if one is missing."""
    places = {name: place for place, name in enumerate(names)}
    found = [places.get(name, -1) for name in wanted]
    return None if -1 in found else np.array(found)


def _drawn_candidates(
    table: ScoreTable, scores: FloatArray, count: int, rng: np.random.Generator
) -> IntArray:
    if len(scores) < count:
        raise SpecError(
            f"{table.source} has {len(scores)} candidates, the campaign {count}; give one of as many or more"
        )
    best = int(_means(scores).argmax())
    others = np.delete(np.arange(len(scores)), best)
    drawn = others if len(others) == count - 1 else rng.choice(others, count - 1, replace=False)
    return np.sort(np.append(drawn, best))


def _completed(scores: FloatArray, rng: np.random.Generator) -> FloatArray:
    full = scores.copy()
    everything = scores[~np.isnan(scores)]
    for row in full:
        known = row[~np.isnan(row)]
        missing = np.isnan(row)
        row[missing] = rng.choice(known if known.size else everything, missing.sum())
    return full


def _means(scores: FloatArray) -> FloatArray:
    known = ~np.isnan(scores)
    means: FloatArray = np.where(known, scores, 0.0).sum(axis=1) / np.maximum(known.sum(axis=1), 1)
    return means
