"""What bounds say of arms: against every completion of them, as properties, and by hand."""

from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from winnow.algorithms.best_mean.arm_status import Standing

TENTHS = st.integers(0, 10)


@st.composite
def bounded_arms(draw):
    """Bounds in tenths, arms that are left, and epsilon, in tenths."""
    n_arms = draw(st.integers(2, 4))
    ends = [sorted((draw(TENTHS), draw(TENTHS))) for _ in range(n_arms)]
    active = [draw(st.booleans()) for _ in range(n_arms)]
    return np.array(ends).T, np.array(active), draw(st.integers(0, 3))


def standing_of(ends, active, epsilon):
    lower, upper = ends / 10.0
    return Standing.of(
        lower,
        upper,
        scored=np.ones(len(lower), dtype=bool),
        fully_scored=lower == upper,
        active=active,
        epsilon=epsilon / 10.0,
    )


@given(bounded_arms())
def test_it_says_what_holds_for_all_means_within_the_bounds_and_nothing_less(case):
    ends, active, epsilon = case
    standing = standing_of(*case)
    arms = np.flatnonzero(active)
    worlds = [dict(zip(arms, means, strict=True)) for means in product(*ends[:, arms].T)]  # the corners
    known = {arm for arm in arms if ends[0, arm] == ends[1, arm]}
    near_best = {a for a in arms if all(w[a] >= max(w.values()) - epsilon for w in worlds)}
    beaten = {a for a in arms if any(all(w[b] > w[a] for w in worlds) for b in arms)}
    tied = known & near_best
    assert set(np.flatnonzero(standing.eliminated)) == beaten
    assert set(np.flatnonzero(standing.good_enough)) == near_best - beaten
    assert set(np.flatnonzero(standing.tied)) == (tied if len(tied) > 1 else set())
    np.testing.assert_array_equal(standing.dropped, ~active)


@given(bounded_arms(), st.randoms(use_true_random=False))
def test_the_recommended_arm_can_be_the_best_and_statuses_agree_with_it(case, random):
    standing = standing_of(*case)
    ranking = np.array([random.random() for _ in case[1]])
    best = standing.best(ranking)
    if best is None:
        assert not case[1].any()
        return
    assert not standing.eliminated[best]
    assert not standing.dropped[best]
    if standing.good_enough.any():
        assert standing.good_enough[best]
        status = standing.statuses(best, settled=True)
        assert "active" not in status
        assert status[best] in ("best", "tied")
        assert status.count("best") == (status[best] == "best")
        assert status.count("tied") != 1
    assert set(standing.statuses(best, settled=False)) <= {"active", "eliminated", "dropped"}


def test_an_open_arm_is_better_than_two_known_ones_within_epsilon_of_it():
    # 0.5 and 0.4 are both within 0.2 of the highest mean, which is the open one's: 0.55 to 0.6.
    standing = Standing.of(
        np.array([0.5, 0.4, 0.55]),
        np.array([0.5, 0.4, 0.6]),
        scored=np.ones(3, dtype=bool),
        fully_scored=np.array([True, True, False]),
        active=np.ones(3, dtype=bool),
        epsilon=0.2,
    )
    assert standing.best(np.array([0.9, 0.8, 0.7])) == 2
    assert standing.statuses(2, settled=True) == ("eliminated", "eliminated", "best")


def test_an_arm_without_a_score_is_no_answer():
    alone = dict(fully_scored=np.zeros(2, dtype=bool), active=np.array([True, False]), epsilon=0.0)
    bounds = np.zeros(2), np.ones(2)
    assert not Standing.of(*bounds, scored=np.zeros(2, dtype=bool), **alone).good_enough.any()
    assert Standing.of(*bounds, scored=np.ones(2, dtype=bool), **alone).good_enough.tolist() == [True, False]
