from bisect import bisect_left

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import beta

from winnow.algorithms.best_duel.config import BestDuelConfig
from winnow.algorithms.best_duel.count_evidence import CountEvidence
from winnow.algorithms.best_duel.duel_record import DuelRecord
from winnow.algorithms.best_duel.preference_intervals import bernoulli_kl, kl_lower_bounds
from winnow.algorithms.protocols import Batch


def evidence(duels, n_arms=4, **params):
    """The evidence of (first arm, second arm, outcome)."""
    config = BestDuelConfig(n_arms=n_arms, n_examples=1, **{"delta": 0.05, **params})
    record = DuelRecord(config)
    made = CountEvidence(config, record)
    if duels:
        arms = [(first, second) for first, second, _ in duels]
        record.tell(Batch(arms, np.zeros(len(duels), dtype=int)), [outcome for *_, outcome in duels])
        made.update()
    return made


def d(x, y):
    return sum(p * np.log(p / q) for p, q in ((x, y), (1 - x, 1 - y)) if p > 0)


def literal_statistic(duels, n_arms):
    """Equation (7), pair by pair."""
    won, fought = {}, {}
    for first, second, outcome in duels:
        for row, column, result in ((first, second, outcome), (second, first, 1 - outcome)):
            won[row, column] = won.get((row, column), 0) + result
            fought[row, column] = fought.get((row, column), 0) + 1

    def preference(i, j):
        return won[i, j] / fought[i, j] if (i, j) in fought else 0.5

    arms = range(n_arms)
    worst = {i: min(preference(i, j) for j in arms if j != i) for i in arms}
    best = max(arms, key=lambda i: (worst[i], np.mean([preference(i, j) if i != j else 0.5 for j in arms])))
    statistic = min(
        sum(
            fought[j, i] * d(preference(j, i), 0.5)
            for j in arms
            if (j, i) in fought and preference(j, i) > 0.5
        )
        for i in arms
        if i != best
    )
    return best, worst, statistic


DUELS = st.lists(
    st.tuples(st.permutations(range(4)), st.sampled_from([0.0, 0.5, 1.0])).map(
        lambda drawn: (drawn[0][0], drawn[0][1], drawn[1])
    ),
    min_size=1,
    max_size=60,
)
EVERY_PAIR = [(i, j, 1.0) for i in range(4) for j in range(i)]


def test_divergence_has_known_values():
    # log 2; 0.9 log 1.8 + 0.1 log 0.2; the same of x and 1 - x.
    x = np.array([0.0, 1.0, 0.5, 0.9, 0.1])
    expected = [np.log(2), np.log(2), 0.0, 0.36806420, 0.36806420]
    np.testing.assert_allclose(bernoulli_kl(x, 0.5), expected, atol=1e-8)
    assert bernoulli_kl(np.array([0.25]), 0.75)[0] == pytest.approx(0.5 * np.log(3))


def test_the_lower_bound_is_where_the_divergence_reaches_the_level():
    means = np.array([[1.0, 0.7], [0.3, 0.0]])
    counts = np.array([[10, 40], [40, 10]])
    low = kl_lower_bounds(means, counts, 3.0)
    assert low[0, 0] == pytest.approx(np.exp(-0.3))  # 10 log(1 / m) = 3
    np.testing.assert_allclose((counts * bernoulli_kl(means, low))[:, ::-1].diagonal(), 3.0, rtol=1e-6)
    assert low[1, 1] == 0.0


@given(DUELS)
def test_the_statistic_and_the_best_arm_are_those_of_equation_7(duels):
    duels = EVERY_PAIR + duels
    made = evidence(duels)
    best, worst, statistic = literal_statistic(duels, 4)
    np.testing.assert_allclose(made.estimates, [worst[i] for i in range(4)])
    assert made.best == best
    assert made.statistic == pytest.approx(statistic, abs=1e-12)


@given(DUELS, st.integers(0, 20))
def test_no_arm_is_ruled_out_by_more_than_its_statistic(duels, n_unscored):
    clear = [(0, 1, 1.0), (1, 2, 1.0), (3, 0, 0.0)] * 30 + [(0, 1, np.nan)] * n_unscored
    made = evidence(duels + clear, max_unscored=1.0)
    assert (made._e_values() <= made.standings.doubts + 1e-9).all()


@given(DUELS, st.permutations(range(4)))
def test_numbering_the_arms_otherwise_changes_nothing_else(duels, names):
    made = evidence(duels)
    renamed = evidence([(names[first], names[second], outcome) for first, second, outcome in duels])
    for field in ("estimates", "lower", "upper"):
        np.testing.assert_allclose(getattr(renamed, field)[list(names)], getattr(made, field), rtol=1e-9)
    assert renamed.estimates[renamed.best] == made.estimates[made.best]
    if np.sum(made.estimates == np.nanmax(made.estimates)) == 1:
        assert renamed.best == names[made.best]
        assert renamed.statistic == pytest.approx(made.statistic, abs=1e-9)


@given(DUELS)
def test_a_tie_counts_as_half_a_duel_won_and_half_lost(duels):
    doubled = [(*arms, outcome) for *arms, outcome in duels for _ in range(2)]
    split = []
    for first, second, outcome in duels:
        split += [(first, second, max(outcome, 0.0) if outcome != 0.5 else side) for side in (0.0, 1.0)]
    assert evidence(doubled).statistic == evidence(split).statistic
    np.testing.assert_array_equal(evidence(doubled).lower, evidence(split).lower)


@given(DUELS, st.booleans())
def test_intervals_hold_the_estimates(duels, is_missing):
    unscored = [(first, second, np.nan) for first, second, _ in duels[::3]] if is_missing else []
    made = evidence(duels + unscored, max_unscored=1.0)
    known = ~np.isnan(made.estimates)
    assert (made.lower >= 0.0).all()
    assert (made.upper <= 1.0).all()
    assert (made.lower <= made.upper).all()
    assert (made.lower[known] <= made.estimates[known]).all()
    assert (made.estimates[known] <= made.upper[known]).all()


def test_a_preference_not_yet_known_counts_as_even():
    made = evidence([(0, 1, 1.0), (2, 1, 1.0)])
    np.testing.assert_array_equal(made.estimates, [0.5, 0.0, 0.5, np.nan])
    assert made.best == 0


def test_nothing_is_known_before_the_first_duel():
    made = evidence([])
    assert (made.best, made.statistic, made.is_separated) == (None, 0.0, False)
    assert np.isnan(made.estimates).all()
    assert (made.lower.tolist(), made.upper.tolist()) == ([0.0] * 4, [1.0] * 4)


CYCLE = [(0, 1, 1.0), (1, 2, 1.0), (2, 0, 1.0)] * 500


def test_a_cycle_is_never_separated_by_own_duels():
    made = evidence([*CYCLE, (1, 0, 1.0)], n_arms=3)
    assert made.statistic > 100
    assert not made.is_separated
    assert made.beaten.all()


def test_where_every_arm_is_ruled_out_there_is_no_winner_to_assume():
    assert not evidence([*CYCLE, (1, 0, 1.0)], n_arms=3, assume_winner=True).is_separated


def test_an_arm_that_has_not_fought_every_other_is_separated_only_if_there_must_be_a_winner():
    duels = [(0, 1, 1.0), (1, 2, 1.0)] * 200
    for some in ([], [(0, 2, 1.0)]):
        assert not evidence([*duels, *some], n_arms=3).is_separated
        assert evidence([*duels, *some], n_arms=3, assume_winner=True).is_separated
    assert evidence([*duels, *[(0, 2, 1.0)] * 20], n_arms=3).is_separated


def test_an_arm_that_another_one_rules_out_stays_unsettled_until_the_best_arm_beats_it_itself():
    # 13 of 20 won: the half mixture is exp(0.31), far from 3 / 0.05 = exp(4.1).
    duels = [(0, 1, 1.0), (1, 2, 1.0)] * 200 + [(0, 2, float(k < 13)) for k in range(20)]
    made = evidence(duels, n_arms=3)
    assert (made.unsettled.tolist(), made.is_separated) == ([2], False)
    made = evidence([*duels, *[(0, 2, 1.0)] * 20], n_arms=3)
    assert (made.unsettled.tolist(), made.is_separated) == ([], True)


def least_wins(n_arms, **params):
    """How many duels in a row the best of these arms must win against each other one."""
    return next(
        n
        for n in range(1, 100)
        if evidence([(0, j, 1.0) for j in range(1, n_arms)] * n, n_arms=n_arms, **params).is_separated
    )


def test_an_arm_is_separated_when_the_half_mixture_reaches_the_level():
    # After 5, 6, 7, 8 duels won in a row log M is 1.74, 2.25, 2.80, 3.38.
    mixtures = [log_half_mixture(n, 0) for n in range(1, 12)]
    for n_arms, delta in ((2, 0.05), (3, 0.05), (3, 0.2)):
        own = 1 + next(n for n, log_m in enumerate(mixtures) if log_m >= np.log(n_arms / delta))
        assert least_wins(n_arms, delta=delta) == own
        share = 1 / (n_arms - 1)
        # Of the others, one leads and n_arms - 2 are even.
        products = [
            np.log1p(share * np.expm1(log_m)) + (n_arms - 2) * np.log1p(share * np.expm1(0.0))
            for log_m in mixtures
        ]
        product = 1 + next(n for n, log_e in enumerate(products) if log_e >= np.log(1 / delta))
        assert least_wins(n_arms, delta=delta, assume_winner=True) == product
        assert product <= own


def log_half_mixture(gains, losses, least=0.5):
    """By quadrature, see `HalfMixture`."""
    parts = []
    for scale in (0.5, 4.0, 32.0, 256.0):
        prior = beta(2 * scale * least, 2 * scale * (1 - least))

        def integrand(q, prior=prior):
            ratio = (q / least) ** gains * ((1 - q) / (1 - least)) ** losses
            return ratio * prior.pdf(q) / prior.sf(least)

        parts.append(quad(integrand, least, 1, limit=200)[0])
    return np.log(np.mean(parts))


@pytest.mark.parametrize("assume_winner", [False, True])
def test_unscored_duels_count_against_the_answer(assume_winner):
    won = [(0, 1, 1.0)] * 40 + [(0, 1, 0.0)] * 8
    params = {"n_arms": 2, "max_unscored": 1.0, "assume_winner": assume_winner}
    assert evidence(won, **params).is_separated
    assert not evidence([*won, *[(0, 1, np.nan)] * 24], **params).is_separated
    # As if they had been lost, and neither less nor more, whichever arm is shown first.
    for n_unscored in (1, 9, 10, 11, 12):
        as_lost = evidence(won + [(0, 1, 0.0)] * n_unscored, **params)
        for duel in ((0, 1, np.nan), (1, 0, np.nan)):
            made = evidence(won + [duel] * n_unscored, **params)
            assert made.is_separated == as_lost.is_separated
            assert made.lower[0] == as_lost.lower[0]
        as_won = evidence(won + [(0, 1, 1.0)] * n_unscored, **params)
        assert made.upper[0] == as_won.upper[0]
        assert made.estimates[0] == 40 / 48


def test_with_epsilon_an_arm_that_is_hardly_beaten_is_good_enough():
    even = [(0, 1, float(k % 2)) for k in range(400)]
    assert not evidence(even, n_arms=2).is_separated
    assert not evidence(even, n_arms=2, epsilon=0.05).is_separated
    for assume_winner in (False, True):
        made = evidence(even, n_arms=2, epsilon=0.15, assume_winner=assume_winner)
        assert made.is_separated
        level = np.log(1 / 0.05) if assume_winner else np.log(2 / 0.05)
        n = 2 * bisect_left(range(200), level, lo=1, key=lambda half: log_half_mixture(half, half, 0.35))
        for told, is_separated in ((n - 2, False), (n, True)):
            made = evidence(even[:told], n_arms=2, epsilon=0.15, assume_winner=assume_winner)
            assert made.is_separated == is_separated


def test_with_epsilon_and_a_winner_only_the_factor_of_the_answer_is_shifted():
    # Arm 2 loses to arm 1 by little more than epsilon, which says nothing of the answer, arm 0.
    duels = [(0, 1, float(k < 30)) for k in range(40)] + [(1, 2, float(k < 54)) for k in range(100)]
    params = {"n_arms": 3, "assume_winner": True, "max_unscored": 1.0, "delta": 0.2}
    made = evidence(duels, epsilon=0.1, **params)
    named = made._e_values(0)
    share = 0.5
    m_10, m_12, m_21 = (log_half_mixture(*of) for of in ((30, 10, 0.4), (46, 54), (54, 46)))
    factors = [np.log(1 - share + share * np.exp(log_m)) for log_m in (m_10, m_12)]
    assert named[1] == pytest.approx(sum(factors), abs=1e-6)
    assert named[2] == pytest.approx(np.log(1 - share + share * np.exp(m_21)), abs=1e-6)
    assert not made.is_separated


@given(DUELS, st.integers(1, 5), st.booleans())
def test_following_duel_by_duel_leads_to_the_values_of_all_at_once(duels, size, is_broken):
    broken = [(3, arm, np.nan) for arm in (0, 1, 2)] * 3 if is_broken else []
    config = BestDuelConfig(n_arms=4, n_examples=1, delta=0.05)
    record = DuelRecord(config)
    made = CountEvidence(config, record)
    half = len(duels) // 2
    duels = duels[:half] + broken + duels[half:]
    for first in range(0, len(duels), size):
        part = duels[first : first + size]
        arms = [pair[:2] for pair in part]
        record.tell(Batch(arms, np.zeros(len(part), dtype=int)), [outcome for *_, outcome in part])
        made.update()
    at_once = CountEvidence(config, record)
    np.testing.assert_array_equal(made.beaten, at_once.beaten)
    for field in ("lower", "upper"):
        np.testing.assert_array_equal(getattr(made, field), getattr(at_once, field))
    for name in ("preferences", "divergences", "against", "doubts", "opponents", "estimates"):
        np.testing.assert_array_equal(getattr(made.standings, name), getattr(at_once.standings, name))
    assert (made.best, made.statistic, made.is_separated) == (
        at_once.best,
        at_once.statistic,
        at_once.is_separated,
    )


def test_an_even_preference_of_the_best_arm_is_not_enough():
    duels = [(0, 1, 1.0), (1, 2, 1.0)] * 200
    assert not evidence([*duels, (0, 2, 0.5)], n_arms=3).is_separated


def test_duels_of_dropped_arms_are_no_evidence_against_others():
    duels = [(0, 1, 1.0)] * 12 + [(0, 2, 1.0), (1, 2, 1.0)] * 5
    with_broken = evidence(duels + [(3, arm, np.nan) for arm in (0, 1, 2)] * 4 + [(3, 2, 1.0)] * 3)
    without = evidence(duels, n_arms=3)
    assert with_broken.statistic == without.statistic
    assert with_broken.best == without.best == 0
    np.testing.assert_array_equal(with_broken.estimates[:3], without.estimates)


def test_the_only_arm_left_is_the_best_and_not_separated():
    # Unscored more often than not: of the duels of arms 1 and 2 all, of arm 0 none that count.
    duels = [(1, 2, np.nan)] * 9 + [(0, 1, 1.0), (0, 2, 1.0)] * 4
    made = evidence(duels, n_arms=3)
    assert (made.best, made.is_separated) == (0, False)
    assert np.isnan(made.estimates[0])
