"""What champion asks, when it stops, and what it then says."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_settings import tries
from selector_worlds import BestMeanWorld

from winnow.algorithms.best_mean.groups import Groups
from winnow.algorithms.champion.control_variates import Controls
from winnow.algorithms.champion.draw_order import Grouped
from winnow.algorithms.champion.switch import mode_of
from winnow.algorithms.claims import EXACT, NOTHING_CLAIMED, Claim
from winnow.algorithms.errors import InvalidParameter
from winnow.algorithms.protocols import Batch, round_rng
from winnow.algorithms.registry import create_selector

NAN = np.nan


def ended(scores, seed=0, **params):
    """A campaign on these scores to its end."""
    world = BestMeanWorld(n_arms=len(scores), n_examples=len(scores[0]))
    world.scores = np.array(scores, dtype=float)
    selector = world.selector("champion", **{"delta": 0.05, "batch_size": 8, **params})
    rounds = list(world.rounds(selector, seed=seed))
    return selector, rounds


def rows(*right, n=200, seed=0):
    """Rows of n with so many ones each, in random places."""
    rng = np.random.default_rng(seed)
    return rng.permuted(np.arange(n) < np.array(right)[:, np.newaxis], axis=1).astype(float)


def test_the_race_is_weighed_by_the_size_of_the_grid_alone():
    mode = partial(mode_of, delta=0.05, epsilon=0.0)
    assert mode(30, 600, "auto").weight == pytest.approx((600 / 675) ** 3 / (1 + (600 / 675) ** 3))
    assert mode(100, 2592, "auto").weight == 0.0
    assert mode(10, 100_000, "auto").weight == 0.95
    assert mode(100, 2592, "auto").columns == 7
    assert mode(1000, 300, "auto").columns == 2
    assert mode(5, 1, "auto").columns == 1
    assert not mode(100, 2592, "race").leaves


def test_in_the_race_every_arm_in_question_is_asked_the_same_examples():
    selector, rounds = ended(rows(180, 100, 20, n=400), start="race")
    for batch, _ in rounds:
        arms, counts = np.unique(batch.arms, return_counts=True)
        assert (counts == counts[0]).all()
        examples = batch.examples.reshape(-1, len(arms))
        assert (examples == examples[:, :1]).all()
    first, last = rounds[0][0], rounds[-1][0]
    assert set(first.arms) == {0, 1, 2}
    assert len(set(last.arms)) < 3
    assert selector.decision().best == 0


def test_a_row_is_filled_and_the_others_are_out_before_theirs_are():
    scores = rows(150, 120, 110, 100, 90, 80, 70, 60, n=200)
    selector, rounds = ended(scores, start="champion")
    told = np.bincount(np.concatenate([batch.arms for batch, _ in rounds]), minlength=8)
    assert told[0] == 200
    assert (told[1:] < 200).all()
    assert selector.evidence.champion == 0
    assert selector.evidence.total == 150
    decision = selector.decision()
    assert (decision.reason, decision.best) == ("confident", 0)
    assert decision.status == ("best",) + ("eliminated",) * 7
    assert decision.claim == Claim(kind="proven", delta=0.05)


def test_it_says_when_each_arm_was_out_and_by_which_wealth():
    selector, rounds = ended(rows(150, 120, 110, 100, n=200), start="champion")
    out = np.array([1, 2, 3])
    sizes = np.cumsum([len(batch) for batch, _ in rounds])
    assert selector.out_in_round[0] == selector.out_at[0] == -1
    assert (selector.out_at[out] == sizes[selector.out_in_round[out]]).all()
    assert (selector.out_in_round[out] >= 0).all()
    is_certain = selector.evidence.draws.high[out] + 200 - selector.evidence.draws.count[out] < 150
    assert ((selector.wealths[out] >= selector.levels[out]) | is_certain).all()
    assert selector.levels == pytest.approx(20.0)


def test_equal_rows_are_tied_as_a_set():
    scores = rows(60, 60, 20, n=80)
    selector, _ = ended(scores, start="champion")
    decision = selector.decision()
    assert decision.reason == "confident"
    assert decision.status[:2] == ("tied", "tied")
    assert decision.status[2] in ("eliminated", "not-better")
    assert decision.claim.kind in ("exact", "proven")


@pytest.mark.parametrize("start", ["auto", "champion", "race"])
def test_with_epsilon_an_arm_within_it_is_enough_and_the_others_are_not_called_worse(start):
    scores = rows(100, 98, 40, n=200)
    selector, rounds = ended(scores, start=start, epsilon=0.1)
    decision = selector.decision()
    assert (decision.reason, decision.claim.kind) == ("confident", "proven")
    assert decision.best in (0, 1)
    assert decision.status[1 - decision.best] in ("not-better", "eliminated", "tied")
    with_none = ended(scores, start=start)[1]
    assert sum(len(b) for b, _ in rounds) <= sum(len(b) for b, _ in with_none)


def test_a_tested_arm_that_is_not_shown_to_be_worse_is_only_not_better():
    selector, _ = ended(rows(100, 97, 97, 96, 95, 94, 93, 40, n=200), start="champion", epsilon=0.1)
    decision = selector.decision()
    assert decision.claim.kind == "proven"
    assert "not-better" in decision.status
    assert "eliminated" not in [decision.status[arm] for arm in range(7)]


def test_a_full_row_with_unscored_cells_that_could_change_the_answer_stays_open():
    scores = rows(134, 90, n=150)
    scores[1][scores[1] == 0.0] = NAN
    for start in ("auto", "champion", "race"):
        selector, _ = ended(scores, start=start)
        decision = selector.decision()
        assert (decision.reason, decision.claim) == ("exhausted", NOTHING_CLAIMED)
        assert decision.status == ("active", "active")


def test_unscored_cells_count_as_right_for_the_arm_that_is_tested():
    scores = rows(150, 100, 60, 60, 60, n=200)
    scores[1, np.flatnonzero(scores[1] == 0.0)[:60]] = NAN  # 100 right, 60 unreadable, of 200: perhaps 160
    selector, _ = ended(scores, start="champion", max_unscored=0.4)
    assert selector.decision().status[1] == "active"
    assert selector.decision().claim == NOTHING_CLAIMED


def test_every_arm_dropped_raises_what_the_answer_states_or_what_it_takes():
    scores = rows(150, 100, 100, 90, 80, n=200)
    scores[1:3] = NAN
    for start in ("auto", "champion", "race"):
        stated, _ = ended(scores, start=start)
        assert stated.decision().claim == Claim(
            kind="proven", delta=pytest.approx(0.15), raised_by=("dropped",)
        )
        assert stated.levels == pytest.approx(20.0)
        reserved, _ = ended(scores, start=start, dropping="reserved")
        assert reserved.decision().claim == Claim(kind="proven", delta=0.05)
        assert reserved.levels == pytest.approx(240.0)


def test_where_nothing_could_be_stated_only_certain_answers_are_given():
    scores = rows(90, 60, 50, n=100)
    scores[2] = NAN
    selector, _ = ended(scores, delta=0.5)
    assert np.isinf(selector.levels).all()
    assert (selector.decision().claim, selector.decision().best) == (EXACT, 0)


def test_without_the_arm_that_ruled_them_out_arms_are_asked_about_anew():
    n = 120
    scores = rows(110, 80, 60, 50, n=n)
    world = BestMeanWorld(n_arms=4, n_examples=n)
    world.scores = scores.copy()
    selector = world.selector("champion", delta=0.05, batch_size=8, max_unscored=0.2, start="race")
    were_out = np.zeros(4, dtype=bool)
    for _ in world.rounds(selector):
        if selector.evidence.race.n_columns >= 12:
            world.scores[0] = NAN  # its server dies
        were_out |= selector.evidence.is_out
        if not selector.evidence.active[0] and not selector.evidence.is_decided:
            assert not selector.evidence.can_race or not were_out[1:].any()
    decision = selector.decision()
    assert decision.status[0] == "dropped"
    assert decision.best == 1
    assert decision.claim.delta in (None, 0.1)


def test_an_arm_that_missed_common_examples_is_not_raced_again():
    """It was out, was told a batch in flight all the same, and came back when more was needed to be out."""
    scores = rows(196, 190, 150, 10, n=200)
    scores[3] = NAN
    selector = create_selector(
        "champion", n_arms=4, n_examples=200, delta=0.3, batch_size=8, start="race", dropping="reserved"
    )
    waiting, asked = [], 0
    while True:
        while len(waiting) < 4 and len(batch := selector.ask(round_rng(3, asked))):
            waiting.append(batch)
            asked += 1
        if not waiting:
            break
        batch = waiting.pop(0)
        selector.tell(batch, scores[batch.arms, batch.examples])
        evidence = selector.evidence
        if evidence.can_race and evidence.race.n_columns:
            told = {arm: set(evidence.draws.history(np.array([arm])).examples) for arm in range(4)}
            alive = np.flatnonzero(evidence.alive)
            assert all(told[int(arm)] == told[int(alive[0])] for arm in alive)
            sums = [np.nan_to_num(scores[arm, sorted(told[int(arm)])]).sum() for arm in alive]
            np.testing.assert_allclose(evidence.race.low[alive], sums)
    assert selector.decision().best == 0


def test_without_delta_it_goes_on_to_the_end_and_is_exact():
    selector, rounds = ended(rows(40, 20, n=50), delta=None)
    assert sum(len(batch) for batch, _ in rounds) == 100
    assert (selector.decision().reason, selector.decision().claim) == ("exhausted", EXACT)


def alike(seed, n_arms, n_examples, spread=0.3):
    """Arms that find the same examples hard."""
    rng = np.random.default_rng(seed)
    skill = rng.normal(0.0, spread, (n_arms, 1))
    return rng.normal(size=(n_arms, n_examples)) < rng.normal(0.0, 2.0, n_examples) + skill


def test_a_history_of_arms_alike_saves_comparisons_and_another_costs_next_to_nothing():
    totals = np.zeros(3)
    for seed in range(5):
        scores = alike(seed, 80, 800).astype(float)
        histories = (None, scores[40:], scores[40:, ::-1])  # the last one is about other examples
        for place, history in enumerate(histories):
            _, rounds = ended(scores[:40], seed=seed, start="champion", batch_size=32, history=history)
            totals[place] += sum(len(batch) for batch, _ in rounds)
    assert totals[1] < 0.93 * totals[0]
    assert totals[2] < 1.06 * totals[0]


def test_told_the_same_batches_it_is_the_same_with_a_history():
    scores = alike(1, 12, 200).astype(float)
    history = np.where(np.random.default_rng(2).random((30, 200)) < 0.3, NAN, alike(3, 30, 200))
    params = {"delta": 0.05, "batch_size": 12, "history": history}
    original, rounds = ended(scores, **params)
    again = create_selector("champion", n_arms=12, n_examples=200, **params)
    for number, (batch, outcomes) in enumerate(rounds):
        if number % 3 == 0:
            assert again.ask(round_rng(0, number)) == batch
        again.tell(batch, outcomes)
    np.testing.assert_array_equal(again.wealths, original.wealths)
    np.testing.assert_array_equal(again.evidence.controls.weights, original.evidence.controls.weights)


@pytest.mark.parametrize(
    ("history", "problem"),
    [
        (np.zeros((3, 9)), r"history must be of shape \(M, 10\), a column for each example, got \(3, 9\)"),
        (np.full((2, 10), 1.5), r"history must be scores in \[0, 1\], or NaN if missing, got 1.5"),
        (np.full((2, 10), NAN), "history must be a table with at least one score, got nan"),
    ],
)
def test_a_history_that_is_none_is_refused(history, problem):
    with pytest.raises(InvalidParameter, match=problem):
        create_selector("champion", n_arms=2, n_examples=10, history=history)


@given(data=st.data())
@tries(60)
def test_controls_are_never_below_their_bound_and_of_mean_0_over_what_is_left(data):
    n = data.draw(st.integers(2, 12))
    value = st.floats(-1.0, 1.0)
    controls = Controls(1, Groups.none(n), np.array(data.draw(st.lists(value, min_size=n, max_size=n))))
    controls.weights[0] = data.draw(st.lists(st.floats(-3.0, 3.0), min_size=3, max_size=3))
    untold = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    untold[0] = True
    left = np.flatnonzero(untold)
    said = [
        controls.before(Grouped.of(np.zeros(1, np.int64), left[[place]], np.zeros(1)), untold[np.newaxis])
        for place in range(len(left))
    ]
    control, below, above = (np.concatenate(part) for part in zip(*said, strict=True))
    np.testing.assert_allclose(control.mean(), 0.0, atol=1e-12)
    assert (control >= -below).all()
    assert (control <= above).all()


def test_rounds_are_about_as_large_as_wanted():
    rng = np.random.default_rng(0)
    scores = (rng.normal(size=(40, 600)) < rng.normal(size=600) + rng.normal(0, 0.3, (40, 1))).astype(float)
    _, rounds = ended(scores, batch_size=64)
    sizes = np.array([len(batch) for batch, _ in rounds])
    assert 30 <= np.median(sizes) <= 90
    assert sizes.max() <= 600
    _, small = ended(scores, batch_size=4, start="champion")
    after_the_race = [batch for batch, _ in small[1:] if len(set(batch.arms)) == 1]
    assert len(after_the_race) > len(small) / 2


@given(st.integers(0, 2**32 - 1), st.integers(2, 5), st.integers(1, 9), st.sampled_from([1, 4, 20]))
@tries(40)
def test_any_history_can_be_told_and_what_is_exact_is_true(seed, n_arms, n_examples, batch_size):
    """Pairs in any order, in any batches, however they were chosen."""
    rng = np.random.default_rng(seed)
    scores = rng.choice([0.0, 0.5, 1.0, NAN], size=(n_arms, n_examples), p=[0.3, 0.2, 0.4, 0.1])
    selector = create_selector(
        "champion", n_arms=n_arms, n_examples=n_examples, delta=0.3, batch_size=batch_size, max_unscored=1.0
    )
    pairs = rng.permutation(scores.size)
    while pairs.size:
        size = int(rng.integers(1, 7))
        arms, examples = np.divmod(pairs[:size], n_examples)
        pairs = pairs[size:]
        selector.tell(Batch(arms, examples), scores[arms, examples])
        selector.decision()
        assert (selector.wealths >= 0.0).all()
    decision = selector.decision()
    least, most = np.nan_to_num(scores).mean(axis=1), np.nan_to_num(scores, nan=1.0).mean(axis=1)
    if decision.claim == EXACT:
        assert least[decision.best] >= np.delete(most, decision.best).max() - 1e-9
    assert len(selector.ask(round_rng(0, 0))) == 0


@pytest.mark.parametrize("name", ["champion", "race"])
def test_batches_of_a_race_may_be_in_flight_when_the_last_arm_is_dropped(name):
    selector = create_selector(name, n_arms=3, n_examples=60, max_unscored=0.3, delta=0.2, batch_size=8)
    batches = [selector.ask(round_rng(0, number)) for number in range(6)]
    replayed = create_selector(name, n_arms=3, n_examples=60, max_unscored=0.3, delta=0.2, batch_size=8)
    for batch in batches:
        selector.tell(batch, np.full(len(batch), NAN))
        replayed.tell(batch, np.full(len(batch), NAN))
    assert selector.decision().reason == "all-dropped"
    assert selector.decision() == replayed.decision()


def test_single_draws_on_one_shared_example_are_read_alike_by_whoever_asked_took_up_or_was_told_them():
    """Without delta, arms that are out are asked too; on this seed, two of them once on the same example."""
    scores = np.zeros((6, 60))
    scores[:2] = 1.0

    def fresh():
        return create_selector("champion", n_arms=6, n_examples=60, batch_size=2)

    original, told, in_flight = fresh(), [], []
    while original.evidence.alive.sum() > 2:
        batch = original.ask(round_rng(9, len(told)))
        told.append((batch, scores[batch.arms, batch.examples]))
        original.tell(*told[-1])
    while len(batch := original.ask(round_rng(9, len(told) + len(in_flight)))):
        in_flight.append(batch)
        resumed = fresh()
        for round_ in told:
            resumed.tell(*round_)
        for each in in_flight:
            resumed.take_up(each)
        if not (set(batch.arms) <= {2, 3, 4, 5} and batch.examples[0] == batch.examples[-1]):
            continue
        number = len(told) + len(in_flight)
        in_flight.append(original.ask(round_rng(9, number)))
        assert resumed.ask(round_rng(9, number)) == in_flight[-1]
        break
    else:
        pytest.fail("no two arms were asked one shared example each")
    replayed = fresh()
    for round_ in told:
        replayed.tell(*round_)
    for batch in in_flight:
        for each in (original, replayed):
            each.tell(batch, scores[batch.arms, batch.examples])
    assert replayed.ask(round_rng(10, 0)) == original.ask(round_rng(10, 0))
    assert replayed.decision() == original.decision()


def told_in_full(means, n_examples=2000, **params):
    """A selector that was told the rows of the first arms, and the scores of all, shape (K, n)."""
    scores = rows(*(round(mean * n_examples) for mean in means), n=n_examples)
    selector = create_selector("champion", n_arms=len(means), n_examples=n_examples, delta=0.05, **params)
    return selector, scores


def tell_drawn(selector, scores, arm, size, seed=0):
    """Tell uniform draws of one arm."""
    examples = np.random.default_rng(seed).permutation(scores.shape[1])[:size]
    selector.tell(Batch(np.full(size, arm), examples), scores[arm, examples])


def test_an_arm_within_epsilon_of_one_that_is_within_epsilon_of_the_highest_is_not_called_tied():
    selector, scores = told_in_full((0.40, 0.50, 0.56), epsilon=0.1, batch_size=64)
    for arm in (0, 1):
        tell_drawn(selector, scores, arm, 2000, seed=arm)
    number = 0
    while len(batch := selector.ask(round_rng(0, number))) > 0:
        selector.tell(batch, scores[batch.arms, batch.examples])
        number += 1
    decision = selector.decision()
    assert decision.claim == Claim(kind="proven", delta=0.05)
    assert decision.status == ("eliminated", "best", "not-better")


def test_an_arm_that_is_out_by_epsilon_alone_is_never_called_eliminated():
    selector, scores = told_in_full((0.50, 0.56, 0.495), epsilon=0.1, budget=3200, batch_size=64)
    tell_drawn(selector, scores, 0, 2000)
    tell_drawn(selector, scores, 1, 1200, seed=1)
    assert selector.evidence.is_out[1]
    decision = selector.decision()
    assert (decision.reason, decision.claim) == ("budget", NOTHING_CLAIMED)
    assert decision.status == ("active", "active", "active")


def test_an_arm_without_a_score_wins_nothing():
    scores = np.array([[NAN] * 6, [0.0] * 6])
    selector, _ = ended(scores, max_unscored=1.0, batch_size=2)
    decision = selector.decision()
    assert (decision.best, decision.claim) == (1, NOTHING_CLAIMED)
