"""Status of arms by bounds of their means: which can be named best, are tied, or are eliminated."""

from dataclasses import dataclass

import numpy as np

from winnow.algorithms.claims import ArmStatus
from winnow.algorithms.decision import statuses
from winnow.algorithms.state.arrays import BoolArray, FloatArray

# means this close are equal: sums of the same scores in another order can differ by this much
ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Standing:
    """Status of the arms if every mean lies within its bounds; each mask has shape (K,).

    A dropped arm is in `dropped` only: it is not compared with any other arm.
    """

    good_enough: BoolArray
    """Not eliminated, with a score, and no other arm can be better by more than epsilon."""
    tied: BoolArray
    """Fully scored, with a mean within epsilon of the highest, and not the only such arm."""
    eliminated: BoolArray
    """Another arm is better; with a positive epsilon, an eliminated arm can still be tied."""
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

        The highest ranked arm is chosen from the tied arms. If no arm is tied, it is chosen from the good
        enough arms, and if no arm is good enough, from all arms that are neither eliminated nor dropped.

        Args:
            ranking: Shape (K,), NaN where unknown.
        """
        in_question = ~(self.eliminated | self.dropped)
        preferred = (self.tied & in_question, self.good_enough)
        eligible = next((arms for arms in preferred if arms.any()), in_question)
        ranked = np.where(eligible & ~np.isnan(ranking), ranking, -np.inf)
        return int(ranked.argmax()) if ranked.max() > -np.inf else None

    def statuses(self, best: int | None, *, settled: bool) -> tuple[ArmStatus, ...]:
        """Status of each arm, given the recommended arm and whether it is named the best."""
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
    """Highest upper bound of any other active arm, shape (K,); -inf if there is none."""
    among = np.where(active, upper, -np.inf)
    first = int(among.argmax())
    others = np.full(len(among), among[first])
    others[first] = np.delete(among, first).max()
    return others
