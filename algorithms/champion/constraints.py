"""Constraints on arms in addition to a high mean: least means of further outcomes of the same pairs.

Letters: K arms, N examples, J constraints, B pairs; c_j the required mean of outcome j. An arm meets the
constraints if its mean of outcome j over all N examples is at least c_j, for every j. A missing outcome
counts as 0 for showing that an arm meets them, and as 1 for eliminating the arm. Means that differ by less
than `ROUNDING` are equal, in favour of the arm. docs/how-constraints-are-met.md has the proof.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from winnow.algorithms.best_mean.arm_status import ROUNDING
from winnow.algorithms.best_mean.config import BestMeanConfig
from winnow.algorithms.best_mean.groups import Groups
from winnow.algorithms.champion.cheaper_arms import Prefer
from winnow.algorithms.champion.draw_order import Draws, Grouped
from winnow.algorithms.champion.switch import Start
from winnow.algorithms.champion.wealth import Wealths, adaptive_bets, log_factors
from winnow.algorithms.errors import InvalidParameter, MalformedBatch, OutcomeOutOfRange, check_parameters
from winnow.algorithms.protocols import Batch
from winnow.algorithms.state.arrays import BoolArray, FloatArray, IntArray, at_bounds


class Constraint(NamedTuple):
    """Draws of the outcome of one constraint, and wealths of bets that arms do not meet it."""

    least: float
    """N c_j, less a tolerance for rounding."""
    is_bet_on: bool
    """Whether it is bet on: not if c_j is 1, because any value below 1, the only winning value, proves the
    violation."""
    draws: Draws
    wealths: Wealths

    def tell(self, batch: Grouped) -> None:
        """Bet on draws, then absorb them."""
        nothing = np.zeros(len(batch.examples))
        adaptive = self._adaptive_bets(batch.arms)[batch.group]
        played = self.draws.next_of(batch, nothing, nothing, adaptive)
        if self.is_bet_on:
            logs = log_factors(played, np.full_like(nothing, self.least), played.total)
            self.wealths.add(batch.arms, batch.starts, logs)
        self.draws.append(batch, played, nothing)

    def _adaptive_bets(self, arms: IntArray) -> FloatArray:
        """Adaptive bets from the distance between mean and c_j, by observations before these draws only."""
        draws = self.draws
        counts = np.maximum(draws.count[arms], 1)
        squares = np.maximum(draws.squares[arms] - draws.sums[arms] ** 2 / counts, 0.0)
        gap = self.least / draws.n_examples - draws.sums[arms] / counts
        return adaptive_bets(gap, squares, draws.count[arms])


class Constraints:
    """For K arms: which meet all constraints, which cannot, and the wealth of bets against each constraint.

    Args:
        n_arms: K.
        n_examples: N.
        at_least: Shape (J,), c_j; None without constraints, which every arm meets.
    """

    def __init__(self, n_arms: int, n_examples: int, at_least: FloatArray | None) -> None:
        self._n_arms = n_arms
        self._each = [
            Constraint(
                least=n_examples * (least - ROUNDING),
                is_bet_on=least < 1.0,
                draws=Draws(n_arms, Groups.none(n_examples)),
                wealths=Wealths(n_arms),
            )
            for least in ([] if at_least is None else at_least.tolist())
        ]

    def __len__(self) -> int:
        """Number J of constraints."""
        return len(self._each)

    def __iter__(self) -> Iterator[Constraint]:
        return iter(self._each)

    @property
    def are_met(self) -> BoolArray:
        """Arms that meet all constraints for any values of the unknown outcomes, shape (K,)."""
        met = [each.draws.low >= each.least for each in self._each]
        return np.array(np.all(met, axis=0)) if met else np.ones(self._n_arms, dtype=np.bool_)

    @property
    def are_missed(self) -> BoolArray:
        """Arms that violate some constraint for any values of the unknown outcomes, shape (K,)."""
        missed = [each.draws.high + each.draws.left < each.least for each in self._each]
        return np.array(np.any(missed, axis=0)) if missed else np.zeros(self._n_arms, dtype=np.bool_)

    def add_arms(self, count: int) -> None:
        """Add arms; only without constraints, the selector refuses them otherwise."""
        assert not self._each
        self._n_arms += count

    def tell(self, batch: Batch, values: FloatArray) -> None:
        """Absorb outcomes, shape (B, J), NaN if missing."""
        for each, told in zip(self._each, values.T, strict=True):
            each.tell(Grouped.of(batch.arms, batch.examples, told))

    def averaged(self, arms: IntArray, wealths: FloatArray) -> FloatArray:
        """Average wealths of bets on the means of some arms, shape (A,), and of bets on their constraints.

        The shares are fixed before the first observation.
        """
        bets = [each.wealths.since_start(arms) for each in self._each if each.is_bet_on]
        return np.asarray((wealths + sum(bets)) / (1 + len(bets)))

    def split(self, batch: Batch, outcomes: ArrayLike) -> tuple[ArrayLike, FloatArray]:
        """Split the outcomes of a batch into unchecked scores and checked outcomes for the constraints.

        Args:
            batch: B pairs.
            outcomes: Shape (B, 1 + J), the score first; of shape (B,) without constraints.

        Raises:
            RefusedTell: If these outcomes are invalid.
        """
        if not self._each:
            return outcomes, np.zeros((len(batch), 0))
        given, shape = at_bounds(np.array(outcomes, dtype=np.float64)), (len(batch), 1 + len(self))
        if given.shape != shape:
            raise MalformedBatch("outcomes", f"of shape {shape}", f"shape {given.shape}")
        values = given[:, 1:]
        wrong = np.argwhere((values < 0.0) | (values > 1.0))
        if wrong.size:
            row, column = wrong[0].tolist()
            arm, example = int(batch.arms[row]), int(batch.examples[row])
            raise OutcomeOutOfRange(arm, example, float(values[row, column]), "in [0, 1]")
        return given[:, 0], values


def checked_constraints(
    at_least: FloatArray | None,
    config: BestMeanConfig,
    *,
    start: Start,
    prefer: Prefer,
    top_m: int,
    has_groups: bool,
) -> FloatArray | None:
    """Validate the required means of a selector's constraints; return them as floats, or None.

    Raises:
        InvalidParameter: If a required mean is not in (0, 1], or another setting excludes constraints.
    """
    if at_least is None:
        return None
    given = np.asarray(at_least, dtype=np.float64)
    if given.ndim != 1 or given.size == 0 or not ((given > 0.0) & (given <= 1.0)).all():
        raise InvalidParameter("constraints", given.tolist(), "an array of numbers above 0 and at most 1")
    check_parameters(
        ("delta", config.delta, config.delta is not None, "given to prove that constraints are met"),
        ("start", start, start != "race", "'auto' or 'champion' with constraints"),
        ("prefer", prefer, prefer == "mean", "'mean' with constraints"),
        ("top_m", top_m, top_m == 1, "1 with constraints"),
        ("groups", "an array", not has_groups, "None with constraints"),
    )
    return given
