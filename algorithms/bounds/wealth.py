"""Capital of bets on the means of finite populations, as `confidence_sequences` defines it.

Letters as in that module: K arms, N examples, G grid points, A arms at once, B scores of each.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from winnow.algorithms.state.arrays import BoolArray, FloatArray, IntArray

MOST_STAKED = 0.75  # share of the capital that one draw can cost; below 1, so capital stays positive
LEAST_MEAN = 1e-12  # a smaller mu caps no bet: no remaining draw can be below it
MOST_GAINED = 1e300  # in one batch; finite, because infinity times a capital that underflowed is undefined
FIRST_HORIZON, HORIZON_RATIO = 16.0, 4.0  # the best bet for T draws is nearly optimal from T / 4 to 4 T
MOST_FACTORS = 2**17  # computed at once; filling a row can take thousands of draws


@dataclass(frozen=True, slots=True)
class Control:
    """Amounts subtracted from scores before betting: fixed by the past, mean 0 over unobserved examples."""

    values: FloatArray
    """Shape (B,)."""
    most: FloatArray
    """Shape (B,), upper bound of the controls of all examples unobserved before each draw, non-negative."""


class Wealth:
    """Capital of bets, one per arm and grid point m, that the arm's mean exceeds m.

    It is the average over J bet sizes sqrt(2 log(1/level) / (T v_t)), each optimal for its own number of
    draws T, with v_t the variance of the scores before t, and capped at c / mu_t(m), c = MOST_STAKED. If the
    cap binds, a factor is 1 + c x / mu - c, otherwise 1 + lambda x - lambda mu: neither increases in mu. So
    capital does not increase in m: a refuted grid point implies that all points below it are refuted, and an
    end put on that point is rounded outward. Capital is updated only in the requested window, because refuted
    points need none.
    """

    def __init__(self, n_arms: int, n_examples: int, level: float, grid: FloatArray) -> None:
        """Start with a capital of 1; the bets are optimised for `level`."""
        n_sizes = 1 + max(0, int(np.log(n_examples / FIRST_HORIZON) / np.log(HORIZON_RATIO)))
        horizons = FIRST_HORIZON * HORIZON_RATIO ** np.arange(n_sizes)
        self._scales = np.sqrt(2.0 * np.log(1.0 / level) / horizons)[:, np.newaxis]  # (J, 1)
        self._n_examples = n_examples
        self._totals = n_examples * grid  # (G,) N m
        # (J, G) per arm, replaced and never modified: arms with equal observations share one array.
        self._capital = [np.ones((n_sizes, grid.size))] * n_arms
        self._told = np.zeros(n_arms, dtype=np.int64)  # (K,)
        self._sums = np.zeros(n_arms)  # (K,) S_t
        self._value_sums = np.zeros(n_arms)  # (K,) sums of the values bet on: S_t less the controls
        self._squares = np.zeros(n_arms)  # (K,) squared deviations of these values from their running means

    def capital(self, arms: int | IntArray, window: slice = slice(None)) -> FloatArray:
        """Capital of an arm, shape (G,), or of A arms, shape (A, G), at the grid points of a window."""
        with np.errstate(over="ignore"):  # infinite capital refutes like any large one
            average: FloatArray = self._kept(np.atleast_1d(arms), window).mean(axis=1)
        return average if np.ndim(arms) else average[0]

    def take_over(self, arms: IntArray, models: IntArray) -> None:
        """Copy the state of the arms `models` with the same observations to `arms`; shapes (A,)."""
        for each in (self._told, self._sums, self._value_sums, self._squares):
            each[arms] = each[models]
        for arm, model in zip(arms.tolist(), models.tolist(), strict=True):
            self._capital[arm] = self._capital[model]

    def _kept(self, arms: IntArray, window: slice) -> FloatArray:
        """Capital of some arms by bet size, shape (A, J, G)."""
        return np.stack([self._capital[arm][:, window] for arm in arms.tolist()])

    def bet(
        self,
        arms: int | IntArray,
        scores: FloatArray,
        window: slice,
        is_draw: BoolArray | None = None,
        control: Control | None = None,
    ) -> None:
        """Absorb the next scores of some arms, and bet on the draws at the grid points of a window.

        With a control, bets are on scores less their controls, and 1 / (mu + most) caps the bets.

        Args:
            arms: An arm, or shape (A,), different ones.
            scores: Shape (B,), or (A, B) with the same number for each arm.
            window: Slice of the grid points to bet at.
            is_draw: Shape (B,), which scores are draws, the same for all arms; None if all are.
            control: Controls, of the same shapes as the scores; None without any.
        """
        arms, scores = np.atleast_1d(arms), np.atleast_2d(scores)
        values = scores if control is None else scores - control.values  # (A, B) values to bet on
        most = np.zeros_like(scores) if control is None else np.atleast_2d(control.most)
        draws = self._absorb(arms, scores, values, most)
        if is_draw is not None and not is_draw.all():
            draws = draws.only(is_draw)
        self._multiply(arms, window, draws)

    def _absorb(self, arms: IntArray, scores: FloatArray, values: FloatArray, most: FloatArray) -> "_Draws":
        told = self._told[arms, np.newaxis] + np.arange(scores.shape[1])  # (A, B) t - 1
        sums = self._sums[arms, np.newaxis] + _before(scores)  # S_{t-1}
        before = self._value_sums[arms, np.newaxis] + _before(values)
        # Half a draw of 1/2 and a variance of 1/4 stand in for missing draws.
        means = (0.5 + before + values) / (told + 2)
        squares = (values - means) ** 2
        deviations = np.sqrt((0.25 + self._squares[arms, np.newaxis] + _before(squares)) / (told + 1))
        self._told[arms] += scores.shape[1]
        self._sums[arms] = sums[:, -1] + scores[:, -1]
        self._value_sums[arms] = before[:, -1] + values[:, -1]
        self._squares[arms] += squares.sum(axis=1)
        return _Draws(self._n_examples - told, sums, values, most, deviations)

    def _multiply(self, arms: IntArray, window: slice, draws: "_Draws") -> None:
        """Multiply the capital of A arms by the factors of their draws, in order."""
        capital = self._kept(arms, window)  # (A, J, G)
        totals = self._totals[window]
        at_once = max(1, MOST_FACTORS // max(1, capital.size))
        product: FloatArray | None = None
        for start in range(0, draws.left.shape[1], at_once):
            left, sums, values, most, deviations = draws.only(slice(start, start + at_once))
            mu = (totals - sums[:, :, np.newaxis]) / left[:, :, np.newaxis]  # (A, B, G)
            caps = MOST_STAKED / np.maximum(mu + most[:, :, np.newaxis], LEAST_MEAN)
            bets = (self._scales / deviations[:, np.newaxis])[:, :, :, np.newaxis]  # (A, J, B, 1)
            factors = np.minimum(bets, caps[:, np.newaxis])  # (A, J, B, G)
            factors *= (values[:, :, np.newaxis] - mu)[:, np.newaxis]
            factors += 1.0
            with np.errstate(over="ignore"):
                if product is not None:
                    factors[:, :, 0] *= product
                product = np.multiply.reduce(factors, axis=2)
        if product is None:
            return
        # Outside an arm's own window capital can be infinite; the result there is not used.
        with np.errstate(over="ignore", invalid="ignore"):
            capital *= np.minimum(product, MOST_GAINED)
        for arm, row in zip(arms.tolist(), capital, strict=True):
            kept = self._capital[arm].copy()
            kept[:, window] = row
            self._capital[arm] = kept


class _Draws(NamedTuple):
    """Draws of A arms, each of shape (A, B)."""

    left: IntArray
    """Number of examples unobserved before each."""
    sums: FloatArray
    """Sums of the scores before each."""
    values: FloatArray
    """Scores to bet on, less their control if there is one."""
    most: FloatArray
    """Same as `Control.most`."""
    deviations: FloatArray
    """Standard deviations estimated from the values before each."""

    def only(self, places: BoolArray | slice) -> "_Draws":
        """Select draws by their positions, shape (B,)."""
        return _Draws(
            self.left[:, places],
            self.sums[:, places],
            self.values[:, places],
            self.most[:, places],
            self.deviations[:, places],
        )


def _before(values: FloatArray) -> FloatArray:
    """Sums of the values before each one, by arm, shape (A, B)."""
    return np.concatenate((np.zeros((len(values), 1)), values[:, :-1].cumsum(axis=1)), axis=1)
