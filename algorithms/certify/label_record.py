"""Record of bought labels and of the pairs that use them.

It also has the sums of losses per arm.
"""

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from winnow.algorithms.certify.config import CertifyConfig
from winnow.algorithms.errors import MalformedBatch, OutcomeOutOfRange
from winnow.algorithms.protocols import EMPTY_BATCH, Batch
from winnow.algorithms.state.arrays import BoolArray, FloatArray, IntArray, at_bounds
from winnow.algorithms.state.dropping import too_many_unscored
from winnow.algorithms.state.in_flight import InFlight, first_of, require_untold

HUMAN, AUTOEVALUATED, UNLABELLED, MISSING = range(4)
"""Columns of the outcomes.

* HUMAN: the human loss l on a labelled example.
* AUTOEVALUATED: the autoevaluator's loss a on the same example.
* UNLABELLED: u, the mean of those autoevaluator's losses that are present, on r unlabelled examples that
  belong to this labelled example alone.
* MISSING: the share of these r losses that are missing; 0 if the column is absent.
"""

End = Literal["worst", "best"]


def effective_losses(outcomes: FloatArray, factors: FloatArray, end: End = "worst") -> FloatArray:
    """The losses l + rho (u - a) for each reliance factor rho, shape (..., S).

    If labelled and unlabelled examples come from one population, u - a has mean zero and every effective loss
    has the risk as its mean, for an autoevaluator of any quality. It lies in [-rho, 1 + rho].

    A missing loss could have been any value in [0, 1], and can be missing because of its value. Each is set
    to the end of [0, 1] that makes the effective loss largest ("worst": l = 1, a = 0, and 1 for each missing
    one of the r losses behind u) or smallest ("best": 0, 1 and 0). Because rho is not negative, l + rho (u -
    a) increases in l and in each of the r losses, and decreases in a. So the worst effective loss is never
    below the true one, outcome by outcome, and is still at most 1 + rho. A factor 1 - lambda (l' - alpha)
    with a bet lambda >= 0 is then positive and never above its value for the true loss. The bets are
    functions of earlier observations, so they are predictable for the true losses too: given the whole past,
    missing losses included, the factor has a mean of at most 1 if the risk is alpha or more. What is proved
    for complete losses therefore holds for any cause of missing losses. The best losses serve tests that bet
    the other way.

    An answer that cannot be parsed is not a missing loss: see `tasks.objectives.certify.scoring`.

    Args:
        outcomes: Shape (..., 3) or (..., 4), columns as above, in [0, 1], NaN if unscored. If u is NaN, or if
            the share of missing losses is NaN or 1, all r losses behind u count as missing.
        factors: rho, shape (S,), in [0, 1].
        end: The value for missing losses, as above.

    Source: Park et al. (2025), equation (10), for complete losses.
    """
    human, auto, unlabelled = outcomes[..., HUMAN], outcomes[..., AUTOEVALUATED], outcomes[..., UNLABELLED]
    missing = np.zeros_like(unlabelled) if outcomes.shape[-1] == MISSING else outcomes[..., MISSING]
    missing = np.where(np.isnan(unlabelled) | np.isnan(missing), 1.0, missing)
    high, low = (1.0, 0.0) if end == "worst" else (0.0, 1.0)
    human = np.where(np.isnan(human), high, human)
    auto = np.where(np.isnan(auto), low, auto)
    unlabelled = np.nan_to_num(unlabelled) * (1.0 - missing) + high * missing
    losses: FloatArray = human[..., np.newaxis] + factors * (unlabelled - auto)[..., np.newaxis]
    return losses


class LabelRecord:
    """Labels in the order of purchase, and the pairs of an arm and a labelled example.

    Every arm uses the labels in this order, which is drawn at random and independent of losses. A label is
    bought when a pair of its example is first proposed, or observed without a proposal. An arm is dropped
    permanently as soon as `too_many_unscored` is true.

    Args:
        config: The problem and the common parameters.
        columns: Columns of the losses to read; a pair is unscored if one of these losses is NaN.
        estimated: The column among these whose means are the estimates.
    """

    def __init__(self, config: CertifyConfig, columns: tuple[int, ...], estimated: int) -> None:
        self.n_arms, self.n_examples = config.n_arms, config.n_examples
        self._columns = list(columns)
        self._estimated = estimated
        self._n_labels = config.n_labels
        self._max_unscored = config.max_unscored
        shape = (config.n_arms, config.n_examples)
        self._told = np.zeros(shape, dtype=np.bool_)  # (K, n)
        self._taken = np.zeros(shape, dtype=np.bool_)  # (K, n) pairs proposed or observed
        self._is_labelled = np.zeros(config.n_examples, dtype=np.bool_)  # (n,)
        # (n,) labelled examples in the order of purchase; valid up to n_bought
        self._labelled = np.empty(config.n_examples, dtype=np.int64)
        self.n_bought = 0
        self.told = np.zeros(config.n_arms, dtype=np.int64)  # (K,) pairs observed, unscored ones included
        self._unscored = np.zeros(config.n_arms, dtype=np.int64)  # (K,)
        self._sums = np.zeros(config.n_arms)  # (K,) sums of the estimated losses
        self._counts = np.zeros(config.n_arms, dtype=np.int64)  # (K,) numbers of estimated losses
        self.active = np.ones(config.n_arms, dtype=np.bool_)  # (K,) not dropped
        self._in_flight = InFlight()

    @property
    def means(self) -> FloatArray:
        """Mean of each arm's estimated losses, shape (K,); NaN for an arm without losses."""
        means = np.full(self.n_arms, np.nan)
        np.divide(self._sums, self._counts, out=means, where=self._counts > 0)
        return means

    @property
    def n_told(self) -> int:
        """Number of labels observed for at least one arm."""
        return int(self._told.any(axis=0).sum())

    @property
    def has_all(self) -> BoolArray:
        """Which arms were observed on all labels that can be bought, shape (K,)."""
        return self.told >= self._n_labels

    def ask(self, arms: IntArray, size: int, rng: np.random.Generator) -> Batch:
        """Propose at most `size` free pairs of these arms and mark them as pending.

        Pairs are in order of their examples. Already bought labels come first, in order of purchase, then new
        labels on examples drawn uniformly.
        """
        bought = self._labelled[: self.n_bought]
        places, columns = np.nonzero(~self._taken[np.ix_(arms, bought)].T)
        chosen, examples = arms[columns[:size]], bought[places[:size]]
        wanted = -(-(size - len(chosen)) // len(arms))
        if (n_new := min(wanted, self._n_labels - self.n_bought)) > 0:
            new = rng.choice(np.flatnonzero(~self._is_labelled), size=n_new, replace=False)
            room = size - len(chosen)
            chosen = np.concatenate([chosen, np.tile(arms, n_new)[:room]])
            examples = np.concatenate([examples, np.repeat(new, len(arms))[:room]])
        if len(chosen) == 0:
            return EMPTY_BATCH
        batch = Batch(chosen, examples)
        self._take(batch)
        self._in_flight.append(batch)
        return batch

    def tell(self, batch: Batch, outcomes: ArrayLike) -> FloatArray:
        """Observe the outcomes of a batch, whether or not it was proposed here.

        Args:
            batch: B pairs not observed before.
            outcomes: Shape (B, 3) or (B, 4), in [0, 1], NaN if unscored; columns as in `label_record`.

        Returns:
            The outcomes as an array of shape (B, 4).

        Raises:
            RefusedTell: If the batch or an outcome is invalid; the record is then unchanged.
        """
        losses = self._validate(batch, outcomes)
        if len(batch) == 0:
            return losses
        self._in_flight.take_first(batch)
        arms = batch.arms
        self._take(batch)
        self._told[arms, batch.examples] = True
        is_unscored = np.isnan(losses[:, self._columns]).any(axis=1)
        estimated = losses[:, self._estimated]
        is_known = ~np.isnan(estimated)
        self.told += np.bincount(arms, minlength=self.n_arms)
        self._unscored += np.bincount(arms[is_unscored], minlength=self.n_arms)
        self._sums += np.bincount(arms[is_known], weights=estimated[is_known], minlength=self.n_arms)
        self._counts += np.bincount(arms[is_known], minlength=self.n_arms)
        self.active &= ~too_many_unscored(self.told, self._unscored, self._max_unscored)
        return losses

    def _take(self, batch: Batch) -> None:
        self._taken[batch.arms, batch.examples] = True
        examples, first = np.unique(batch.examples, return_index=True)
        first = np.sort(first[~self._is_labelled[examples]])
        new = batch.examples[first]
        self._labelled[self.n_bought : self.n_bought + new.size] = new
        self._is_labelled[new] = True
        self.n_bought += new.size

    def _validate(self, batch: Batch, outcomes: ArrayLike) -> FloatArray:
        """Validate a batch; return its outcomes as floats, shape (B, 4)."""
        arms, examples = batch.arms, batch.examples
        if arms.ndim != 1:
            raise MalformedBatch("arms", "of shape (B,)", f"shape {arms.shape}")
        wanted = (
            f"numbers of shape ({len(batch)}, 3), human, autoevaluated and unlabelled losses, or "
            f"({len(batch)}, 4), with the share of the unlabelled ones that are missing"
        )
        try:
            losses = np.array(outcomes, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise MalformedBatch("outcomes", wanted, f"something else ({error})") from error
        if losses.shape not in {(len(batch), MISSING), (len(batch), MISSING + 1)}:
            raise MalformedBatch("outcomes", wanted, f"shape {losses.shape}")
        if losses.shape[1] == MISSING:
            losses = np.column_stack([losses, np.zeros(len(batch))])
        require_untold(arms, examples, self._told)
        losses = at_bounds(losses)
        is_bad: BoolArray = (losses < 0.0) | (losses > 1.0)
        if (where := first_of(is_bad.ravel())) is not None:
            value = float(losses.flat[where])
            where //= losses.shape[1]
            raise OutcomeOutOfRange(int(arms[where]), int(examples[where]), value, "losses in [0, 1]")
        self._in_flight.check(batch)
        return losses
