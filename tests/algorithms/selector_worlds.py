"""Small problems with known answers, and the loop that a campaign runs on them."""

from collections.abc import Callable, Iterator

import numpy as np

from algorithms.protocols import Batch, FloatArray, Selector, round_rng
from algorithms.registry import create_selector

Round = tuple[Batch, FloatArray]


class BestMeanWorld:
    """A score matrix without ties, and selectors for it."""

    def __init__(self, n_arms: int = 4, n_examples: int = 11, seed: int = 0, unscored: float = 0.0) -> None:
        rng = np.random.default_rng(seed)
        self.scores = rng.random((n_arms, n_examples))
        self.scores[rng.random(self.scores.shape) < unscored] = np.nan
        self.n_arms, self.n_examples = n_arms, n_examples

    def selector(self, name: str, **params: object) -> Selector:
        return create_selector(
            name, n_arms=self.n_arms, n_examples=self.n_examples, **{"batch_size": 3, **params}
        )

    def outcomes(self, batch: Batch) -> FloatArray:
        return self.scores[batch.arms, batch.examples]

    def rounds(self, selector: Selector, seed: int = 7) -> Iterator[Round]:
        """Ask and tell until there is nothing left to ask, yielding each round after its tell."""
        played = 0
        while len(batch := selector.ask(round_rng(seed, played))):
            outcomes = self.outcomes(batch)
            selector.tell(batch, outcomes)
            yield batch, outcomes
            played += 1


WORLDS: dict[str, Callable[[], BestMeanWorld]] = {"best-mean": BestMeanWorld}
"""A world per objective."""
