"""UCB-E-LRF: arms and examples whose low-rank predictions are high and uncertain."""

import math

import numpy as np
from numpy.typing import ArrayLike

from winnow.algorithms.best_mean.config import BestMeanConfig
from winnow.algorithms.best_mean.score_matrix import ScoreMatrix, highest
from winnow.algorithms.best_mean.stopping import Stopping, Variant
from winnow.algorithms.decision import Decision
from winnow.algorithms.errors import InvalidParameter
from winnow.algorithms.papers.best_mean.als import EnsembleAls
from winnow.algorithms.papers.best_mean.predictions.completion import Completion
from winnow.algorithms.protocols import EMPTY_BATCH, Batch
from winnow.algorithms.state.arrays import BoolArray, FloatArray, IntArray

ROUNDING = 1e-9  # because 0.07 * 100 is more than 7 in floating point


class UcbELrf:
    """Propose the arm with the highest completed mean plus deviation, on its most uncertain examples.

    After a warm-up of uniform pairs, an ensemble of low-rank factorisations predicts the unobserved scores.
    The bound of an arm is the mean over its examples of the score, or else of the prediction plus `eta` times
    the ensemble's standard deviation; the arm with the highest bound is proposed on the examples with the
    largest deviations. Arms without a score have an infinite bound; ties are broken uniformly at random,
    among the arms with the fewest pending pairs.

    If an example has no score of any arm yet, all members predict 0 with deviation 0: `warm_up` times the
    number of arms should be 3 or more.

    Examples chosen for their deviation are not a random sample of the arm's examples, so they prove nothing
    about the rest: the intervals bet on the warm-up, whose pairs are uniform draws, and on the `audit`, and
    use only the known scores of the chosen ones. With `audit=0`, as published, a separation is therefore
    seldom proven before the best row is nearly full; with 0.5 half of every batch is representative of the
    rest. The completed mean ranks the arms but is not an estimate for the intervals: estimates use the draws.

    Departures: unscored pairs, which the paper does not have, are excluded from means, bounds and fits. The
    published package divides the squared deviations by M - 1, breaks ties by number, and starts its factors
    at random (see `EnsembleAls`).

    Args:
        config: The problem and the common parameters.
        eta: Weight of the deviation, non-negative and finite.
        warm_up: Share of all pairs proposed uniformly at first, in [0, 1].
        audit: Share of each later batch, rounded up, that is drawn uniformly from the arm's unobserved
            examples after the others were chosen, in [0, 1]; its pairs are the last of the batch.
        rank: Rank of the factorisations, at least 1.
        members: Number of fitted factorisations, at least 1.
        ridge: Penalty on the factors, positive.
        sweeps: Number of improvements of each factorisation, at least 1.
        drop: Share of the scores that each factorisation omits, in [0, 1).
        variant: "mended" proposes and stops as docs/how-the-intervals-stop.md describes; "paper" as
            published.

    Source: Zhou et al. (2024), "On Speeding Up Language Model Evaluation", Algorithm 2 (UCB-E-LRF).
    """

    def __init__(
        self,
        config: BestMeanConfig,
        *,
        eta: float = 5.0,
        warm_up: float = 0.05,
        audit: float = 0.0,
        rank: int = 1,
        members: int = 64,
        ridge: float = 0.1,
        sweeps: int = 10,
        drop: float = 0.05,
        variant: Variant = "mended",
    ) -> None:
        for name, value, holds, requirement in (
            ("eta", eta, 0.0 <= eta < np.inf, "non-negative and finite"),
            ("audit", audit, 0.0 <= audit <= 1.0, "in [0, 1]"),
        ):
            if not holds:
                raise InvalidParameter(name, value, requirement)
        self._eta = eta
        self._audit = audit
        self._batch_size = config.batch_size
        self._matrix = ScoreMatrix(config)
        self._stopping = Stopping(config, self._matrix, variant)
        als = EnsembleAls(rank=rank, members=members, ridge=ridge, sweeps=sweeps, drop=drop)
        self._completion = Completion(self._matrix, als, warm_up)

    def ask(self, rng: np.random.Generator) -> Batch:
        """Propose a batch over all arms during the warm-up, and of one arm after it."""
        matrix, completion = self._matrix, self._completion
        room = self._stopping.room(self._batch_size)
        if room == 0:
            return EMPTY_BATCH
        worth_asking = self._stopping.worth_asking
        if completion.warm_up_left > 0:
            return matrix.ask_uniformly(min(room, completion.warm_up_left), rng, worth_asking)
        free = np.where(worth_asking, matrix.free_of_arm, 0)
        if not free.any():
            return EMPTY_BATCH
        arm = highest(self._bounds(), free, matrix.pending, rng)
        return matrix.ask(arm, self._choose(arm, min(room, int(matrix.free_of_arm[arm])), rng))

    def take_up(self, batch: Batch) -> None:
        """Register a batch as proposed and pending."""
        self._matrix.ask(batch.arms, batch.examples)

    def tell(self, batch: Batch, outcomes: ArrayLike) -> None:
        """Absorb scores in [0, 1], NaN if unscored."""
        # A batch belongs to the warm-up if fewer pairs than that were proposed before it; batches are told in
        # the order of proposal, so these are the pairs observed before it.
        is_draw = self._is_audit(len(batch)) if self._completion.is_warm else None
        scores = self._matrix.tell(batch, outcomes)
        self._completion.tell(batch, scores)
        self._stopping.tell(batch, scores, is_draw)

    def decision(self) -> Decision:
        """Recommend the arm with the highest completed mean of those that can be the best.

        During the warm-up it is the mean of the scores.
        """
        return self._stopping.decision(self._completion.means)

    def _bounds(self) -> FloatArray:
        bounds = self._completion.means + self._eta * self._completion.mean_deviations
        return np.where(self._matrix.scored == 0, np.inf, bounds)

    def _choose(self, arm: int, size: int, rng: np.random.Generator) -> IntArray:
        """Choose the free examples with the largest deviations, in descending order, then the audit."""
        shuffled = self._matrix.draw(arm, self._matrix.n_examples, rng)  # breaks ties at random
        deviations = self._completion.deviations[arm, shuffled]
        ranked = shuffled[np.argsort(-deviations, kind="stable")]
        n_chosen = size - int(self._is_audit(size).sum())
        audit = rng.choice(ranked[n_chosen:], size=size - n_chosen, replace=False)
        return np.concatenate((ranked[:n_chosen], audit))

    def _is_audit(self, size: int) -> BoolArray:
        """Mask of a later batch's audit pairs; depends on its size alone, so that a replay finds them."""
        drawn = math.ceil(self._audit * size - ROUNDING)
        return np.arange(size) >= size - drawn
