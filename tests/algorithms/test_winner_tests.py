import numpy as np
import pytest

from winnow.algorithms.best_duel.winner_tests import error_bound, log_e_values, own_duels_level, product_level

EVERYONE = np.ones(4, dtype=bool)


def literal(wealths, active, arm):
    n_arms = len(active)
    share, product = 1 / (n_arms - 1), 1.0
    for other in range(n_arms):
        if other != arm:
            factor = 1 - share + share * wealths[arm, other]
            product *= factor if active[other] else min(factor, 1.0)
    return product


@pytest.mark.parametrize("active", [EVERYONE, np.array([True, False, True, True])])
def test_the_e_value_is_the_product_written_down(active):
    wealths = np.exp(np.random.default_rng(0).normal(scale=3.0, size=(4, 4)))
    found = np.exp(log_e_values(np.log(wealths), active))
    np.testing.assert_allclose(found, [literal(wealths, active, arm) for arm in range(4)])


def test_the_factor_of_the_named_arm_alone_is_shifted():
    rng = np.random.default_rng(1)
    wealths, shifted = (np.exp(rng.normal(scale=2.0, size=(4, 4))) for _ in range(2))
    column = np.full((4, 4), np.nan)
    column[:, 2] = np.log(shifted[:, 2])
    mixed = wealths.copy()
    mixed[:, 2] = shifted[:, 2]
    np.testing.assert_allclose(
        np.exp(log_e_values(np.log(wealths), EVERYONE, column))[[0, 1, 3]],
        [literal(mixed, EVERYONE, arm) for arm in (0, 1, 3)],
    )


def test_of_two_arms_the_e_value_is_the_wealth():
    wealths = np.array([[0.0, -2.5], [-np.inf, 0.0]])
    assert log_e_values(wealths, np.ones(2, dtype=bool)).tolist() == [-2.5, -np.inf]


def test_opponents_that_do_not_lead_cost_little_together():
    for n_arms in (3, 10, 100):
        wealths = np.full((n_arms, n_arms), -np.inf)
        wealths[0, 1] = 50.0
        e_value = log_e_values(wealths, np.ones(n_arms, dtype=bool))[0]
        assert 50.0 - np.log(n_arms - 1) - 1.0 < e_value < 50.0 - np.log(n_arms - 1) + 1e-9


def test_a_wealth_of_certainty_rules_out_for_certain():
    wealths = np.full((4, 4), -np.inf)
    wealths[1, 0] = np.inf
    assert np.isposinf(log_e_values(wealths, EVERYONE)).tolist() == [False, True, False, False]
    wealths[1, 0], wealths[1, 3] = 0.0, np.inf
    dropped = log_e_values(wealths, np.array([True, True, True, False]))
    assert not np.isposinf(dropped).any()


def test_levels_and_bounds_have_known_values():
    assert own_duels_level(0.05, 4) == pytest.approx(np.log(80))
    assert product_level(0.05, 4, 0.0) == pytest.approx(np.log(20))
    assert product_level(0.05, 4, 0.1) == pytest.approx(np.log(60))
    assert [error_bound(0.05, m, assume_winner=False) for m in (0, 1, 2)] == pytest.approx([0.05, 0.1, 0.15])
    assert [error_bound(0.05, m, assume_winner=True) for m in (0, 1, 2)] == pytest.approx([0.05, 0.15, 0.25])


def test_at_most_as_many_arms_as_the_bound_says_can_win_once_some_are_dropped():
    # All tournaments of 5 arms: which arms win some set of those left when at most m are dropped.
    n_arms = 5
    pairs = [(i, j) for j in range(n_arms) for i in range(j)]
    most = {m: 0 for m in range(3)}
    for code in range(2 ** len(pairs)):
        losses = np.zeros(n_arms, dtype=int)
        for bit, (i, j) in enumerate(pairs):
            losses[j if code >> bit & 1 else i] += 1
        for m in most:
            most[m] = max(most[m], int((losses <= m).sum()))
    assert most == {0: 1, 1: 3, 2: 5}
    assert [round(error_bound(0.1, m, assume_winner=True) / 0.1) for m in most] == list(most.values())
