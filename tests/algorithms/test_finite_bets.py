from itertools import combinations
from math import log

import numpy as np
import pytest

from winnow.algorithms.best_duel import winner_tests
from winnow.algorithms.best_duel.winner_tests import FiniteBets
from winnow.algorithms.bounds.half_mixture import HalfMixture

FIRST, SECOND = np.array([0]), np.array([1])


def wealths(outcomes, n_examples, least=0.5):
    """The logarithm of the wealth that arm 0 beats arm 1, after each of its outcomes against it."""
    bets, found = FiniteBets(2, n_examples, least), []
    for outcome in outcomes:
        bets.bet(0, 1, outcome)
        found.append(bets.log_wealth(SECOND, FIRST)[0])
    return found


def literal_wealth(outcomes, n_examples, least, stakes):
    total = 0.0
    for stake in stakes:
        wealth, gained = 1.0, 0.0
        for t, outcome in enumerate(outcomes):
            mean = (n_examples * least - gained) / (n_examples - t)
            wealth *= 1.0 + (stake / mean) * (outcome - mean)
            gained += outcome
        total += wealth
    return total / len(stakes)


@pytest.mark.parametrize("least", [0.5, 0.4])
def test_the_wealth_is_that_of_the_bets_written_down(least):
    outcomes = [1, 0, 0.5, 1, 1, 0.25, 0, 1, 1, 0.5]
    stakes = winner_tests._stakes(least)
    assert ((stakes > 0.0) & (stakes <= 0.9)).all()
    assert wealths(outcomes, 40, least)[-1] == pytest.approx(
        log(literal_wealth(outcomes, 40, least, stakes)), abs=1e-10
    )


def orders(n_examples, n_won):
    """All orders of so many wins among the examples; each is as likely in draws without replacement."""
    for places in combinations(range(n_examples), n_won):
        yield [float(place in places) for place in range(n_examples)]


@pytest.mark.parametrize(("n_examples", "n_won", "least"), [(10, 5, 0.5), (9, 4, 0.5), (10, 4, 0.4)])
def test_over_all_orders_the_wealth_of_a_hypothesis_that_holds_is_at_most_1_on_average(
    n_examples, n_won, least
):
    paths = np.exp([wealths(order, n_examples, least) for order in orders(n_examples, n_won)])
    assert np.isfinite(paths).all()
    assert (paths.mean(axis=0) <= 1.0 + 1e-12).all()
    if n_won == n_examples * least:  # nothing is given away by the first duel
        assert paths.mean(axis=0)[0] == pytest.approx(1.0)
    for level in (0.5, 0.2, 0.1):
        assert (paths.max(axis=1) >= 1.0 / level).mean() <= level


def test_bets_that_forget_what_was_drawn_gain_from_a_hypothesis_that_holds():
    # Draws of 12 examples half of which are won: once they ran short, the rest is known to be rich.
    def forgetful(order):
        log_wealth, gained = 0.0, 0.0
        for t, outcome in enumerate(order):
            stake = 0.9 if gained < 0.5 * t else 0.0
            log_wealth += np.log1p(stake * (outcome / 0.5 - 1.0))
            gained += outcome
        return np.exp(log_wealth)

    assert np.mean([forgetful(order) for order in orders(12, 6)]) > 1.5


def test_what_is_certain_is_known():
    assert wealths([1] * 6, 10)[-2:] == [pytest.approx(wealths([1] * 5, 10)[-1]), np.inf]
    lost = wealths([0] * 5, 10)
    assert lost[-1] == -np.inf  # at most 5 of 10 can be won
    assert np.isfinite(lost[:-1]).all()
    tied = FiniteBets(2, 4, 0.5)
    for outcome in (1, 0, 0.5, 0.5):
        tied.bet(0, 1, outcome)
    assert tied.log_wealth(np.array([0, 1]), np.array([1, 0])).tolist() == [-np.inf, -np.inf]


def test_an_unscored_duel_counts_as_lost_by_both():
    with_unscored, lost, won = FiniteBets(2, 50, 0.5), FiniteBets(2, 50, 0.5), FiniteBets(2, 50, 0.5)
    for bets, outcome in ((with_unscored, np.nan), (lost, 0.0), (won, 1.0)):
        bets.bet(0, 1, 1.0)
        bets.bet(1, 0, outcome)  # in favour of arm 1
        bets.bet(0, 1, 1.0)
    assert with_unscored.log_wealth(FIRST, SECOND) == lost.log_wealth(FIRST, SECOND)
    assert with_unscored.log_wealth(SECOND, FIRST) == won.log_wealth(SECOND, FIRST)


def test_a_higher_outcome_never_leads_to_less_wealth():
    rng = np.random.default_rng(0)
    for _ in range(50):
        outcomes = rng.choice([0.0, 0.5, 1.0], size=30)
        raised = outcomes.copy()
        place = rng.integers(30)
        raised[place] = min(1.0, outcomes[place] + 0.5)
        low, high = wealths(outcomes, 60), wealths(raised, 60)
        assert all(a <= b + 1e-12 for a, b in zip(low, high, strict=True))


@pytest.mark.parametrize("least", [0.5, 0.45])
@pytest.mark.parametrize("chance", [0.51, 0.6, 0.75])
def test_with_many_examples_left_it_is_about_the_half_mixture(chance, least):
    outcomes = (np.random.default_rng(1).random(600) < chance).astype(float)
    gains = outcomes.sum()
    mixture = HalfMixture(least).log_value(np.array(gains), np.array(600 - gains))
    assert wealths(outcomes, 10**12, least)[-1] == pytest.approx(float(mixture), abs=0.5)
