"""The m best arms of many: which arms are among them, and which are tied for the last place.

The last of them is held against the others as the one best arm is where m is 1.
docs/how-the-best-m-are-found.md has the proof.
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
    """Refuse numbers of best arms that cannot be looked for.

    Raises:
        InvalidParameter: If there are not more arms than that, or what else is asked for needs one best.
    """
    if not 1 <= top_m < n_arms:
        raise InvalidParameter("top_m", top_m, f"from 1 to {n_arms - 1}, fewer than there are candidates")
    if top_m > 1 and start == "race":
        raise InvalidParameter("start", start, "'auto' or 'champion' with a top_m above 1")
    if top_m > 1 and prefer == "cost":
        raise InvalidParameter("prefer", prefer, "'mean' with a top_m above 1")


class TopM(NamedTuple):
    """The m best arms, and how the others stand to the last of them."""

    members: IntArray
    """Shape (m,), best first; fewer where fewer arms are left."""
    tied: BoolArray
    """Shape (K,), fully scored arms with the mean of the last member, where one of them is no member."""
    below: BoolArray
    """Shape (K,), arms whose mean is lower than that of the last member, whatever is not known."""

    @classmethod
    def of(cls, matrix: ScoreMatrix, members: IntArray) -> "TopM":
        """The standing of all arms against these members, by the known scores."""
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
        """The statuses of all arms, to be given in this order; see `statuses`."""
        is_member = np.isin(np.arange(len(active)), self.members)
        return [
            ("not-better", ~is_member),
            ("eliminated", (self.below | is_beaten) & ~is_member),
            ("top", is_member),
            ("tied", self.tied),
            ("dropped", ~active),
        ]


def known_best(matrix: ScoreMatrix, top_m: int, epsilon: float) -> IntArray | None:
    """The m best arms where the known scores alone settle which they are, best first; None elsewhere.

    An example without a score counts 0 for them and 1 for the others.
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
    """Arms that m others are better than whatever is not known, shape (K,)."""
    least, most = matrix.possible_means
    active: FloatArray = np.where(matrix.active, least, -np.inf)
    return np.asarray(matrix.active & (most < np.sort(active)[-top_m] - ROUNDING))
