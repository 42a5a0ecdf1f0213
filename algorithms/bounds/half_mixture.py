"""The half mixture: an e-value of counts of duels.

It tests "this arm's preference is at most m". Of N duels with outcomes x in [0, 1], G is the sum of the
outcomes and L = N - G; m is `least`.
"""

import numpy as np
from scipy.special import betainc, betaln

from winnow.algorithms.state.arrays import FloatArray

SCALES = (0.5, 4.0, 32.0, 256.0)
"""Half the sizes a + b of the Beta distributions in the mixture.
Large sizes suit slight preferences, small ones clear preferences. At m = 1/2 the distributions are Beta(a,
a) with these a."""


class HalfMixture:
    """Mean over a in `SCALES` of averages of (q / m)^G ((1 - q) / (1 - m))^L.

    Each average is over q > m. q has the distribution Beta(2 a m, 2 a (1 - m)), restricted to q > m. If the
    mean of every outcome, given the earlier ones, is at most m, this is a non-negative supermartingale that
    starts at 1. The reason is convexity: (q / m)^x ((1 - q) / (1 - m))^(1 - x) is at most x q / m + (1 - x)
    (1 - q) / (1 - m), whose mean increases with the mean of x and is 1 if the mean of x is m. By Ville's
    inequality the mixture ever reaches 1 / alpha with probability at most alpha, for any choice of duels by
    earlier outcomes. The mixture does not decrease when an outcome is raised, so counting missing outcomes as
    0 is the worst case.

    The mixture over all q would spend half of its weight on q < m, which the hypothesis allows, and so lose
    log 2.

    Source: Robbins (1970), "Statistical Methods Related to the Law of the Iterated Logarithm", for one-sided
    mixtures with Ville's inequality; Waudby-Smith and Ramdas (2024), "Estimating means of bounded random
    variables by betting", for outcomes between 0 and 1.
    """

    def __init__(self, least: float) -> None:
        self._log_odds = np.log(least), np.log1p(-least)
        self._least = least
        self._parts = [
            (up, down, float(betaln(up, down) + np.log(betainc(down, up, 1.0 - least))))
            for up, down in beta_parameters(least)
        ]

    def log_value(self, gains: FloatArray, losses: FloatArray) -> FloatArray:
        """Logarithm of the mixture for given gains and losses.

        If L exceeds G so far that a part of the mixture underflows, below exp(-600), that part counts as 0,
        which is conservative.

        Args:
            gains: G, any shape.
            losses: L, of the same shape.

        Returns:
            The logarithms, of the same shape.
        """
        total = np.full(np.shape(gains), -np.inf)
        for up, down, log_prior in self._parts:
            # The integral over q > m is a Beta function times the probability of 1 - q < 1 - m.
            with np.errstate(divide="ignore"):
                log_tail = np.log(betainc(losses + down, gains + up, 1.0 - self._least))
            total = np.logaddexp(total, betaln(gains + up, losses + down) + log_tail - log_prior)
        log_won, log_lost = self._log_odds
        value: FloatArray = total - np.log(len(self._parts)) - gains * log_won - losses * log_lost
        return value


def beta_parameters(least: float) -> list[tuple[float, float]]:
    """Parameters of the Beta distributions of the mixture.

    Each has mean `least`, in (0, 1).
    """
    return [(2.0 * scale * least, 2.0 * scale * (1.0 - least)) for scale in SCALES]
