"""The m best arms: who is named, what is claimed, and that it is wrong as seldom as it says."""

from itertools import permutations, product

import numpy as np
import pytest
from failure_rates import fails_too_often
from hypothesis import given
from hypothesis import strategies as st
from property_settings import tries
from selector_worlds import BestMeanWorld

from winnow.algorithms.champion import elimination as elimination_module
from winnow.algorithms.champion import wealth as wealth_module
from winnow.algorithms.champion.draw_order import Grouped
from winnow.algorithms.champion.elimination import Evidence
from winnow.algorithms.champion.switch import mode_of
from winnow.algorithms.claims import EXACT, Claim
from winnow.algorithms.errors import InvalidParameter
from winnow.algorithms.protocols import round_rng
from winnow.algorithms.registry import create_selector

NAN = np.nan


def ended(scores, top_m, seed=0, **params):
    """A campaign on these scores to its end."""
    world = BestMeanWorld(n_arms=len(scores), n_examples=len(scores[0]))
    world.scores = np.array(scores, dtype=float)
    selector = world.selector("champion", **{"delta": 0.05, "batch_size": 8, "top_m": top_m, **params})
    return selector, list(world.rounds(selector, seed=seed))


def rows(*right, n=200, seed=0):
    """Rows of n with so many ones each, in random places."""
    rng = np.random.default_rng(seed)
    return rng.permuted(np.arange(n) < np.array(right)[:, np.newaxis], axis=1).astype(float)


def named(decision, *statuses):
    return [arm for arm, status in enumerate(decision.status) if status in statuses]


def is_wrong(decision, means, top_m, epsilon=0.0):
    """Whether an arm that is left out beats one of those named by more than epsilon."""
    top, tied = named(decision, "top"), named(decision, "tied")
    if decision.claim.kind not in ("exact", "proven"):
        return False
    members = [*top, *tied[: top_m - len(top)]]
    left = [arm for arm, status in enumerate(decision.status) if arm not in members and status != "dropped"]
    return bool(left and means[left].max() > means[members].min() + epsilon + 1e-9)


def test_m_rows_are_filled_and_the_others_are_out_against_the_last_of_them():
    scores = rows(150, 140, 130, 90, 80, 70, 60, 50)
    selector, rounds = ended(scores, 3)
    told = np.bincount(np.concatenate([batch.arms for batch, _ in rounds]), minlength=8)
    assert (told[:3] == 200).all()
    assert (told[3:] < 200).all()
    assert selector.evidence.total == 130.0
    np.testing.assert_allclose(selector.levels, 3 / 0.05)
    decision = selector.decision()
    assert decision.status == ("top",) * 3 + ("eliminated",) * 5
    assert (decision.best, decision.reason) == (0, "confident")
    assert decision.claim == Claim(kind="proven", delta=0.05)
    assert decision.differences.against == 2


def test_arms_tied_for_the_last_place_are_named_so_and_those_above_are_not():
    scores = np.array([[1, 1, 1, 0], [1, 0, 1, 0], [0, 1, 0, 1], [0, 0, 0, 0]], dtype=float)
    decision = ended(scores, 2)[0].decision()
    assert decision.status == ("top", "tied", "tied", "eliminated")
    assert decision.claim == EXACT
    assert ended(scores, 3)[0].decision().status == ("top", "top", "top", "eliminated")
    assert ended(scores[:3], 1)[0].decision().status == ("best", "eliminated", "eliminated")


def test_an_arm_within_epsilon_of_the_last_is_only_not_better():
    scores = rows(160, 130, 128, 40, n=200)
    decision = ended(scores, 2, epsilon=0.1)[0].decision()
    assert set(named(decision, "top")) in ({0, 1}, {0, 2})
    assert len(named(decision, "not-better")) >= 1
    assert not is_wrong(decision, scores.mean(axis=1), 2, epsilon=0.1)


def test_unscored_cells_that_could_change_who_is_among_them_leave_it_open():
    scores = np.array([[1, 1, 1, 1], [1, 1, 0, 0], [1, 0, NAN, 0], [0, 0, 0, 0]])
    decision = ended(scores, 2, max_unscored=1.0)[0].decision()
    assert decision.claim == EXACT  # at best equal to the second
    scores[2, 1] = NAN
    decision = ended(scores, 2, max_unscored=1.0)[0].decision()
    assert (decision.reason, decision.claim.kind) == ("exhausted", "none")
    assert decision.status[3] == "eliminated"


def test_where_no_more_are_left_all_of_them_are_named():
    scores = rows(30, 10, 20, 5, n=40)
    scores[1:3] = NAN
    decision = ended(scores, 3, max_unscored=0.1)[0].decision()
    assert decision.status == ("top", "dropped", "dropped", "top")
    assert decision.claim == EXACT


def test_a_dropped_arm_raises_what_is_stated_by_a_part_of_m():
    scores = rows(90, 80, 70, 20, 10, n=100)
    scores[4] = NAN
    selector, _ = ended(scores, 2, max_unscored=0.3)
    assert selector.decision().claim == Claim(kind="proven", delta=0.05 * 1.5, raised_by=("dropped",))
    selector, _ = ended(scores, 2, max_unscored=0.3, dropping="reserved")
    np.testing.assert_allclose(selector.levels, 2 * 6 / 0.05)
    assert selector.decision().claim == Claim(kind="proven", delta=0.05)


@pytest.mark.parametrize(
    ("params", "problem"),
    [
        ({"top_m": 0}, "top_m must be from 1 to 3, fewer than the candidates, got 0"),
        ({"top_m": 4}, "top_m must be from 1 to 3, fewer than the candidates, got 4"),
        (
            {"top_m": 2, "start": "race"},
            "start must be 'auto' or 'champion' with a top_m above 1, got 'race'",
        ),
        (
            {"top_m": 2, "prefer": "cost", "costs": np.ones(4), "epsilon": 0.1},
            "prefer must be 'mean' with a top_m above 1, got 'cost'",
        ),
    ],
)
def test_what_cannot_be_looked_for_is_refused(params, problem):
    with pytest.raises(InvalidParameter, match=problem):
        create_selector("champion", n_arms=4, n_examples=9, delta=0.1, **params)


def test_told_the_same_batches_it_is_the_same():
    scores = rows(60, 55, 50, 45, 40, 35, n=80)
    original, rounds = ended(scores, 2, batch_size=12)
    again = create_selector("champion", n_arms=6, n_examples=80, delta=0.05, batch_size=12, top_m=2)
    for number, (batch, outcomes) in enumerate(rounds):
        if number % 3 == 0:
            assert again.ask(round_rng(0, number)) == batch
        again.tell(batch, outcomes)
    assert again.decision() == original.decision()
    np.testing.assert_array_equal(again.wealths, original.wealths)


N = 4
TINY = np.array([[1.0, 0.0, 0.9, 0.3], [0.2, 1.0, 0.0, 0.9], [0.0, 0.9, 0.9, 0.1]])  # best first


def highest_wealths(orders):
    """Of the two best of three arms, the most that bets that they are not make before they are full.

    The third row is filled first; whose is the second to be filled depends on the first scores.
    """
    mode = mode_of(3, N, "champion", delta=0.05, epsilon=0.0)
    evidence = Evidence(3, N, mode, level=np.inf, epsilon=0.0, top_m=2)
    left, highest = [list(order) for order in orders], np.zeros(2)

    def tell(arm, size):
        untold = np.isin(np.arange(N), left[arm])[np.newaxis]
        examples = np.array(left[arm][:size])
        del left[arm][:size]
        evidence.tell(Grouped.of(np.full(len(examples), arm), examples, TINY[arm, examples]), untold)
        if evidence.champion is not None:
            is_true = TINY.sum(axis=1)[:2] >= evidence.total
            is_open = evidence.draws.count[:2] < N
            wealths = np.where(is_true & is_open, evidence.wealths(np.arange(2)), 0.0)
            np.maximum(highest, wealths, out=highest)
        return TINY[arm, examples[-1]]

    tell(2, N)
    filled = int(tell(0, 1) < tell(1, 1))
    tell(filled, N)
    while left[1 - filled]:
        tell(1 - filled, 1)
    return highest


def test_over_all_orders_each_of_the_m_best_is_seldom_shown_to_be_none():
    orders = list(permutations(range(N)))
    highest = np.array([highest_wealths((*pair, range(N))) for pair in product(orders, repeat=2)])
    assert (highest > 1.0).mean(axis=0).min() > 0.1
    for level in np.linspace(1.02, 3.0, 100):
        assert ((highest >= level).mean(axis=0) <= 1.0 / level).all()


@given(seed=st.integers(0, 10_000), n_arms=st.integers(3, 6), data=st.data())
@tries(40)
def test_an_answer_is_only_wrong_where_one_of_the_m_best_was_ruled_out(seed, n_arms, data):
    top_m = data.draw(st.integers(2, n_arms - 1))
    scores = np.round(np.random.default_rng(seed).random((n_arms, 12)), 1)
    means, epsilon = scores.mean(axis=1), data.draw(st.sampled_from([0.0, 0.02]))
    selector = create_selector(
        "champion", n_arms=n_arms, n_examples=12, delta=0.99, batch_size=3, top_m=top_m, epsilon=epsilon
    )
    selector.evidence.levels[:] = 1.2  # most answers are wrong then
    number = 0
    while len(batch := selector.ask(round_rng(seed, number))):
        selector.tell(batch, scores[batch.arms, batch.examples])
        number += 1
    if is_wrong(selector.decision(), means, top_m, epsilon):
        of_the_best = np.argsort(-means, kind="stable")[:top_m]
        is_out = selector.evidence.is_out[of_the_best]
        assert (is_out & (12 * means[of_the_best] > selector.evidence.total)).any()


DELTA, RUNS = 0.2, 40


def near_ties(rng):
    right = np.array([33, 32, 31, 30, 30, 30])[:, np.newaxis]
    return rng.permuted(np.arange(60) < right, axis=1).astype(float)


def alike(rng):
    """Arms that are right on nearly the same examples, two of them on one more than the others."""
    base = np.arange(60) < 30
    scores = np.tile(base, (6, 1))
    for arm in range(6):
        scores[arm, rng.choice(30, 4, replace=False)] = False
        scores[arm, 30 + rng.choice(30, 5 if arm < 2 else 4, replace=False)] = True
    return scores.astype(float)


def unreadable_where_wrong(rng):
    scores = near_ties(rng)
    hidden = rng.random(scores.shape) < np.array([0.0, 0.0, 0.5, 0.3, 0.0, 0.0])[:, np.newaxis]
    return np.where((scores == 0.0) & hidden, NAN, scores)


def wrong_answers(worlds=(near_ties, alike, unreadable_where_wrong), runs=RUNS):
    """Whether a campaign leaves out an arm that is better than one it names, missing scores counting 0."""
    for seed in range(runs):
        scores = worlds[seed % len(worlds)](np.random.default_rng([51, seed]))
        top_m = 2 + seed % 2
        selector, _ = ended(scores, top_m, seed=seed, delta=DELTA, max_unscored=1.0, intervals=True)
        decision = selector.decision()
        assert decision.claim.delta in (None, DELTA)
        yield is_wrong(decision, np.nan_to_num(scores).mean(axis=1), top_m)


@pytest.mark.statistical
def test_answers_are_wrong_in_at_most_a_share_delta_of_campaigns():
    # Alarm at 23 of 40: a true rate of 0.8 is seen with probability above 0.999.
    assert not fails_too_often(wrong_answers(), RUNS, DELTA)


@pytest.mark.statistical
def test_the_check_catches_controls_whose_mean_is_not_taken_off(monkeypatch):
    fair = wealth_module.log_factors

    def unfair(played, total, n_examples):
        return fair(played._replace(control=played.control + 0.3), total, n_examples)

    monkeypatch.setattr(elimination_module, "log_factors", unfair)
    assert fails_too_often(wrong_answers([alike]), RUNS, DELTA)


@pytest.mark.statistical
def test_the_check_catches_arms_that_are_held_against_the_best_of_the_m(monkeypatch):
    monkeypatch.setattr(Evidence, "_crown", against_the_best)
    assert fails_too_often(wrong_answers([one_far_ahead]), RUNS, DELTA)


CROWN = Evidence._crown


def against_the_best(self):
    CROWN(self)
    if self.champion is not None:
        self.total = float(self.draws.low.max())


def one_far_ahead(rng):
    right = np.array([50, 33, 33, 32, 32, 32])[:, np.newaxis]
    return rng.permuted(np.arange(60) < right, axis=1).astype(float)
