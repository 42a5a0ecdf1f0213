"""Bounds on the log-likelihood of the Bradley-Terry model.

They are valid for unconverged searches. Letters as in `bradley_terry`. log(1 + e^u) >= a u + H(a) for every a
in [0, 1], where H is the entropy of a coin in nats. So every vector a of shares in [0, 1], one for each pair,
bounds the log-likelihood from above for all theta simultaneously:

    l(theta) <= theta . g(a) - sum N H(a),    g(a) = sum (W - N a) z.

So if g(a) = -nu y for some nu >= 0, then l is at most -sum N H(a) - nu b on the half-space theta . y >= b.
And if g(a) = kappa y for some kappa > 0, then l(theta) >= c only if theta . y >= (c + sum N H(a)) / kappa.
At the maximiser, a = sigmoid(theta . z) makes the bound exact. Elsewhere these shares nearly satisfy the
condition, and a Newton step makes them satisfy it, up to rounding. The bound requires no convergence, and
theta can be arbitrarily long: if l has no maximiser, because some arms always win, the bounds hold too.

Source: Boyd and Vandenberghe (2004), "Convex Optimization", section 5.1.6, for the dual; only weak duality is
used.
"""

import numpy as np
from scipy.special import xlog1py, xlogy

from winnow.algorithms.best_duel.bradley_terry import Fit, Tally, information, log_likelihood, shorten
from winnow.algorithms.low_rank.factor_model import sigmoid
from winnow.algorithms.state.arrays import BoolArray, FloatArray

RIDGE = 1e-4  # keeps the search from diverging if some arms always win
SMALL_DECREMENT = 1e-6  # nats
MOST_STEPS, MOST_DESCENTS, MOST_REPAIRS = 50, 20, 20
CLOSE = 1e-3  # in nats for the level, in log-odds for a step
ROUNDING = 1e-11  # relative to the largest sum; tolerance for sums that should be 0
STEADINESS = 1e-13  # relative to the trace: added to the diagonal of matrices that can be singular
SHORTEST = 1e-300
MOST_CELLS = 2_000_000  # number of cells of the largest table


def half_space_suprema(tally: Tally, spans: FloatArray, lead: float, fit: Fit) -> FloatArray:
    """Upper bounds of l over the half-spaces theta . y >= lead, in nats.

    Args:
        tally: P pairs; unscored duels contribute 0, an upper bound for any outcome.
        spans: y, shape (M, r).
        lead: b, non-negative.
        fit: Start of the search; the bound is sharp only if its theta . y <= b.

    Returns:
        Shape (M,), at most 0.
    """
    thetas = _ascend(tally, spans, nearest_in_planes(spans, lead, fit))
    sums, nu, is_met = _dual(tally, spans, thetas)
    # With a = W / N, g(a) is 0: the maximum if each pair had a preference of its own.
    shares = np.asarray(tally.wins / np.maximum(tally.counts, SHORTEST), dtype=np.float64)
    won = np.asarray(np.clip(shares, 0.0, 1.0), dtype=np.float64)  # weighted sums have rounding errors
    saturated = _negative_entropies(won) @ tally.counts
    bounds: FloatArray = np.minimum(np.where(is_met, sums - nu * lead, 0.0), saturated)
    return bounds


def supremum(tally: Tally, fit: Fit) -> float:
    """Upper bound of l over all theta, in nats, at most 0."""
    return float(half_space_suprema(tally, np.zeros((1, len(fit.theta))), 0.0, fit)[0])


def least_log_odds(tally: Tally, spans: FloatArray, fit: Fit, level: float) -> FloatArray:
    """Lower bounds of theta . y over all theta with l(theta) >= level.

    Args:
        tally: P pairs.
        spans: y, shape (M, r).
        fit: Start of the search; the closer to the maximiser, the sharper the bounds.
        level: c, in nats, at most l at the maximiser.

    Returns:
        Shape (M,); minus infinity if no bound was found.
    """
    least = np.full(len(spans), -np.inf)
    size = max(1, MOST_CELLS // max(1, tally.z.size))
    for first in range(0, len(spans), size):
        part = spans[first : first + size]
        sums, kappa, is_met = _dual(tally, -part, _descend(tally, part, fit, level))
        bounded = is_met & (kappa > 0.0)
        found = (level - sums) / np.where(bounded, kappa, 1.0)
        least[first : first + size] = np.where(bounded, found, -np.inf)
    return least


def quick_least_log_odds(tally: Tally, spans: FloatArray, fit: Fit, level: float) -> FloatArray:
    """Lower bounds as in `least_log_odds`, at a tenth of the cost, shape (M,).

    The arguments are the same. The parabola that touches l at the fit gives the minimiser of theta . y,
    nearly so if l resembles the parabola down to the level. With the shares of that theta, one step in the
    norm of the fit, the same for all y, satisfies g(a) = kappa y. If the step leaves [0, 1] for some pair, no
    bound is found, and the result is minus infinity.
    """
    found = np.full(len(spans), -np.inf)
    size = max(1, MOST_CELLS // max(1, len(tally.z)))
    at_fit = np.asarray(sigmoid(tally.z @ fit.theta), dtype=np.float64)
    weights = np.asarray(at_fit * (1.0 - at_fit), dtype=np.float64)
    inverse = np.linalg.inv(_regularise(information(weights * tally.counts, tally.z)))
    radius = np.sqrt(2.0 * max(float(log_likelihood(tally, fit.theta)) - level, 0.0))
    left_over = _zero_tolerance(tally)
    for first in range(0, len(spans), size):
        part = spans[first : first + size]
        along = part @ inverse  # (M, r)
        squares = np.maximum((along * part).sum(axis=1), SHORTEST)  # (M,)
        thetas = fit.theta - (radius / np.sqrt(squares))[:, np.newaxis] * along
        shares = np.asarray(sigmoid(thetas @ tally.z.T), dtype=np.float64)  # (M, P)
        newton = (tally.wins - tally.counts * shares) @ tally.z @ inverse
        kappa = (part * newton).sum(axis=1) / squares
        shares += weights * ((newton - kappa[:, np.newaxis] * along) @ tally.z.T)
        is_inside = (shares.min(axis=1, initial=0.5) >= 0.0) & (shares.max(axis=1, initial=0.5) <= 1.0)
        rest = (tally.wins - tally.counts * shares) @ tally.z - kappa[:, np.newaxis] * part
        is_met = is_inside & (kappa > 0.0) & (np.abs(rest).max(axis=1) <= left_over)
        sums = _negative_entropies(shares[is_met]) @ tally.counts
        found[first : first + size][is_met] = (level - sums) / kappa[is_met]
    return found


def nearest_in_planes(spans: FloatArray, lead: float, fit: Fit) -> FloatArray:
    """Nearest theta with theta . y = lead, shape (M, r).

    Nearest to the fitted theta, in the norm of the fit.
    """
    along = np.linalg.solve(fit.hessian, spans.T).T  # (M, r)
    shares = (spans @ fit.theta - lead) / np.maximum((spans * along).sum(axis=1), SHORTEST)
    projected: FloatArray = fit.theta - shares[:, np.newaxis] * along
    return projected


def _ascend(tally: Tally, spans: FloatArray, thetas: FloatArray) -> FloatArray:
    """Maximise l minus a small ridge over planes theta . y = b, shape (M, r).

    The search is by Newton's method.
    """
    z, wins, counts, _ = tally
    identity = np.eye(z.shape[1])
    for _ in range(MOST_STEPS):
        shares = sigmoid(thetas @ z.T)  # (M, P)
        gradients = (wins - counts * shares) @ z - RIDGE * thetas
        curvatures = information(counts * shares * (1.0 - shares), z)
        newton, along = _solve(curvatures + RIDGE * identity, gradients, spans)
        steps = newton - _ratios(spans, newton, along)[:, np.newaxis] * along
        thetas = thetas + shorten(steps, z)
        if (gradients * steps).sum(axis=1).max(initial=0.0) <= SMALL_DECREMENT:
            break
    return thetas


def _descend(tally: Tally, spans: FloatArray, fit: Fit, level: float) -> FloatArray:
    """Minimise theta . y over l(theta) >= level by Newton's method, shape (M, r)."""
    z, wins, counts, _ = tally
    identity = np.eye(z.shape[1])
    thetas = np.repeat(fit.theta[np.newaxis], len(spans), axis=0)
    busy = np.arange(len(spans))
    for _ in range(MOST_DESCENTS):
        shares = sigmoid(thetas[busy] @ z.T)  # (M, P), for the unconverged ones
        gradients = (wins - counts * shares) @ z - RIDGE * thetas[busy]
        curvatures = information(counts * shares * (1.0 - shares), z)
        newton, along = _solve(curvatures + RIDGE * identity, gradients, spans[busy])
        spare = log_likelihood(tally, thetas[busy]) - level
        # Step to the point at which the parabola that touches l here falls to the level.
        rise = 2.0 * spare + (gradients * newton).sum(axis=1)
        kappa = np.sqrt(np.maximum(rise, 0.0) / np.maximum((spans[busy] * along).sum(axis=1), SHORTEST))
        steps = newton - kappa[:, np.newaxis] * along
        thetas[busy] += shorten(steps, z)
        is_moving = (np.abs(spare) > CLOSE) | (np.abs(steps @ z.T).max(axis=1, initial=0.0) > CLOSE)
        busy = busy[is_moving]
        if len(busy) == 0:
            break
    return thetas


def _dual(tally: Tally, spans: FloatArray, thetas: FloatArray) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Find shares a near sigmoid(theta . z) with g(a) = -nu y.

    Returns:
        The sums of -N H(a), nu, and whether such shares were found: shape (M,) each.
    """
    z, wins, counts, _ = tally
    left_over = _zero_tolerance(tally)
    shares = np.asarray(sigmoid(thetas @ z.T), dtype=np.float64)  # (M, P), a
    for _ in range(MOST_REPAIRS):
        weights = np.asarray(shares * (1.0 - shares), dtype=np.float64)
        curvatures = information(weights * counts, z)
        residuals = (wins - counts * shares) @ z  # (M, r), g(a)
        newton, along = _solve(_regularise(curvatures), residuals, spans)
        nu = np.maximum(0.0, -_ratios(spans, newton, along))
        rest = residuals + nu[:, np.newaxis] * spans
        is_met: BoolArray = np.abs(rest).max(axis=1, initial=0.0) <= left_over
        if is_met.all():
            break
        # A share that is clipped to 0 or 1 stays there, and the other shares compensate.
        moves = (newton + nu[:, np.newaxis] * along) @ z.T
        moved = np.clip(shares + weights * moves, 0.0, 1.0)
        shares = np.asarray(np.where(is_met[:, np.newaxis], shares, moved), dtype=np.float64)
    return np.asarray(_negative_entropies(shares) @ counts, dtype=np.float64), nu, is_met


def _zero_tolerance(tally: Tally) -> float:
    """Tolerance for a sum that is 0 in exact arithmetic."""
    return ROUNDING * (1.0 + float((tally.counts @ np.abs(tally.z)).max(initial=0.0)))


def _ratios(spans: FloatArray, newton: FloatArray, along: FloatArray) -> FloatArray:
    """Quotients y . newton / y . along, shape (M,); 0 if y is 0."""
    lengths = (spans * along).sum(axis=1)
    is_there: BoolArray = lengths > 0.0
    ratios: FloatArray = np.where(
        is_there, (spans * newton).sum(axis=1) / np.where(is_there, lengths, 1.0), 0.0
    )
    return ratios


def _solve(matrices: FloatArray, first: FloatArray, second: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Products of each matrix's inverse with two vectors, shape (M, r) each."""
    solved = np.asarray(np.linalg.solve(matrices, np.stack([first, second], axis=-1)), dtype=np.float64)
    return solved[..., 0], solved[..., 1]


def _regularise(matrices: FloatArray) -> FloatArray:
    traces = np.trace(matrices, axis1=-2, axis2=-1)[..., np.newaxis, np.newaxis]
    steadied: FloatArray = matrices + STEADINESS * np.maximum(traces, 1.0) * np.eye(matrices.shape[-1])
    return steadied


def _negative_entropies(shares: FloatArray) -> FloatArray:
    """-H(a), in nats, at most 0."""
    return np.asarray(xlogy(shares, shares) + xlog1py(1.0 - shares, -shares), dtype=np.float64)
