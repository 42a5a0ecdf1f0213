"""Small problems with known answers, and the loop that a campaign runs on them."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import cast

import numpy as np

from winnow.algorithms.claims import Reason
from winnow.algorithms.errors import InvalidParameter
from winnow.algorithms.protocols import Batch, Selector, round_rng
from winnow.algorithms.registry import create_selector
from winnow.algorithms.route.protocol import Router
from winnow.algorithms.state.arrays import FloatArray

Round = tuple[Batch, FloatArray]


class World(ABC):
    """A problem of an objective, and selectors for it."""

    n_arms: int
    n_examples: int
    n_outcomes: float
    """How many outcomes there are to be spent; infinite when the same may be asked again."""

    def selector(self, name: str, **params: object) -> Selector:
        return create_selector(
            name, n_arms=self.n_arms, n_examples=self.n_examples, **{"batch_size": 3, **params}
        )

    def ask(self, selector: Selector, rng: np.random.Generator) -> Batch:
        """A batch, for what the selector has to be shown."""
        return selector.ask(rng)

    @abstractmethod
    def outcomes(self, batch: Batch, round_: int = 0) -> FloatArray:
        """What becomes of a batch asked in this round: the same whenever it is asked."""

    def spent(self, batches: Iterable[Batch]) -> int:
        """What asking these batches takes off the budget."""
        return sum(map(len, batches))

    def end(self, budget: float) -> Reason:
        """Why a selector that cannot decide stops, given its budget."""
        return "budget" if budget < self.n_outcomes else "exhausted"

    def rounds(self, selector: Selector, seed: int = 7) -> Iterator[Round]:
        """Ask and tell until there is nothing left to ask, yielding each round after its tell."""
        played = 0
        while len(batch := self.ask(selector, round_rng(seed, played))):
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


class FixedDuelWorld(World):
    """Four arms whose duels come out the same whenever they are fought; selectors are told so."""

    def __init__(self, n_examples: int = 12, seed: int = 0, unscored: float = 0.0) -> None:
        rng = np.random.default_rng(seed)
        self.n_arms, self.n_examples = 4, n_examples
        drawn = rng.choice([0.0, 0.5, 1.0], size=(4, 4, n_examples), p=[0.3, 0.1, 0.6])
        drawn[rng.random(drawn.shape) < unscored] = np.nan
        first, second = np.tril_indices(4)
        drawn[first, second] = 1.0 - drawn[second, first]
        self.outcomes_by_pair = drawn  # (K, K, n)
        self.n_outcomes = 6 * n_examples

    def selector(self, name: str, **params: object) -> Selector:
        return super().selector(name, **{"deterministic": np.ones(4, dtype=np.bool_), **params})

    def outcomes(self, batch: Batch, round_: int = 0) -> FloatArray:
        return self.outcomes_by_pair[batch.arms[:, 0], batch.arms[:, 1], batch.examples]


class CertifyWorld(World):
    """Binary losses of arms with given risks, and an autoevaluator that agrees with them now and then.

    Args:
        risks: Of each arm, in testing order; the default ones are neither certified nor refuted in 40 labels.
        n_examples: n.
        agreement: Probability that the autoevaluator's loss is the human one.
        ratio: Unlabelled examples per labelled one.
        unscored: Share of missing losses, of each kind.
        broken: Arms without any loss.
        seed: Of the losses.
    """

    def __init__(
        self,
        risks: Sequence[float] = (0.3, 0.25, 0.2),
        n_examples: int = 40,
        *,
        agreement: float = 0.9,
        ratio: int = 5,
        unscored: float = 0.0,
        broken: Sequence[int] = (),
        seed: int = 0,
    ) -> None:
        rng = np.random.default_rng(seed)
        shape = (len(risks), n_examples, 1 + ratio)  # the labelled example, then its unlabelled ones
        human = rng.random(shape) < np.array(risks)[:, np.newaxis, np.newaxis]
        auto = np.where(rng.random(shape) < agreement, human, ~human)
        self.losses = np.stack([human[..., 0], auto[..., 0], auto[..., 1:].mean(axis=-1)], axis=-1)
        self.losses[rng.random(self.losses.shape) < unscored] = np.nan
        self.losses[list(broken)] = np.nan
        self.n_arms, self.n_examples = len(risks), n_examples
        self.n_outcomes = n_examples

    def outcomes(self, batch: Batch, round_: int = 0) -> FloatArray:
        return self.losses[batch.arms, batch.examples]

    def spent(self, batches: Iterable[Batch]) -> int:
        """Labels: an example that is labelled once serves every arm."""
        return len({example for batch in batches for example in batch.examples.tolist()})

    def end(self, budget: float) -> Reason:
        return "none-certified"


class RouteWorld(World):
    """Prompts of as many types as there are arms, in random order, each arm best on the type of its number.

    Args:
        n_arms: K.
        n_examples: n.
        dim: d, at least K.
        unscored: Share of unscored pairs.
        broken: Arms without any score.
        seed: Of the prompts and the scores.
    """

    def __init__(
        self,
        n_arms: int = 4,
        n_examples: int = 50,
        dim: int = 6,
        *,
        unscored: float = 0.0,
        broken: Sequence[int] = (),
        seed: int = 0,
    ) -> None:
        rng = np.random.default_rng(seed)
        self.types = rng.integers(n_arms, size=n_examples)
        contexts = np.eye(dim)[self.types] + 0.2 * rng.standard_normal((n_examples, dim))
        self.contexts = contexts / np.linalg.norm(contexts, axis=1, keepdims=True)
        self.expected = np.where(self.types == np.arange(n_arms)[:, np.newaxis], 0.6, -0.2)
        self.scores = np.clip(self.expected + 0.2 * rng.standard_normal(self.expected.shape), -1.0, 1.0)
        self.scores[rng.random(self.scores.shape) < unscored] = np.nan
        self.scores[list(broken)] = np.nan
        self.n_arms, self.n_examples, self.dim = n_arms, n_examples, dim
        self.n_outcomes = n_examples

    def selector(self, name: str, **params: object) -> Selector:
        return super().selector(name, **{"dim": self.dim, **params})

    def ask(self, selector: Selector, rng: np.random.Generator) -> Batch:
        """A batch of the prompts whose turn it is."""
        router = cast(Router, selector)
        return router.ask(rng, self.contexts[router.next_examples()])

    def outcomes(self, batch: Batch, round_: int = 0) -> FloatArray:
        return self.scores[batch.arms, batch.examples]


WORLDS: dict[str, Callable[[], World]] = {
    "best-mean": BestMeanWorld,
    "best-duel": BestDuelWorld,
    "certify": CertifyWorld,
    "route": RouteWorld,
}
"""A world per objective."""
