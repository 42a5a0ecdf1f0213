"""UCB-E: the arm with the highest upper confidence bound, on random examples."""

import numpy as np
from numpy.typing import ArrayLike

from winnow.algorithms.best_mean.config import BestMeanConfig
from winnow.algorithms.best_mean.score_matrix import ScoreMatrix
from winnow.algorithms.best_mean.stopping import Stopping, Variant
from winnow.algorithms.decision import Decision
from winnow.algorithms.errors import InvalidParameter
from winnow.algorithms.papers.best_mean.pulls import Pulls
from winnow.algorithms.protocols import Batch
from winnow.algorithms.state.arrays import FloatArray, IntArray


class UcbE:
    """Propose the arm whose mean plus sqrt(a / observed pairs) is highest, on random examples.

    An arm without a score has an infinite bound. Ties are broken uniformly at random, among the arms with the
    fewest pending pairs: with several batches in flight, untried arms come before those being tried.

    Args:
        config: The problem and the common parameters.
        a: Weight of uncertainty, non-negative. The paper's theorem suggests about 25/36 of the budget over
            the hardness H1; in its experiments 1 was always best.
        variant: "mended" proposes and stops as docs/how-the-intervals-stop.md describes; "paper" as
            published.
        first_pull: Examples of the first pull of an arm, at least 1; None for 8. Not with "paper", where a
            round is one pull.
        pull: Examples of each later one, at least 1; None for 8. Not with "paper".

    Source: Zhou et al. (2024), "On Speeding Up Language Model Evaluation", Algorithm 1 (there eta for a).
    """

    def __init__(
        self,
        config: BestMeanConfig,
        *,
        a: float = 1.0,
        variant: Variant = "mended",
        first_pull: int | None = None,
        pull: int | None = None,
    ) -> None:
        if not 0.0 <= a < np.inf:
            raise InvalidParameter("a", a, "non-negative and finite")
        self._a = a
        self._matrix = ScoreMatrix(config)
        self._stopping = Stopping(config, self._matrix, variant)
        self._pulls = Pulls(config, self._matrix, self._stopping, variant, first_pull, pull)

    def ask(self, rng: np.random.Generator) -> Batch:
        """Propose a round of pulls."""
        return self._pulls.ask(self._bounds, rng)

    def take_up(self, batch: Batch) -> None:
        """Register a batch as proposed and pending."""
        self._matrix.ask(batch.arms, batch.examples)

    def tell(self, batch: Batch, outcomes: ArrayLike) -> None:
        """Absorb scores in [0, 1], NaN if unscored."""
        self._stopping.tell(batch, self._matrix.tell(batch, outcomes))

    def decision(self) -> Decision:
        """Recommend the arm with the highest mean of those that can be the best."""
        return self._stopping.decision()

    def _bounds(self, asked: IntArray) -> FloatArray:
        bounds = self._matrix.means + np.sqrt(self._a / np.maximum(asked, 1))
        return np.where(self._matrix.scored == 0, np.inf, bounds)
