"""Scores of unscored pairs that come later: wealths as written out, replays, and what they must not do."""

import numpy as np
import pytest
from literal_champion import LiteralChampion, literal_past
from test_champion_literal import NEVER, world

from winnow.algorithms.errors import InvalidParameter, MalformedBatch, OutcomeOutOfRange
from winnow.algorithms.protocols import Batch, Revising, round_rng
from winnow.algorithms.registry import create_selector


class Campaign:
    """A selector whose failed pairs are asked again in some rounds."""

    def __init__(self, selector, true, told, seed, literal=None):
        self.selector, self.true, self.told, self.seed = selector, true, told, seed
        self.literal = literal
        self.history = []
        self.open = []

    def round(self):
        batch = self.selector.ask(round_rng(self.seed, len(self.history)))
        if not len(batch):
            return False
        outcomes = self.told[batch.arms, batch.examples]
        was_racing = self.selector.evidence.can_race
        self.selector.tell(batch, outcomes)
        self.history.append(("tell", batch, outcomes))
        self.open += [
            (int(a), int(e))
            for a, e, x in zip(batch.arms, batch.examples, outcomes, strict=True)
            if np.isnan(x)
        ]
        if self.literal is not None:
            if was_racing and self.selector.evidence.in_race:
                examples = batch.examples.reshape(-1, self.literal.K)[:, 0]
                self.literal.columns_told(examples, outcomes.reshape(-1, self.literal.K).T)
                self.literal.crown()
            else:
                self.literal.told(batch.arms, batch.examples, outcomes)
        return True

    def ask_again(self, pairs, still=()):
        pairs = list(pairs)
        if not pairs:
            return
        arms, examples = (np.array(each) for each in zip(*pairs, strict=True))
        batch = Batch(arms, examples)
        outcomes = self.true[arms, examples].copy()
        outcomes[list(still)] = np.nan
        self.selector.revise(batch, outcomes)
        self.history.append(("revise", batch, outcomes))
        known = ~np.isnan(outcomes)
        scored = {pair for pair, is_known in zip(pairs, known, strict=True) if is_known}
        self.open = [pair for pair in self.open if pair not in scored]
        if self.literal is not None and known.any():
            self.literal.revised(arms[known], examples[known], outcomes[known])


def tables(seed, n_arms, n_examples, share):
    true = world(seed, n_arms, n_examples, unscored=0.0)
    rng = np.random.default_rng([seed, 1])
    told = true.copy()
    # wrong outputs fail twice as often as right ones
    told[rng.random(true.shape) < np.where(true < 0.5, share, share / 2.0)] = np.nan
    return true, told


@pytest.mark.parametrize(
    ("seed", "n_arms", "n_examples", "params"),
    [
        (0, 3, 40, {"start": "auto", "batch_size": 3}),
        (1, 5, 70, {"start": "auto", "batch_size": 16, "epsilon": 0.05}),
        (2, 6, 35, {"start": "champion", "batch_size": 4}),
        (3, 15, 50, {"start": "race", "batch_size": 30}),
        (4, 4, 60, {"start": "auto", "batch_size": 24}),
        (5, 5, 60, {"start": "auto", "batch_size": 12, "history": world(9, 20, 60, unscored=0.3)}),
    ],
)
def test_wealths_are_those_of_the_formulas_with_the_bets_of_the_time(seed, n_arms, n_examples, params):
    true, told = tables(seed, n_arms, n_examples, share=0.2)
    selector = create_selector("champion", n_arms=n_arms, n_examples=n_examples, delta=NEVER, **params)
    past = literal_past(params["history"]) if "history" in params else None
    literal = LiteralChampion(
        n_arms, n_examples, selector.evidence.mode.weight, params.get("epsilon", 0.0), past
    )
    campaign, rng, n_compared = Campaign(selector, true, told, seed, literal), np.random.default_rng(seed), 0
    while campaign.round():
        if len(campaign.history) % 3 == 0:  # some of the failed ones, of which one fails again
            campaign.ask_again([each for each in campaign.open if rng.random() < 0.6], still=[0])
        arms = np.flatnonzero(selector.evidence.alive & (selector.evidence.draws.count < n_examples))
        wanted = [literal.wealth(int(arm)) for arm in arms]
        np.testing.assert_allclose(selector.wealths[arms], wanted, rtol=1e-8)
        n_compared += len(arms)
    assert n_compared > 20
    assert literal.champion == selector.evidence.champion
    assert any(kind == "revise" for kind, *_ in campaign.history)


WAYS = [
    {"name": "champion", "batch_size": 12},
    {"name": "champion", "batch_size": 3, "start": "champion", "epsilon": 0.02},
    {"name": "champion", "batch_size": 30, "epsilon": 0.15, "excess": True, "ties": "open"},
    {"name": "race", "batch_size": 20, "excess": True},
    {"name": "champion", "batch_size": 16, "top_m": 2},
    {"name": "champion", "batch_size": 12, "groups": np.arange(60) % 3, "start": "champion"},
    {
        "name": "champion",
        "batch_size": 12,
        "groups": np.arange(60) % 3,
        "group_weights": np.array([1.0, 2, 3]),
    },
]


def run(seed, params, *, share=0.15, again=2, n_arms=5):
    """A campaign to its end, with all failed pairs asked again in every third round and at the end."""
    true, told = tables(seed, n_arms, 60, share)
    params = dict(params)
    selector = create_selector(
        params.pop("name"), n_arms=n_arms, n_examples=60, delta=0.05, max_unscored=1.0, **params
    )
    campaign, rng = Campaign(selector, true, told, seed), np.random.default_rng(seed)
    while campaign.round():
        if len(campaign.history) % 3 == 0 and again:
            campaign.ask_again([each for each in campaign.open if rng.random() < 0.6], still=[0])
    for _ in range(again):
        campaign.ask_again(campaign.open)
        while campaign.round():
            pass
    return campaign


def same(first, second):
    for name in ("estimates", "lower", "upper"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
    assert (first.best, first.status, first.claim, first.reason) == (
        second.best,
        second.status,
        second.claim,
        second.reason,
    )


@pytest.mark.parametrize("params", WAYS, ids=lambda each: "-".join(map(str, each)))
@pytest.mark.parametrize("seed", range(3))
def test_a_replay_comes_to_the_same_state(seed, params):
    campaign = run(seed, params)
    params = dict(params)
    fresh = create_selector(
        params.pop("name"), n_arms=5, n_examples=60, delta=0.05, max_unscored=1.0, **params
    )
    assert isinstance(fresh, Revising)
    for kind, batch, outcomes in campaign.history:
        getattr(fresh, kind)(batch, outcomes)
        fresh.decision()
    same(fresh.decision(), campaign.selector.decision())
    np.testing.assert_array_equal(fresh.wealths, campaign.selector.wealths)
    np.testing.assert_array_equal(fresh.out_in_round, campaign.selector.out_in_round)


@pytest.mark.parametrize("params", WAYS, ids=lambda each: "-".join(map(str, each)))
@pytest.mark.parametrize("seed", range(4))
def test_no_wealth_falls_and_who_is_out_stays_out(seed, params):
    true, told = tables(seed, 5, 60, share=0.2)
    params = dict(params)
    selector = create_selector(params.pop("name"), n_arms=5, n_examples=60, delta=0.05, **params)
    campaign = Campaign(selector, true, told, seed)
    while campaign.round():
        evidence = selector.evidence
        champion, out_before = evidence.champion, evidence.is_out.copy()
        before, alive, total = selector.wealths, evidence.alive & (selector.wealths > 0.0), evidence.total
        ends = selector.decision()
        had_champion = evidence.champion is not None
        campaign.ask_again(campaign.open[:3])
        if evidence.champion == champion:
            assert evidence.is_out[out_before].all()
        is_tested = evidence.alive & alive
        if had_champion:
            assert evidence.total >= total - 1e-9
        if had_champion == (evidence.champion is not None):
            is_full = selector._matrix.told == 60  # whose wealth is not kept up
            assert (selector.wealths[is_tested & ~is_full] >= before[is_tested & ~is_full] * (1 - 1e-9)).all()
        now = selector.decision()
        out = [arm for arm, kind in enumerate(ends.status) if kind == "eliminated"]
        assert all(now.status[arm] != "best" for arm in out) or evidence.top_m > 1
        assert (now.lower >= ends.lower - 1e-9).all()
        assert (now.upper <= ends.upper + 1e-9).all()


@pytest.mark.parametrize("params", WAYS[:4], ids=lambda each: "-".join(map(str, each)))
def test_what_failed_keeps_a_campaign_open_and_scores_that_come_later_decide_it(params):
    found = [(run(seed, params, again=0, share=0.6), run(seed, params, share=0.6)) for seed in range(6)]
    open_, asked_again = zip(*found, strict=True)
    n_decided = [
        sum(each.selector.decision().claim.kind in ("proven", "exact") for each in campaigns)
        for campaigns in (open_, asked_again)
    ]
    assert n_decided[0] < n_decided[1] == 6
    for each in asked_again:
        scores = np.round(each.true.mean(axis=1), 12)
        assert scores[each.selector.decision().best] >= scores.max() - params.get("epsilon", 0.0) - 1e-9


def test_rounds_in_flight_are_told_after_it_as_they_were_asked():
    true, told = tables(3, 6, 80, share=0.3)
    selector = create_selector("champion", n_arms=6, n_examples=80, delta=0.05, batch_size=12)
    fresh = create_selector("champion", n_arms=6, n_examples=80, delta=0.05, batch_size=12)
    batches = [selector.ask(round_rng(3, number)) for number in range(3)]
    for number in range(3, 12):
        first = batches.pop(0)
        outcomes = told[first.arms, first.examples]
        for each in (selector, fresh):
            each.tell(first, outcomes)
        failed = np.isnan(outcomes)
        again = Batch(first.arms[failed], first.examples[failed])
        for each in (selector, fresh):
            each.revise(again, true[again.arms, again.examples])
        batches.append(selector.ask(round_rng(3, number)))
    np.testing.assert_array_equal(selector.wealths, fresh.wealths)
    same(selector.decision(), fresh.decision())


def told_once(**params):
    selector = create_selector("champion", n_arms=3, n_examples=10, batch_size=6, delta=0.1, **params)
    batch = selector.ask(round_rng(0, 0))
    outcomes = np.full(len(batch), 0.5)
    outcomes[1] = np.nan
    selector.tell(batch, outcomes)
    return selector, batch


def test_only_unscored_pairs_are_taken_each_once_and_within_their_range():
    selector, batch = told_once()
    before = selector.decision()
    one = Batch(batch.arms[1:2], batch.examples[1:2])
    with pytest.raises(MalformedBatch, match="otherwise"):
        selector.revise(Batch(batch.arms[:1], batch.examples[:1]), [0.5])
    with pytest.raises(MalformedBatch, match="twice"):
        selector.revise(Batch(np.repeat(one.arms, 2), np.repeat(one.examples, 2)), [0.5, 0.5])
    with pytest.raises(OutcomeOutOfRange):
        selector.revise(one, [1.5])
    with pytest.raises(MalformedBatch, match="shape"):
        selector.revise(one, [0.5, 0.5])
    same(selector.decision(), before)
    selector.revise(one, [np.nan])
    same(selector.decision(), before)
    selector.revise(one, [1.0])
    with pytest.raises(MalformedBatch, match="otherwise"):
        selector.revise(one, [0.0])


def test_settings_for_which_there_is_no_proof_are_refused():
    costs = np.array([1.0, 2.0, 3.0])
    selector, batch = told_once(prefer="cost", costs=costs, epsilon=0.1)
    with pytest.raises(InvalidParameter, match="prefer"):
        selector.revise(Batch(batch.arms[1:2], batch.examples[1:2]), [0.5])


def test_an_arm_with_too_many_unscored_pairs_stays_dropped():
    true, told = tables(0, 4, 40, share=0.0)
    told[2] = np.nan
    selector = create_selector(
        "champion", n_arms=4, n_examples=40, delta=0.05, batch_size=12, max_unscored=0.5
    )
    campaign = Campaign(selector, true, told, 0)
    while campaign.round() and selector.decision().status[2] != "dropped":
        pass
    campaign.ask_again(campaign.open)
    assert selector.decision().status[2] == "dropped"
    while campaign.round():
        pass
    assert selector.decision().status[2] == "dropped"
    assert selector.decision().claim.raised_by == ("dropped",) or selector.decision().claim.kind == "exact"
