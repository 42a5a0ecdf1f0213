"""Tables for simulating selectors: all outcomes or their probabilities are known."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from winnow.algorithms.best_mean.groups import Groups
from winnow.algorithms.protocols import Batch, Selector
from winnow.algorithms.state.arrays import FloatArray

NOISE = 1
"""Seed component that separates the random generator of outcomes from that of the selector."""


class Environment(Protocol):
    """Interface of a source of outcomes; equal in all runs, so processes can share it."""

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of arms and of examples."""

    @property
    def knowledge(self) -> Mapping[str, FloatArray]:
        """Data that selectors can use besides outcomes, by parameter name."""
        return {}

    def settings(self, chosen: Mapping[str, object]) -> Mapping[str, object]:
        """Parameters of a selector in this environment, besides the chosen ones."""
        return {}

    def wrap(self, selector: Selector, seed: int) -> Selector:
        """Wrap the selector for one run."""
        return selector

    def batch_validator(self) -> Callable[[Batch], None]:
        """Create the check of a run's batches, which raises ValueError or IndexError."""

    def outcomes(self, batch: Batch, seed: int, round_: int) -> FloatArray:
        """The outcomes of a round, which depend only on the arguments."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScoreEnvironment(Environment):
    """A table of scores: evaluating a pair returns its score in the table.

    Each pair can be evaluated once.
    """

    scores: FloatArray
    """Shape (K, n), in [0, 1]; NaN for an unscored pair."""
    history: FloatArray | None = None
    """Scores of other arms on the same examples, shape (M, n); None without them."""
    groups: Groups | None = None
    """Groups of the examples; None unless arms are compared by group means."""
    is_partial: bool = False
    """Whether pairs that were never evaluated lack scores, so that no arm is dropped for missing scores."""

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of arms and of examples."""
        n_arms, n_examples = self.scores.shape
        return n_arms, n_examples

    @property
    def knowledge(self) -> Mapping[str, FloatArray]:
        """The history, if the environment has one."""
        return {} if self.history is None else {"history": self.history}

    def settings(self, chosen: Mapping[str, object]) -> Mapping[str, object]:
        """Default parameters: no intervals unless a run can stop by them."""
        settings: dict[str, object] = {} if chosen.keys() & {"delta", "intervals"} else {"intervals": False}
        if self.is_partial and "max_unscored" not in chosen:
            settings["max_unscored"] = 1.0
        if self.groups is not None:
            settings |= {"groups": self.groups.of_example, "group_weights": self.groups.shares}
        return settings

    def batch_validator(self) -> Callable[[Batch], None]:
        """Create a check that refuses pairs outside the table and repeated pairs."""
        taken = np.zeros(self.scores.shape, dtype=np.bool_)  # (K, n)

        def check(batch: Batch) -> None:
            pairs = np.ravel_multi_index((batch.arms, batch.examples), taken.shape)  # raises if outside
            if taken.flat[pairs].any() or np.unique(pairs).size < len(batch):
                raise ValueError("it proposed a pair that it had proposed before")
            taken.flat[pairs] = True

        return check

    def outcomes(self, batch: Batch, seed: int, round_: int) -> FloatArray:
        """The scores of the batch's pairs."""
        return self.scores[batch.arms, batch.examples]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DuelEnvironment(Environment):
    """A table of preferences: duels are won at random with these probabilities."""

    preferences: FloatArray
    """P(row is preferred to column), shape (K, K); a duel with NaN is unscored."""
    features: FloatArray | None = None
    """Features of the arms, shape (K, d); None without features."""

    @property
    def shape(self) -> tuple[int, int]:
        """Number of arms, and 1 example, because preferences are averages over examples."""
        return len(self.preferences), 1

    @property
    def knowledge(self) -> Mapping[str, FloatArray]:
        """The features, if the environment has them."""
        return {} if self.features is None else {"features": self.features}

    def batch_validator(self) -> Callable[[Batch], None]:
        """Create a check that refuses unknown arms, and duels of an arm with itself."""

        def check(batch: Batch) -> None:
            np.ravel_multi_index((batch.arms[:, 0], batch.arms[:, 1]), self.preferences.shape)
            if (batch.arms[:, 0] == batch.arms[:, 1]).any():
                raise ValueError("it proposed a duel of an arm with itself")

        return check

    def outcomes(self, batch: Batch, seed: int, round_: int) -> FloatArray:
        """1 for a win of the first arm, else 0; NaN if unscored."""
        chances = self.preferences[batch.arms[:, 0], batch.arms[:, 1]]
        draws = np.random.default_rng([seed, round_, NOISE]).random(len(batch))
        return np.where(np.isnan(chances), np.nan, draws < chances)
