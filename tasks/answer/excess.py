"""Bound on how much better another candidate can be, from a campaign's last decision."""

from collections.abc import Sequence

from winnow.storage.records.record_types import DecisionRecord
from winnow.tasks.answer.model import Answer, Excess


def excess_of(names: Sequence[str], decision: DecisionRecord | None, answer: Answer) -> Excess | None:
    """The statement of a decision; None without one, or if it does not hold.

    It is about models that do not change, and a plug-in's decisions are not Winnow's proofs.

    Args:
        names: Names of the candidates, by position.
        decision: The decision.
        answer: The answer without the statement.
    """
    stored = None if decision is None else decision.claim.get("excess")
    if decision is None or stored is None or answer.is_mixed or answer.plugin is not None:
        return None
    if len(names) - len(answer.dropped) < 2:
        return None
    over, most, delta = names[stored["over"]], stored["most"], stored["delta"]
    others = [name for name in answer.named("active", "not-better") if name != over]
    return Excess(
        over=over,
        most=most,
        claim="proven" if delta else "exact",
        delta=delta,
        not_excluded=tuple(others) if most else (),
    )
