"""Ends of the intervals of K arms, with few searches.

There is no search for each of the K (K - 1) differences of two arms. Letters as in `bradley_terry`; C is the
confidence set of all theta with l(theta) >= c. An arm's lower end is the least of K - 1 minima over C, so a
difference matters only if its minimum can be the least of them.

An ellipsoid around C rules out most differences. Let H be the Hessian of -l at the fitted theta, |d| the root
of d . H d, |y| the root of y . H^-1 y, and R the largest |z|, so that |z . d| <= R |d|. Because sigmoid'
decays no faster than exp(-|u|), each term of -l is at least its tangent at the fit plus sigmoid' times
(z . d)^2 w(s), where w(s) = (exp(-s) + s - 1) / s^2 and |z . d| <= s; and w decreases. So on the sphere
|d| = n

    l <= l(fit) + g n - (exp(-R n) + R n - 1) / R^2,

where g is the norm of the gradient of l at the fit, 0 except for the ridge. If this is below c, and c is at
most l(fit), it is below c on all larger spheres, because the last term is convex in n and 0 at n = 0. So C
lies inside the sphere, and theta . y >= fit . y - n |y| for all theta in C.

Source: Sun and Tran-Dinh (2019), "Generalized self-concordant functions", Proposition 10 for nu = 2.
"""

import math

import numpy as np

from winnow.algorithms.best_duel.bradley_terry import Fit, Tally, information, log_likelihood
from winnow.algorithms.low_rank.factor_model import sigmoid
from winnow.algorithms.papers.bradley_terry.bounds import least_log_odds, quick_least_log_odds
from winnow.algorithms.state.arrays import BoolArray, FloatArray

MOST_SEARCHED = 1_000  # number of searches, in addition to two for each arm
ABOUT = 0.05  # log-odds by which a guess of the greatest minimum can be wrong
HALVINGS = 60
ROUNDING = 1e-9
MOST_DOUBLINGS = 20
STEADY = 1e-9  # smallest ratio of eigenvalues for which a matrix is inverted


def extreme_log_odds(
    tally: Tally, points: FloatArray, others: BoolArray, fit: Fit, level: float
) -> tuple[FloatArray, FloatArray]:
    """Bounds over C of theta . (x_i - x_j), shape (K,) each.

    Opponent j is the one that does best against arm i. Usually these are the bounds that a search for every
    minimum gives. With many arms and so few duels that `MOST_SEARCHED` searches do not settle all ends, only
    the arms with the highest scores get these bounds, and the bounds of other arms are wider.

    Args:
        tally: P pairs.
        points: Shape (K, r).
        others: Shape (K, K), opponents of each arm.
        fit: The fit, inside C.
        level: c, in nats; if it is above l at the fit, the bounds are those of c = l at the fit.

    Returns:
        Lower and upper bounds, shape (K,) each; infinite if no bound was found or an arm has no opponent.
    """
    spans = points[:, np.newaxis] - points  # (K, K, r)
    wanted = others | others.T
    bounds = np.full(others.shape, -np.inf)  # (K, K), of the minima
    if np.count_nonzero(wanted) <= MOST_SEARCHED:
        bounds[wanted] = least_log_odds(tally, spans[wanted], fit, level)
    else:
        _bound_extremes(bounds, tally, spans, others, fit, level)
    lowest = np.where(others, bounds, np.inf).min(axis=1)
    highest = -np.where(others.T, bounds, -np.inf).max(axis=0)
    return lowest, highest


def _bound_extremes(
    bounds: FloatArray, tally: Tally, spans: FloatArray, others: BoolArray, fit: Fit, level: float
) -> None:
    """Fill in the bounds that matter.

    They are sharp if a minimum is the least of its row or the greatest of its column.
    """
    middle = spans @ fit.theta  # (K, K)
    gap = max(float(log_likelihood(tally, fit.theta)) - level, 0.0)
    norms, radius = _ball(tally, spans, fit, gap)
    if radius < np.inf:
        bounds[:] = middle - radius * norms
    guess = middle - math.sqrt(2.0 * gap) * norms
    rows, columns = np.where(others, guess, np.inf), np.where(others.T, -guess, np.inf)
    searched = _is_least(rows, axis=1) | _is_least(columns, axis=0, within=ABOUT)

    def search(chosen: BoolArray) -> None:
        bounds[chosen] = least_log_odds(tally, spans[chosen], fit, level)

    def is_open() -> BoolArray:
        least = np.where(others & searched, bounds, np.inf).min(axis=1, keepdims=True)
        still: BoolArray = others & ~searched & (bounds < least)
        return still

    search(searched)
    left = is_open()
    bounds[left] = np.maximum(bounds[left], quick_least_log_odds(tally, spans[left], fit, level))
    left = is_open()
    # Search whole rows, highest scores first, because a partial search does not improve a row.
    order = np.argsort(-middle[:, 0], kind="stable")
    has_no_turn = np.cumsum(left.sum(axis=1)[order]) > MOST_SEARCHED
    left[order[has_no_turn]] = False
    search(left)


def _is_least(values: FloatArray, axis: int, within: float = 0.0) -> BoolArray:
    """Which finite values are least along an axis.

    Values at most `within` above the least count too.
    """
    is_least: BoolArray = (values <= values.min(axis=axis, keepdims=True) + within) & np.isfinite(values)
    return is_least


def _ball(tally: Tally, spans: FloatArray, fit: Fit, gap: float) -> tuple[FloatArray, float]:
    """Norms |y|, shape (K, K), and the radius of a sphere around C.

    Infinite if no sphere was found.
    """
    shares = np.asarray(sigmoid(tally.z @ fit.theta), dtype=np.float64)
    hessian = information(tally.counts * shares * (1.0 - shares), tally.z)
    sizes = np.linalg.eigvalsh(hessian)
    is_steady = bool(sizes[0] > STEADY * sizes[-1])
    inverse = np.linalg.inv(hessian if is_steady else fit.hessian)
    norms = np.sqrt(np.maximum(((spans @ inverse) * spans).sum(axis=-1), 0.0))
    if not is_steady:
        return norms, np.inf
    gradient = (tally.wins - tally.counts * shares) @ tally.z
    slope = math.sqrt(max(float(gradient @ inverse @ gradient), 0.0))
    steepest = math.sqrt(float(((tally.z @ inverse) * tally.z).sum(axis=1).max()))
    return norms, _radius(gap, slope, steepest)


def _radius(gap: float, slope: float, steepest: float) -> float:
    """Smallest n with (exp(-R n) + R n - 1) / R^2 > gap + g n, rounded up.

    Infinite if no n was found.
    """

    def is_outside(n: float) -> bool:
        s = steepest * n
        return (math.expm1(-s) + s) / steepest**2 > gap + slope * n

    most = math.sqrt(2.0 * gap) + ROUNDING
    for _ in range(MOST_DOUBLINGS):
        if is_outside(most):
            break
        most *= 2.0
    else:
        return np.inf
    least = 0.0
    for _ in range(HALVINGS):
        middle = (least + most) / 2.0
        least, most = (least, middle) if is_outside(middle) else (middle, most)
    return most + ROUNDING
