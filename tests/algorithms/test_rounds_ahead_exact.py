"""Every order of a tiny table with rounds in flight: the mean wealth of an arm as good as the champion.

Which arm a round is of, and how many examples it has, is planned on what had been told by then.
"""

from collections import deque
from functools import cache

import numpy as np
import pytest
from test_champion_exact import HOSTILE, ORDERS, SCORES, TESTED, N, new_evidence, rest_of, tell, tell_column

from winnow.algorithms.champion.elimination import Evidence

FILLED, CONTROL = 0, 2
COLUMN = -1


class InFlight:
    """A campaign with rounds in flight, in which the arm tested meets its examples in a given order.

    A race on common examples, a search that has begun before it is told, a filled row, and tests. A text of
    the arm tested takes longer the higher its score is, and all others take a middling time.

    Args:
        order: Of the examples.
        ahead: L, rounds in flight beside the first.
        columns: Of the race.
        past: What a history says of the examples.
    """

    def __init__(self, order, ahead, columns, past=None):
        self._order, self._ahead, self._columns = list(order), ahead, columns
        self.evidence = new_evidence(past)
        self._asked = {arm: [] for arm in range(len(SCORES))}
        self._planned = 0
        self._in_flight = deque()

    def __iter__(self):
        """Each round that is told next, with those in flight behind it."""
        while True:
            while len(self._in_flight) <= self._ahead and (new := self._plan()) is not None:
                self._in_flight.append(new)
                self._planned += 1
            if not self._in_flight:
                return
            yield self._in_flight

    def tell(self, place=0):
        """Tell a round in flight; what the wealth of the arm tested is then, None before a row is full."""
        arm, examples = self._in_flight[place]
        del self._in_flight[place]
        if arm == COLUMN:
            tell_column(self.evidence, examples[0])
        else:
            tell(self.evidence, arm, examples)
        return None if self.evidence.champion is None else float(self.evidence.wealths(np.array([TESTED]))[0])

    def _plan(self):
        number = self._planned - self._columns
        if number < 0:
            return COLUMN, self._take(range(len(SCORES)), self._order[self._planned : self._planned + 1])
        if number == 1:
            return FILLED, self._take([FILLED], self._free(FILLED))
        told = self.evidence.draws
        mean = told.high[TESTED] / max(told.count[TESTED], 1)
        if number % 3 == 2 and self._free(CONTROL) and mean > 0.2:
            return CONTROL, self._take([CONTROL], self._free(CONTROL)[:1])
        left = [example for example in self._order if example in self._free(TESTED)]
        return (TESTED, self._take([TESTED], left[: 2 if mean < 0.4 else 1])) if left else None

    def _free(self, arm):
        return [example for example in range(N) if example not in self._asked[arm]]

    def _take(self, arms, examples):
        for arm in arms:
            self._asked[arm] += examples
        return examples


def in_the_order_of_asking(rounds):
    return 0


def as_they_arrive(rounds):
    """The place of the first round that is done."""
    lengths = [SCORES[TESTED, each].max() if arm == TESTED else 0.5 for arm, each in rounds]
    return int(np.argmin(lengths))


def played(order, ahead, columns, past=None, told=in_the_order_of_asking):
    """The wealths of the arm tested after each round, from the first on that has one."""
    campaign, wealths = InFlight(order, ahead, columns, past), []
    for rounds in campaign:
        wealth = campaign.tell(told(rounds))
        if wealth is not None:
            wealths.append(wealth)
    assert rest_of(campaign.evidence, TESTED) == []
    return wealths


@cache
def fair_paths(ahead, columns, past=None):
    return [played(order, ahead, columns, past) for order in ORDERS]


CASES = [(0, 1, None), (1, 1, None), (2, 1, HOSTILE), (2, 2, None), (4, 0, HOSTILE)]


@pytest.mark.parametrize("case", CASES)
def test_at_its_own_mean_an_arm_has_a_mean_wealth_of_1_however_many_rounds_are_in_flight(case):
    paths = fair_paths(*case)
    assert np.std([path[-1] for path in paths]) > 0.01
    np.testing.assert_allclose(np.mean([path[-1] for path in paths]), 1.0, rtol=1e-12)
    for level in (0.9, 1.05, 1.2):
        stopped = [next((wealth for wealth in path if wealth >= level), path[-1]) for path in paths]
        np.testing.assert_allclose(np.mean(stopped), 1.0, rtol=1e-12)
    for delta in (0.8, 0.6, 0.45):
        assert np.mean([max(path) >= 1.0 / delta for path in paths]) <= delta


def test_what_is_in_flight_changes_what_is_planned():
    assert fair_paths(0, 1, None) != fair_paths(1, 1, None)


def test_rounds_told_as_they_arrive_are_caught():
    found = np.mean([played(order, 2, 1, told=as_they_arrive)[-1] for order in ORDERS])
    assert abs(found - 1.0) > 0.005


def test_rounds_in_flight_that_are_given_up_where_their_texts_take_long_are_caught():
    """The last round is not waited for once the arm tested did well on it."""
    found = []
    for order in ORDERS:
        wealths = played(order, 2, 1)
        found.append(wealths[-2] if SCORES[TESTED, order[-1]] > 0.5 else wealths[-1])
    assert abs(np.mean(found) - 1.0) > 0.005


def test_bets_that_look_at_what_has_arrived_of_the_round_are_caught(monkeypatch):
    told_before = Evidence.tell

    def peeking(self, batch, untold):
        bets = type(self)._adaptive_bets
        scale = 0.0 if batch.scores[0] > 0.3 else 1.0
        self._adaptive_bets = lambda arms: scale * bets(self, arms)
        try:
            return told_before(self, batch, untold)
        finally:
            del self._adaptive_bets

    monkeypatch.setattr(Evidence, "tell", peeking)
    assert np.mean([played(order, 2, 1)[-1] for order in ORDERS]) > 1.02
