"""Whether the duels refute the Bradley-Terry model: preferences of each pair's own against the best theta.

Letters as in `bradley_terry`. The product over pairs of B(W + 1/2, N - W + 1/2) / B(1/2, 1/2) is the mean of
the product of q^W (1 - q)^(N - W) over preferences q that are drawn from Beta(1/2, 1/2) for each pair alone.
If theta* is the truth, then its ratio to exp(l(theta*)) is a non-negative supermartingale that starts at 1, by
the proof in `bradley_terry_mixture` with log q in place of log sigmoid(theta . z). As l(theta*) is at most
the supremum of l, its ratio to that supremum ever reaches 1/delta with probability at most delta.

Duels without a score are taken at their worst, as there: the product is the least that any outcomes of them
could make it. As log B(a, b) is convex in a for a given a + b and symmetric, that is where W comes closest to
N / 2. They lower l, which is bounded by what it is without them. So a model is not refuted because the judge
fails more often where it would prefer one side.

Source: Krichevsky and Trofimov (1981), "The Performance of Universal Encoding", for the mixture; Wasserman,
Ramdas and Balakrishnan (2020), "Universal Inference", for a maximised likelihood below the line.
"""

import numpy as np
from scipy.special import betaln

from algorithms.best_duel.bradley_terry import Fit, Tally, log_likelihood
from algorithms.best_duel.bradley_terry_bounds import supremum


def log_saturated_mixture(tally: Tally) -> float:
    """The logarithm of the product over pairs, in nats; 0 without any duel."""
    _, wins, counts, unscored = tally
    all_counts = counts + unscored
    least = np.clip(0.5 * all_counts, wins, wins + unscored)
    return float((betaln(least + 0.5, all_counts - least + 0.5) - np.log(np.pi)).sum())


def is_misfit(tally: Tally, fit: Fit, delta: float) -> bool:
    """Whether the duels refute the model, which happens ever with probability at most delta if it holds.

    Args:
        tally: P pairs.
        fit: Any theta; one near the maximiser makes the test sharp.
        delta: Error probability, in (0, 1).
    """
    least = log_saturated_mixture(tally) + np.log(delta)
    # No supremum is below the value at one theta, which costs much less to work out.
    return bool(least >= log_likelihood(tally, fit.theta)) and least >= supremum(tally, fit)
