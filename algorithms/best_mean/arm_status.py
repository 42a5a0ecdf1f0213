"""Status of arms from bounds of their means.

It shows which arms can be named best, are tied, or are eliminated.
"""

from dataclasses import dataclass

import numpy as np

from winnow.algorithms.claims import ArmStatus
from winnow.algorithms.decision import statuses
from winnow.algorithms.state.arrays import BoolArray, FloatArray

# Means that differ by at most this are equal: summing the same scores in another order can change a sum.
ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Standing:
    """Status of the arms if every mean lies within its bounds.

    Each mask has shape (K,). A dropped arm is in `dropped` only, and it is not compared with other arms.
    """

    good_enough: BoolArray
    """Not eliminated, scored, and no other arm can be better by more than epsilon."""
    tied: BoolArray
    """Fully scored, with a mean within epsilon of the highest possible mean.
    Empty unless there are several such arms."""
    eliminated: BoolArray
    """Another arm is better.
    With a positive epsilon, an eliminated arm can still be tied."""
    dropped: BoolArray

    @classmethod
    def of(
        cls,
        lower: FloatArray,
        upper: FloatArray,
        *,
        scored: BoolArray,
        fully_scored: BoolArray,
        active: BoolArray,
        epsilon: float,
    ) -> "Standing":
        """Derive the masks from the bounds.

        Args:
            lower: Shape (K,), lower bound of each mean.
            upper: Shape (K,), upper bound of each mean.
            scored: Shape (K,), arms with a score.
            fully_scored: Shape (K,), arms with a score on every example, so that their bounds are equal.
            active: Shape (K,), arms not dropped.
            epsilon: In [0, 1).
        """
        highest = upper.max(initial=-np.inf, where=active)
        tied = active & fully_scored & (lower >= highest - epsilon - ROUNDING)
        reaches_others = lower >= _highest_other(upper, active) - epsilon - ROUNDING
        eliminated = active & (upper < lower.max(initial=-np.inf, where=active) - ROUNDING)
        return cls(
            good_enough=active & scored & reaches_others & ~eliminated,
            tied=tied if tied.sum() > 1 else np.zeros_like(tied),
            eliminated=eliminated,
            dropped=~active,
        )

    def best(self, ranking: FloatArray) -> int | None:
        """Choose the arm to recommend; None if no eligible arm has a rank.

        The highest ranked of the tied arms is chosen. If no arm is tied, it is the highest ranked of the good
        enough arms; if no arm is good enough, of all arms that are neither eliminated nor dropped.

        Args:
            ranking: Shape (K,), NaN if unknown.
        """
        in_question = ~(self.eliminated | self.dropped)
        preferred = (self.tied & in_question, self.good_enough)
        eligible = next((arms for arms in preferred if arms.any()), in_question)
        ranked = np.where(eligible & ~np.isnan(ranking), ranking, -np.inf)
        return int(ranked.argmax()) if ranked.max() > -np.inf else None

    def statuses(self, best: int | None, *, settled: bool) -> tuple[ArmStatus, ...]:
        """Status of each arm.

        Args:
            best: The recommended arm.
            settled: Whether the recommended arm is claimed to be the best or good enough.
        """
        groups: list[tuple[ArmStatus, BoolArray]] = []
        if settled and best is not None:
            is_best = np.arange(len(self.dropped)) == best
            groups += [("not-better", ~is_best)]
            groups += [("eliminated", self.eliminated)]
            groups += [("tied", self.tied)] if self.tied[best] else [("best", is_best)]
        else:
            groups += [("eliminated", self.eliminated)]
        return statuses(len(self.dropped), [*groups, ("dropped", self.dropped)])


def _highest_other(upper: FloatArray, active: BoolArray) -> FloatArray:
    """Highest upper bound of any other active arm, shape (K,).

    -inf if no other arm is active.
    """
    among = np.where(active, upper, -np.inf)
    first = int(among.argmax())
    others = np.full(len(among), among[first])
    others[first] = np.delete(among, first).max()
    return others
