"""Multiple testing: which arms are certified, and when testing ends.

The module also states which arms are under test.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from winnow.algorithms.certify.config import CertifyConfig
from winnow.algorithms.certify.label_record import LabelRecord
from winnow.algorithms.claims import NOTHING_CLAIMED, Claim, Reason
from winnow.algorithms.decision import Decision, statuses
from winnow.algorithms.protocols import EMPTY_BATCH, Batch
from winnow.algorithms.state.arrays import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Findings:
    """Test results of each arm, before multiple testing; each field has shape (K,)."""

    passed: BoolArray
    """Whether the risk is shown to be at most alpha, at the level of the test."""
    refuted: BoolArray
    """Whether the risk is shown to be above alpha, at the level of refutations."""
    lower: FloatArray
    """Lower ends of the risks at the level of refutations; NaN without intervals."""
    upper: FloatArray
    """Upper ends of the risks at the level of the test; NaN without intervals."""


class Procedure:
    """Multiple testing by the procedure of a config, over a record of labels.

    Fixed sequence: the arms are tested in their order, each at delta. Testing ends with the first arm that is
    not certified, once it is refuted or observed on all its labels. A false certificate requires that the
    first arm whose risk is above alpha passes, so the probability of any false certificate is at most delta.
    Bonferroni: every arm is tested at delta / K. Testing ends when no arm that is cheaper than the cheapest
    certified one can still be certified. In both procedures the arms can share examples and stop at different
    times.

    Neither the end of a test nor the end of all tests makes wrong certificates more probable: an e-value is
    valid at any time, for any reason to stop. A refuted or dropped arm is not certified, even if it passed.
    That only removes certificates: in a fixed sequence a dropped arm is not skipped, but ends the sequence
    like any other arm that is not certified. (Continuing after it would be a second chance for a false
    certificate at the full delta.) So the bounds above hold unchanged for any number of dropped arms,
    whatever the reason for dropping them.

    Refutations have a separate error probability: that any arm whose risk is at most alpha is ever refuted
    has probability at most delta, delta / K for each arm. It is not part of the claim, which covers
    certificates.

    Upper ends include certificates, with the same error: that the risk of any certified arm is above alpha,
    or that of any arm above its upper end, has probability at most delta, all arms and all times together.
    With Bonferroni each arm has its delta / K. In a fixed sequence certified arms have the end alpha, the
    first other arm has its own end, at level delta, and all later ones have 1. Proof: let k be the first arm
    whose risk is above alpha. No end is below alpha, so a wrong statement is about k or a later arm. If it is
    about a later one, all arms before that one are certified, k among them. So either k is certified, and its
    own end is alpha, or its own end is the wrong statement. In both cases the own end of k is wrong, which
    has probability at most delta.

    Lower ends include refutations: they hold for all arms at all times with probability at least 1 - delta.
    Lower and upper ends together hold with probability at least 1 - 2 delta.

    The method defines `passed`: a certificate is as good as the test behind it.

    Args:
        config: The problem and the common parameters.
        record: The labels.
        claim: The claim about certificates; if it is a heuristic, arms pass but are not certified.

    Source: Hsu & Berger (1999), "Stepwise confidence intervals without multiplicity adjustment for
    dose-response and toxicity studies", JASA 94(446), for the upper ends in a fixed sequence.
    """

    def __init__(self, config: CertifyConfig, record: LabelRecord, claim: Claim) -> None:
        self._config = config
        self._record = record
        self._claim = claim
        self._in_sequence = config.procedure == "fixed-sequence"
        self._word: Literal["certified", "passed"] = "passed" if claim.kind == "heuristic" else "certified"

    def ask(self, findings: Findings, rng: np.random.Generator) -> Batch:
        """Propose pairs of the arms under test."""
        arms = self._under_test(findings)
        return self._record.ask(arms, self._config.batch_size, rng) if arms.size else EMPTY_BATCH

    def certified(self, findings: Findings) -> BoolArray:
        """Which arms are certified, shape (K,)."""
        usable: BoolArray = findings.passed & ~findings.refuted & self._record.active
        if not self._in_sequence:
            return usable
        certified: BoolArray = np.logical_and.accumulate(usable)
        return certified

    def decision(self, findings: Findings) -> Decision:
        """Which arms are certified, and whether testing is over.

        Estimates are the arms' means of the losses that the record estimates, moved to the nearest end of the
        interval if they lie outside.
        """
        certified = self.certified(findings)
        chosen = np.flatnonzero(certified)
        reason = self._reason(findings)
        upper = self._upper(findings, certified)
        means = self._record.means
        inside = np.fmax(np.fmin(means, upper), findings.lower)
        return Decision(
            best=int(chosen[-1]) if chosen.size else None,
            estimates=np.where(np.isnan(means), np.nan, inside),
            lower=findings.lower,
            upper=upper,
            status=statuses(
                self._config.n_arms,
                [
                    ("untested", (self._record.told == 0) & (reason != "running")),
                    ("refuted", findings.refuted),
                    (self._word, certified),
                    ("dropped", ~self._record.active),
                ],
            ),
            stop=reason != "running",
            reason=reason,
            claim=self._claim if chosen.size else NOTHING_CLAIMED,
        )

    def _under_test(self, findings: Findings) -> IntArray:
        """Arms whose tests are worth continuing."""
        certified = self.certified(findings)
        if self._in_sequence:
            wanted = ~certified & (np.cumsum(~certified) == 1)
        else:
            wanted = ~np.logical_or.accumulate(certified[::-1])[::-1]  # cheaper than all certified ones
        return np.flatnonzero(wanted & ~findings.refuted & self._record.active & ~self._record.has_all)

    def _upper(self, findings: Findings, certified: BoolArray) -> FloatArray:
        if not self._in_sequence:
            return findings.upper
        behind = np.cumsum(~certified) > 1
        return np.where(behind & ~np.isnan(findings.upper), 1.0, findings.upper)

    def _reason(self, findings: Findings) -> Reason:
        if not self._record.active.any():
            return "all-dropped"
        if self._under_test(findings).size:
            return "running"
        return self._word if self.certified(findings).any() else "none-certified"


def by_arms(batch: Batch, losses: FloatArray) -> list[tuple[IntArray, FloatArray]]:
    """Group the losses of a batch by arm, in the order of the batch.

    Arms with the same number of losses share a group, so that there are few groups.

    Args:
        batch: B pairs.
        losses: Shape (B, 4).

    Returns:
        The A arms of each group, shape (A,), and their losses, shape (A, B', 4).
    """
    order = np.argsort(batch.arms, kind="stable")
    arms, first, counts = np.unique(batch.arms[order], return_index=True, return_counts=True)
    return [
        (arms[counts == count], losses[order[first[counts == count, np.newaxis] + np.arange(count)]])
        for count in np.unique(counts)
    ]
