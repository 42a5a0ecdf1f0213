"""Bounds on the log-likelihood of the Bradley-Terry model that hold however far a search has come.

Letters as in `model`. As log(1 + e^u) >= a u + H(a) for every a in [0, 1], with H the entropy of a
coin in nats, every vector a of shares in [0, 1], one for each pair, bounds the log-likelihood from above for
all theta at once:

    l(theta) <= theta . g(a) - sum N H(a),    g(a) = sum (W - N a) z.

So if g(a) = -nu y for some nu >= 0, then l is at most -sum N H(a) - nu b on the half-space theta . y >= b;
and if g(a) = kappa y for some kappa > 0, then l(theta) >= c only where theta . y >= (c + sum N H(a)) / kappa.
At the maximiser, a = sigmoid(theta . z) makes the bound exact. Elsewhere these shares nearly satisfy the
condition, and a Newton step makes them satisfy it, up to rounding. Nothing has to have converged for the
bound to hold, and theta may be as long as it likes: where l has no maximiser, as some arms always win, the
bounds hold too.

Source: Boyd and Vandenberghe (2004), "Convex Optimization", section 5.1.6, for the dual; weak duality is all
that is used.
"""

import numpy as np
from scipy.special import xlog1py, xlogy

from winnow.algorithms.best_duel.bradley_terry import Fit, Tally, information, log_likelihood, shorten
from winnow.algorithms.low_rank.logistic import sigmoid
from winnow.algorithms.state.arrays import BoolArray, FloatArray

RIDGE = 1e-4  # keeps the search from running away where some arms always win
SMALL_DECREMENT = 1e-6  # nats
MOST_STEPS, MOST_DESCENTS, MOST_REPAIRS = 50, 20, 20
CLOSE = 1e-3  # nats, and of log-odds
ROUNDING = 1e-11  # relative to the largest sum that may be left over
STEADINESS = 1e-13  # relative, added to matrices that may be singular
SHORTEST = 1e-300
MOST_CELLS = 2_000_000  # of the largest table


def half_space_suprema(tally: Tally, spans: FloatArray, lead: float, fit: Fit) -> FloatArray:
    """Upper bounds of l over the half-spaces theta . y >= lead, in nats.

    Args:
        tally: P pairs; duels without a score count nothing, which no outcome of them could exceed.
        spans: y, shape (M, r).
        lead: b, non-negative.
        fit: The fit that the search begins from, with theta . y <= b for the bound to be sharp.

    Returns:
        Shape (M,), at most 0.
    """
    thetas = _ascended(tally, spans, nearest_in_planes(spans, lead, fit))
    sums, nu, is_met = _dual(tally, spans, thetas)
    # With a = W / N, g(a) is 0: what each pair could have at most if it had a preference of its own.
    shares = np.asarray(tally.wins / np.maximum(tally.counts, SHORTEST), dtype=np.float64)
    won = np.asarray(np.clip(shares, 0.0, 1.0), dtype=np.float64)  # weighed sums are rounded
    saturated = _negative_entropies(won) @ tally.counts
    bounds: FloatArray = np.minimum(np.where(is_met, sums - nu * lead, 0.0), saturated)
    return bounds


def supremum(tally: Tally, fit: Fit) -> float:
    """An upper bound of l over all theta, in nats, at most 0."""
    return float(half_space_suprema(tally, np.zeros((1, len(fit.theta))), 0.0, fit)[0])


def least_log_odds(tally: Tally, spans: FloatArray, fit: Fit, level: float) -> FloatArray:
    """Lower bounds of theta . y over all theta with l(theta) >= level.

    Args:
        tally: P pairs.
        spans: y, shape (M, r).
        fit: The fit that the search begins from; the closer to the maximiser, the sharper the bounds.
        level: c, in nats, at most l at the maximiser.

    Returns:
        Shape (M,), minus infinity where nothing was found.
    """
    least = np.full(len(spans), -np.inf)
    size = max(1, MOST_CELLS // max(1, tally.z.size))
    for first in range(0, len(spans), size):
        part = spans[first : first + size]
        sums, kappa, is_met = _dual(tally, -part, _descended(tally, part, fit, level))
        bounded = is_met & (kappa > 0.0)
        found = (level - sums) / np.where(bounded, kappa, 1.0)
        least[first : first + size] = np.where(bounded, found, -np.inf)
    return least


def quick_least_log_odds(tally: Tally, spans: FloatArray, fit: Fit, level: float) -> FloatArray:
    """Lower bounds as those of `least_log_odds`, with the same arguments, at about a tenth of its cost.

    The parabola that touches l at the fit says where theta . y is least, nearly so where l is like it all the
    way down to the level. With the shares of that theta, one step in the norm of the fit, the same for all y,
    meets g(a) = kappa y; where it leaves [0, 1] for some pair, nothing is found.

    Returns:
        Shape (M,), minus infinity where nothing was found.
    """
    found = np.full(len(spans), -np.inf)
    size = max(1, MOST_CELLS // max(1, len(tally.z)))
    at_fit = np.asarray(sigmoid(tally.z @ fit.theta), dtype=np.float64)
    weights = np.asarray(at_fit * (1.0 - at_fit), dtype=np.float64)
    inverse = np.linalg.inv(_steadied(information(weights * tally.counts, tally.z)))
    radius = np.sqrt(2.0 * max(float(log_likelihood(tally, fit.theta)) - level, 0.0))
    left_over = _left_over(tally)
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
    """The thetas with theta . y = lead that are nearest to the fitted one in its own norm, shape (M, r)."""
    along = np.linalg.solve(fit.hessian, spans.T).T  # (M, r)
    shares = (spans @ fit.theta - lead) / np.maximum((spans * along).sum(axis=1), SHORTEST)
    projected: FloatArray = fit.theta - shares[:, np.newaxis] * along
    return projected


def _ascended(tally: Tally, spans: FloatArray, thetas: FloatArray) -> FloatArray:
    """Maximise l less a small ridge over the thetas' planes theta . y = b by Newton's method: (M, r)."""
    z, wins, counts, _ = tally
    identity = np.eye(z.shape[1])
    for _ in range(MOST_STEPS):
        shares = sigmoid(thetas @ z.T)  # (M, P)
        gradients = (wins - counts * shares) @ z - RIDGE * thetas
        curvatures = information(counts * shares * (1.0 - shares), z)
        newton, along = _solved(curvatures + RIDGE * identity, gradients, spans)
        steps = newton - _ratios(spans, newton, along)[:, np.newaxis] * along
        thetas = thetas + shorten(steps, z)
        if (gradients * steps).sum(axis=1).max(initial=0.0) <= SMALL_DECREMENT:
            break
    return thetas


def _descended(tally: Tally, spans: FloatArray, fit: Fit, level: float) -> FloatArray:
    """Minimise theta . y over l(theta) >= level by Newton's method, shape (M, r)."""
    z, wins, counts, _ = tally
    identity = np.eye(z.shape[1])
    thetas = np.repeat(fit.theta[np.newaxis], len(spans), axis=0)
    busy = np.arange(len(spans))
    for _ in range(MOST_DESCENTS):
        shares = sigmoid(thetas[busy] @ z.T)  # (M, P), of those that are still moving
        gradients = (wins - counts * shares) @ z - RIDGE * thetas[busy]
        curvatures = information(counts * shares * (1.0 - shares), z)
        newton, along = _solved(curvatures + RIDGE * identity, gradients, spans[busy])
        spare = log_likelihood(tally, thetas[busy]) - level
        # The step to where the parabola that touches l here comes down to the level.
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
    """Shares a near sigmoid(theta . z) with g(a) = -nu y.

    Returns:
        The sums of -N H(a), nu, and whether it was found: shape (M,) each.
    """
    z, wins, counts, _ = tally
    left_over = _left_over(tally)
    shares = np.asarray(sigmoid(thetas @ z.T), dtype=np.float64)  # (M, P), a
    for _ in range(MOST_REPAIRS):
        weights = np.asarray(shares * (1.0 - shares), dtype=np.float64)
        curvatures = information(weights * counts, z)
        residuals = (wins - counts * shares) @ z  # (M, r), g(a)
        newton, along = _solved(_steadied(curvatures), residuals, spans)
        nu = np.maximum(0.0, -_ratios(spans, newton, along))
        rest = residuals + nu[:, np.newaxis] * spans
        is_met: BoolArray = np.abs(rest).max(axis=1, initial=0.0) <= left_over
        if is_met.all():
            break
        # A share that is clipped to 0 or 1 stays there, and the others make up for it.
        moves = (newton + nu[:, np.newaxis] * along) @ z.T
        moved = np.clip(shares + weights * moves, 0.0, 1.0)
        shares = np.asarray(np.where(is_met[:, np.newaxis], shares, moved), dtype=np.float64)
    return np.asarray(_negative_entropies(shares) @ counts, dtype=np.float64), nu, is_met


def _left_over(tally: Tally) -> float:
    """The farthest from 0 that rounding may leave a sum whose exact value is 0."""
    return ROUNDING * (1.0 + float((tally.counts @ np.abs(tally.z)).max(initial=0.0)))


def _ratios(spans: FloatArray, newton: FloatArray, along: FloatArray) -> FloatArray:
    """The quotients y . newton / y . along, shape (M,); 0 where there is no y."""
    lengths = (spans * along).sum(axis=1)
    is_there: BoolArray = lengths > 0.0
    ratios: FloatArray = np.where(
        is_there, (spans * newton).sum(axis=1) / np.where(is_there, lengths, 1.0), 0.0
    )
    return ratios


def _solved(matrices: FloatArray, first: FloatArray, second: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Each matrix's inverse times both vectors, (M, r) each."""
    solved = np.asarray(np.linalg.solve(matrices, np.stack([first, second], axis=-1)), dtype=np.float64)
    return solved[..., 0], solved[..., 1]


def _steadied(matrices: FloatArray) -> FloatArray:
    traces = np.trace(matrices, axis1=-2, axis2=-1)[..., np.newaxis, np.newaxis]
    steadied: FloatArray = matrices + STEADINESS * np.maximum(traces, 1.0) * np.eye(matrices.shape[-1])
    return steadied


def _negative_entropies(shares: FloatArray) -> FloatArray:
    """-H(a), in nats, at most 0."""
    return np.asarray(xlogy(shares, shares) + xlog1py(1.0 - shares, -shares), dtype=np.float64)
