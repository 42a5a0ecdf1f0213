"""Evidence that risks are at most alpha: e-values that rely on an autoevaluator to S degrees.

Letters as in Park et al. (2025): rho_s the reliance factor of strategy s, l_{s,i} its effective losses,
E_{s,i} its capital, w_{s,i} = E_{s,i-1} / sum_s' E_{s',i-1} its weight at step i. The e-value prod_i sum_s
w_{s,i} (1 - lambda_{s,i} (l_{s,i} - alpha)) of equation (11) telescopes to the plain average of the capitals,
equation (25).
"""

import numpy as np

from winnow.algorithms.bounds.betting import (
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
from winnow.algorithms.state.arrays import FloatArray


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
        horizon: Final number of losses, at least 1; those rules are optimised for it, and the portfolio's
            nodes suffice for it. More losses are equally valid.
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
        """Absorb the next effective losses of some arms.

        Args:
            arms: The R' arms, none twice.
            losses: Shape (R', B, S), in the order they were drawn.
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
    """Scale numbers given by their logarithms to sum to 1 over the last axis."""
    scaled = np.exp(logs - logs.max(axis=-1, keepdims=True))
    shares: FloatArray = scaled / scaled.sum(axis=-1, keepdims=True)
    return shares
