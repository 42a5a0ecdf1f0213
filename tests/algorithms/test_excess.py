"""How much better another arm can be: the bets, the statement written out slowly, and seeded campaigns."""

from itertools import permutations, product

import numpy as np
import pytest
from failure_rates import fails_too_often
from selector_worlds import BestMeanWorld

from tests.benchmarks.excess import campaign
from winnow.algorithms.champion import excess as module
from winnow.algorithms.champion.elimination import Evidence
from winnow.algorithms.champion.excess import SHARE, SHARE_OF_TWO, STEPS, PairBets
from winnow.algorithms.champion.race import Columns
from winnow.algorithms.protocols import Batch, round_rng
from winnow.algorithms.registry import create_selector

N = 5
SCORES = np.array([[1.0, 0.2, 0.8, 0.6, 0.4], [0.0, 1.0, 0.0, 0.9, 0.1], [0.5, 0.0, 0.5, 0.0, 1.0]])
AHEAD = 0.2  # the first arm's mean less that of each other
DELTA, RUNS = 0.2, 60


def told(scores, sizes, weights=None):
    """Columns of a race in batches of some sizes."""
    weights = np.ones(scores.shape[1]) if weights is None else weights
    ends = np.cumsum(sizes).tolist()
    arms = np.arange(len(scores))
    return [
        Columns(arms, scores[:, end - size : end], weights[end - size : end])
        for end, size in zip(ends, sizes, strict=True)
    ]


@pytest.mark.parametrize("epsilon", [0.0, 0.1])
def test_an_arm_that_is_better_by_the_margin_has_a_mean_wealth_of_1(epsilon):
    found = []
    for order in permutations(range(N)):
        bets = PairBets.of(told(SCORES[:, order], [1, 1, 2, 1]), 1, N, epsilon)
        found.append(bets.wealths(np.array([0]), AHEAD)[0])
        at = [bets.wealths(np.array([0]), margin)[0] for margin in np.linspace(0.0, 1.0, 12)]
        assert np.all(np.diff(at) >= 0.0)
    assert np.std(found) > 0.01
    assert np.mean(found) == pytest.approx(1.0, rel=1e-12)


def highest(bets, *, depend_on_margin):
    """The highest wealth over margins that are just below the true one, so that all are false to state."""
    found = []
    for place, pattern in enumerate(product((0.0, 3.0), repeat=N)):
        played = bets._replace(adaptive=np.tile(pattern, (len(bets.arms), 1))) if depend_on_margin else bets
        found.append(played.wealths(np.array([0]), AHEAD - 1e-12 * place)[0])
    return max(found)


def test_a_margin_can_be_chosen_afterwards_unless_bets_depend_on_it():
    """Bets that are others at each margin are fair at each, and not at the one that fits them best."""
    orders = [
        PairBets.of(told(SCORES[:, order], [1, 1, 2, 1]), 1, N, 0.0) for order in permutations(range(N))
    ]
    sound = np.mean([highest(bets, depend_on_margin=False) for bets in orders])
    assert sound == pytest.approx(1.0, rel=1e-9)
    assert np.mean([highest(bets, depend_on_margin=True) for bets in orders]) > 1.2


def literal_pair(scores, others, weights, n, margin, starts, epsilon):
    """V of an arm with regard to another one, example by example; batches begin at `starts`."""
    fixed, adaptive, bet = [1.0] * 4, 1.0, 0.0
    leads = np.nan_to_num(others, nan=0.0) - np.nan_to_num(scores, nan=1.0)
    for t, lead in enumerate(leads):
        left = n - weights[:t].sum()
        if t in starts:
            moment = (((leads[:t] + epsilon) ** 2).sum() + 0.1) / (t + 1)
            mean = (leads[:t] + epsilon).mean() if t else 0.0
            bet = 0.3
            if epsilon:
                bet = max(mean, epsilon) / moment
            elif t:
                bet = max(mean, 1.4 * np.sqrt(moment / (t * n / left))) / moment
        level = -(n * margin + (weights[:t] * leads[:t]).sum()) / left
        most = 0.8 / max(1.0 + level, 1e-9)
        for k, each in enumerate((1.2, 0.5, 0.2, 0.07)):
            fixed[k] *= 1.0 + min(each * n / left, most) * (lead - level)
        adaptive *= 1.0 + min(bet if epsilon else bet * n / left, most) * (lead - level)
    return 0.5 * np.mean(fixed) + 0.5 * adaptive


@pytest.mark.parametrize("epsilon", [0.0, 0.1])
def test_the_bets_are_those_of_the_formulas_written_out(epsilon):
    rng = np.random.default_rng(3)
    scores = np.round(rng.random((4, 30)), 2)
    scores[rng.random(scores.shape) < 0.1] = np.nan
    weights = rng.choice([0.5, 1.5], size=30)
    weights *= 30 / weights.sum()
    batches = told(scores[:, :24], [2, 5, 12, 5], weights)
    batches[3] = Columns(np.array([0, 1, 3]), scores[[0, 1, 3], 19:24], weights[19:24])  # arm 2 is out
    found = PairBets.of(batches, 1, 30, epsilon)
    for arm, end in ((0, 24), (2, 19), (3, 24)):
        for margin in (0.0, 0.07, 0.5):
            args = (weights[:end], 30, margin, [0, 2, 7, 19], epsilon)
            wanted = literal_pair(scores[arm, :end], scores[1, :end], *args)
            assert found.wealths(np.array([arm]), margin)[0] == pytest.approx(wanted, rel=1e-9)


class LiteralExcess:
    """The statement worked out for each arm by itself, from 999 steps downwards, after every round."""

    def __init__(self, n_arms):
        self.ends, self.found = [1.0] * n_arms, None

    def look(self, evidence):
        n, arms = evidence.n_examples, range(evidence.n_arms)
        low, high = evidence.least_sums, evidence.most_sums
        raced = evidence.race.told
        s = evidence.mode.within or ((SHARE_OF_TWO if evidence.n_arms == 2 else SHARE) if raced else 0.0)
        scored = [i for i in arms if evidence.alive[i] and evidence.has_score[i]]
        a = evidence.champion
        if a is None and (not s or not scored):
            return
        if a is None:
            a = max(scored, key=lambda i: (evidence.race.low[i], -i))
        pairs = PairBets.of(raced, a, n, evidence.epsilon if evidence.mode.within else 0.0) if raced else None

        def passes(i, steps):
            x = steps / STEPS
            if high[i] <= low[a] + x * n + 1e-9 * n:
                return True
            one = np.array([i])
            if evidence.champion is None:
                wealth = evidence.raced_wealths(one)[0]
            else:
                wealth = evidence.wealths_at(one, low[a] + x * n)[0]
            wealth *= (1.0 - s) / (1.0 - evidence.mode.within)
            if pairs is not None:
                wealth += s * pairs.wealths(one, x)[0] / (len(pairs.arms) - 1)
            return wealth >= evidence.levels[i]

        most = 0
        for i in arms:
            if i == a or not evidence.active[i]:
                continue
            steps = STEPS
            while steps > 0 and passes(i, steps - 1):
                steps -= 1
            end = low[a] / n + steps / STEPS
            if evidence.champion is not None:
                self.ends[i] = end = min(self.ends[i], end)
            most = max(most, int(np.ceil((end - low[a] / n) * STEPS - 1e-6)))
        if most < (STEPS if self.found is None else self.found[1]):
            self.found = (a, most)


@pytest.mark.parametrize(
    ("n_arms", "n_examples", "params"),
    [
        (2, 60, {}),
        (4, 60, {"start": "champion"}),
        (4, 60, {"start": "race", "epsilon": 0.2}),
        (5, 60, {}),
        (5, 200, {"epsilon": 0.15}),
        (8, 40, {}),
    ],
)
def test_it_is_the_statement_written_out_for_each_arm(n_arms, n_examples, params, monkeypatch):
    monkeypatch.setattr(module, "GROWTH", 1.0)
    monkeypatch.setattr(module, "STEPS", 50)
    monkeypatch.setitem(globals(), "STEPS", 50)
    rng = np.random.default_rng(n_arms)
    scores = (rng.random((n_arms, n_examples)) < rng.uniform(0.5, 0.65, (n_arms, 1))).astype(float)
    scores[rng.random(scores.shape) < 0.03] = np.nan
    selector = create_selector(
        "champion", n_arms=n_arms, n_examples=n_examples, delta=0.1, batch_size=8, excess=True, **params
    )
    literal, n_stated, round_ = LiteralExcess(n_arms), 0, 0
    while len(batch := selector.ask(round_rng(1, round_))):
        selector.tell(batch, scores[batch.arms, batch.examples])
        round_ += 1
        literal.look(selector.evidence)
        if literal.found is None:
            assert selector.excess is None
            continue
        n_stated += 1
        assert selector.excess.most == pytest.approx(literal.found[1] / 50)
        assert selector.excess.delta == 0.1
    assert n_stated > 2


def played(world, selector, seed=7):
    """The statement of every round."""
    return [selector.excess for _ in world.rounds(selector, seed=seed)]


@pytest.mark.parametrize("params", [{}, {"start": "champion"}, {"epsilon": 0.1}, {"top_m": 2}])
def test_it_never_rises_and_ends_with_what_the_answer_claims(params):
    for seed in range(3):
        world = BestMeanWorld(n_arms=5, n_examples=80, seed=seed, unscored=0.02)
        world.scores = np.round(world.scores)
        selector = world.selector(
            "champion", delta=0.1, batch_size=16, excess=True, max_unscored=1.0, **params
        )
        found = [each.most for each in played(world, selector) if each is not None]
        assert found == sorted(found, reverse=True)
        decision = selector.decision()
        if decision.claim.kind in ("exact", "proven") and "top_m" not in params:
            assert decision.excess.most <= params.get("epsilon", 0.0)
            assert decision.excess.most < params.get("epsilon", 0.0) or decision.excess.over == decision.best


def test_the_same_history_shows_the_same_statement_and_none_without_being_asked():
    world = BestMeanWorld(n_arms=4, n_examples=60, seed=3)
    first, second, third = (
        world.selector("champion", delta=0.1, excess=each) for each in (True, True, False)
    )
    for batch, outcomes in world.rounds(first):
        second.tell(batch, outcomes)
        third.tell(batch, outcomes)
        assert first.excess == second.excess
    assert first.excess is not None
    assert third.decision().excess is None


def test_it_begins_anew_where_arms_join_and_counts_what_these_can_reach():
    world = BestMeanWorld(n_arms=3, n_examples=60, seed=5)
    selector = world.selector("champion", delta=0.1, batch_size=20, excess=True)
    rounds = world.rounds(selector)
    for _ in range(6):
        next(rounds)
    before = selector.excess
    selector.add_arms(1)
    assert before is not None
    assert selector.excess is None
    world.scores = np.concatenate([world.scores, world.scores[:1]])
    after = played(world, selector)
    assert after[-1].delta == pytest.approx(0.2)


def test_it_is_rounded_up():
    """Two arms of which nothing is drawn but what certainly bounds them."""
    scores = np.array([[1.0] * 7, [0.0] * 7])
    selector = create_selector(
        "champion", n_arms=2, n_examples=7, delta=1e-200, start="champion", excess=True
    )
    selector.tell(Batch(np.zeros(7, dtype=int), np.arange(7)), scores[0])
    selector.tell(Batch(np.ones(1, dtype=int), np.arange(1)), scores[1, :1])
    assert selector.excess.most == 0.0  # 6/7 at most, and the first has 1
    selector = create_selector(
        "champion", n_arms=2, n_examples=7, delta=1e-200, start="champion", excess=True
    )
    selector.tell(Batch(np.zeros(7, dtype=int), np.arange(7)), [1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0])
    selector.tell(Batch(np.ones(3, dtype=int), np.arange(3)), scores[1, :3])
    assert selector.excess.most == 0.143  # 4/7 at most, 1/7 above 3/7


def test_a_full_row_with_unscored_examples_is_not_taken_as_known():
    first, second = np.repeat([1.0, 0.0], [17, 3]), np.repeat([1.0, np.nan], [14, 6])
    selector = create_selector(
        "champion", n_arms=2, n_examples=20, delta=0.05, start="champion", excess=True, max_unscored=1.0
    )
    selector.tell(Batch(np.zeros(20, dtype=int), np.arange(20)), first)
    selector.tell(Batch(np.ones(20, dtype=int), np.arange(20)), second)
    assert selector.excess.over == 0
    assert selector.excess.most == 0.15  # 0.85 and at most 1


def test_a_former_champion_keeps_what_its_unscored_examples_can_reach():
    """0.6 bounds all others of the first champion, which itself has 0.5 and at most 0.8."""
    selector = create_selector(
        "champion", n_arms=3, n_examples=20, delta=1e-200, start="champion", excess=True, max_unscored=1.0
    )
    selector.tell(Batch(np.zeros(20, dtype=int), np.arange(20)), np.repeat([1.0, 0.0, np.nan], [10, 4, 6]))
    selector.tell(Batch(np.full(20, 2), np.arange(20)), np.zeros(20))
    selector.tell(Batch(np.ones(8, dtype=int), np.arange(8)), np.zeros(8))
    assert (selector.excess.over, selector.excess.most) == (0, 0.1)
    selector.tell(Batch(np.ones(12, dtype=int), np.arange(8, 20)), np.ones(12))
    assert selector.evidence.champion == 1
    assert (selector.excess.over, selector.excess.most) == (0, 0.1)  # of 1 only 0.2 is shown


def wrong_statements(worlds, runs=RUNS, **params):
    """Whether any statement of a campaign is false; worlds in turn."""
    for seed in range(runs):
        table, n_arms, more = worlds[seed % len(worlds)]
        rng = np.random.default_rng([57, seed])
        settings = {"ahead": 12, "batch_size": 20, **more, **params}
        yield campaign(table, n_arms, 60, rng=rng, **settings)[0]


WORLDS = (
    ("near ties", 2, {}),
    ("opposed", 5, {}),
    ("alike", 5, {"start": "champion"}),
    ("near ties", 3, {"epsilon": 0.1, "ahead": 4}),
    ("near ties", 5, {"hidden": 0.3}),
    ("alike", 4, {"selector": "race", "epsilon": 0.1, "ahead": 4}),
)


def test_statements_are_false_in_at_most_a_share_delta_of_campaigns():
    assert not fails_too_often(wrong_statements(WORLDS), RUNS, DELTA)


def test_with_arms_that_join_or_are_dropped_as_seldom_as_they_state():
    joins = (("near ties", 4, {"joins": 2}), ("alike", 4, {"joins": 1, "start": "champion"}))
    assert not fails_too_often(wrong_statements(joins), RUNS, 2.0 * DELTA)
    assert not fails_too_often(wrong_statements(joins, additions="expected"), RUNS, DELTA)
    drops = [("near ties", 5, {"hidden": 0.4, "max_unscored": 0.3})]
    assert not fails_too_often(wrong_statements(drops, dropping="reserved"), RUNS, DELTA)


def test_the_check_catches_unscored_examples_that_count_as_known(monkeypatch):
    known = property(lambda self: self.least_sums + self._least_sums(self.draws.left))
    monkeypatch.setattr(Evidence, "most_sums", known)
    worlds = [("near ties", 2, {"hidden": 0.9, "start": "champion"})]
    assert fails_too_often(wrong_statements(worlds), RUNS, DELTA)


def test_the_check_catches_bets_on_pairs_beside_the_whole_stake_of_the_tests(monkeypatch):
    """At delta 1/2 twice the stake is enough almost at once, for one of two arms that little tells apart."""
    worlds = [("rare", 2, {"delta": 0.5, "batch_size": 4, "is_best_last": True, "ahead": 2})]
    assert not fails_too_often(wrong_statements(worlds, 2 * RUNS), 2 * RUNS, 0.5)
    init = module._Look.__init__

    def whole(self, evidence):
        init(self, evidence)
        self._share = self._kept = 1.0

    monkeypatch.setattr(module._Look, "__init__", whole)
    assert fails_too_often(wrong_statements(worlds, 2 * RUNS), 2 * RUNS, 0.5)


def test_the_check_catches_arms_out_by_epsilon_that_count_as_out_for_good(monkeypatch):
    worlds = [("near ties", 6, {"selector": "race", "epsilon": 0.4, "ahead": 2})]
    assert not fails_too_often(wrong_statements(worlds), RUNS, DELTA)
    is_out = property(lambda self: self.is_out, lambda self, value: None)
    monkeypatch.setattr(Evidence, "is_beaten", is_out, raising=False)
    assert fails_too_often(wrong_statements(worlds), RUNS, DELTA)
