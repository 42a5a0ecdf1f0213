"""Arms that a champion leaves out: dropped with the next tell, and counted in the stated error."""

import numpy as np
import pytest

from winnow.algorithms.best_mean.config import BestMeanConfig
from winnow.algorithms.champion.selector import Champion
from winnow.algorithms.protocols import LeavingOut, round_rng

MEANS = np.array([0.9, 0.6, 0.5, 0.0])
N_EXAMPLES, WEAKEST = 600, 3


def champion():
    config = BestMeanConfig(
        n_arms=len(MEANS),
        n_examples=N_EXAMPLES,
        batch_size=32,
        budget=None,
        delta=0.05,
        epsilon=0.0,
        max_unscored=0.2,
    )
    return Champion(config)


def scores(seed=0):
    drawn = np.random.default_rng(seed).random((len(MEANS), N_EXAMPLES))
    return (drawn < MEANS[:, np.newaxis]).astype(float)


def run(selector, left_out_in, *, told=(), most=10**6):
    """Run a selector, which is told some rounds first; return all rounds."""
    found, rounds = scores(), []
    while len(rounds) < most and not selector.decision().stop:
        number = len(rounds)
        batch = told[number] if number < len(told) else selector.ask(round_rng(0, number))
        if left_out_in == number:
            selector.leave_out(np.array([WEAKEST]))
        selector.tell(batch, found[batch.arms, batch.examples])
        rounds.append(batch)
    return rounds


def test_an_arm_left_out_is_dropped_by_the_tell_that_follows():
    selector = champion()
    assert isinstance(selector, LeavingOut)
    rounds = run(selector, 1, most=1)
    batch = selector.ask(round_rng(0, 1))
    selector.leave_out(np.array([WEAKEST]))
    assert selector.decision().status[WEAKEST] == "active"
    selector.tell(batch, scores()[batch.arms, batch.examples])
    assert selector.decision().status[WEAKEST] == "dropped"
    assert WEAKEST in rounds[0].arms
    assert WEAKEST not in selector.ask(round_rng(0, 2)).arms


def test_the_stated_error_counts_it_as_dropped():
    whole, less = champion(), champion()
    run(whole, None)
    run(less, 1)
    assert (whole.decision().claim.delta, whole.decision().claim.raised_by) == (0.05, ())
    decision = less.decision()
    assert (decision.best, decision.status[WEAKEST]) == (0, "dropped")
    assert (decision.claim.kind, decision.claim.raised_by) == ("proven", ("dropped",))
    assert decision.claim.delta == pytest.approx(0.1)


@pytest.mark.parametrize("known", [0, 1, 2, 5, 10])
def test_a_replay_leaves_it_out_at_the_same_tell(known):
    selector, other = champion(), champion()
    rounds = run(selector, 1)
    assert run(other, 1, told=rounds[:known]) == rounds
    assert other.decision().status == selector.decision().status
    np.testing.assert_array_equal(other.wealths, selector.wealths)


def test_with_every_arm_left_out_there_is_no_best():
    selector = champion()
    batch = selector.ask(round_rng(0, 0))
    selector.leave_out(np.arange(len(MEANS)))
    selector.tell(batch, scores()[batch.arms, batch.examples])
    assert selector.decision().reason == "all-dropped"
