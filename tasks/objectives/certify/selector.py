"""Adapter of a certifying selector to a dataset's examples; the algorithm only numbers labellable ones."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from winnow.algorithms.certify.config import Rule
from winnow.algorithms.decision import Decision
from winnow.algorithms.protocols import Batch, Selector
from winnow.algorithms.state.arrays import FloatArray, IntArray
from winnow.storage.records.record_types import Losses
from winnow.tasks.campaign.resolved import common_params
from winnow.tasks.objectives.certify.split import Parts
from winnow.tasks.plugins.selectors import campaign_selector
from winnow.tasks.spec.campaign import CampaignSpec

BETTING_RULE = "betting_rule"
"""Identity key of the betting rule; a campaign keeps the rule that it began with."""


class LabelSelector:
    """Translate between the algorithm's numbers of labellable examples and example positions.

    Args:
        inner: The algorithm.
        labellable: Example position of each of its examples, shape (n,).
    """

    def __init__(self, inner: Selector, labellable: IntArray) -> None:
        self.inner = inner
        self._labellable = labellable
        self._numbers = {int(position): number for number, position in enumerate(labellable)}
        self._told: set[int] = set()

    @property
    def n_labels(self) -> int:
        """Number of labels used: examples observed for at least one arm."""
        return len(self._told)

    def ask(self, rng: np.random.Generator) -> Batch:
        """Propose the next pairs; see `Selector`."""
        batch = self.inner.ask(rng)
        return Batch(batch.arms, self._labellable[batch.examples])

    def tell(self, batch: Batch, outcomes: ArrayLike) -> None:
        """Observe losses, shape (B, 4); see `Selector`."""
        numbers = [self._numbers[position] for position in batch.examples.tolist()]
        self.inner.tell(Batch(batch.arms, np.array(numbers, dtype=np.int64)), outcomes)
        self._told.update(numbers)

    def decision(self) -> Decision:
        """See `Selector`."""
        return self.inner.decision()


def certifying_selector(
    spec: CampaignSpec, n_arms: int, parts: Parts, rule: Rule, **more: object
) -> LabelSelector:
    """Create the selector of a certify campaign, without observations.

    Args:
        spec: The campaign.
        n_arms: K.
        parts: Its examples.
        rule: Its betting rule, resolved.
        more: Parameters that override those of the spec.
    """
    params = {**common_params(spec), **spec.selector.params, "betting": rule, **more}
    inner = campaign_selector(spec.selector.name, n_arms=n_arms, n_examples=len(parts.labellable), **params)
    return LabelSelector(inner, parts.labellable)


def as_losses(losses: Sequence[Losses]) -> FloatArray:
    """Losses in the form for a selector, shape (B, 4): NaN if unknown."""
    known = [[math.nan if loss is None else loss for loss in row] for row in losses]
    return np.array(known, dtype=np.float64).reshape(-1, 4)
