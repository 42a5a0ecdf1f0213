"""The standing of arms by bounds of their means: which may be named best, which are tied, which are out."""

from dataclasses import dataclass

import numpy as np

from winnow.algorithms.claims import ArmStatus
from winnow.algorithms.decision import statuses
from winnow.algorithms.state.arrays import BoolArray, FloatArray

ROUNDING = 1e-9  # means this close are equal: sums of the same scores in another order differ by less


@dataclass(frozen=True, slots=True, eq=False)
class Standing:
    """The arms' standing if every mean lies within its bounds; each mask of shape (K,).

    A dropped arm is in `dropped` alone: it is neither compared nor compared with.
    """

    good_enough: BoolArray
    """Not eliminated, with a score, and no other arm can be better by more than epsilon."""
    tied: BoolArray
    """Fully scored, with a mean that is the highest or within epsilon of it, as another arm's in here is."""
    eliminated: BoolArray
    """Another arm is better; with a positive epsilon an arm can be tied all the same."""
    dropped: BoolArray
    """Arms that were dropped."""

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
        """Read off the bounds.

        Args:
            lower: Shape (K,), what each mean is at least.
            upper: Shape (K,), what each mean is at most.
            scored: Shape (K,), arms with a score.
            fully_scored: Shape (K,), arms whose every example is scored, so that their bounds meet.
            active: Shape (K,), arms that were not dropped.
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
        """The arm to recommend; None where no arm can be.

        Of those not eliminated it is the highest ranked of those tied, or if there are none, of those good
        enough, or if there are none, of all.

        Args:
            ranking: Shape (K,), NaN where unknown.
        """
        in_question = ~(self.eliminated | self.dropped)
        preferred = (self.tied & in_question, self.good_enough)
        eligible = next((arms for arms in preferred if arms.any()), in_question)
        ranked = np.where(eligible & ~np.isnan(ranking), ranking, -np.inf)
        return int(ranked.argmax()) if ranked.max() > -np.inf else None

    def statuses(self, best: int | None, *, settled: bool) -> tuple[ArmStatus, ...]:
        """The status of each arm, given the arm recommended and whether it is named the best."""
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
    """The highest upper bound of an active arm other than each, shape (K,); -inf where there is no other."""
    among = np.where(active, upper, -np.inf)
    first = int(among.argmax())
    others = np.full(len(among), among[first])
    others[first] = np.delete(among, first).max()
    return others
