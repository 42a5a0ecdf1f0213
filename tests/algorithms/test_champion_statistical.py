"""Seeded simulations: champion's answers are wrong as seldom as they state, on tables made to mislead it."""

import numpy as np
import pytest
from failure_rates import fails_too_often
from selector_worlds import BestMeanWorld

from winnow.algorithms.champion import elimination as elimination_module
from winnow.algorithms.champion import wealth as wealth_module
from winnow.algorithms.champion.control_variates import PAST, Controls
from winnow.algorithms.champion.race import Race

DELTA, RUNS = 0.2, 80

pytestmark = pytest.mark.statistical


def near_ties(rng):
    return rng.permuted(np.arange(60) < np.array([31, 30, 30, 30, 30])[:, np.newaxis], axis=1).astype(float)


def clones_that_anticorrelate(rng):
    """Two rivals that are right where the best arm is wrong, and one that is wrong where it is."""
    best = rng.permutation(60) < 31
    return np.array([best, np.roll(best, 1), ~best, ~best], dtype=float)


def one_deviating_example(rng):
    scores = np.full((5, 40), 0.5)
    scores[0, rng.integers(40)] = 1.0
    return scores


def rare_large(rng):
    scores = rng.random((6, 50)) * 0.05
    scores[np.arange(6)[:, np.newaxis], rng.integers(50, size=(6, 2))] = 1.0
    return scores


def alike(rng):
    """Arms that are right on nearly the same examples, so that the filled row says much of the others."""
    base = np.arange(60) < 30
    scores = np.tile(base, (5, 1))
    for arm in range(5):
        scores[arm, rng.choice(30, 4, replace=False)] = False
        scores[arm, 30 + rng.choice(30, 5 if arm == 0 else 4, replace=False)] = True
    return scores.astype(float)


def unreadable_where_wrong(rng):
    scores = near_ties(rng)
    scores[(scores == 0.0) & (rng.random(scores.shape) < [[0.0], [0.6], [0.3], [0.0], [0.0]])] = np.nan
    return scores


WORLDS = (
    near_ties,
    clones_that_anticorrelate,
    one_deviating_example,
    rare_large,
    alike,
    unreadable_where_wrong,
)


def opposite(scores):
    """A history that found easy what these arms find hard."""
    return 1.0 - np.concatenate([scores, scores])


def wrong_answers(worlds=WORLDS, runs=RUNS, history_of=None, **params):
    """Whether a campaign claims an arm that is not the best, missing scores counting 0; worlds in turn."""
    for seed in range(runs):
        scores = worlds[seed % len(worlds)](np.random.default_rng([31, seed]))
        problem = BestMeanWorld(n_arms=len(scores), n_examples=scores.shape[1])
        problem.scores = scores
        if history_of is not None:
            params["history"] = history_of(scores)
        selector = problem.selector("champion", delta=DELTA, batch_size=10, max_unscored=1.0, **params)
        for _ in problem.rounds(selector, seed=seed):
            pass
        decision = selector.decision()
        assert decision.claim.delta in (None, DELTA)
        means = np.nan_to_num(scores).mean(axis=1)
        yield decision.claim.kind in ("exact", "proven") and means[decision.best] < means.max() - 1e-9


@pytest.mark.parametrize("start", ["auto", "champion"])
def test_answers_are_wrong_in_at_most_a_share_delta_of_campaigns(start):
    # Alarm at 36 of 80: a true rate of 0.7 is seen with probability above 0.9999.
    assert not fails_too_often(wrong_answers(start=start), RUNS, DELTA)


@pytest.mark.parametrize("history_of", [opposite, lambda scores: scores[:1]], ids=["hostile", "the best row"])
def test_they_are_so_with_any_history(history_of):
    assert not fails_too_often(wrong_answers(start="champion", history_of=history_of), RUNS, DELTA)


def test_the_check_catches_a_history_whose_mean_is_not_taken_off(monkeypatch):
    before = Controls.before

    def uncentred(self, batch, untold):
        band = before(self, batch, untold)
        return band._replace(values=band.values + np.abs(self.weights[batch.rows, PAST]))

    monkeypatch.setattr(Controls, "before", uncentred)
    found = wrong_answers([alike], start="champion", history_of=lambda scores: scores[:1])
    assert fails_too_often(found, RUNS, DELTA)


def best_dies(rng):
    """The best arm is unreadable from some draw on; the next two are a hair apart."""
    return rng.permuted(np.arange(100) < np.array([75, 61, 60, 60, 40])[:, np.newaxis], axis=1).astype(float)


def wrong_answers_after_a_drop(runs=RUNS, **params):
    for seed in range(runs):
        rng = np.random.default_rng([32, seed])
        truth = best_dies(rng)
        world = BestMeanWorld(n_arms=5, n_examples=100)
        world.scores = truth.copy()
        selector = world.selector("champion", delta=DELTA, batch_size=16, max_unscored=0.3, **params)
        deaths = int(rng.integers(10, 40))
        for batch, _ in world.rounds(selector, seed=seed):
            deaths -= int((batch.arms == 0).sum())
            if deaths < 0:
                world.scores[0] = np.nan
        decision = selector.decision()
        left = np.array(decision.status) != "dropped"
        if decision.claim.kind == "proven":
            stated = DELTA if params else (1 + int((~left).sum())) * DELTA
            assert decision.claim.delta == pytest.approx(stated)
        means = truth.mean(axis=1)
        is_wrong = decision.best is not None and means[decision.best] < means[left].max() - 1e-9
        yield decision.claim.kind in ("exact", "proven") and is_wrong


def test_with_an_arm_dropped_they_are_wrong_as_seldom_as_they_state():
    # Alarm at 54 of 80 where twice delta is stated, at 36 where it is reserved for.
    assert not fails_too_often(wrong_answers_after_a_drop(), RUNS, 2.0 * DELTA)
    assert not fails_too_often(wrong_answers_after_a_drop(dropping="reserved"), RUNS, DELTA)


class Peeking(Race):
    """Chooses opponents and bets after it has seen the scores."""

    def tell(self, arms, scores):
        self.low[arms] += 10.0 * scores.sum(axis=1)
        chosen = Race._choose(self, arms)
        self.low[arms] -= 10.0 * scores.sum(axis=1)
        self._choose = lambda _: chosen
        super().tell(arms, scores)


def outruns(race_class, paths=150, n_arms=4, n_examples=40):
    """Whether the first of some arms with equal means is ever out by the race."""
    arms = np.arange(n_arms)
    for path in range(paths):
        rng = np.random.default_rng([33, path])
        scores = rng.permuted(np.tile(np.arange(n_examples) < n_examples // 2, (n_arms, 1)), axis=1)
        race = race_class(n_arms, n_examples)
        highest = 0.0
        for first in range(0, n_examples - 2, 2):
            race.tell(arms, scores[:, first : first + 2].astype(float))
            highest = max(highest, float(race.wealths(arms)[0]))
        yield highest >= 1.0 / DELTA


def test_one_of_the_best_arms_is_out_by_the_race_in_at_most_a_share_delta_of_races():
    # Alarm at 56 of 150: a true rate of 0.6 is seen with probability above 0.999.
    assert not fails_too_often(outruns(Race), 150, DELTA)


def test_the_check_catches_opponents_that_are_chosen_after_their_scores_are_seen():
    assert fails_too_often(outruns(Peeking), 150, DELTA)


def test_the_check_catches_controls_whose_mean_is_not_taken_off(monkeypatch):
    fair = wealth_module.log_factors

    def unfair(played, total, n_examples):
        return fair(played._replace(control=played.control + 0.3), total, n_examples)

    monkeypatch.setattr(elimination_module, "log_factors", unfair)
    assert fails_too_often(wrong_answers([alike], start="champion"), RUNS, DELTA)
