"""Random: an arm drawn uniformly for each prompt."""

import numpy as np

from winnow.algorithms.route.policy import Policy, policy_of
from winnow.algorithms.route.routing import Routing
from winnow.algorithms.state.arrays import FloatArray


class RandomArm(Routing):
    """Give each prompt to an arm drawn uniformly.

    A baseline, and the fairest way to compare arms: each mean estimates that over all prompts. Its policy
    chooses the arm with the best mean for every prompt.

    Source: the baseline of Hu, Leung & Farnia (2025), Section 6.
    """

    def policy(self) -> Policy:
        """Policy that ranks arms by their means."""
        means = self._record.means
        usable = self._record.eligible & ~np.isnan(means)
        return policy_of("means", usable, self._config.dim, means=np.nan_to_num(means))

    def _preferred(self, context: FloatArray) -> list[int]:
        arms: list[int] = np.flatnonzero(self._record.eligible).tolist()
        return arms

    def _learn(self, arm: int, context: FloatArray, score: float) -> None:
        """Do nothing: the record stores the scores."""

    def _expect(self, arm: int, context: FloatArray) -> None:
        """Do nothing: a draw does not depend on pending pairs."""

    def _forget(self) -> None:
        """Do nothing: no pending pair is used."""

    def _grow(self) -> None:
        """Do nothing: the record has grown already."""
