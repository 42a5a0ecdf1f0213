"""How much evidence separates the best arm in the Bradley-Terry model, when that is to be proven.

Letters as in `bradley_terry`: L = 1 bounds |z|, and t duels were told so far.
"""

import numpy as np

from algorithms.arrays import FloatArray
from algorithms.best_duel.bradley_terry import Fit


def proven_threshold(
    fit: Fit, information: FloatArray, widest: float, *, ridge: float, radius: float, delta: float
) -> float:
    """A bound on |theta_hat - theta*|^2_H / 2 that holds at all times at once with probability 1 - delta.

    While it holds, the statistic (8) of a wrong best arm is at most this bound, as the paper's proof of
    Lemma 4.8 shows: so stopping above it errs with probability at most delta, whatever the sampling rule and
    however often one looks. Assumed: given the past, the mean outcome of a duel is sigmoid(theta* . z), ties
    counted as 1/2 and unscored duels left out; |theta*| <= radius and |z| <= 1. Setting arms aside may
    change the best arm without harm, as the bound is on theta.

    The proof, in four steps. (i) The mixture of exp(l(theta) - l(theta*)) over the uniform distribution on
    the ball is a supermartingale that starts at 1, for outcomes anywhere in [0, 1]; by Ville's inequality it
    ever reaches 1/delta with probability at most delta. (ii) The shrunken ball (1 - c) theta_hat + c ball
    has the share c^r of the ball's volume, and on it l is at least l(theta_hat) - 2 B c |gradient| - (B c)^2
    lambda_max(V) / 2, as |theta - theta_hat| <= 2 B c and sigmoid' <= 1/4. Hence l(theta_hat) - l(theta*) <=
    gamma := log(1/delta) + r log(1/c) + 2 B c |gradient| + (B c)^2 lambda_max(V) / 2 for every c in (0, 1].
    (iii) As theta_hat maximises the penalised l on the ball, its first-order change towards theta* is not
    positive; and as sigmoid is self-concordant, the penalised l falls by at least n^2 / (2 + s n), where n =
    |theta_hat - theta*|_H and s is the widest |z|_{H^-1}. (iv) So n^2 / (2 + s n) <= gamma + ridge B^2 / 2,
    which is solved for n.

    The paper's beta(delta, t) of equation (8) is not used: it has 4 (1 + 2 L B)^2 / min sigmoid' in front of
    its logarithm, hundreds and more, where the factor here tends to 1; and its proof applies a bound for
    theta in the ball to the estimate (3), which may lie outside.

    Args:
        fit: The maximiser on the ball, r coordinates.
        information: V = sum N z z^T, shape (r, r).
        widest: s, the largest |z|_{H^-1} of the pairs that duelled, non-negative.
        ridge: lambda of the fit, positive.
        radius: B, positive.
        delta: Error probability, in (0, 1).

    Returns:
        The threshold, in nats.

    Source: Lee, Yun and Jun (2024), "A Unified Confidence Sequence for Generalized Linear Models, with
    Applications to Bandits", for the mixture over a shrunken ball; Abeille, Faury and Calauzènes (2021),
    "Instance-Wise Minimax-Optimal Algorithms for Logistic Bandits", for self-concordance.
    """
    r = len(fit.theta)
    steepest = float(np.linalg.norm(fit.residual))
    largest = float(np.linalg.eigvalsh(information)[-1])
    # The best c, where r/c = 2 B |gradient| + c B^2 lambda_max.
    shrunk = min(1.0, r / (radius * (steepest + np.sqrt(steepest**2 + r * largest))))
    drop = 2.0 * radius * shrunk * steepest + 0.5 * (radius * shrunk) ** 2 * largest
    gamma = np.log(1.0 / delta) - r * np.log(shrunk) + drop
    bound = gamma + 0.5 * ridge * radius**2
    n = 0.5 * (widest * bound + np.sqrt((widest * bound) ** 2 + 8.0 * bound))
    return float(0.5 * n**2)
