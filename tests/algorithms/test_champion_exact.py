"""Every order of tiny tables: what the wealth of an arm as good as the champion comes to on average."""

from functools import cache
from itertools import permutations

import numpy as np
import pytest

from winnow.algorithms.champion import elimination as elimination_module
from winnow.algorithms.champion import wealth as wealth_module
from winnow.algorithms.champion.control_variates import PAST, Controls
from winnow.algorithms.champion.draw_order import Grouped
from winnow.algorithms.champion.elimination import Evidence
from winnow.algorithms.champion.race import Race
from winnow.algorithms.champion.switch import Mode

N = 5
SCORES = np.array(
    [
        [1.0, 0.0, 0.5, 0.5, 0.0],  # becomes the filled row
        [0.0, 1.0, 0.0, 0.6, 0.4],  # is as good, and tested
        [0.1, 1.0, 0.9, 0.0, 0.0],  # as good, and told now and then: a control
    ]
)
TESTED, LAST = 1, 6
ORDERS = list(permutations(range(N)))
HELPFUL, HOSTILE = (-0.4, 0.5, -0.5, 0.2, 0.0), (0.5, -0.5, 0.6, -0.3, -0.1)
"""What a history says of the examples: as the arm tested does, or the opposite."""


def new_evidence(past=None):
    past = None if past is None else np.array(past)
    return Evidence(len(SCORES), N, Mode(0.5, 1, leaves=True), level=np.inf, epsilon=0.0, past=past)


def tell(evidence, arm, examples, scores=SCORES):
    """An arm's own draws."""
    untold = np.isin(np.arange(N), rest_of(evidence, arm))[np.newaxis]
    examples = np.array(examples)
    evidence.tell(Grouped.of(np.full(len(examples), arm), examples, scores[arm, examples]), untold)


def tell_column(evidence, example):
    arms = np.arange(len(SCORES))
    batch = Grouped.of(arms, np.full(len(arms), example), SCORES[:, example])
    evidence.tell_columns(batch, arms, SCORES[:, [example]])


def rest_of(evidence, arm):
    if evidence.draws.count[arm] == 0:
        return list(range(N))
    told = evidence.draws.history(np.array([arm])).examples
    return [example for example in range(N) if example not in told]


def played(order, columns, flaw=None, past=None):
    """A campaign with a race, a search and tests; the wealth of the arm tested, from the first test on.

    When the row is filled, and how many draws make a batch, depends on the scores of the arm tested.
    """
    evidence, left, wealths = new_evidence(past), list(order), []

    def draw(size):
        if flaw == "shared order":  # another arm is ahead on the very examples
            for example in left[:size]:
                if example in rest_of(evidence, 2):
                    tell(evidence, 2, [example])
        tell(evidence, TESTED, left[:size])
        del left[:size]
        note()
        return SCORES[TESTED, order[N - len(left) - 1]]

    def note():
        if evidence.champion is not None:
            wealths.append(float(evidence.wealths(np.array([TESTED]))[0]))

    for _ in range(columns):
        tell_column(evidence, left.pop(0))
    last = SCORES[TESTED, order[columns - 1]] if columns else draw(1)
    if last > 0.3 and len(left) > 2:
        last = draw(1)
    tell(evidence, 0, rest_of(evidence, 0))
    note()
    while left:
        if flaw is None:
            tell(evidence, 2, rest_of(evidence, 2)[:1])
        last = draw(2 if last < 0.5 else 1)
    return evidence, wealths


def final_wealths(columns, flaw=None, past=None):
    return np.array([played(order, columns, flaw, past)[1][-1] for order in ORDERS])


@cache
def fair_paths(columns, past=None):
    """Of every order, the wealths."""
    return [played(order, columns, past=past)[1] for order in ORDERS]


@pytest.mark.parametrize(
    ("columns", "past"),
    [(0, None), (1, None), (3, None), (3, HELPFUL), (0, HOSTILE), (1, HOSTILE), (3, HOSTILE)],
)
def test_at_its_own_mean_an_arm_has_a_mean_wealth_of_1(columns, past):
    wealths = np.array([path[-1] for path in fair_paths(columns, past)])
    assert wealths.std() > 0.01
    np.testing.assert_allclose(wealths.mean(), 1.0, rtol=1e-12)


@pytest.mark.parametrize("past", [None, HOSTILE], ids=["none", "hostile"])
def test_it_has_so_whenever_it_is_stopped_by_what_was_seen(past):
    for level in (0.9, 1.05, 1.2):
        paths = fair_paths(1, past)
        stopped = [next((wealth for wealth in path if wealth >= level), path[-1]) for path in paths]
        np.testing.assert_allclose(np.mean(stopped), 1.0, rtol=1e-12)


@pytest.mark.parametrize("delta", [0.8, 0.6, 0.45])
@pytest.mark.parametrize(
    ("columns", "past"), [(0, None), (3, None), (3, HELPFUL), (0, HOSTILE), (3, HOSTILE)]
)
def test_it_is_ever_ruled_out_in_at_most_a_share_delta_of_all_orders(delta, columns, past):
    highest = np.array([max(path) for path in fair_paths(columns, past)])
    assert (highest >= 1.0 / delta).mean() <= delta


@pytest.mark.parametrize("past", [None, HELPFUL, HOSTILE], ids=["none", "helpful", "hostile"])
def test_a_lower_level_never_makes_more_wealth(past):
    arms = np.array([TESTED])
    for order in ORDERS[::5]:
        evidence, wealths = played(order, 1, past=past)
        totals = (1.0, 1.5, 1.9, evidence.total)
        found = [float(evidence.wealths_at(arms, total)[0]) for total in totals]
        np.testing.assert_allclose(found[-1], wealths[-1], rtol=1e-12)
        assert (np.diff(found) >= -1e-12).all()


def with_replacement(played, total, n_examples):
    return REAL(played._replace(before=total * (1.0 - played.left / n_examples)), total, n_examples)


REAL = wealth_module.log_factors


def test_bets_that_forget_that_draws_are_without_replacement_are_caught(monkeypatch):
    monkeypatch.setattr(elimination_module, "log_factors", with_replacement)
    assert abs(final_wealths(1).mean() - 1.0) > 0.005


def test_opponents_that_are_chosen_after_their_scores_are_seen_are_caught(monkeypatch):
    tell_race = Race.tell

    def peeking(self, arms, scores, weights=None):
        self.low[arms] += 10.0 * scores.sum(axis=1)
        chosen = Race._choose(self, arms)
        self.low[arms] -= 10.0 * scores.sum(axis=1)
        self._choose = lambda _: chosen
        tell_race(self, arms, scores, weights)

    monkeypatch.setattr(Race, "tell", peeking)
    assert final_wealths(3).mean() > 1.02


def test_orders_that_arms_at_different_places_share_are_caught():
    assert abs(final_wealths(1, "shared order").mean() - 1.0) > 0.005


def test_a_history_whose_mean_is_taken_over_all_examples_is_caught(monkeypatch):
    before = Controls.before

    def uncentred(self, batch, untold):
        return before(self, batch, np.ones_like(untold))

    monkeypatch.setattr(Controls, "before", uncentred)
    assert abs(final_wealths(1, past=HELPFUL).mean() - 1.0) > 0.005


def test_weights_of_a_history_that_are_chosen_after_the_scores_are_seen_are_caught(monkeypatch):
    before = Controls.before

    def peeking(self, batch, untold):
        chosen, said = self.weights.copy(), self._features[PAST, batch.examples]
        scores = batch.scores - SCORES[TESTED].mean()
        self.weights[batch.arms, PAST] += np.sign((said * scores).sum()) * 0.5
        found = before(self, batch, untold)
        self.weights[:] = chosen
        return found

    monkeypatch.setattr(Controls, "before", peeking)
    assert abs(final_wealths(1, past=HELPFUL).mean() - 1.0) > 0.005
