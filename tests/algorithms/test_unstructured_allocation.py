import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from tests.benchmarks.best_duel_hardness import characteristic_time
from winnow.algorithms.best_duel import llm_po
from winnow.algorithms.best_duel.llm_po import LEAST_DIVERGENCE, likeliest_best, settling_shares
from winnow.algorithms.best_duel.preference_intervals import bernoulli_kl
from winnow.algorithms.best_duel.win_tables import Standings

ALL = np.ones(4, dtype=bool)


def with_best(values, n_arms=4):
    """A preference matrix of which arm 0 is the best."""
    preferences = np.full((n_arms, n_arms), 0.5)
    upper = np.triu_indices(n_arms, 1)
    preferences[upper] = values
    preferences[0, 1:] = 0.5 + np.abs(preferences[0, 1:] - 0.5)
    preferences[upper[::-1]] = 1.0 - preferences[upper]
    return preferences


def standings_of(preferences, counts=1, active=None):
    everyone = np.ones(len(preferences), dtype=bool)
    counts = np.broadcast_to(counts, preferences.shape)
    return Standings(preferences.copy(), counts, everyone if active is None else active)


def optimal_shares(preferences, best, active):
    """The shares as a symmetric matrix; each pair of arms has its share in both places, so the sum is 2."""
    rivals = np.flatnonzero(active & (np.arange(len(active)) != best))
    return matrix_of(
        llm_po.optimal_shares(standings_of(preferences, active=active), best, rivals), len(active)
    )


def matrix_of(shares, n_arms):
    matrix = np.zeros((n_arms, n_arms))
    for (low, high), share in shares.items():
        matrix[low, high] = matrix[high, low] = share
    return matrix


def least_evidence(preferences, shares):
    """How fast the evidence against the least doubted rival of arm 0 grows with these shares."""
    losing = np.where(preferences < 0.5, preferences, 0.5)
    return (shares * bernoulli_kl(losing, 0.5)).sum(axis=1)[1:].min()


def by_linear_programming(preferences):
    """The best of all shares: maximise v with evidence of every rival at least v and shares summing to 1."""
    n_arms = len(preferences)
    pairs = np.argwhere(np.triu(np.ones((n_arms, n_arms)), 1))
    speeds = np.zeros((n_arms, len(pairs)))
    for place, (i, j) in enumerate(pairs):
        loser = i if preferences[i, j] < 0.5 else j
        speeds[loser, place] = bernoulli_kl(preferences[i, j], 0.5)
    found = linprog(
        np.append(np.zeros(len(pairs)), -1.0),
        A_ub=np.column_stack([-speeds[1:], np.ones(n_arms - 1)]),
        b_ub=np.zeros(n_arms - 1),
        A_eq=[[*np.ones(len(pairs)), 0.0]],
        b_eq=[1.0],
    )
    return -found.fun


CLEAR = st.floats(0.05, 0.45) | st.floats(0.55, 0.95)
MATRICES = st.lists(CLEAR, min_size=6, max_size=6).map(with_best)


@given(MATRICES)
def test_no_other_shares_gather_evidence_faster(preferences):
    shares = optimal_shares(preferences, 0, ALL)
    fastest = by_linear_programming(preferences)
    assert shares.sum() == pytest.approx(2.0)
    np.testing.assert_array_equal(shares, shares.T)
    assert least_evidence(preferences, shares) == pytest.approx(fastest, rel=1e-6)
    assert characteristic_time(preferences) == pytest.approx(1.0 / fastest, rel=1e-6)


def test_shares_have_known_values():
    # Arm 1 loses to arm 0 by 0.8, arm 2 to arm 1 by 0.9: 1/d is 5.19 and 2.72.
    preferences = with_best([0.8, 0.7, 0.9], n_arms=3)
    shares = optimal_shares(preferences, 0, np.ones(3, dtype=bool))
    assert shares[0, 1] == pytest.approx(5.1880 / (5.1880 + 2.7169), rel=1e-4)
    assert shares[1, 2] == pytest.approx(2.7169 / (5.1880 + 2.7169), rel=1e-4)
    assert shares[0, 2] == 0.0
    assert characteristic_time(preferences) == pytest.approx(7.9049, rel=1e-4)


@pytest.mark.parametrize("unsettled", [np.nan, 0.5, 0.4])
def test_an_arm_that_the_best_does_not_beat_fights_the_best(unsettled):
    preferences = with_best([0.8, 0.7, 0.9], n_arms=3)
    preferences[0, 2], preferences[2, 0] = unsettled, 1.0 - unsettled
    shares = optimal_shares(preferences, 0, np.ones(3, dtype=bool))
    assert shares[1, 2] == 0.0
    assert shares[0, 2] == pytest.approx(1.0 / (1.0 + 5.1880 * LEAST_DIVERGENCE), rel=1e-4)


def test_the_likeliest_best_arm_is_the_one_with_the_least_evidence_against_it():
    # Arm 0 lost 6 of 10 duels against arm 2, arm 1 lost 530 of 1000 against arm 0.
    preferences = with_best([0.53, 0.4, 0.9], n_arms=3)
    preferences[0, 2], preferences[2, 0] = 0.4, 0.6
    counts = np.array([[0, 1_000, 10], [1_000, 0, 10], [10, 10, 0]])
    everyone, others = np.ones(3, dtype=bool), np.array([False, True, True])
    few = np.minimum(counts, 10)
    assert likeliest_best(standings_of(preferences, counts), 1, everyone) == 0
    assert likeliest_best(standings_of(preferences, few), 1, everyone) == 1
    assert likeliest_best(standings_of(preferences, counts, others), 1, others) == 1


def test_what_is_left_to_settle_is_fought_in_proportion_to_its_difficulty():
    # The best arm beats arm 1 by 0.8 and arm 2 by 0.7: 1/d is 5.1880 and 12.1534.
    shares = settling_shares(standings_of(with_best([0.8, 0.7, 0.9], n_arms=3)), 0, np.array([1, 2]))
    assert shares == pytest.approx({(0, 1): 5.1880 / 17.3414, (0, 2): 12.1534 / 17.3414}, rel=1e-4)


def test_the_corollary_is_the_best_of_all_shares_on_a_grid():
    # Arms 1 and 2 lose most clearly to each other's conqueror, so all three pairs could matter.
    preferences = with_best([0.75, 0.6, 0.9], n_arms=3)
    steps = np.linspace(0.0, 1.0, 401)
    best = max(
        least_evidence(preferences, matrix_of({(0, 1): x, (0, 2): y, (1, 2): 1.0 - x - y}, 3))
        for x in steps
        for y in steps[steps <= 1.0 - x]
    )
    found = least_evidence(preferences, optimal_shares(preferences, 0, np.ones(3, dtype=bool)))
    assert best <= found + 1e-12
    assert found == pytest.approx(best, rel=0.01)


def test_arms_set_aside_have_no_share():
    preferences = with_best([0.8, 0.7, 0.6, 0.9, 0.9, 0.6])
    active = np.array([True, False, True, True])
    shares = optimal_shares(preferences, 0, active)
    assert shares[1].sum() == 0.0
    np.testing.assert_allclose(
        shares[np.ix_(active, active)],
        optimal_shares(preferences[np.ix_(active, active)], 0, np.ones(3, dtype=bool)),
    )


@given(MATRICES, st.permutations(range(4)))
def test_shares_follow_the_numbering_of_the_arms(preferences, names):
    places = np.ix_(names, names)
    shares = optimal_shares(preferences[places], names.index(0), ALL)
    opponents = np.sort(np.where(preferences < 0.5, preferences, 0.5), axis=1)
    if (opponents[1:, 0] < opponents[1:, 1]).all():  # nobody has two equally clear opponents
        np.testing.assert_allclose(shares, optimal_shares(preferences, 0, ALL)[places], rtol=1e-9)
