import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import beta

from algorithms.best_duel.divergence import bernoulli_kl
from algorithms.best_duel.thresholds import (
    is_shown_to_win,
    practical_threshold,
    proven_levels,
    proven_thresholds,
)


def test_the_practical_threshold_has_known_values():
    assert practical_threshold(0.05, 1) == pytest.approx(2 * np.log(20))
    assert practical_threshold(0.1, 1_000) == pytest.approx(2 * np.log(79.0775528))
    assert practical_threshold(0.1, 0) == practical_threshold(0.1, 1)


def evidence_and_threshold(n_lost, n_won, delta):
    """Z and its proven threshold for the first of two arms."""
    wins = np.array([[0.0, n_won], [n_lost, 0.0]])
    counts = np.array([[0, n_won + n_lost], [n_won + n_lost, 0]])
    share = n_lost / (n_won + n_lost)
    against = np.zeros((2, 2))
    if share > 0.5:
        against[0, 1] = (n_won + n_lost) * bernoulli_kl(np.array(share), 0.5)
    return against[0, 1], proven_thresholds(wins, counts, against, np.ones(2, dtype=bool), delta)[0]


@pytest.mark.parametrize(("n_lost", "n_won"), [(1, 0), (7, 2), (30.5, 10.5), (200, 150)])
def test_evidence_less_its_price_is_the_logarithm_of_the_mixture(n_lost, n_won):
    statistic, threshold = evidence_and_threshold(n_lost, n_won, 0.05)
    likelihood = lambda q: 2 ** (n_lost + n_won) * q**n_lost * (1 - q) ** n_won  # noqa: E731
    mixture, _ = quad(lambda q: likelihood(q) * beta.pdf(q, 0.5, 0.5), 0, 1)
    assert statistic - threshold + np.log(20) == pytest.approx(np.log(mixture), abs=1e-5)
    one_sided, _ = quad(lambda q: 2 * likelihood(q) * beta.pdf(q, 0.5, 0.5), 0.5, 1)
    assert mixture <= one_sided


def test_the_price_is_about_that_of_each_leading_opponent():
    # 16 arms, the first loses 80 of 100 duels against one other and wins 60 of 100 against the rest.
    wins, counts = np.zeros((16, 16)), np.full((16, 16), 100)
    wins[0], wins[:, 0] = 60.0, 40.0
    wins[0, 1], wins[1, 0] = 20.0, 80.0
    against = np.zeros((16, 16))
    against[0, 1] = 100 * bernoulli_kl(np.array(0.8), 0.5)
    threshold = proven_thresholds(wins, counts, against, np.ones(16, dtype=bool), 0.05)[0]
    assert np.log(20) + np.log(15) < threshold < np.log(20) + np.log(15) + 0.5 * np.log(400) + 1.4


def crossing_probability(is_crossed, horizon):
    """The exact probability that fair duels of two arms ever reach a count of losses that is crossed."""
    alive, crossed = np.array([1.0]), 0.0
    for told in range(1, horizon + 1):
        alive = 0.5 * (np.append(alive, 0.0) + np.append(0.0, alive))  # by losses of the first arm
        for n_lost in range(told + 1):
            if alive[n_lost] > 0.0 and is_crossed(n_lost, told - n_lost):
                crossed += alive[n_lost]
                alive[n_lost] = 0.0
    return crossed


@pytest.mark.parametrize("delta", [0.05, 0.3])
def test_the_proven_threshold_is_crossed_with_probability_at_most_delta(delta):
    def proven(n_lost, n_won):
        statistic, threshold = evidence_and_threshold(n_lost, n_won, delta)
        return statistic > threshold

    assert 0.0 < crossing_probability(proven, 120) <= delta


def test_a_threshold_without_the_price_of_looking_is_crossed_too_often():
    def broken(n_lost, n_won):
        return evidence_and_threshold(n_lost, n_won, 0.05)[0] > np.log(1 / 0.05)

    assert crossing_probability(broken, 120) > 0.05


@pytest.mark.parametrize(("delta", "n_arms"), [(0.05, 2), (0.3, 3)])
def test_an_even_opponent_is_shown_to_lose_with_probability_at_most_the_share_of_delta(delta, n_arms):
    def shown(n_lost, n_won):
        return is_shown_to_win(np.array([n_won]), np.array([n_won + n_lost]), delta, n_arms)[0]

    assert 0.1 * delta / n_arms < crossing_probability(shown, 120) <= delta / n_arms


def test_winning_is_shown_from_a_known_number_of_duels():
    # The mixture is 3432 / 4^7 times 2^7 = 26.8 after 7 duels won and 50.3 after 8; 2 / 0.05 is 40.
    won = np.array([7, 8, 0, 8])
    assert is_shown_to_win(won, np.array([7, 8, 8, 16]), 0.05, 2).tolist() == [False, True, False, False]


def misses(levels, horizon=100):
    """Whether 1/2 leaves the interval of a pair, by losses and wins."""

    def missed(n_lost, n_won):
        wins, counts = np.array([[0.5, n_won], [n_lost, 0.5]]), np.array([[1, n_won + n_lost]] * 2)
        share = np.array(n_lost / (n_won + n_lost))
        return (n_won + n_lost) * bernoulli_kl(share, 0.5) > levels(wins, counts)[1, 0]

    return crossing_probability(missed, horizon)


def test_the_interval_of_a_pair_misses_with_probability_at_most_delta():
    assert 0.0 < misses(lambda wins, counts: proven_levels(wins, counts, 0.2)) <= 0.2
    assert misses(lambda wins, counts: np.full((2, 2), np.log(1 / 0.2))) > 0.2


def test_all_pairs_share_the_error_probability_of_the_intervals():
    wins, counts = np.full((4, 4), 3.0), np.full((4, 4), 6)
    two = proven_levels(wins[:2, :2], counts[:2, :2], 0.05)[0, 1]
    assert proven_levels(wins, counts, 0.05)[0, 1] - two == pytest.approx(np.log(6))
