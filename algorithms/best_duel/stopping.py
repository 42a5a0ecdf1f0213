"""Stopping rule and decision of best-duel selectors.

The rule also limits the number of duels that they can still propose.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from winnow.algorithms.best_duel.config import BestDuelConfig
from winnow.algorithms.best_duel.count_evidence import CountEvidence
from winnow.algorithms.best_duel.duel_record import DuelRecord
from winnow.algorithms.claims import HEURISTIC, NOTHING_CLAIMED, ArmStatus, Assumption, Claim, Reason
from winnow.algorithms.decision import Decision, statuses
from winnow.algorithms.protocols import Batch
from winnow.algorithms.state.arrays import BoolArray, FloatArray
from winnow.algorithms.state.plugin_registry import object_at


class Evidence(Protocol):
    """Preferences estimated from a record of duels, with their uncertainty.

    All values depend only on the observations and their order: call `update` right after every tell; reading
    a value changes nothing. So a resumed campaign has the same values, bit for bit. Do not modify the arrays.
    """

    @property
    def preferences(self) -> FloatArray:
        """P(row is preferred to column), shape (K, K).

        1/2 on the diagonal, NaN if unknown.
        """
        ...

    @property
    def estimates(self) -> FloatArray:
        """Values by which the arms are ranked, shape (K,): see `worst_preferences`."""
        ...

    @property
    def lower(self) -> FloatArray:
        """Lower ends of the intervals of the estimates, shape (K,), in [0, 1]."""
        ...

    @property
    def upper(self) -> FloatArray:
        """Upper ends of the intervals of the estimates, shape (K,), in [0, 1]."""
        ...

    @property
    def best(self) -> int | None:
        """The active arm with the highest estimate; None if no active arm has an estimate."""
        ...

    @property
    def statistic(self) -> float:
        """Z, the smallest evidence against any active arm except the best.

        0 if no arm is best, or no other arm is active.
        """
        ...

    @property
    def is_separated(self) -> bool:
        """Whether the best arm is known with the error probability of the config."""
        ...

    @property
    def is_settled(self) -> bool:
        """Whether the final answer is certain.

        It is certain which active arm is best, which arms are tied, or that no arm is best.
        """
        ...

    @property
    def beaten(self) -> BoolArray:
        """Active arms shown not to be the best, shape (K,)."""
        ...

    @property
    def losers(self) -> BoolArray:
        """Active arms that certainly lose to another active arm, shape (K,)."""
        ...

    @property
    def tied(self) -> BoolArray:
        """Active arms certainly tied for first place, shape (K,)."""
        ...

    @property
    def claim(self) -> Claim:
        """Claim about the best arm, once it is separated.

        Once the answer is settled: claim about all arms.
        """
        ...

    @property
    def in_force(self) -> "Evidence":
        """This object, or the evidence by counts once the duels refute this object's model."""
        ...

    def update(self) -> None:
        """Update from the record after a batch was observed."""
        ...


EVIDENCE_BY_FEATURES = "winnow.algorithms.papers.bradley_terry.evidence:BradleyTerryEvidence"
"""Import path of the evidence class for arms with features.
Imported only if arms have features."""


class Stopping:
    """Record of duels, its evidence, and the stopping rule of all best-duel methods.

    With `delta`, the rule stops with the reason "confident" once the evidence separates the best arm from
    every other active arm; the guarantee is that of the evidence. It stops with the reason "exhausted" if no
    further duel can change the answer:

    * only one arm is left; or
    * active arms have had all their duels; or
    * with `delta`, it is certain which arms are tied for first place, or that no arm beats or ties every
      other.

    A dropped arm is never the best, does not delay the stop, and is not covered by any claim.
    """

    def __init__(self, config: BestDuelConfig) -> None:
        self._config = config
        self.record = DuelRecord(config)
        self.evidence = self._asked_for = evidence_of(config, self.record)

    def tell(self, batch: Batch, outcomes: ArrayLike) -> None:
        """Observe outcomes in [0, 1], NaN if unscored; raises like `DuelRecord.tell`."""
        self.record.tell(batch, outcomes)
        self.evidence.update()
        self.evidence = self.evidence.in_force

    def room(self) -> int:
        """Maximum number of duels in the next batch; 0 if stopped."""
        if self._reason() != "running":
            return 0
        room = min(self._config.batch_size, self.record.n_left())
        if self._config.budget is None:
            return room
        spent = self.record.n_told + self.record.n_pending
        return min(room, max(0, self._config.budget - spent))

    def decision(self) -> Decision:
        """The current decision.

        All its intervals hold at every look with probability at least 1 - delta.
        """
        reason = self._reason()
        return Decision(
            best=self.evidence.best,
            estimates=self.evidence.estimates.copy(),
            lower=self.evidence.lower.copy(),
            upper=self.evidence.upper.copy(),
            status=statuses(self.record.n_arms, self._groups(reason)),
            stop=reason != "running",
            reason=reason,
            claim=replace(self._claim(reason), refuted=self._refuted),
        )

    @property
    def _refuted(self) -> tuple[Assumption, ...]:
        """("bradley-terry",) once evidence without that model is used; otherwise empty."""
        return () if self.evidence is self._asked_for else ("bradley-terry",)

    def _groups(self, reason: Reason) -> list[tuple[ArmStatus, BoolArray]]:
        """Statuses with the masks of their arms.

        If an arm is in several masks, its last status counts.
        """
        evidence, dropped = self.evidence, ~self.record.active
        if not self._has_winner(reason):
            return [("eliminated", evidence.beaten), ("tied", evidence.tied), ("dropped", dropped)]
        best = np.arange(self.record.n_arms) == evidence.best
        # With epsilon, the other arms, except certain losers, are only shown to be no better by epsilon.
        others: ArmStatus = "not-better" if self._config.epsilon else "eliminated"
        return [
            (others, self.record.active),
            ("eliminated", evidence.losers),
            ("best", best),
            ("dropped", dropped),
        ]

    def _has_winner(self, reason: Reason) -> bool:
        """Whether one arm is known to be the best or good enough."""
        if reason == "confident":
            return True
        if reason == "running" or self.record.n_active < 2 or not self.evidence.is_settled:
            return False
        best = self.evidence.best
        return best is not None and not self.evidence.losers[best] and not self.evidence.tied.any()

    def _claim(self, reason: Reason) -> Claim:
        if reason == "running" or self.record.n_active < 2:
            return NOTHING_CLAIMED
        if reason == "confident" or self.evidence.is_settled:
            return self.evidence.claim
        return HEURISTIC if self._config.delta is None else NOTHING_CLAIMED

    def _reason(self) -> Reason:
        n_active = self.record.n_active
        if n_active < 2:
            return "exhausted" if n_active else "all-dropped"
        if self._config.delta is not None:
            if self.evidence.is_separated:
                return "confident"
            if self.evidence.is_settled:
                return "exhausted"
        if self.record.is_exhausted():
            return "exhausted"
        if self._config.budget is not None and self.record.n_told >= self._config.budget:
            return "budget"
        return "running"


class DuelSelector:
    """Base class of the selectors of duels.

    Subclasses differ in the duels that they propose.
    """

    def __init__(self, config: BestDuelConfig) -> None:
        self._stopping = Stopping(config)

    def tell(self, batch: Batch, outcomes: ArrayLike) -> None:
        """Observe outcomes in [0, 1] in favour of the first arm, NaN if unscored."""
        self._stopping.tell(batch, outcomes)

    def decision(self) -> Decision:
        """Recommend the arm whose worst preference over any active opponent is highest."""
        return self._stopping.decision()


def evidence_of(config: BestDuelConfig, record: DuelRecord) -> Evidence:
    """Evidence for a record of duels.

    The evidence is by the Bradley-Terry model if the arms have features, otherwise by counts.
    """
    if config.features is None:
        return CountEvidence(config, record)
    by_model: Callable[[BestDuelConfig, DuelRecord], Evidence] = object_at(EVIDENCE_BY_FEATURES)
    return by_model(config, record)
