from itertools import permutations

import numpy as np
import pytest

from algorithms.best_mean.draw_ledger import DrawLedger
from algorithms.confidence import Wealth
from algorithms.protocols import Batch


def one_arm(*examples, arm=0):
    return Batch([arm] * len(examples), examples)


def flags(*values):
    return np.array(values, dtype=bool)


def ledger(*asked):
    """A ledger with batches asked, each given with its flags."""
    made = DrawLedger()
    for batch, is_draw in asked:
        made.asked(batch, is_draw)
    return made


FIRST = (one_arm(1, 2), flags(0, 1))
SECOND = (one_arm(3, 4), flags(0, 1))
ELSEWHERE = (one_arm(5, 6, arm=1), flags(0, 1))


def test_batches_told_in_the_order_asked_keep_their_draws():
    made = ledger(FIRST, SECOND)
    for batch, is_draw in (FIRST, SECOND):
        assert made.told(batch, flags(0, 0)).tolist() == is_draw.tolist()


def test_a_batch_that_overtakes_another_is_not_bet_on_and_neither_is_the_other():
    made = ledger(FIRST, SECOND)
    assert made.told(SECOND[0], flags(1, 1)).tolist() == [False, False]
    assert made.told(FIRST[0], flags(1, 1)).tolist() == [False, False]


def test_overtaking_in_another_arm_does_no_harm():
    made = ledger(FIRST, ELSEWHERE)
    assert made.told(ELSEWHERE[0], flags(0, 0)).tolist() == [False, True]
    assert made.told(FIRST[0], flags(0, 0)).tolist() == [False, True]


def test_batches_of_draws_alone_may_overtake_each_other():
    made = ledger((FIRST[0], flags(1, 1)), (SECOND[0], flags(1, 1)))
    assert made.told(SECOND[0], flags(0, 0)).all()
    assert made.told(FIRST[0], flags(0, 0)).all()


def test_draws_that_overtake_a_chosen_pair_are_not_bet_on():
    made = ledger((FIRST[0], flags(1, 1)), SECOND, (one_arm(7, 8), flags(1, 1)))
    assert not made.told(one_arm(7, 8), flags(1, 1)).any()
    assert not made.told(FIRST[0], flags(1, 1)).any()


def test_a_batch_not_asked_here_is_taken_as_supposed_unless_others_are_in_flight():
    assert ledger().told(FIRST[0], flags(0, 1)).tolist() == [False, True]
    made = ledger(SECOND)
    assert not made.told(FIRST[0], flags(0, 1)).any()
    assert not made.told(SECOND[0], flags(0, 1)).any()


def test_a_batch_that_never_comes_back_ends_the_bets_in_its_arms_only():
    made = ledger(FIRST)
    for example in (10, 20, 30):
        made.asked(one_arm(example), flags(1))
        made.asked(one_arm(example, arm=1), flags(1))
        assert not made.told(one_arm(example), flags(1)).any()
        assert made.told(one_arm(example, arm=1), flags(1)).all()


SCORES = np.array([1.0, 0.9, 0.7, 0.6, 0.3, 0.2, 0.1, 0.0])


def expected_capital(order, trusting=False):
    """Expected capital against the mean when three batches, the last asked once the others are told.

    Each is the best-scored free example, chosen by an oracle, and a draw from the free ones that are left.
    """
    expected = 0.0
    for drawn in permutations(range(8), 3):
        made, free, batches, probability = DrawLedger(), set(range(8)), [], 1.0
        wealth = Wealth(1, 8, 0.2, np.array([SCORES.mean()]))

        def tell(batch, made=made, wealth=wealth):
            is_draw = made.told(batch, flags(0, 1))
            is_draw = flags(0, 1) if trusting else is_draw
            wealth.bet(0, SCORES[batch.examples], slice(None), is_draw)

        for draw in drawn:
            chosen = min(free)
            if draw not in free - {chosen}:
                probability = 0.0
                break
            probability /= len(free) - 1
            free -= {chosen, draw}
            batches.append(one_arm(chosen, draw))
            made.asked(batches[-1], flags(0, 1))
            if len(batches) == 2:
                for place in order:
                    tell(batches[place])
        if probability:
            tell(batches[2])
            expected += probability * wealth.capital(0)[0]
    return expected


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_expected_capital_is_exactly_one_in_whatever_order_batches_come_back(order):
    assert expected_capital(order) == pytest.approx(1.0, rel=1e-12)


def test_the_check_catches_bets_on_batches_that_overtake():
    assert abs(expected_capital((1, 0), trusting=True) - 1.0) > 0.02
