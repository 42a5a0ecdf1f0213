"""Tables on which selectors can be simulated: all outcomes, or their probabilities, are known."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from winnow.algorithms.best_mean.groups import Groups
from winnow.algorithms.protocols import Batch, Selector
from winnow.algorithms.state.arrays import FloatArray

NOISE = 1
"""Distinguishes the generator of a round's outcomes from the selector's."""


class Environment(Protocol):
    """Interface of a source of outcomes; the same for every run, so processes can share it."""

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of arms and of examples."""

    @property
    def knowledge(self) -> Mapping[str, FloatArray]:
        """Data available to selectors besides outcomes, by parameter name."""
        return {}

    def settings(self, chosen: Mapping[str, object]) -> Mapping[str, object]:
        """Parameters of a selector in this environment, besides the chosen ones."""
        return {}

    def wrap(self, selector: Selector, seed: int) -> Selector:
        """Wrap the selector for one run."""
        return selector

    def batch_validator(self) -> Callable[[Batch], None]:
        """A function for one run that raises ValueError or IndexError for an invalid batch."""

    def outcomes(self, batch: Batch, seed: int, round_: int) -> FloatArray:
        """The outcomes of a round, depending only on the arguments."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScoreEnvironment(Environment):
    """A table of scores: a pair is evaluated once, with the score in the table."""

    scores: FloatArray
    """Shape (K, n), in [0, 1]; a pair with score NaN is unscored."""
    history: FloatArray | None = None
    """Shape (M, n), scores of other arms on the same examples."""
    groups: Groups | None = None
    """The groups of the examples, if arms are compared by group means."""
    is_partial: bool = False
    """Whether scores are missing that were never requested: then no arm is dropped for them."""

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of arms and of examples."""
        n_arms, n_examples = self.scores.shape
        return n_arms, n_examples

    @property
    def knowledge(self) -> Mapping[str, FloatArray]:
        """The history, if there is one."""
        return {} if self.history is None else {"history": self.history}

    def settings(self, chosen: Mapping[str, object]) -> Mapping[str, object]:
        """No intervals by default, because a run that does not stop by them never uses them."""
        settings: dict[str, object] = {} if chosen.keys() & {"delta", "intervals"} else {"intervals": False}
        if self.is_partial and "max_unscored" not in chosen:
            settings["max_unscored"] = 1.0
        if self.groups is not None:
            settings |= {"groups": self.groups.of_example, "group_weights": self.groups.shares}
        return settings

    def batch_validator(self) -> Callable[[Batch], None]:
        """Refuses pairs outside the table and repeated pairs."""
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
class DuelEnvironment(Environment):
    """A table of preferences: every duel is won at random with the probability in the table."""

    preferences: FloatArray
    """Shape (K, K), P(row is preferred to column); a duel with NaN is unscored."""
    features: FloatArray | None = None
    """Shape (K, d), the features of the arms."""

    @property
    def shape(self) -> tuple[int, int]:
        """Number of arms, and one example: preferences are averages over all examples."""
        return len(self.preferences), 1

    @property
    def knowledge(self) -> Mapping[str, FloatArray]:
        """The features, if there are any."""
        return {} if self.features is None else {"features": self.features}

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
