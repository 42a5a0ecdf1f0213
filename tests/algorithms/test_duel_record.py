import numpy as np
import pytest

from winnow.algorithms.best_duel.config import BestDuelConfig
from winnow.algorithms.best_duel.duel_record import NONE_LEFT, DuelRecord, integers
from winnow.algorithms.errors import OutcomeOutOfRange, RefusedTell
from winnow.algorithms.protocols import Batch, round_rng


def record(n_arms=4, **params):
    return DuelRecord(BestDuelConfig(n_arms=n_arms, n_examples=50, **params))


def told(duels, **params):
    """A record of (first arm, second arm, outcome)."""
    made = record(**params)
    arms = [(first, second) for first, second, _ in duels]
    made.tell(Batch(arms, np.zeros(len(duels), dtype=int)), [outcome for *_, outcome in duels])
    return made


def test_tables_add_up_as_counted_one_by_one():
    rng = np.random.default_rng(0)
    made, wins, counts, n_told = record(), np.zeros((4, 4)), np.zeros((4, 4)), np.zeros((4, 4))
    for _ in range(30):
        arms = np.array([rng.choice(4, size=2, replace=False) for _ in range(5)])
        outcomes = rng.choice([0.0, 0.5, 1.0, 0.25, np.nan], size=5)
        made.tell(Batch(arms, rng.integers(50, size=5)), outcomes)
        for (first, second), outcome in zip(arms, outcomes, strict=True):
            for row, column, won in ((first, second, outcome), (second, first, 1.0 - outcome)):
                n_told[row, column] += 1
                if not np.isnan(outcome):
                    wins[row, column] += won
                    counts[row, column] += 1
    np.testing.assert_array_equal(made.wins, wins)
    np.testing.assert_array_equal(made.counts, counts)
    np.testing.assert_array_equal(made.told, n_told)
    assert (made.n_scored, made.n_told) == (counts.sum() // 2, 150)
    np.testing.assert_allclose(made.preferences + made.preferences.T, 1.0)
    np.testing.assert_allclose(made.preferences[0, 1], wins[0, 1] / counts[0, 1])


def test_asked_duels_are_pending_until_they_are_told():
    made = record()
    pairs = np.array([[0, 1], [0, 1], [2, 3]])
    first, second = (made.ask(pairs, round_rng(0, t)) for t in range(2))
    assert (made.n_pending, made.pending[0, 1], made.pending[1, 0], made.pending[3, 2]) == (6, 4, 4, 2)
    made.tell(first, [1, 0, np.nan])
    made.tell(Batch([[0, 1]], [49]), [1])  # not asked, so nothing comes off
    assert (made.n_pending, made.pending[0, 1], made.pending[2, 3]) == (3, 2, 1)
    made.tell(second, [1, 0, 0.5])
    assert (made.n_pending, made.pending.any(), made.n_told) == (0, False, 7)


def test_which_arm_comes_first_is_a_fair_coin():
    batch = record().ask(np.tile([[1, 2]], (2_000, 1)), round_rng(0, 0))
    assert set(map(tuple, batch.arms.tolist())) == {(1, 2), (2, 1)}
    assert abs((batch.arms[:, 0] == 1).sum() - 1_000) < 250  # 11 standard deviations


def test_a_duel_told_again_leaves_others_of_its_pair_pending():
    made = record()
    first, second = (made.ask(np.array([[0, 1]]), round_rng(0, t)) for t in range(2))
    made.tell(first, [1])
    made.tell(first, [1])
    assert (made.n_pending, made.pending[0, 1], made.told[0, 1]) == (1, 1, 2)
    made.tell(second, [1])
    assert (made.n_pending, made.pending[0, 1]) == (0, 0)


@pytest.mark.parametrize("high", [2, 120, 10**12])
def test_one_number_is_drawn_as_an_array_of_one_would_be(high):
    one, many = round_rng(0, 0), round_rng(0, 0)
    for size in (1, 1, 3, 1, 1, 1, 2):
        assert integers(one, high, size) == many.integers(high, size=size).tolist()
        assert one.bit_generator.state == many.bit_generator.state


def test_an_outcome_out_of_range_names_both_arms():
    with pytest.raises(OutcomeOutOfRange, match=r"the duel \(arms 2 and 0, example 3\) must be in \[0, 1\]"):
        record().tell(Batch([[2, 0]], [3]), [2.0])


def test_a_refused_tell_leaves_pending_duels_as_they_are():
    made = record()
    batch = made.ask(np.array([[0, 1], [1, 2]]), round_rng(0, 0))
    with pytest.raises(RefusedTell):
        made.tell(batch, [0.5, 3.0])
    assert (made.n_pending, made.n_told) == (2, 0)


def test_an_empty_batch_changes_nothing():
    made = record()
    made.tell(Batch([], []), [])
    assert made.n_told == 0


def test_an_arm_is_dropped_from_its_eighth_duel_on():
    duels = [(0, 1, np.nan), (0, 2, np.nan), (0, 3, np.nan)] * 3 + [(1, 2, 1), (1, 3, 1), (2, 3, 1)] * 3
    assert told(duels[:7] + duels[9:]).active.all()
    assert told(duels[:8] + duels[9:]).active.tolist() == [False, True, True, True]


def test_an_arm_is_judged_by_the_share_of_unscored_duels():
    duels = [(0, 1 + t % 3, np.nan) for t in range(6)]
    duels += [(1, 2, 1), (1, 3, 1), (2, 3, 1)] * 3
    assert told(duels + [(0, 1, 1)] * 6).active.all()  # a half is not more than a half
    assert not told(duels + [(0, 1, 1)] * 5).active[0]
    assert told(duels + [(0, 1, 1)] * 5, max_unscored=0.6).active.all()


def test_a_broken_arm_does_not_drag_its_opponent_along_even_before_it_is_dropped():
    # Arm 1 has more than half of its 11 duels unscored, all against arm 0, which has only 7 duels yet.
    duels = [(0, 1, np.nan)] * 7 + [(1, 2, 1)] * 4
    assert told(duels).active.all()
    assert told([*duels, (0, 1, np.nan)]).active.tolist() == [False, True, True, True]


def test_two_arms_that_only_fail_together_are_dropped_together():
    made = told([(0, 1, np.nan)] * 8, n_arms=2)
    assert made.active.tolist() == [False, False]
    assert len(made.pairs) == 0


def test_pairs_are_those_of_arms_not_dropped():
    made = told([(0, 1, np.nan), (0, 2, np.nan), (0, 3, np.nan)] * 3)
    assert made.pairs.tolist() == [[1, 2], [1, 3], [2, 3]]


def once(n_examples=4, n_arms=3, deterministic=(True, True, False)):
    return DuelRecord(
        BestDuelConfig(
            n_arms=n_arms, n_examples=n_examples, deterministic=np.array(deterministic), max_unscored=1.0
        )
    )


def test_two_deterministic_arms_meet_every_example_once_and_others_meet_examples_again():
    made = once()
    batch = made.ask(np.repeat([[0, 1], [0, 2]], [4, 60], axis=0), round_rng(0, 0))
    is_once = (batch.arms != 2).all(axis=1)
    assert sorted(batch.examples[is_once].tolist()) == [0, 1, 2, 3]
    assert set(batch.examples[~is_once].tolist()) == {0, 1, 2, 3}
    assert not made.is_exhausted()
    assert made.asked()[0 * 3 + 1] == NONE_LEFT


def test_the_pair_asked_least_takes_the_place_of_one_that_has_met_every_example():
    made = once(deterministic=(True, True, True))
    first = made.ask(np.array([[0, 1]] * 4 + [[1, 2]]), round_rng(0, 0))
    assert made.n_left() == 12 - 5
    batch = made.ask(np.array([[1, 0]] * 3), round_rng(0, 1))
    assert sorted(map(tuple, np.sort(batch.arms, axis=1).tolist())) == [(0, 2), (0, 2), (1, 2)]
    rest = made.ask(np.array([[1, 0]] * made.n_left()), round_rng(0, 2))
    for told_batch in (first, batch, rest):
        assert not made.is_exhausted()
        made.tell(told_batch, np.full(len(told_batch), np.nan))
    assert (made.n_left(), made.is_exhausted()) == (0, True)


def test_a_dropped_arm_leaves_nothing_to_wait_for():
    made = DuelRecord(BestDuelConfig(n_arms=3, n_examples=9, deterministic=np.ones(3, dtype=bool)))
    examples = np.arange(9)
    made.tell(Batch([[0, 1]] * 9, examples), np.ones(9))
    assert not made.is_exhausted()
    made.tell(Batch([[0, 2]] * 9, examples), np.full(9, np.nan))
    assert made.active.tolist() == [True, True, False]
    assert (made.n_dropped, made.n_left(), made.is_exhausted()) == (1, 0, True)
