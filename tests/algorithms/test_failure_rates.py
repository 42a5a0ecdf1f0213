"""The judge of all simulations: it answers as if every run had been made, and makes no run in vain."""

import numpy as np
import pytest
from failure_rates import fails_too_often, too_many


@pytest.mark.parametrize("rate", [0.0, 0.2, 0.42, 0.45, 0.5, 1.0])
def test_the_answer_is_that_of_all_runs(rate):
    answers = set()
    for seed in range(40):
        failed = np.random.default_rng(seed).random(100) < rate
        answers.add(fails_too_often(failed, 100, 0.2))
        assert fails_too_often(failed, 100, 0.2) == too_many(failed.sum(), 100, 0.2)
    assert rate not in (0.42, 0.45) or answers == {True, False}


def test_no_run_is_made_that_cannot_change_the_answer():
    # The alarm is at 42 of 100.
    assert (too_many(41, 100, 0.2), too_many(42, 100, 0.2)) == (False, True)
    for failed, needed in ((True, 42), (False, 59)):
        made = iter([failed] * 100)
        assert fails_too_often(made, 100, 0.2) == failed
        assert len(list(made)) == 100 - needed


def test_a_simulation_cut_short_is_no_answer():
    with pytest.raises(ValueError, match="58 runs of 100 are missing"):
        fails_too_often([False] * 42, 100, 0.2)
