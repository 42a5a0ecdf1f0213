"""UCB-E-LRF (Score Only): UCB-E with the mean of the completed row."""

import numpy as np
from numpy.typing import ArrayLike

from winnow.algorithms.best_mean.config import BestMeanConfig
from winnow.algorithms.best_mean.score_matrix import ScoreMatrix
from winnow.algorithms.best_mean.stopping import Stopping, Variant
from winnow.algorithms.decision import Decision
from winnow.algorithms.errors import InvalidParameter
from winnow.algorithms.papers.best_mean.als import EnsembleAls
from winnow.algorithms.papers.best_mean.predictions.completion import Completion
from winnow.algorithms.papers.best_mean.pulls import Pulls
from winnow.algorithms.protocols import Batch
from winnow.algorithms.state.arrays import FloatArray, IntArray


class UcbELrfScoreOnly:
    """Propose the arm with the highest completed mean plus sqrt(eta / observed pairs), on random examples.

    The ablation of UCB-E-LRF: predictions from low-rank factorisations enter the mean, but their deviations
    choose neither the arm nor the examples. So all its pairs are uniform draws, and its intervals bet on all
    of them. Arms without a score have an infinite bound; ties are broken uniformly at random, among the arms
    with the fewest pending pairs.

    Args:
        config: The problem and the common parameters.
        eta: Weight of uncertainty, non-negative; the paper gives no value, and 1 is UCB-E's.
        warm_up: Share of all pairs proposed uniformly at first, in [0, 1].
        rank: Rank of the factorisations, at least 1.
        members: Number of fitted factorisations, at least 1.
        ridge: Penalty on the factors, positive.
        sweeps: Number of improvements of each factorisation, at least 1.
        drop: Share of the scores that each factorisation omits, in [0, 1).
        variant: "mended" proposes and stops as docs/how-the-intervals-stop.md describes; "paper" as
            published.
        first_pull: Examples of the first pull of an arm, at least 1; None for 8. Not with "paper", where a
            round is one pull.
        pull: Examples of each later one, at least 1; None for 8. Not with "paper".

    Source: Zhou et al. (2024), "On Speeding Up Language Model Evaluation", Algorithm 6 (Score Only).
    """

    def __init__(
        self,
        config: BestMeanConfig,
        *,
        eta: float = 1.0,
        warm_up: float = 0.05,
        rank: int = 1,
        members: int = 64,
        ridge: float = 0.1,
        sweeps: int = 10,
        drop: float = 0.05,
        variant: Variant = "mended",
        first_pull: int | None = None,
        pull: int | None = None,
    ) -> None:
        if not 0.0 <= eta < np.inf:
            raise InvalidParameter("eta", eta, "non-negative and finite")
        self._eta = eta
        self._batch_size = config.batch_size
        self._matrix = ScoreMatrix(config)
        self._stopping = Stopping(config, self._matrix, variant)
        self._pulls = Pulls(config, self._matrix, self._stopping, variant, first_pull, pull)
        als = EnsembleAls(rank=rank, members=members, ridge=ridge, sweeps=sweeps, drop=drop)
        self._completion = Completion(self._matrix, als, warm_up)

    def ask(self, rng: np.random.Generator) -> Batch:
        """Propose a batch over all arms during the warm-up, and a round of pulls after it."""
        matrix, completion = self._matrix, self._completion
        room = self._stopping.room(self._batch_size)
        if room > 0 and completion.warm_up_left > 0:
            return matrix.ask_uniformly(min(room, completion.warm_up_left), rng, self._stopping.worth_asking)
        means = completion.means

        def bounds(asked: IntArray) -> FloatArray:
            return np.where(matrix.scored == 0, np.inf, means + np.sqrt(self._eta / np.maximum(asked, 1)))

        return self._pulls.ask(bounds, rng)

    def take_up(self, batch: Batch) -> None:
        """Register a batch as proposed and pending."""
        self._matrix.ask(batch.arms, batch.examples)

    def tell(self, batch: Batch, outcomes: ArrayLike) -> None:
        """Absorb scores in [0, 1], NaN if unscored."""
        scores = self._matrix.tell(batch, outcomes)
        self._completion.tell(batch, scores)
        self._stopping.tell(batch, scores)

    def decision(self) -> Decision:
        """Recommend the arm with the highest completed mean of those that can be the best.

        During the warm-up it is the mean of the scores.
        """
        return self._stopping.decision(self._completion.means)
