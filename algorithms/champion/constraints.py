"""Constraints on arms: required means of further outcomes.

These outcomes are observed with the score of each pair. Letters: K arms, N examples, J constraints, B pairs;
c_j is the required mean of outcome j. An arm meets the constraints if its mean of outcome j over all N
examples is at least c_j, for every j. A missing outcome counts as 0 when showing that an arm meets the
constraints, and as 1 when eliminating the arm. A mean below c_j by less than `ROUNDING` counts as c_j.
docs/how-constraints-are-met.md has the proof.
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
    """One constraint: its draws, and wealths of bets that arms do not meet it."""

    least: float
    """N c_j, minus a tolerance for rounding."""
    is_bet_on: bool
    """Whether bets are made on the constraint.
    False if c_j is 1: then only a value below 1 wins a bet, and that value alone proves the violation."""
    draws: Draws
    wealths: Wealths

    def tell(self, batch: Grouped) -> None:
        """Bet on the draws of a batch, then add them."""
        nothing = np.zeros(len(batch.examples))
        adaptive = self._adaptive_bets(batch.arms)[batch.group]
        played = self.draws.next_of(batch, nothing, nothing, adaptive)
        if self.is_bet_on:
            logs = log_factors(played, np.full_like(nothing, self.least), played.total)
            self.wealths.add(batch.arms, batch.starts, logs)
        self.draws.append(batch, played, nothing)

    def _adaptive_bets(self, arms: IntArray) -> FloatArray:
        """Bets fitted to the distance of earlier draws' mean from c_j, shape (G,)."""
        draws = self.draws
        counts = np.maximum(draws.count[arms], 1)
        squares = np.maximum(draws.squares[arms] - draws.sums[arms] ** 2 / counts, 0.0)
        gap = self.least / draws.n_examples - draws.sums[arms] / counts
        return adaptive_bets(gap, squares, draws.count[arms])


class Constraints:
    """Which of K arms meet all constraints, and which cannot.

    The object also keeps the wealth of bets against each constraint.

    Args:
        n_arms: K.
        n_examples: N.
        at_least: Shape (J,), c_j; None if there are no constraints, so that every arm meets them.
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
        """Arms that meet all constraints, whatever the unknown outcomes are; shape (K,)."""
        met = [each.draws.low >= each.least for each in self._each]
        return np.array(np.all(met, axis=0)) if met else np.ones(self._n_arms, dtype=np.bool_)

    @property
    def are_missed(self) -> BoolArray:
        """Arms that violate some constraint, whatever the unknown outcomes are.

        Shape (K,).
        """
        missed = [each.draws.high + each.draws.left < each.least for each in self._each]
        return np.array(np.any(missed, axis=0)) if missed else np.zeros(self._n_arms, dtype=np.bool_)

    def add_arms(self, count: int) -> None:
        """Append arms. Requires that there are no constraints.

        The selector refuses other calls.
        """
        assert not self._each
        self._n_arms += count

    def tell(self, batch: Batch, values: FloatArray) -> None:
        """Observe outcomes of the constraints and bet on them.

        Args:
            batch: B pairs.
            values: Shape (B, J), NaN if missing.
        """
        for each, told in zip(self._each, values.T, strict=True):
            each.tell(Grouped.of(batch.arms, batch.examples, told))

    def averaged(self, arms: IntArray, wealths: FloatArray) -> FloatArray:
        """Average the wealths of bets on the mean and on the constraints, shape (A,).

        The weights are equal and fixed before the first observation.

        Args:
            arms: Shape (A,).
            wealths: Shape (A,), wealths of bets on the means.
        """
        bets = [each.wealths.since_start(arms) for each in self._each if each.is_bet_on]
        return np.asarray((wealths + sum(bets)) / (1 + len(bets)))

    def split(self, batch: Batch, outcomes: ArrayLike) -> tuple[ArrayLike, FloatArray]:
        """Split outcomes into scores and outcomes of the constraints.

        Args:
            batch: B pairs.
            outcomes: Shape (B, 1 + J), the score first; of shape (B,) without constraints.

        Returns:
            The scores, not validated yet, and the outcomes of the constraints, validated, shape (B, J).

        Raises:
            RefusedTell: If the shape is wrong or an outcome of a constraint is outside [0, 1].
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
    """Validate the required means of constraints, and return them as floats.

    None if `at_least` is None.

    Raises:
        InvalidParameter: If a required mean is not in (0, 1], or if another setting is incompatible with
            constraints.
    """
    if at_least is None:
        return None
    given = np.asarray(at_least, dtype=np.float64)
    if given.ndim != 1 or given.size == 0 or not ((given > 0.0) & (given <= 1.0)).all():
        raise InvalidParameter("constraints", given.tolist(), "an array of numbers above 0 and at most 1")
    check_parameters(
        ("delta", config.delta, config.delta is not None, "set if there are constraints"),
        ("start", start, start != "race", "'auto' or 'champion' with constraints"),
        ("prefer", prefer, prefer == "mean", "'mean' with constraints"),
        ("top_m", top_m, top_m == 1, "1 with constraints"),
        ("groups", "an array", not has_groups, "None with constraints"),
    )
    return given
