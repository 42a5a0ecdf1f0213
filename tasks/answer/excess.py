"""Bound on how much better another candidate can be, from the latest decision."""

from collections.abc import Sequence

from winnow.storage.records.record_types import DecisionRecord
from winnow.tasks.answer.model import Answer, Excess


def excess_of(names: Sequence[str], decision: DecisionRecord | None, answer: Answer) -> Excess | None:
    """Bound on how much better another candidate can be; None without a valid bound.

    A stored bound is not valid in three cases: outputs of two models count as those of one (`is_mixed`); the
    selector is a plug-in, which Winnow has not verified; or fewer than two candidates are left.

    Args:
        names: Names of the candidates, by arm.
        decision: The latest decision; None before the first one.
        answer: The answer without the bound.
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
