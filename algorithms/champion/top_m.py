"""The m best arms: which arms they are, and ties for the last place.

The last member is compared with the others like the one best arm for m = 1. docs/how-the-best-m-are-found.md
has the proof.
"""

from typing import NamedTuple

import numpy as np

from winnow.algorithms.best_mean.arm_status import ROUNDING
from winnow.algorithms.best_mean.score_matrix import ScoreMatrix
from winnow.algorithms.champion.cheaper_arms import Prefer
from winnow.algorithms.champion.switch import Start
from winnow.algorithms.claims import ArmStatus
from winnow.algorithms.errors import InvalidParameter
from winnow.algorithms.state.arrays import BoolArray, FloatArray, IntArray


def check_top_m(top_m: int, n_arms: int, start: Start, prefer: Prefer) -> None:
    """Validate the number of best arms to find.

    Raises:
        InvalidParameter: If `top_m` is not from 1 to K - 1, or another setting requires a single best arm.
    """
    if not 1 <= top_m < n_arms:
        raise InvalidParameter("top_m", top_m, f"from 1 to {n_arms - 1}, fewer than the candidates")
    if top_m > 1 and start == "race":
        raise InvalidParameter("start", start, "'auto' or 'champion' with a top_m above 1")
    if top_m > 1 and prefer == "cost":
        raise InvalidParameter("prefer", prefer, "'mean' with a top_m above 1")


class TopM(NamedTuple):
    """The m best arms, and how the others compare with the last of them."""

    members: IntArray
    """Shape (m,), best first; fewer if fewer arms are left."""
    tied: BoolArray
    """Shape (K,), fully scored arms with the mean of the last member.
    Empty unless they include a member and another arm."""
    below: BoolArray
    """Shape (K,), arms whose mean is below that of the last member.
    This holds for any values of the missing scores."""

    @classmethod
    def of(cls, matrix: ScoreMatrix, members: IntArray) -> "TopM":
        """Compare all arms with these members, using the known scores."""
        least, most = matrix.possible_means
        last = float(least[members].min())
        is_member = np.isin(np.arange(matrix.n_arms), members)
        equal = matrix.active & matrix.fully_scored & (abs(least - last) <= ROUNDING)
        has_both = (equal & is_member).any() and (equal & ~is_member).any()
        return cls(
            members=members,
            tied=equal if has_both else np.zeros_like(equal),
            below=matrix.active & (most < last - ROUNDING),
        )

    def groups(self, is_beaten: BoolArray, active: BoolArray) -> list[tuple[ArmStatus, BoolArray]]:
        """Statuses of all arms, later ones overriding earlier ones; see `statuses`."""
        is_member = np.isin(np.arange(len(active)), self.members)
        return [
            ("not-better", ~is_member),
            ("eliminated", (self.below | is_beaten) & ~is_member),
            ("top", is_member),
            ("tied", self.tied),
            ("dropped", ~active),
        ]


def known_best(matrix: ScoreMatrix, top_m: int, epsilon: float) -> IntArray | None:
    """The m best arms if the known scores determine them, best first; otherwise None.

    A missing score counts as 0 for these arms and as 1 for the others.
    """
    least, most = matrix.possible_means
    arms = np.flatnonzero(matrix.active)
    order = arms[np.lexsort((-most[arms], -least[arms]))]
    members, others = order[:top_m], order[top_m:]
    if members.size == 0 or (matrix.scored[members] == 0).any():
        return None
    highest = most[others].max(initial=-np.inf)
    return members if least[members].min() >= highest - epsilon - ROUNDING else None


def below_the_best(matrix: ScoreMatrix, top_m: int) -> BoolArray:
    """Arms that m other arms exceed, whatever the missing scores are, shape (K,)."""
    least, most = matrix.possible_means
    active: FloatArray = np.where(matrix.active, least, -np.inf)
    return np.asarray(matrix.active & (most < np.sort(active)[-top_m] - ROUNDING))
