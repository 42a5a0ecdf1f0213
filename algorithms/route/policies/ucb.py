"""Optimistic choice: the arm with the highest upper confidence bound."""

import numpy as np
from numpy.typing import ArrayLike

from winnow.algorithms.route.config import RouteConfig
from winnow.algorithms.route.contexts import unit_rows
from winnow.algorithms.route.policy import Policy
from winnow.algorithms.route.posteriors.posteriors import Posteriors
from winnow.algorithms.route.routing import Routing
from winnow.algorithms.state.arrays import FloatArray


class Ucb(Routing):
    """Choose the arm with the highest mean + eta x deviation, the first of equals.

    An arm that was never tried comes first, the lowest of them. An arm with only pending or unscored prompts
    has mean 0 and the largest deviation. There is no randomness.

    Args:
        config: The problem and the common parameters.
        posteriors: The posteriors that predict the scores.
    """

    def __init__(self, config: RouteConfig, posteriors: Posteriors) -> None:
        super().__init__(config)
        self._posteriors = posteriors

    def predict(self, context: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Predict mean and deviation of every arm's score on a prompt, shape (K,) each.

        Args:
            context: Shape (d,), of length 1.

        Raises:
            UnusableContexts: If it has another shape or length, or is not finite.
        """
        row = unit_rows(np.asarray(context)[np.newaxis], self._config.dim)[0]
        return self._posteriors.predict(row, range(self._record.n_arms))

    def policy(self) -> Policy:
        """Policy of the means as plain arrays: the router's choice without exploration."""
        return self._posteriors.policy(self._record.eligible & ~np.isnan(self._record.means))

    def _preferred(self, context: FloatArray) -> list[int]:
        record = self._record
        eligible = record.eligible
        if (untried := eligible & record.untried).any():
            return [int(untried.argmax())]
        arms: list[int] = np.flatnonzero(eligible).tolist()
        means, deviations = self._posteriors.predict(context, arms)
        return [arms[int((means + self._exploration() * deviations).argmax())]]

    def _exploration(self) -> float:
        learned = self._posteriors.eta if self._config.eta is None else None
        return self._config.exploration(self._record.n_arms) if learned is None else learned

    def _learn(self, arm: int, context: FloatArray, score: float) -> None:
        self._posteriors.learn(arm, context, score)

    def _expect(self, arm: int, context: FloatArray) -> None:
        self._posteriors.expect(arm, context)

    def _forget(self) -> None:
        self._posteriors.forget()

    def _grow(self) -> None:
        self._posteriors.grow()
