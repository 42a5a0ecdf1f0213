"""The order of telling: what is refused, and what telling in the order of arrival would do."""

import numpy as np
import pytest
from failure_rates import fails_too_often
from selector_worlds import BestMeanWorld

from winnow.algorithms.bounds.confidence_sequences import FinitePopulationIntervals
from winnow.algorithms.errors import RefusedTell, ToldOutOfOrder
from winnow.algorithms.protocols import Batch, round_rng
from winnow.algorithms.state.in_flight import InFlight

FIRST, SECOND = Batch([0, 0, 1], [3, 1, 2]), Batch([1, 1], [5, 6])
DUELS = Batch([[0, 1], [2, 1]], [4, 4])


def in_flight(*batches):
    made = InFlight()
    for batch in batches:
        made.append(batch)
    return made


def tell(made, batch):
    made.check(batch)
    made.take_first(batch)


def test_batches_are_told_in_the_order_asked():
    made = in_flight(FIRST, SECOND, DUELS)
    for left, batch in ((2, FIRST), (1, SECOND), (0, DUELS)):
        tell(made, batch)
        assert len(made) == left


REFUSED = {
    "later batch": (SECOND, r"pair \(arm 1, example 5\) .* starts with pair \(arm 0, example 3\)"),
    "part": (Batch([0, 0], [3, 1]), r"pair \(arm 0, example 3\) is in flight, but not in this batch"),
    "other order": (Batch([0, 0, 1], [1, 3, 2]), r"pair \(arm 0, example 1\)"),
    "more than was asked": (Batch([0, 0, 1, 1], [3, 1, 2, 9]), "tell whole batches"),
    "two at once": (Batch([0, 0, 1, 1, 1], [3, 1, 2, 5, 6]), "in the order in which they were proposed"),
    "one pair of another": (Batch([2, 1], [0, 6]), r"pair \(arm 1, example 6\)"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_another_order_and_parts_are_refused_and_change_nothing(case):
    batch, message = REFUSED[case]
    made = in_flight(FIRST, SECOND)
    with pytest.raises(ToldOutOfOrder, match=message) as caught:
        made.check(batch)
    assert isinstance(caught.value, RefusedTell)
    for asked in (FIRST, SECOND):
        tell(made, asked)


def test_duels_are_named_by_both_arms():
    with pytest.raises(ToldOutOfOrder, match=r"pair \(arms 2 and 1, example 4\) is in flight"):
        in_flight(DUELS).check(Batch([[2, 1]], [4]))


def test_a_batch_that_was_not_asked_is_told_at_any_time_if_no_pair_of_it_is_in_flight():
    made = in_flight(FIRST)
    tell(made, Batch([0, 2], [0, 3]))
    tell(made, Batch([], []))
    assert len(made) == 1
    tell(made, FIRST)
    tell(made, FIRST)  # as a duel may be
    assert len(made) == 0


def test_nothing_to_ask_is_not_in_flight():
    assert len(in_flight(Batch([], []))) == 0


def test_of_a_removed_arm_nothing_is_waited_for():
    made = in_flight(FIRST, SECOND)
    made.remove_arm(1)
    assert len(made) == 1
    tell(made, Batch([0, 0], [3, 1]))
    assert len(made) == 0


def misses(in_order, runs, n_examples=60, in_flight=6, alpha=0.2):
    """Whether the interval of an arm ever misses, with answers that come the sooner the higher they score."""
    for run in range(runs):
        scores = np.random.default_rng([17, run]).permutation(np.repeat([0.0, 1.0], n_examples // 2))
        intervals = FinitePopulationIntervals(1, n_examples, alpha)
        asked, waiting, missed = iter(scores.reshape(-1, 2)), [], False
        while not missed:
            waiting += [batch for _, batch in zip(range(in_flight - len(waiting)), asked, strict=False)]
            if not waiting:
                break
            arrived = 0 if in_order else int(np.argmax([batch.sum() for batch in waiting]))
            intervals.update(np.zeros(2, dtype=int), waiting.pop(arrived))
            missed = bool(intervals.lower[0] > 0.5 or intervals.upper[0] < 0.5)
        yield missed


@pytest.mark.statistical
def test_told_in_the_order_of_asking_the_interval_misses_as_seldom_as_promised():
    # 45 of 300, alarm at 96: a true rate of 0.45 is seen with probability above 0.999.
    assert not fails_too_often(misses(True, 300), 300, 0.2)


@pytest.mark.statistical
def test_the_check_catches_telling_in_the_order_of_arrival():
    assert fails_too_often(misses(False, 300), 300, 0.2)  # 257


def test_a_selector_refuses_the_order_of_arrival():
    world = BestMeanWorld()
    selector = world.selector("ucb-e")
    first, second = (selector.ask(round_rng(0, t)) for t in range(2))
    before = selector.decision()
    with pytest.raises(ToldOutOfOrder):
        selector.tell(second, world.outcomes(second))
    assert selector.decision() == before
    for batch in (first, second):
        selector.tell(batch, world.outcomes(batch))
