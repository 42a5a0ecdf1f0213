"""Small problems with known answers, and the loop that a campaign runs on them."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator

import numpy as np

from algorithms.errors import InvalidParameter
from algorithms.protocols import Batch, FloatArray, Selector, round_rng
from algorithms.registry import create_selector

Round = tuple[Batch, FloatArray]


class World(ABC):
    """A problem of an objective, and selectors for it."""

    n_arms: int
    n_examples: int
    n_outcomes: float
    """How many outcomes there are to be asked; infinite when the same may be asked again."""

    def selector(self, name: str, **params: object) -> Selector:
        return create_selector(
            name, n_arms=self.n_arms, n_examples=self.n_examples, **{"batch_size": 3, **params}
        )

    @abstractmethod
    def outcomes(self, batch: Batch, round_: int = 0) -> FloatArray:
        """What becomes of a batch asked in this round: the same whenever it is asked."""

    def rounds(self, selector: Selector, seed: int = 7) -> Iterator[Round]:
        """Ask and tell until there is nothing left to ask, yielding each round after its tell."""
        played = 0
        while len(batch := selector.ask(round_rng(seed, played))):
            outcomes = self.outcomes(batch, played)
            selector.tell(batch, outcomes)
            yield batch, outcomes
            played += 1


class BestMeanWorld(World):
    """A score matrix without ties."""

    def __init__(self, n_arms: int = 4, n_examples: int = 11, seed: int = 0, unscored: float = 0.0) -> None:
        rng = np.random.default_rng(seed)
        self.scores = rng.random((n_arms, n_examples))
        self.scores[rng.random(self.scores.shape) < unscored] = np.nan
        self.n_arms, self.n_examples = n_arms, n_examples
        self.n_outcomes = self.scores.size

    def outcomes(self, batch: Batch, round_: int = 0) -> FloatArray:
        return self.scores[batch.arms, batch.examples]


class BestDuelWorld(World):
    """Preferences of the Bradley-Terry model with two features, in which arm 1 is the best.

    Args:
        n_arms: K.
        spread: Log-odds between the best and the last arm.
        ties: Share of ties.
        unscored: Share of unscored duels.
        broken: Arms whose duels are all unscored.
        seed: Of the outcomes.
    """

    n_outcomes = np.inf

    def __init__(
        self,
        n_arms: int = 4,
        *,
        spread: float = 2.0,
        ties: float = 0.1,
        unscored: float = 0.0,
        broken: tuple[int, ...] = (),
        seed: int = 0,
    ) -> None:
        self.n_arms, self.n_examples = n_arms, 1_000
        log_odds = np.roll(np.linspace(spread, 0.0, n_arms), 1)
        self.features = np.column_stack([log_odds, np.arange(n_arms) % 2])  # the second says nothing
        self.preferences = 1.0 / (1.0 + np.exp(log_odds - log_odds[:, np.newaxis]))
        self._ties, self._unscored, self._broken, self._seed = ties, unscored, broken, seed

    def selector(self, name: str, **params: object) -> Selector:
        """A selector that ends after 60 duels if not told otherwise; with features only if it needs them."""
        params = {"budget": 60, **params}
        try:
            return super().selector(name, **params)
        except InvalidParameter as error:
            if error.parameter != "features":
                raise
            return super().selector(name, features=self.features, **params)

    def outcomes(self, batch: Batch, round_: int = 0) -> FloatArray:
        rng = np.random.default_rng([self._seed, round_])
        chances = self.preferences[batch.arms[:, 0], batch.arms[:, 1]]
        outcomes = (rng.random(len(batch)) < chances).astype(float)
        outcomes[rng.random(len(batch)) < self._ties] = 0.5
        outcomes[rng.random(len(batch)) < self._unscored] = np.nan
        outcomes[np.isin(batch.arms, self._broken).any(axis=1)] = np.nan
        return outcomes


WORLDS: dict[str, Callable[[], World]] = {"best-mean": BestMeanWorld, "best-duel": BestDuelWorld}
"""A world per objective."""
