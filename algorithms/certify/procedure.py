"""Tests of several arms as one: which are certified, which are still under test, and when it is over."""

import numpy as np

from algorithms.arrays import BoolArray, FloatArray, IntArray
from algorithms.certify.label_record import LabelRecord
from algorithms.certify.setting import Setting
from algorithms.decision import NOTHING_CLAIMED, Claim, Decision, Reason, statuses
from algorithms.protocols import EMPTY_BATCH, Batch


class Procedure:
    """The multiple testing of a setting, over a record of labels.

    Fixed sequence: the arms are tested in their order, each at delta, and the first arm that is not certified
    with all its labels ends it. A false certificate must pass the first arm whose risk is above alpha, so
    the probability of any is at most delta. Bonferroni: every arm is tested at delta / K. Either way the arms
    may share examples and stop at different times.

    An arm that is set aside is not certified. What `passed` means is the method's business: a certificate is
    as good as the test behind it.
    """

    def __init__(self, setting: Setting, record: LabelRecord) -> None:
        self._setting = setting
        self._record = record

    def ask(self, passed: BoolArray, rng: np.random.Generator) -> Batch:
        """Ask for pairs of the arms under test, given which arms passed, shape (K,)."""
        arms = self._under_test(passed)
        return self._record.ask(arms, self._setting.batch_size, rng) if arms.size else EMPTY_BATCH

    def certified(self, passed: BoolArray) -> BoolArray:
        """Which arms are certified, shape (K,)."""
        usable = passed & self._record.active
        if self._setting.procedure == "bonferroni":
            return usable
        certified: BoolArray = np.logical_and.accumulate(usable)
        return certified

    def decision(self, passed: BoolArray, lower: FloatArray, upper: FloatArray) -> Decision:
        """The decision, given which arms passed and their intervals, each of shape (K,)."""
        certified = np.flatnonzero(self.certified(passed))
        reason = self._reason(passed)
        return Decision(
            best=int(certified[-1]) if certified.size else None,
            estimates=self._record.means,
            lower=lower,
            upper=upper,
            status=statuses(
                self._setting.n_arms,
                [("certified", self.certified(passed)), ("dropped", ~self._record.active)],
            ),
            stop=reason != "running",
            reason=reason,
            claim=Claim(kind="proven", delta=self._setting.delta, assumptions=("random-labels",))
            if reason == "certified"
            else NOTHING_CLAIMED,
        )

    def _under_test(self, passed: BoolArray) -> IntArray:
        waiting = ~self.certified(passed)
        if self._setting.procedure == "fixed-sequence":
            waiting &= np.cumsum(waiting) == 1
        return np.flatnonzero(waiting & self._record.active & ~self._record.has_all)

    def _reason(self, passed: BoolArray) -> Reason:
        if not self._record.active.any():
            return "all-dropped"
        if self._under_test(passed).size:
            return "running"
        return "certified" if self.certified(passed).any() else "none-certified"


def by_arms(batch: Batch, losses: FloatArray) -> list[tuple[IntArray, FloatArray]]:
    """The losses of a batch, shape (B, 3), by arm and in the order of the batch.

    Arms with the same number of losses come together, so that there is little to loop over.

    Returns:
        Of each group its A arms, shape (A,), and their losses, shape (A, B', 3).
    """
    order = np.argsort(batch.arms, kind="stable")
    arms, first, counts = np.unique(batch.arms[order], return_index=True, return_counts=True)
    return [
        (arms[counts == count], losses[order[first[counts == count, np.newaxis] + np.arange(count)]])
        for count in np.unique(counts)
    ]
