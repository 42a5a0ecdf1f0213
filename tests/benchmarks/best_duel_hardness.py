"""How many duels no method can do without, where all is known: what selectors are measured against."""

import math

import numpy as np

from winnow.algorithms.best_duel.win_tables import Standings
from winnow.algorithms.papers.bradley_terry.feature_space import arm_points
from winnow.algorithms.papers.bradley_terry.llm_po_bt import allocate, instance
from winnow.algorithms.state.arrays import FloatArray

FINE, MOST_SWEEPS = 1e-4, 20_000


def characteristic_time(preferences: FloatArray) -> float:
    """T*: no method with error probability delta needs fewer than T* log(1/delta) duels as delta goes to 0.

    Args:
        preferences: Shape (K, K), P(row is preferred to column); some arm beats every other.

    Returns:
        The sum of 1 / d_i over all arms but the best, in duels per nat.

    Source: Hu et al. (2026), Theorem 3.2 with the allocation of Corollary 3.3.
    """
    n_arms = len(preferences)
    standings = Standings(
        preferences, np.ones((n_arms, n_arms), dtype=np.int64), np.ones(n_arms, dtype=np.bool_)
    )
    divergences = standings.divergences.max(axis=1)
    return float((1.0 / np.delete(divergences, standings.estimates.argmax())).sum())


def characteristic_time_bt(features: FloatArray, theta: FloatArray) -> float:
    """U*, how many duels a unit of evidence takes at best: 1 / max over omega of Psi(omega).

    A selector that knew theta would need about U* times the threshold.

    Args:
        features: Shape (K, d), as `arm_points` wants them.
        theta: Shape (d,), for which one arm is best.

    Returns:
        U*, in duels per nat, within a share of 1e-4 unless 20 000 sweeps do not suffice; infinite where the
        best arm is not alone.

    Source: Hu et al. (2026), "Adaptive Simulation Experiment for Large Language Model Policy Optimization",
    Theorem 3.6.
    """
    n_arms = len(features)
    pairs = np.argwhere(np.triu(np.ones((n_arms, n_arms), dtype=np.bool_), 1))
    problem = instance(arm_points(features), features @ theta, pairs, np.arange(n_arms))
    if problem.gaps.min() == 0.0:
        return math.inf
    found = allocate(problem, penalty=0.0, tolerance=FINE, most_sweeps=MOST_SWEEPS, smallest_gap=0.0)
    return 1.0 / found.value
