"""The judge of all simulations: hardly ever a false alarm, and hardly a run in vain."""

import numpy as np
import pytest
from failure_rates import (
    FALSE_ALARM,
    OVERLOOKED,
    SEEN,
    alarm_at,
    answer_after,
    fails_too_often,
    lowest_seen,
    too_many,
)
from scipy.stats import binom

SIZES = [(100, 0.2), (80, 0.2), (60, 0.1)]


def alarm_probability(true, runs, promised):
    """How often the alarm is raised at this true rate, by summing over all that may happen."""
    alive, raised = np.array([1.0]), 0.0  # by the number of failures
    for made in range(1, runs + 1):
        alive = (1.0 - true) * np.append(alive, 0.0) + true * np.append(0.0, alive)
        for failures in np.flatnonzero(alive):
            answer = answer_after(made, int(failures), runs, promised)
            if answer is not None:
                raised += answer * alive[failures]
                alive[failures] = 0.0
    return raised


@pytest.mark.parametrize(("runs", "promised"), SIZES)
def test_a_false_alarm_is_as_rare_as_stated_and_hardly_more_is_overlooked_than_in_all_runs(runs, promised):
    assert alarm_probability(promised, runs, promised) <= FALSE_ALARM
    rate = lowest_seen(runs, promised)
    for true in (rate, (1.0 + rate) / 2.0):
        whole = binom.sf(alarm_at(runs, promised) - 1, runs, true)
        assert whole - OVERLOOKED <= alarm_probability(true, runs, promised)
    assert SEEN - OVERLOOKED <= alarm_probability(rate, runs, promised) <= SEEN + 0.01


@pytest.mark.parametrize("rate", [0.0, 0.2, 0.42, 0.45, 0.5, 1.0])
def test_the_answer_is_that_of_all_runs(rate):
    answers = set()
    for seed in range(40):
        failed = np.random.default_rng(seed).random(100) < rate
        answers.add(fails_too_often(failed, 100, 0.2))
        assert fails_too_often(failed, 100, 0.2) == too_many(failed.sum(), 100, 0.2)
    assert rate not in (0.42, 0.45) or answers == {True, False}


def test_no_run_is_made_that_is_not_needed_for_the_answer():
    # The alarm is at 42 of 100. Thirteen failures and nothing else refute the promise, and nine runs that do
    # not fail refute the rate 0.47.
    assert (too_many(41, 100, 0.2), too_many(42, 100, 0.2)) == (False, True)
    assert 0.46 < lowest_seen(100, 0.2) < 0.49
    alternating = [True, False] * 50
    for failed, needed in (([True] * 100, 13), ([False] * 100, 9), (alternating, 77)):
        made = iter(failed)
        assert fails_too_often(made, 100, 0.2) == failed[0]
        assert len(list(made)) == 100 - needed


def test_a_simulation_cut_short_is_no_answer():
    with pytest.raises(ValueError, match="92 runs of 100 are missing"):
        fails_too_often([False] * 8, 100, 0.2)


def test_where_not_even_failing_always_is_too_often_one_run_is_enough():
    assert alarm_at(5, 0.2) == 6
    assert not fails_too_often([True], 5, 0.2)
