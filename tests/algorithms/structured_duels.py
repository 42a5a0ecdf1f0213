"""Duels whose preferences follow the Bradley-Terry model, and what is known of it, the slow way."""

import numpy as np
from scipy.optimize import minimize

from winnow.algorithms.best_duel.bradley_terry import Tally, fit_bradley_terry
from winnow.algorithms.best_duel.config import BestDuelConfig
from winnow.algorithms.best_duel.duel_record import DuelRecord
from winnow.algorithms.protocols import Batch


def sigma(u):
    return 1.0 / (1.0 + np.exp(-u))


def published_instance(seed, n_arms=32, d=6):
    """Features (K, d) and theta (d,) of the paper's structured experiment."""
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=d)
    theta /= np.linalg.norm(theta)
    bases = np.linspace(0.3, -0.3, n_arms)
    return bases[:, np.newaxis] * theta + rng.normal(scale=0.25, size=(n_arms, d)), theta


def duels(features, theta, arms, rng):
    """A batch of these duels (B, 2) and its outcomes."""
    chances = sigma((features[arms[:, 0]] - features[arms[:, 1]]) @ theta)
    return Batch(arms, np.zeros(len(arms), dtype=int)), (rng.random(len(arms)) < chances).astype(float)


def random_pairs(n_arms, size, rng):
    first = rng.integers(n_arms, size=size)
    return np.column_stack((first, (first + rng.integers(1, n_arms, size=size)) % n_arms))


def told_record(features, rounds, **params):
    """A config with these features, and a record that was told these rounds."""
    config = BestDuelConfig(n_arms=len(features), n_examples=5, features=features, **params)
    record = DuelRecord(config)
    for batch, outcomes in rounds:
        record.tell(batch, outcomes)
    return config, record


def literal_allocation(z, curvature, rivals, gaps, objective):
    """The best value of objective(Psi, omega) over the simplex, and omega, by a general-purpose solver."""

    def fisher_separations(shares):
        hessian = (z.T * (shares * curvature)) @ z
        norms = [y @ np.linalg.solve(hessian, y) for y in rivals]
        return np.array([gap**2 / (2.0 * norm) for gap, norm in zip(gaps, norms, strict=True)])

    start = np.full(len(z), 1.0 / len(z))
    scale = fisher_separations(start).min()
    found = minimize(
        lambda x: -objective(scale * x[-1], x[:-1]),
        np.append(start, 0.9),
        method="SLSQP",
        bounds=[(1e-9, 1.0)] * len(z) + [(1e-6, None)],
        constraints=[
            {"type": "eq", "fun": lambda x: x[:-1].sum() - 1.0},
            {"type": "ineq", "fun": lambda x: fisher_separations(x[:-1]) / scale - x[-1]},
        ],
        options={"maxiter": 1_000, "ftol": 1e-12},
    )
    assert found.success, found.message
    shares = found.x[:-1] / found.x[:-1].sum()
    return objective(fisher_separations(shares).min(), shares), shares


def example_tally(seed, *, unscored=0, most=30, steepness=None):
    """Duels of up to 7 arms with up to 3 features, ties among them; some have arms that always win."""
    rng = np.random.default_rng(seed)
    n_arms, r = int(rng.integers(3, 8)), int(rng.integers(1, 4))
    points = rng.normal(size=(n_arms, r))
    low, high = np.triu_indices(n_arms, 1)
    z, counts = points[low] - points[high], rng.integers(0, most, size=len(low))
    theta = rng.normal(size=r) * (rng.choice([0.3, 1.0, 10.0]) if steepness is None else steepness)
    wins = rng.binomial(2 * counts, sigma(z @ theta)) / 2.0
    missing = rng.integers(0, unscored + 1, size=len(low))
    return points, Tally(z, wins, counts, missing)


def fitted(tally, ridge=None):
    n_scored = max(tally.counts.sum(), 1)
    start = np.zeros(tally.z.shape[1])
    return fit_bradley_terry(*tally[:3], ridge=n_scored**-0.5 if ridge is None else ridge, start=start)
