"""Capital of bets on the means of finite populations.

`confidence_sequences` defines this capital. Letters as in that module: K arms, N examples, G grid points, A
arms at once, B scores of each.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from winnow.algorithms.state.arrays import BoolArray, FloatArray, IntArray

MOST_STAKED = 0.75  # share of the capital that one draw can cost; below 1, so capital stays positive
LEAST_MEAN = 1e-12  # with a smaller mu no bet needs a cap, because no remaining draw can be below mu
MOST_GAINED = 1e300  # in one batch; finite, because infinity times a capital that underflowed is undefined
FIRST_HORIZON, HORIZON_RATIO = 16.0, 4.0  # the best bet for T draws is nearly optimal from T / 4 to 4 T
MOST_FACTORS = 2**17  # number of factors computed at once: filling a row can take thousands of draws


@dataclass(frozen=True, slots=True)
class Control:
    """Amounts subtracted from scores before betting.

    Fixed by the past, with mean 0 over unobserved examples.
    """

    values: FloatArray
    """Shape (B,)."""
    most: FloatArray
    """Shape (B,), non-negative upper bound of the controls before each draw.
    It covers the controls of all examples that are unobserved then."""


class Wealth:
    """Capital of bets, one per arm and grid point m, that the arm's mean exceeds m.

    It is the average over J bet sizes sqrt(2 log(1/level) / (T v_t)), each optimal for its own number of
    draws T, where v_t is the variance of the scores before t. Bets are capped at c / mu_t(m), where c =
    MOST_STAKED. If the cap binds, a factor is 1 + c x / mu - c, otherwise 1 + lambda x - lambda mu: neither
    increases in mu. So the capital does not increase in m: if a grid point is refuted, so are all points
    below it, and an interval's end at that point is rounded outward. Capital is updated only in the requested
    window, because refuted points no longer need it.
    """

    def __init__(self, n_arms: int, n_examples: int, level: float, grid: FloatArray) -> None:
        """Start with a capital of 1; the bets are optimised for `level`."""
        n_sizes = 1 + max(0, int(np.log(n_examples / FIRST_HORIZON) / np.log(HORIZON_RATIO)))
        horizons = FIRST_HORIZON * HORIZON_RATIO ** np.arange(n_sizes)
        self._scales = np.sqrt(2.0 * np.log(1.0 / level) / horizons)[:, np.newaxis]  # (J, 1)
        self._n_examples = n_examples
        self._totals = n_examples * grid  # (G,) N m
        # (J, G) per arm. Replace these arrays, never modify them: arms with equal observations share one.
        self._capital = [np.ones((n_sizes, grid.size))] * n_arms
        self._told = np.zeros(n_arms, dtype=np.int64)  # (K,)
        self._sums = np.zeros(n_arms)  # (K,) S_t
        self._value_sums = np.zeros(n_arms)  # (K,) sums of the values bet on: S_t minus the controls
        self._squares = np.zeros(n_arms)  # (K,) squared deviations of these values from their running means

    def capital(self, arms: int | IntArray, window: slice = slice(None)) -> FloatArray:
        """Capital at the grid points of a window.

        Shape (G,) for one arm, (A, G) for A arms.
        """
        with np.errstate(over="ignore"):  # infinite capital refutes a mean like any large capital
            average: FloatArray = self._stored_capital(np.atleast_1d(arms), window).mean(axis=1)
        return average if np.ndim(arms) else average[0]

    def take_over(self, arms: IntArray, models: IntArray) -> None:
        """Copy the state of each arm in `models` to the same place in `arms`.

        Both have shape (A,); the two arms of a place have the same observations.
        """
        for each in (self._told, self._sums, self._value_sums, self._squares):
            each[arms] = each[models]
        for arm, model in zip(arms.tolist(), models.tolist(), strict=True):
            self._capital[arm] = self._capital[model]

    def _stored_capital(self, arms: IntArray, window: slice) -> FloatArray:
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
        """Observe the next scores of some arms, and bet on the draws among them.

        Bets are made at the grid points of `window`. With a control, bets are on scores minus their controls
        and are capped at c / (mu + most).

        Args:
            arms: An arm, or shape (A,), each arm at most once.
            scores: Shape (B,), or (A, B) with the same number for each arm.
            window: Slice of the grid points to bet at.
            is_draw: Shape (B,), which scores are draws, the same for all arms; None if all are draws.
            control: Controls, of the same shapes as the scores; None for no controls.
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
        # Prior: one draw of 1/2 for the means, and one squared deviation of 1/4 for the variances.
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
        capital = self._stored_capital(arms, window)  # (A, J, G)
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
        # Outside an arm's own window, capital can be infinite; results there are not used.
        with np.errstate(over="ignore", invalid="ignore"):
            capital *= np.minimum(product, MOST_GAINED)
        for arm, row in zip(arms.tolist(), capital, strict=True):
            kept = self._capital[arm].copy()
            kept[:, window] = row
            self._capital[arm] = kept


class _Draws(NamedTuple):
    """Draws of A arms, each of shape (A, B)."""

    left: IntArray
    """Number of examples unobserved before each draw."""
    sums: FloatArray
    """Sum of the scores before each draw."""
    values: FloatArray
    """Values to bet on: scores, minus their control if one is used."""
    most: FloatArray
    """Same as `Control.most`."""
    deviations: FloatArray
    """Standard deviation estimated from the values before each draw."""

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
    """Cumulative sums by arm that exclude the value itself, shape (A, B)."""
    return np.concatenate((np.zeros((len(values), 1)), values[:, :-1].cumsum(axis=1)), axis=1)
