"""Two-sided intervals of risks, by inverting the tests.

Letters as in `e_values`, and m a candidate for the risk, G grid points of it. The bets are those of
Waudby-Smith and Ramdas, whatever rule the tests bet by, as they do not depend on m: they are capped at 1 / (1
+ 2 rho), one over the width of an effective loss's range, with which every factor 1 - lambda (l - m) is
positive for m in (0, 1] and increases in m. So the e-value against m increases in m, and a grid point that is
refuted refutes all above it. The lower end is one minus the upper end of the mirrored losses 1 - l, which
have the same range.
"""

from itertools import pairwise

import numpy as np

from algorithms.arrays import FloatArray, IntArray
from algorithms.betting import BLOCK, WsrBets
from algorithms.certify.losses import effective_losses

GRID_POINTS = 1025


class RiskIntervals:
    """Intervals that hold for all arms, at all times, with probability at least 1 - delta.

    They have delta / (2 K) for either end of each arm (union bounds), and assume what `EValues` does. An end
    is the intersection over all times, put on a grid point and rounded outward.

    They are no certificates: those have all of their delta for one end and one risk, so that an arm may be
    certified while its interval still reaches above alpha.

    Source: Park et al. (2025), Appendix D.5.
    """

    def __init__(self, n_arms: int, factors: FloatArray, delta: float, horizon: int) -> None:
        self._factors = factors
        level = delta / (2 * n_arms)
        self._high = _UpperEnds(n_arms, factors, level, horizon)
        self._low = _UpperEnds(n_arms, factors, level, horizon)

    def update(self, arm: int, outcomes: FloatArray) -> None:
        """Absorb the next outcomes of an arm, shape (B, 3), in the order they were drawn."""
        self._high.update(arm, effective_losses(outcomes, self._factors, "worst"))
        self._low.update(arm, 1.0 - effective_losses(outcomes, self._factors, "best"))

    @property
    def lower(self) -> FloatArray:
        """Lower ends, shape (K,)."""
        return 1.0 - self._low.ends

    @property
    def upper(self) -> FloatArray:
        """Upper ends, shape (K,)."""
        return self._high.ends


class _UpperEnds:
    """The least risks that are refuted as too high, one per arm."""

    def __init__(self, n_arms: int, factors: FloatArray, level: float, horizon: int) -> None:
        # Equidistant in arcsin(sqrt(m)): cells are narrow where losses of that mean vary little.
        self._grid = (1.0 - np.cos(np.linspace(0.0, np.pi, GRID_POINTS))) / 2.0  # (G,)
        self._bets = WsrBets(n_arms, 1.0 / (1.0 + 2.0 * factors), level, horizon)
        self._bar = -np.log(level)
        self._logs = np.zeros((n_arms, factors.size, GRID_POINTS))  # (K, S, G)
        self._last: IntArray = np.full(n_arms, GRID_POINTS - 1)  # (K,) all from here on are refuted, or 1

    @property
    def ends(self) -> FloatArray:
        """Shape (K,)."""
        return self._grid[self._last]

    def update(self, arm: int, losses: FloatArray) -> None:
        """Absorb losses of an arm, shape (B, S)."""
        bets = self._bets.next(np.array([arm]), losses[np.newaxis])[0]  # (B, S)
        for start in range(0, len(losses), BLOCK):
            window = slice(1, self._last[arm])
            block = slice(start, start + BLOCK)
            stake = bets[block, :, np.newaxis]
            gains = 1.0 - stake * losses[block, :, np.newaxis] + stake * self._grid[window]  # (b, S, W)
            for before, now in pairwise(gains):
                now *= before
            logs = self._logs[arm, :, window]  # (S, W), a view
            highest = logs.max(axis=0)
            e_values = np.einsum("sw,bsw->bw", np.exp(logs - highest), gains) / len(logs)
            logs += np.log(gains[-1])
            refuted = (np.log(e_values.max(axis=0)) + highest >= self._bar).sum()
            self._last[arm] -= refuted
