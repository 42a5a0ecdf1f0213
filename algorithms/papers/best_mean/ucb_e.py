"""UCB-E: propose the arm with the highest upper confidence bound.

The selectors work with or without low-rank predictions.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from winnow.algorithms.best_mean.config import BestMeanConfig
from winnow.algorithms.best_mean.score_matrix import ScoreMatrix, highest
from winnow.algorithms.best_mean.stopping import StoppedSelector, Stopping, Variant
from winnow.algorithms.errors import InvalidParameter, check_parameters
from winnow.algorithms.papers.best_mean.completion import Completion, EnsembleAls
from winnow.algorithms.protocols import EMPTY_BATCH, Batch
from winnow.algorithms.state.arrays import BoolArray, FloatArray, IntArray

PULL = 8  # examples: a smaller pull is hardly better, a larger one is wasted if the arm is soon eliminated


class Pulls:
    """Rounds of pulls: random examples of the arms with the highest bounds.

    Each pull proposes a few examples of one arm. For "mended", a round of `batch_size` pairs is filled with
    pulls of arms that are in question. A pull counts immediately as observed, so the bound of its arm is
    narrower for the next pull: the leading arm can get several pulls, and others the rest. For "paper", a
    round is one pull of `batch_size` pairs.

    Args:
        config: The problem and the common parameters.
        matrix: The scores.
        stopping: Limits the number of pairs and the arms.
        variant: See `Variant`.
        first_pull: Number of examples of the first pull of an arm, at least 1; None for 8.
        pull: Number of examples of each later pull, at least 1; None for 8.
    """

    def __init__(
        self,
        config: BestMeanConfig,
        matrix: ScoreMatrix,
        stopping: Stopping,
        variant: Variant,
        first_pull: int | None,
        pull: int | None,
    ) -> None:
        for name, size in (("first_pull", first_pull), ("pull", pull)):
            if size is not None and variant == "paper":
                raise InvalidParameter(name, size, "None if variant is 'paper', which pulls batch_size pairs")
            if size is not None and size < 1:
                raise InvalidParameter(name, size, "at least 1 or None")
        self._matrix = matrix
        self._stopping = stopping
        self._is_mended = variant == "mended"
        self._batch_size = config.batch_size
        self._first_pull = PULL if first_pull is None else first_pull
        self._pull = PULL if pull is None else pull

    def ask(self, values: FloatArray, weight: float, rng: np.random.Generator) -> Batch:
        """Propose a round by the bounds value + sqrt(weight / proposed pairs).

        Args:
            values: Shape (K,), values of the arms; NaN for an arm without a score, whose bound is infinite.
            weight: Weight of uncertainty, non-negative.
            rng: See `round_rng`.
        """

        def bounds(asked: IntArray) -> FloatArray:
            return np.where(np.isnan(values), np.inf, values + np.sqrt(weight / np.maximum(asked, 1)))

        matrix, room = self._matrix, self._stopping.room(self._batch_size)
        if room == 0:
            return EMPTY_BATCH
        if self._is_mended:
            return self._ask_pulls(self._plan(bounds, room, rng), rng)
        if not matrix.free_of_arm.any():
            return EMPTY_BATCH
        arm = highest(bounds(matrix.told), matrix.free_of_arm, matrix.pending, rng)
        return matrix.ask(arm, matrix.draw(arm, room, rng))

    def _plan(
        self, bounds: Callable[[IntArray], FloatArray], room: int, rng: np.random.Generator
    ) -> dict[int, int]:
        """Number of pairs to propose for each chosen arm, in the order of choice."""
        matrix, sizes = self._matrix, dict[int, int]()
        free = np.where(self._stopping.worth_asking, matrix.free_of_arm, 0)  # (K,)
        pending = matrix.pending.copy()  # (K,)
        while room > 0 and free.any():
            asked = matrix.told + pending
            arm = highest(bounds(asked), free, pending, rng)
            wanted = self._first_pull if asked[arm] == 0 else self._pull
            size = min(wanted, room, int(free[arm]))
            sizes[arm] = sizes.get(arm, 0) + size
            free[arm] -= size
            pending[arm] += size
            room -= size
        return sizes

    def _ask_pulls(self, sizes: dict[int, int], rng: np.random.Generator) -> Batch:
        if not sizes:
            return EMPTY_BATCH
        examples = [self._matrix.draw(arm, size, rng) for arm, size in sizes.items()]
        return self._matrix.ask(np.repeat(list(sizes), list(sizes.values())), np.concatenate(examples))


class UcbE(StoppedSelector):
    """Propose the arm whose mean plus sqrt(a / observed pairs) is highest, on random examples.

    An arm without a score has an infinite bound. Ties are broken uniformly at random among the arms with the
    fewest pending pairs: with several batches in flight, untried arms come before those being tried.

    Args:
        config: The problem and the common parameters.
        a: Weight of uncertainty, non-negative. The paper's theorem suggests about 25/36 of the budget divided
            by the hardness H1; in its experiments 1 was always best.
        variant: "mended" proposes and stops as docs/how-the-intervals-stop.md describes; "paper" proposes and
            stops as published.
        first_pull: Number of examples of the first pull of an arm, at least 1; None for 8. Not with "paper",
            where a round is one pull.
        pull: Number of examples of each later pull, at least 1; None for 8. Not with "paper".

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
        return self._pulls.ask(self._matrix.means, self._a, rng)


class UcbELrfScoreOnly(StoppedSelector):
    """Propose the arm with the highest completed mean plus sqrt(eta / observed pairs), on random examples.

    The ablation of UCB-E-LRF: predictions from low-rank factorisations enter the mean, but their deviations
    choose neither the arm nor the examples. So all its pairs are uniform draws, and its intervals bet on all
    of them. Arms without a score have an infinite bound; ties are broken uniformly at random among the arms
    with the fewest pending pairs.

    Args:
        config: The problem and the common parameters.
        eta: Weight of uncertainty, non-negative; the paper states no value, and 1 is UCB-E's.
        warm_up: Share of all pairs proposed uniformly at first, in [0, 1].
        rank: Rank of the factorisations, at least 1.
        members: Number of fitted factorisations, at least 1.
        ridge: Penalty on the factors, positive.
        sweeps: Number of improvements of each factorisation, at least 1.
        drop: Share of the scores that each factorisation omits, in [0, 1).
        variant: "mended" proposes and stops as docs/how-the-intervals-stop.md describes; "paper" proposes and
            stops as published.
        first_pull: Number of examples of the first pull of an arm, at least 1; None for 8. Not with "paper",
            where a round is one pull.
        pull: Number of examples of each later pull, at least 1; None for 8. Not with "paper".

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
        means = np.where(matrix.scored == 0, np.nan, completion.means)
        return self._pulls.ask(means, self._eta, rng)

    def tell(self, batch: Batch, outcomes: ArrayLike) -> None:
        """Observe scores in [0, 1], NaN if unscored."""
        scores = self._matrix.tell(batch, outcomes)
        self._completion.tell(batch, scores)
        self._stopping.tell(batch, scores)

    def _ranking(self) -> FloatArray:
        """Completed means; during the warm-up, means of the scores."""
        return self._completion.means


ROUNDING = 1e-9  # because 0.07 * 100 is more than 7 in floating point


class UcbELrf(StoppedSelector):
    """Propose the arm with the highest completed mean plus deviation, on its most uncertain examples.

    After a warm-up of uniform pairs, an ensemble of low-rank factorisations predicts the unobserved scores.
    The bound of an arm is a mean over its examples: of the score if it is observed, otherwise of the
    prediction plus `eta` times the ensemble's standard deviation. The arm with the highest bound is proposed
    on the examples with the largest deviations. Arms without a score have an infinite bound; ties are broken
    uniformly at random among the arms with the fewest pending pairs.

    If an example has no score of any arm yet, all members predict 0 with deviation 0: `warm_up` times the
    number of arms should be 3 or more.

    Examples chosen for their deviation are not a random sample of the arm's examples, so they prove nothing
    about the rest. The intervals bet on the warm-up, whose pairs are uniform draws, and on the `audit`; of
    the chosen examples they use only the known scores. With `audit=0`, as published, a separation is
    therefore seldom proven before the best row is nearly full. With 0.5, half of every batch is
    representative of the rest. The completed mean ranks the arms but is not an estimate for the intervals:
    estimates use the draws.

    Departures: unscored pairs, which the paper does not have, are excluded from means, bounds and fits. The
    published package divides the squared deviations by M - 1, breaks ties by number, and starts its factors
    at random (see `EnsembleAls`).

    Args:
        config: The problem and the common parameters.
        eta: Weight of the deviation, non-negative and finite.
        warm_up: Share of all pairs proposed uniformly at first, in [0, 1].
        audit: Share of each later batch, in [0, 1] and rounded up to whole pairs, that is drawn uniformly
            from the arm's unobserved examples after the others were chosen. These pairs are the last of the
            batch.
        rank: Rank of the factorisations, at least 1.
        members: Number of fitted factorisations, at least 1.
        ridge: Penalty on the factors, positive.
        sweeps: Number of improvements of each factorisation, at least 1.
        drop: Share of the scores that each factorisation omits, in [0, 1).
        variant: "mended" proposes and stops as docs/how-the-intervals-stop.md describes; "paper" proposes and
            stops as published.

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
        check_parameters(
            ("eta", eta, 0.0 <= eta < np.inf, "non-negative and finite"),
            ("audit", audit, 0.0 <= audit <= 1.0, "in [0, 1]"),
        )
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

    def tell(self, batch: Batch, outcomes: ArrayLike) -> None:
        """Observe scores in [0, 1], NaN if unscored."""
        # A batch belongs to the warm-up if fewer pairs than the warm-up's were proposed before the batch.
        # Batches are observed in the order of proposal, so these are the pairs observed before it.
        is_draw = self._is_audit(len(batch)) if self._completion.is_warm else None
        scores = self._matrix.tell(batch, outcomes)
        self._completion.tell(batch, scores)
        self._stopping.tell(batch, scores, is_draw)

    def _ranking(self) -> FloatArray:
        """Completed means; during the warm-up, means of the scores."""
        return self._completion.means

    def _bounds(self) -> FloatArray:
        bounds = self._completion.means + self._eta * self._completion.mean_deviations
        return np.where(self._matrix.scored == 0, np.inf, bounds)

    def _choose(self, arm: int, size: int, rng: np.random.Generator) -> IntArray:
        """Free examples with the largest deviations, then those of the audit.

        The former are in descending order of deviation.
        """
        shuffled = self._matrix.draw(arm, self._matrix.n_examples, rng)  # breaks ties at random
        deviations = self._completion.deviations[arm, shuffled]
        ranked = shuffled[np.argsort(-deviations, kind="stable")]
        n_chosen = size - int(self._is_audit(size).sum())
        audit = rng.choice(ranked[n_chosen:], size=size - n_chosen, replace=False)
        return np.concatenate((ranked[:n_chosen], audit))

    def _is_audit(self, size: int) -> BoolArray:
        """Which pairs of a batch after the warm-up belong to the audit, shape (size,).

        The mask depends only on the size of the batch, so a replay finds the same pairs.
        """
        drawn = math.ceil(self._audit * size - ROUNDING)
        return np.arange(size) >= size - drawn
