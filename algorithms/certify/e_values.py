"""Evidence that risks are at most alpha, by e-values.

S strategies rely on an autoevaluator to different degrees. Letters as in Park et al. (2025): rho_s is the
reliance factor of strategy s, l_{s,i} its effective losses, E_{s,i} its capital, w_{s,i} = E_{s,i-1} / sum_s'
E_{s',i-1} its weight at step i. The e-value prod_i sum_s w_{s,i} (1 - lambda_{s,i} (l_{s,i} - alpha)) of
equation (11) telescopes to the plain average of the capitals, equation (25).

**Intervals.** Let m be a candidate for the risk, with G grid points. The bets lambda_{s,i} of the test that
would certify an arm are bets against risks of at least alpha. For every m >= alpha, they are also bets
against risks of at least m:

    E(m) = average over s of prod_i (1 - lambda_{s,i} (l_{s,i} - m))

is positive, because lambda < 1 / (1 + rho - alpha), and a supermartingale if the risk is m or more. It
increases in m, and E(alpha) is the e-value of the test. So the smallest m for which E(m) ever reached the
test's threshold is an upper end of the risk at the level of the test. It equals alpha exactly if the arm
passed. Both are wrong only if E(m) for the true risk m ever reaches the threshold.
"""

from itertools import pairwise

import numpy as np

from winnow.algorithms.bounds.betting import (
    BLOCK,
    MixedWealth,
    Rows,
    StarWealth,
    UniversalPortfolio,
    WealthProcess,
    WsrWealth,
    log_average,
    nodes_for,
)
from winnow.algorithms.certify.config import Rule
from winnow.algorithms.state.arrays import FloatArray, IntArray


class EValues:
    """E-values of R arms that share the same strategies.

    If the risk of an arm is at least alpha, its e-value ever reaches 1 / level with probability at most
    `level`: at any stopping time, for any autoevaluator and any dependence between arms. This assumes that
    the examples of an arm are independent draws from the population that defines the risk, observed in an
    order chosen without looking at their losses.

    Args:
        n_arms: R.
        factors: rho, shape (S,), in [0, 1].
        alpha: The risk in question, in (0, 1).
        betting: Betting rule of each strategy.
        level: Error probability for which all rules but "up" are optimised, in (0, 1).
        horizon: Final number of losses, at least 1, for which the same rules are optimised and for which the
            portfolio's nodes suffice. More losses are equally valid.
        nodes: Number of nodes of the universal portfolio; None for as many as the horizon requires.
    """

    def __init__(
        self,
        n_arms: int,
        factors: FloatArray,
        alpha: float,
        *,
        betting: Rule,
        level: float,
        horizon: int,
        nodes: int | None = None,
    ) -> None:
        most = 1.0 + factors
        self._capital: WealthProcess
        nodes = nodes or nodes_for(horizon)
        if betting == "up":
            self._capital = UniversalPortfolio(n_arms, most, alpha, nodes)
        elif betting == "mixture":
            self._capital = MixedWealth(n_arms, most, alpha, level, horizon, nodes)
        else:
            rule = StarWealth if betting == "star" else WsrWealth
            self._capital = rule(n_arms, most, alpha, level, horizon)
        self.log_strategies = np.zeros((n_arms, factors.size))  # (R, S) log E_{s,i}
        self.logs = np.zeros(n_arms)  # (R,) log E_i
        self.log_peaks = np.zeros(n_arms)  # (R,) highest values so far

    def update(self, arms: Rows, losses: FloatArray, bets: FloatArray | None = None) -> FloatArray:
        """Observe the next effective losses of some arms.

        Args:
            arms: The R' arms, each at most once.
            losses: Shape (R', B, S), in the order of the draws.
            bets: Same as in `WealthProcess.bet`.

        Returns:
            Shape (R', B), log e-values after each loss.
        """
        paths = self._capital.bet(arms, losses, bets)
        mixed = log_average(paths)
        self.log_strategies[arms] = paths[:, -1]
        self.logs[arms] = mixed[:, -1]
        self.log_peaks[arms] = np.maximum(self.log_peaks[arms], mixed.max(axis=1))
        return mixed

    @property
    def weights(self) -> FloatArray:
        """Weights of the strategies at the next step, shape (R, S)."""
        return normalised(self.log_strategies)


def normalised(logs: FloatArray) -> FloatArray:
    """Numbers given by their logarithms, scaled to sum to 1 over the last axis."""
    scaled = np.exp(logs - logs.max(axis=-1, keepdims=True))
    shares: FloatArray = scaled / scaled.sum(axis=-1, keepdims=True)
    return shares


GRID_POINTS = 513


class UpperEnds:
    """Upper ends of risks, one per arm.

    An end is the smallest risk from `least` to 1 that is refuted as too high. An end holds at all times with
    probability at least 1 - level, under the assumptions of `EValues`. It is the intersection over all times,
    at a grid point, rounded outward.

    Lower ends of a risk are 1 minus the upper ends of the mirrored losses 1 - l, which have the same range,
    with the bets of a test on the mirrored losses.

    Args:
        n_arms: K.
        n_strategies: S.
        least: The mean under test, in (0, 1): the lowest possible end.
        level: Error probability of the test, in (0, 1).

    Source: Waudby-Smith & Ramdas (2024), "Estimating means of bounded random variables by betting", JRSS B
    86(1), Section 4.4, and Park et al. (2025), Appendix D.5, who invert tests with bets made for intervals.
    """

    def __init__(self, n_arms: int, n_strategies: int, least: float, level: float) -> None:
        # Equidistant in arcsin(sqrt(m)): cells are narrow at means with small variance of the losses.
        angles = np.linspace(np.arccos(1.0 - 2.0 * least), np.pi, GRID_POINTS)
        self._grid = np.maximum((1.0 - np.cos(angles)) / 2.0, least)  # (G,)
        self._grid[0] = least
        self._bar = -np.log(level)
        self._logs = np.zeros((n_arms, n_strategies, GRID_POINTS))  # (K, S, G)
        # (K,) first refuted grid point; the last point, at 1, if no point is refuted
        self._last: IntArray = np.full(n_arms, GRID_POINTS - 1)

    @property
    def ends(self) -> FloatArray:
        """Upper ends, shape (K,)."""
        return self._grid[self._last]

    def update(self, arm: int, losses: FloatArray, bets: FloatArray) -> None:
        """Observe losses of an arm, with the bets of its test.

        Losses and bets have shape (B, S).
        """
        for start in range(0, len(losses), BLOCK):
            window = slice(0, self._last[arm])
            block = slice(start, start + BLOCK)
            stake = bets[block, :, np.newaxis]
            gains = 1.0 + stake * (self._grid[window] - losses[block, :, np.newaxis])  # (b, S, W)
            for before, now in pairwise(gains):
                now *= before
            logs = self._logs[arm, :, window]  # (S, W), a view
            highest = logs.max(axis=0)
            e_values = np.einsum("sw,bsw->bw", np.exp(logs - highest), gains) / len(logs)
            logs += np.log(gains[-1])
            refuted = (np.log(e_values.max(axis=0)) + highest >= self._bar).sum()
            self._last[arm] -= refuted
