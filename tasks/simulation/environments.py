"""Tables on which selectors can be replayed: their outcomes are all known, or all known in probability."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from winnow.algorithms.best_mean.groups import Groups
from winnow.algorithms.protocols import Batch, Selector
from winnow.algorithms.state.arrays import FloatArray

NOISE = 1
"""Tells the generator of a round's outcomes from the one that the selector draws from."""


class Environment(Protocol):
    """Answers batches; the same for every run, so that many processes can share it."""

    @property
    def shape(self) -> tuple[int, int]:
        """Arms and examples."""

    @property
    def knowledge(self) -> Mapping[str, FloatArray]:
        """Knowledge that selectors may be given beside outcomes, by the name of their parameter."""

    def settings(self, chosen: Mapping[str, object]) -> Mapping[str, object]:
        """Parameters that a selector gets here, beside those that were chosen for it."""

    def wrap(self, selector: Selector, seed: int) -> Selector:
        """The selector as it takes part in one run."""

    def batch_validator(self) -> Callable[[Batch], None]:
        """For one run: raises ValueError or IndexError at a batch that may not be asked."""

    def outcomes(self, batch: Batch, seed: int, round_: int) -> FloatArray:
        """The outcomes of a round, a function of the arguments alone."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScoreEnvironment:
    """A table of scores: a pair is asked once and scores what stands there."""

    scores: FloatArray
    """Shape (K, n), in [0, 1]; a pair whose score is NaN comes back unscored."""
    history: FloatArray | None = None
    """Shape (M, n), scores of other arms on the same examples."""
    groups: Groups | None = None
    """The groups of the examples, where arms are compared by what their means on groups come to."""
    is_partial: bool = False
    """Whether scores are missing that nobody asked for: then no arm is dropped for what it lacks."""

    @property
    def shape(self) -> tuple[int, int]:
        """Arms and examples."""
        n_arms, n_examples = self.scores.shape
        return n_arms, n_examples

    @property
    def knowledge(self) -> Mapping[str, FloatArray]:
        """The history, where there is one."""
        return {} if self.history is None else {"history": self.history}

    def settings(self, chosen: Mapping[str, object]) -> Mapping[str, object]:
        """No intervals, unless asked for: nobody looks at those of a run that does not stop by them."""
        settings: dict[str, object] = {} if chosen.keys() & {"delta", "intervals"} else {"intervals": False}
        if self.is_partial and "max_unscored" not in chosen:
            settings["max_unscored"] = 1.0
        if self.groups is not None:
            settings |= {"groups": self.groups.of_example, "group_weights": self.groups.shares}
        return settings

    def wrap(self, selector: Selector, seed: int) -> Selector:
        """The selector itself."""
        return selector

    def batch_validator(self) -> Callable[[Batch], None]:
        """Refuses pairs outside the table and pairs asked before."""
        taken = np.zeros(self.scores.shape, dtype=np.bool_)  # (K, n)

        def check(batch: Batch) -> None:
            pairs = np.ravel_multi_index((batch.arms, batch.examples), taken.shape)  # raises where outside
            if taken.flat[pairs].any() or np.unique(pairs).size < len(batch):
                raise ValueError("it asked for a pair that it had asked for before")
            taken.flat[pairs] = True

        return check

    def outcomes(self, batch: Batch, seed: int, round_: int) -> FloatArray:
        """The scores."""
        return self.scores[batch.arms, batch.examples]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DuelEnvironment:
    """A table of preferences: every duel is won at random, with the probability that stands there."""

    preferences: FloatArray
    """Shape (K, K), P(row is preferred to column); a duel where it is NaN comes back unscored."""
    features: FloatArray | None = None
    """Shape (K, d), the features of the arms."""

    @property
    def shape(self) -> tuple[int, int]:
        """Arms, and one example: preferences are averages over all of them."""
        return len(self.preferences), 1

    @property
    def knowledge(self) -> Mapping[str, FloatArray]:
        """The features, where there are some."""
        return {} if self.features is None else {"features": self.features}

    def settings(self, chosen: Mapping[str, object]) -> Mapping[str, object]:
        """None."""
        return {}

    def wrap(self, selector: Selector, seed: int) -> Selector:
        """The selector itself."""
        return selector

    def batch_validator(self) -> Callable[[Batch], None]:
        """Refuses arms that do not exist, and an arm against itself."""

        def check(batch: Batch) -> None:
            np.ravel_multi_index((batch.arms[:, 0], batch.arms[:, 1]), self.preferences.shape)
            if (batch.arms[:, 0] == batch.arms[:, 1]).any():
                raise ValueError("it asked for a duel of an arm with itself")

        return check

    def outcomes(self, batch: Batch, seed: int, round_: int) -> FloatArray:
        """1 if the first arm wins, else 0."""
        chances = self.preferences[batch.arms[:, 0], batch.arms[:, 1]]
        draws = np.random.default_rng([seed, round_, NOISE]).random(len(batch))
        return np.where(np.isnan(chances), np.nan, draws < chances)
