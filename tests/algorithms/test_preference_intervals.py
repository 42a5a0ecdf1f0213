import numpy as np
import pytest
from failure_rates import fails_too_often
from fair_duels import crossing_probability
from hypothesis import given
from hypothesis import strategies as st

from winnow.algorithms.best_duel.config import BestDuelConfig
from winnow.algorithms.best_duel.duel_record import DuelRecord
from winnow.algorithms.best_duel.preference_intervals import PreferenceIntervals, bernoulli_kl, log_prices
from winnow.algorithms.protocols import Batch, round_rng


def intervals(duels, n_arms=2, delta=0.2, **params):
    """Lower and upper ends after (first arm, second arm, example, outcome), told one by one."""
    config = BestDuelConfig(n_arms=n_arms, max_unscored=1.0, **{"n_examples": 1, **params})
    record = DuelRecord(config)
    made = PreferenceIntervals(record, delta)
    for first, second, example, outcome in duels:
        record.tell(Batch([[first, second]], [example]), [outcome])
        made.update()
    lower = made.lower()
    return lower, 1.0 - lower.T


def wins_and_losses(won, lost):
    return [(0, 1, 0, 1.0)] * won + [(0, 1, 0, 0.0)] * lost


def test_the_ends_of_a_pair_are_where_the_divergence_reaches_its_level():
    lower, upper = intervals(wins_and_losses(30, 10))
    level = np.log(1 / 0.2) + log_prices(np.array(30.0), np.array(40))
    for end in (lower[0, 1], upper[0, 1]):
        assert 40 * bernoulli_kl(np.array(0.75), end) == pytest.approx(level, rel=1e-6)
    assert lower[0, 1] < 0.75 < upper[0, 1]


def misses(levels, horizon=100):
    """The probability that 1/2 ever leaves the interval of a pair of even arms."""

    def missed(gains, losses):
        told = gains + losses
        divergence = told * bernoulli_kl(np.array(gains / told), 0.5)
        return divergence > levels(np.array(float(gains)), np.array(told))

    return crossing_probability(missed, horizon)


def test_the_interval_of_a_pair_misses_with_probability_at_most_delta():
    assert 0.0 < misses(lambda wins, counts: np.log(1 / 0.2) + log_prices(wins, counts)) <= 0.2
    assert misses(lambda wins, counts: np.log(1 / 0.2)) > 0.2


def test_all_pairs_share_the_error_probability():
    two = intervals(wins_and_losses(12, 9), delta=0.05)
    four = intervals(wins_and_losses(12, 9), n_arms=4, delta=0.3)
    assert four[0][0, 1] == pytest.approx(two[0][0, 1], abs=1e-9)
    assert four[0][2, 3] == 0.0


@given(st.integers(0, 30), st.integers(0, 30), st.integers(1, 12), st.integers(0, 12))
def test_the_interval_holds_that_of_whatever_the_unscored_duels_had_come_to(won, lost, unscored, more):
    more = min(more, unscored)
    lower, upper = intervals(wins_and_losses(won, lost) + [(0, 1, 0, np.nan)] * unscored)
    complete = intervals(wins_and_losses(won + more, lost + unscored - more))
    assert lower[0, 1] <= complete[0][0, 1] + 1e-9
    assert upper[0, 1] >= complete[1][0, 1] - 1e-9


def test_a_pair_that_meets_an_example_once_is_known_in_the_end():
    duels = [(0, 1, example, float(example < 4)) for example in range(10)]
    duels = [(second, first, e, 1.0 - x) if e % 2 else (first, second, e, x) for first, second, e, x in duels]
    once = {"n_examples": 10, "deterministic": np.ones(2, dtype=bool)}
    lower, upper = intervals(duels, **once)
    assert (lower[0, 1], upper[0, 1]) == pytest.approx((0.4, 0.4))
    duels[0] = (*duels[0][:3], np.nan)
    lower, upper = intervals(duels, **once)
    assert (lower[0, 1], upper[0, 1]) == pytest.approx((0.3, 0.4))
    lower, upper = intervals(duels[:7], **once)
    assert lower[0, 1] == pytest.approx(0.3)
    assert upper[0, 1] == pytest.approx(0.7)


RUNS, DELTA = 200, 0.2


def drawn_duels(run, n_examples=24):
    """The record of a pair that is even, after each of its duels on examples drawn without replacement."""
    outcomes = np.random.default_rng(run).permutation(np.repeat([0.0, 1.0], n_examples // 2))
    record = DuelRecord(BestDuelConfig(n_arms=2, n_examples=n_examples, deterministic=np.ones(2, dtype=bool)))
    yield record
    for t in range(n_examples):
        batch = record.ask(np.array([[0, 1]]), round_rng(run, t))
        first = outcomes[batch.examples]
        record.tell(batch, first if batch.arms[0, 0] == 0 else 1.0 - first)
        yield record


def path_misses():
    """Whether an interval of an even pair ever misses 1/2."""
    for run in range(RUNS):
        records = drawn_duels(run)
        made = PreferenceIntervals(next(records), DELTA)
        yield any(is_above(made) for _ in records)


def is_above(made):
    made.update()
    lower = made.lower()
    return lower[0, 1] > 0.5 or lower[1, 0] > 0.5


def naive_misses():
    """The same of normal intervals of one look, looked at after every duel."""
    for run in range(RUNS):
        records = drawn_duels(run)
        next(records)
        yield any(is_naively_missed(record) for record in records)


def is_naively_missed(record):
    share, told = record.preferences[0, 1], record.told[0, 1]
    return abs(share - 0.5) > 1.28 * np.sqrt(share * (1 - share) / told)


@pytest.mark.statistical
def test_intervals_of_drawn_examples_miss_with_probability_at_most_delta():
    assert not fails_too_often(path_misses(), RUNS, DELTA)
    assert fails_too_often(naive_misses(), RUNS, DELTA)
