"""Examples on which all arms in question have the same unknown score: a twin that is told all, and worlds."""

from itertools import product

import numpy as np
import pytest
from failure_rates import fails_too_often

from winnow.algorithms.champion.spared import Spared
from winnow.algorithms.champion.verdict import Verdict
from winnow.algorithms.errors import InvalidParameter, MalformedBatch
from winnow.algorithms.protocols import SPARED, Batch, round_rng
from winnow.algorithms.registry import create_selector

DELTA, RUNS = 0.2, 150


def world(rng, n_arms, n, *, hidden=0.0):
    """Outputs, shape (K, N), of which 1 is right, others are wrong, and negative ones have no score."""
    common = rng.integers(1, 4, n)
    outputs = np.where(rng.random((n_arms, n)) < 0.75, common, rng.integers(1, 5, (n_arms, n)))
    scores, is_hidden = (outputs == 1).astype(float), rng.random(outputs.shape) < hidden
    scores[is_hidden], outputs[is_hidden] = np.nan, -np.arange(1, is_hidden.sum() + 1)
    return outputs, scores


def told(selector, batch, outputs, scores):
    """What is told of a batch that spares what can be spared."""
    found = scores[batch.arms, batch.examples].copy()
    if selector.compares_all(batch):
        for example in np.unique(batch.examples):
            mine = batch.examples == example
            written = outputs[batch.arms[mine], example]
            if (written == written[0]).all():
                found[mine] = SPARED
    return found


def race(n_arms, n, **params):
    common = {"delta": DELTA, "batch_size": 12, "max_unscored": 1.0, "ties": "open", "excess": True}
    return create_selector("race", n_arms=n_arms, n_examples=n, spares=True, **(common | params))


@pytest.mark.parametrize(("n_arms", "params"), product((2, 5), ({}, {"epsilon": 0.1}, {"ties": "resolve"})))
def test_wealths_and_eliminations_are_those_of_a_race_that_is_told_every_score(n_arms, params):
    n_spared = n_same = 0
    for seed in range(6):
        rng = np.random.default_rng([seed, n_arms])
        outputs, scores = world(rng, n_arms, 90, hidden=0.02 * (seed % 2))
        mine, twin = race(n_arms, 90, **params), race(n_arms, 90, **params)
        round_ = 0
        while len(batch := mine.ask(round_rng(seed, round_))):
            found = told(mine, batch, outputs, scores)
            n_spared += int((found == SPARED).sum())
            mine.tell(batch, found)
            if not len(twin.ask(round_rng(seed, round_))):
                break  # certain, by scores that were spared here
            twin.tell(batch, scores[batch.arms, batch.examples])
            round_ += 1
            np.testing.assert_allclose(mine.wealths, twin.wealths, rtol=1e-9)
            assert mine.out_at.tolist() == twin.out_at.tolist()
            if mine.excess is not None:
                assert twin.excess is not None
                assert mine.excess.most >= twin.excess.most
        if twin.decision().claim.kind == "proven":
            assert mine.decision().best == twin.decision().best
            n_same += 1
    assert n_spared > 200
    assert n_same > 1


def test_estimates_are_means_of_the_judged_examples_and_intervals_those_of_pairs():
    outputs, scores = world(np.random.default_rng(3), 3, 80)
    selector, known, round_ = race(3, 80, delta=0.01), [[], [], []], 0
    while len(batch := selector.ask(round_rng(1, round_))):
        found = told(selector, batch, outputs, scores)
        selector.tell(batch, found)
        round_ += 1
        for arm, each in zip(batch.arms, found, strict=True):
            known[arm] += [] if each == SPARED else [each]
    decision = selector.decision()
    assert decision.estimates.tolist() == pytest.approx([np.mean(each) for each in known])
    assert np.isnan([*decision.lower, *decision.upper]).all()
    means, other = scores.mean(axis=1), decision.differences.against
    for arm in {0, 1, 2} - {other}:
        gap, found = means[arm] - means[other], decision.differences
        assert found.lower[arm] - 1e-9 <= gap <= found.upper[arm] + 1e-9


def test_an_example_is_spared_for_all_arms_in_question_or_for_none():
    selector = race(3, 20)
    batch = Batch(np.tile([0, 1, 2], 2), np.repeat([4, 7], 3))
    assert selector.compares_all(batch)
    with pytest.raises(MalformedBatch, match="for all arms in question"):
        selector.tell(batch, [SPARED, SPARED, 1.0, 0.0, 1.0, 1.0])
    some = Batch(np.tile([0, 1], 2), np.repeat([4, 7], 2))
    assert not selector.compares_all(some)
    with pytest.raises(MalformedBatch, match="for all arms in question"):
        selector.tell(some, np.full(4, SPARED))
    selector.tell(batch, [SPARED] * 3 + [0.0, 1.0, 1.0])
    assert selector.decision().estimates.tolist() == [0.0, 1.0, 1.0]


def test_what_needs_the_scores_of_single_arms_is_refused():
    for params in ({"delta": None}, {"max_unscored": 0.5}, {"groups": np.zeros(20, dtype=int)}):
        with pytest.raises(InvalidParameter):
            race(3, 20, **({"group_weights": np.ones(1)} if "groups" in params else {}), **params)
    with pytest.raises(InvalidParameter, match="spares"):
        race(3, 20).add_arms(1)
    with pytest.raises(InvalidParameter, match="spares"):
        race(3, 20).leave_out(np.array([1]))


def is_wrong(seed, told=told, **params):
    """Whether a campaign names an arm that is not the best, or ever says something false of the best."""
    rng = np.random.default_rng([58, seed])
    n_arms, n = int(rng.integers(2, 6)), int(rng.integers(20, 60))
    order = rng.permutation(n)
    outputs = np.where(order < n // 2, 1, rng.integers(2, 4, n)) * np.ones((n_arms, 1), dtype=int)
    for arm in range(n_arms):  # one is ahead by two examples
        lost, won = (
            rng.permutation(n // 2)[: n // 6],
            n // 2 + rng.permutation(n - n // 2)[: n // 6 + 2 * (arm == 0)],
        )
        outputs[arm, np.isin(order, lost)], outputs[arm, np.isin(order, won)] = 3, 1
    outputs = outputs[rng.permutation(n_arms)]
    scores = (outputs == 1).astype(float)
    means, selector, round_, wrong = scores.mean(axis=1), race(n_arms, n, **params), 0, False
    while len(batch := selector.ask(round_rng(seed, round_))):
        selector.tell(batch, told(selector, batch, outputs, scores))
        round_ += 1
        if (found := selector.excess) is not None:
            wrong = wrong or means.max() > means[found.over] + found.most + 1e-9
    decision = selector.decision()
    if decision.claim.kind in ("exact", "proven"):
        wrong = wrong or means[decision.best] < means.max() - params.get("epsilon", 0.0) - 1e-9
        equal = [arm for arm, each in enumerate(decision.status) if each in ("best", "tied")]
        wrong = wrong or (decision.claim.kind == "exact" and bool(np.ptp(means[equal]) > 1e-9))
    return wrong


@pytest.mark.parametrize("params", [{}, {"epsilon": 0.05}, {"ties": "resolve"}])
def test_answers_and_statements_are_false_in_at_most_a_share_delta_of_campaigns(params):
    assert not fails_too_often((is_wrong(seed, **params) for seed in range(RUNS)), RUNS, DELTA)


def test_the_check_catches_outputs_of_some_arms_that_count_as_those_of_all():
    """The first arm is better where the others wrote the same, and worse where they did not."""
    outputs = np.repeat([[1, 3], [2, 1], [2, 2]], [36, 24], axis=1)
    scores = (outputs == 1).astype(float)

    def is_wrong(seed, places):
        selector, round_ = race(3, 60), 0
        while len(batch := selector.ask(round_rng(seed, round_))):
            found = scores[batch.arms, batch.examples].copy()
            for example in np.unique(batch.examples) if selector.compares_all(batch) else ():
                mine = np.flatnonzero(batch.examples == example)
                if len({outputs[arm, example] for arm in batch.arms[mine] if arm in places}) == 1:
                    found[mine] = SPARED
            selector.tell(batch, found)
            round_ += 1
        decision = selector.decision()
        return decision.claim.kind in ("exact", "proven") and decision.best != 0

    assert not fails_too_often((is_wrong(seed, (0, 1, 2)) for seed in range(30)), 30, DELTA)
    assert fails_too_often((is_wrong(seed, (1, 2)) for seed in range(30)), 30, DELTA)


def test_the_check_catches_lows_of_0_for_arms_that_were_out(monkeypatch):
    """An arm that is out by 1s that nobody shared is not certainly above arms that shared 1s since."""
    selector = race(3, 10, delta=1e-9)
    selector.evidence.is_out[2] = selector.evidence.is_beaten[2] = True
    selector.tell(Batch(np.tile([0, 1], 4), np.repeat([0, 1, 2, 3], 2)), np.full(8, SPARED))
    least = selector._verdict._possible_means[0]
    assert least.tolist() == [0.0, 0.0, -0.4]
    monkeypatch.setattr(Verdict, "_possible_means", property(lambda self: self._matrix.possible_means))
    assert selector._verdict._possible_means[0].tolist() != least.tolist()


def test_spared_examples_and_scores_are_counted_by_arm():
    spared = Spared(2)
    batch = Batch(np.array([0, 1, 0, 1]), np.array([3, 3, 5, 5]))
    assert spared.tell(batch, [SPARED, SPARED, 1.0, 0.5], are_common=True).tolist() == [0.0, 0.0, 1.0, 0.5]
    assert (spared.n_examples, spared.of_arm.tolist(), spared.means.tolist()) == (1, [1, 1], [1.0, 0.5])
