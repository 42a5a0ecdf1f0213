"""When a best-duel selector stops, what it then says, and how much it may ask until then."""

from numpy.typing import ArrayLike

from algorithms.best_duel.duel_record import DuelRecord
from algorithms.best_duel.evidence import evidence_of
from algorithms.best_duel.setting import Setting
from algorithms.decision import HEURISTIC, NOTHING_CLAIMED, Claim, Decision, Reason, statuses
from algorithms.protocols import Batch


class Stopping:
    """The record of the duels, the evidence in it, and the rule that all methods stop by.

    With `delta`, it stops as separated once the best arm beats every other active arm and the evidence
    against each of those is above the threshold; what that guarantees, `thresholds` says. Arms set aside are
    neither best nor waited for; where one arm is left, there is nothing more to ask.
    """

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self.record = DuelRecord(setting)
        self.evidence = evidence_of(setting, self.record)

    def tell(self, batch: Batch, outcomes: ArrayLike) -> None:
        """Absorb outcomes in [0, 1], NaN where unscored; raises like `DuelRecord.tell`."""
        self.record.tell(batch, outcomes)
        self.evidence.update()

    def room(self) -> int:
        """How many duels the next batch may have; 0 when stopped."""
        if self._reason() != "running":
            return 0
        if self._setting.budget is None:
            return self._setting.batch_size
        spent = self.record.n_told + self.record.n_pending
        return min(self._setting.batch_size, max(0, self._setting.budget - spent))

    def decision(self) -> Decision:
        """What is believed now."""
        reason = self._reason()
        return Decision(
            best=self.evidence.best,
            estimates=self.evidence.estimates.copy(),
            lower=self.evidence.lower.copy(),
            upper=self.evidence.upper.copy(),
            status=statuses(self.record.n_arms, [("dropped", ~self.record.active)]),
            stop=reason != "running",
            reason=reason,
            claim=self._claim(reason),
        )

    def _claim(self, reason: Reason) -> Claim:
        if reason == "confident" and self._setting.threshold == "proven":
            return Claim(kind="proven", delta=self._setting.delta)
        if reason == "confident" or (reason == "budget" and self._setting.delta is None):
            return HEURISTIC
        return NOTHING_CLAIMED

    def _reason(self) -> Reason:
        n_active = self.record.n_active
        if n_active < 2:
            return "exhausted" if n_active else "all-dropped"
        if self._setting.delta is not None and self.evidence.is_separated:
            return "confident"
        if self._setting.budget is not None and self.record.n_told >= self._setting.budget:
            return "budget"
        return "running"
