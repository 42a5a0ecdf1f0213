import math
from itertools import islice

import numpy as np
import pytest
from scipy.stats import chisquare
from selector_worlds import BestMeanWorld

from winnow.algorithms.bounds.confidence_sequences import FinitePopulationIntervals
from winnow.algorithms.errors import InvalidParameter
from winnow.algorithms.papers.best_mean.completion import FIT_SEED, Ensemble, EnsembleAls
from winnow.algorithms.protocols import Batch, round_rng
from winnow.algorithms.registry import create_selector

FALSE_ALARM = 1e-6


class LiteralUcbELrf:
    """Algorithm 2 from the list of all that was told, pair by pair; only the factors are not its own."""

    def __init__(self, world, eta):
        self.n_arms, self.n_examples, self.eta = world.n_arms, world.n_examples, eta
        self.told = {}

    def predictions(self):
        """Every member's matrix."""
        scores = np.array([[self.told.get((i, j), 0.0) for j in self.examples] for i in self.arms])
        observed = np.array([[(i, j) in self.told for j in self.examples] for i in self.arms])
        rng = np.random.default_rng([FIT_SEED, len(self.told)])
        ensemble = EnsembleAls().fit(scores, observed, rng)
        return [u.T @ v for u, v in zip(ensemble.rows, ensemble.columns, strict=True)]

    arms = property(lambda self: range(self.n_arms))
    examples = property(lambda self: range(self.n_examples))

    def choose(self, size):
        members = self.predictions()
        bounds, deviations = {}, {}
        for i in self.arms:
            total = 0.0
            for j in self.examples:
                if (i, j) in self.told:
                    total += self.told[i, j]
                    continue
                values = [member[i, j] for member in members]
                mean = sum(values) / len(values)
                deviations[i, j] = math.sqrt(sum((value - mean) ** 2 for value in values) / len(values))
                total += mean + self.eta * deviations[i, j]
            bounds[i] = total / self.n_examples
        unfinished = [i for i in self.arms if any((i, j) not in self.told for j in self.examples)]
        arm = max(unfinished, key=bounds.__getitem__)
        left = [j for j in self.examples if (arm, j) not in self.told]
        return arm, sorted(left, key=lambda j: -deviations[arm, j])[:size]

    def completed_means(self):
        mean = sum(self.predictions()) / 64
        completed = [[self.told.get((i, j), mean[i, j]) for j in self.examples] for i in self.arms]
        return np.mean(completed, axis=1)


@pytest.mark.parametrize("eta", [0.0, 5.0])
def test_choices_and_ranking_equal_those_of_the_paper_followed_literally(eta):
    world = BestMeanWorld(n_arms=5, n_examples=9)
    literal = LiteralUcbELrf(world, eta)
    selector = world.selector("ucb-e-lrf", eta=eta, warm_up=0.5, batch_size=3, variant="paper")
    compared, told, played = 0, 0, 0
    while len(batch := selector.ask(round_rng(7, played))):
        if told >= 23 and {j for _, j in literal.told} == set(range(9)):  # else some deviations tie at 0
            arm, examples = literal.choose(3)
            assert batch == Batch([arm] * len(examples), examples)
            np.testing.assert_allclose(selector.decision().ranking, literal.completed_means(), rtol=1e-9)
            compared += 1
        selector.tell(batch, world.outcomes(batch))
        told, played = told + len(batch), played + 1
        pairs = zip(batch.arms.tolist(), batch.examples.tolist(), strict=True)
        literal.told.update(zip(pairs, world.outcomes(batch).tolist(), strict=True))
    assert compared >= 5


@pytest.fixture
def by_hand(monkeypatch):
    """Two members that predict (1, .5, 0) and (.6, .5, .2) in row 0, half of it in row 1, 0 in row 2."""
    rows = np.array([[[1.0, 0.5, 0.0]], [[1.0, 0.5, 0.0]]])
    columns = np.array([[[1.0, 0.5, 0.0]], [[0.6, 0.5, 0.2]]])
    monkeypatch.setattr(EnsembleAls, "fit", lambda *_: Ensemble(rows, columns))

    def make(name="ucb-e-lrf", **params):
        return create_selector(
            name, n_arms=3, n_examples=3, **{"warm_up": 0.0, "batch_size": 2, "variant": "paper", **params}
        )

    return make


def test_ranking_bounds_and_examples_by_hand(by_hand):
    # Means (.8, .5, .1) and deviations (.2, 0, .1) in row 0, halves in row 1. Told: .3 in row 0, .9 in
    # row 1, .8 in row 2, each on example 1. Estimates (.8 + .3 + .1) / 3, (.4 + .9 + .05) / 3, .8 / 3.
    told = Batch([0, 1, 2], [1, 1, 1]), [0.3, 0.9, 0.8]
    for eta, arm in ((0.0, 1), (0.9, 1), (1.1, 0)):  # .4 + .1 eta against .45 + .05 eta
        selector = by_hand(eta=eta)
        selector.tell(*told)
        np.testing.assert_allclose(selector.decision().ranking, [0.4, 0.45, 0.8 / 3])
        assert selector.decision().best == 1
        assert selector.ask(round_rng(0, 0)) == Batch([arm, arm], [0, 2])
    one = by_hand(eta=1.1, batch_size=1)
    one.tell(*told)
    assert one.ask(round_rng(0, 0)) == Batch([0], [0])
    assert one.ask(round_rng(0, 1)) == Batch([0], [2])  # the first is pending, and told nothing
    assert one.ask(round_rng(0, 2)).arms.tolist() == [1]


def test_the_score_only_bound_by_hand(by_hand):
    # Completed means (.8 + .3 + .1) / 3 after one pair, and (.4 + .9) / 2 after two of which one is unscored.
    for eta, arm in ((0.7, 1), (0.76, 0)):  # .4 + sqrt(eta) against .65 + sqrt(eta / 2)
        selector = by_hand("ucb-e-lrf-score-only", eta=eta)
        selector.tell(Batch([0, 1, 1, 2], [1, 1, 2, 1]), [0.3, 0.9, np.nan, 0.0])
        np.testing.assert_allclose(selector.decision().ranking, [0.4, 0.65, 0.0])
        assert set(selector.ask(round_rng(0, 0)).arms) == {arm}


def test_an_unscored_pair_is_in_no_mean_and_unknown_to_the_fit(by_hand):
    selector = by_hand()
    selector.tell(Batch([0, 0, 1], [1, 0, 1]), [0.3, np.nan, np.nan])
    np.testing.assert_array_equal(selector.decision().ranking, [(0.3 + 0.1) / 2, np.nan, np.nan])


@pytest.mark.parametrize("name", ["ucb-e-lrf", "ucb-e-lrf-score-only"])
def test_arms_without_a_score_come_first(by_hand, name):
    selector = by_hand(name, batch_size=1)
    asked = []
    for played in range(3):
        batch = selector.ask(round_rng(1, played))
        selector.tell(batch, [1.0])
        asked.append(int(batch.arms[0]))
    assert sorted(asked) == [0, 1, 2]


@pytest.mark.parametrize("name", ["ucb-e-lrf", "ucb-e-lrf-score-only"])
def test_the_warm_up_has_exactly_its_share_and_ranks_by_plain_means(name):
    world = BestMeanWorld(n_arms=3, n_examples=15)
    selector = world.selector(name, warm_up=0.37, batch_size=7)  # 17 of 45
    told, sizes = np.full(world.scores.shape, np.nan), []
    for batch, outcomes in world.rounds(selector, seed=8):
        told[batch.arms, batch.examples] = outcomes
        sizes.append(len(batch))
        if sum(sizes) == 17:
            break
        np.testing.assert_allclose(selector.decision().ranking, np.nanmean(told, axis=1))
    assert sizes == [7, 7, 3]
    assert abs(selector.decision().ranking - np.nanmean(told, axis=1)).max() > 0.01


@pytest.mark.parametrize("name", ["ucb-e-lrf", "ucb-e-lrf-score-only"])
def test_the_warm_up_counts_what_is_pending(name):
    selector = BestMeanWorld(n_arms=3, n_examples=15).selector(name, warm_up=0.37, batch_size=7)
    batches = [selector.ask(round_rng(7, played)) for played in range(5)]
    assert [len(batch) for batch in batches] == [7, 7, 3, 7, 7]
    assert [len(set(batch.arms)) == 1 for batch in batches[1:]] == [False, False, True, True]


def test_lrf_fits_only_when_something_reads_the_fit(monkeypatch):
    fits, fit = [], EnsembleAls.fit
    monkeypatch.setattr(EnsembleAls, "fit", lambda *args: fits.append(1) or fit(*args))
    world = BestMeanWorld(n_arms=5, n_examples=10)
    selector = world.selector("lrf", budget=30)
    assert len(list(world.rounds(selector))) == 10
    assert not fits
    first, second = selector.decision(), selector.decision()
    assert first == second
    assert len(fits) == 1


def test_lrf_ranks_by_completed_means():
    world = BestMeanWorld(n_arms=5, n_examples=9)
    literal = LiteralUcbELrf(world, 0.0)
    selector = world.selector("lrf", budget=24, batch_size=8)
    for batch, outcomes in world.rounds(selector):
        literal.told.update(
            {(int(i), int(j)): x for i, j, x in zip(batch.arms, batch.examples, outcomes, strict=True)}
        )
    np.testing.assert_allclose(selector.decision().ranking, literal.completed_means(), rtol=1e-9)


@pytest.mark.parametrize(
    ("name", "params", "message"),
    [
        ("ucb-e-lrf", {"eta": -1.0}, "eta must be non-negative and finite, got -1.0"),
        ("ucb-e-lrf", {"audit": 1.5}, r"audit must be in \[0, 1\], got 1.5"),
        ("ucb-e-lrf", {"warm_up": -0.1}, r"warm_up must be in \[0, 1\], got -0.1"),
        ("ucb-e-lrf-score-only", {"eta": np.inf}, "eta must be non-negative and finite, got inf"),
        ("lrf", {"members": 0}, "members must be at least 1, got 0"),
    ],
)
def test_a_bad_value_is_refused_early_and_shown(name, params, message):
    with pytest.raises(InvalidParameter, match=f"^{message}$"):
        create_selector(name, n_arms=3, n_examples=4, **params)


DEVIATING = np.stack([np.linspace(0.0, 0.9, 20), np.linspace(1.0, 0.0, 20) ** 2])[:, np.newaxis]
"""Column factors of two members that disagree everywhere, by a different amount at every example."""


def asked_of_one_arm(monkeypatch, audit, size, seed):
    """A batch when everything but arm 0 is told, and two members deviate as above."""
    monkeypatch.setattr(EnsembleAls, "fit", lambda *_: Ensemble(np.ones((2, 1, 2)), DEVIATING))
    params = {"batch_size": size, "warm_up": 0.0, "audit": audit}
    selector = create_selector("ucb-e-lrf", n_arms=2, n_examples=20, **params)
    selector.tell(Batch([1] * 20, range(20)), [0.0] * 20)
    batch = selector.ask(round_rng(seed, 0))
    assert set(batch.arms) == {0}
    return batch.examples.tolist()


@pytest.mark.parametrize(("audit", "drawn"), [(0.0, 0), (0.01, 1), (0.3, 2), (1.0, 5)])
def test_all_but_the_audit_have_the_largest_deviations_in_descending_order(monkeypatch, audit, drawn):
    largest = np.argsort(-DEVIATING.std(axis=0)[0])[: 5 - drawn].tolist()
    for seed in range(20):
        asked = asked_of_one_arm(monkeypatch, audit, 5, seed)
        assert asked[: 5 - drawn] == largest
        assert len(set(asked)) == 5


def test_the_intervals_bet_on_the_warm_up_and_on_the_last_pairs_of_later_batches(monkeypatch):
    bets = []
    update = FinitePopulationIntervals.update
    monkeypatch.setattr(
        FinitePopulationIntervals, "update", lambda *args: bets.append(args[3]) or update(*args)
    )
    world = BestMeanWorld(n_arms=3, n_examples=20)
    selector = world.selector("ucb-e-lrf", warm_up=0.2, audit=0.3, batch_size=6)
    for batch, _ in islice(world.rounds(selector), 4):
        audit = [position >= 4 for position in range(len(batch))]
        assert bets[-1] is None if len(bets) <= 2 else bets[-1].tolist() == audit


@pytest.mark.statistical
def test_the_audit_is_drawn_uniformly_from_what_was_not_chosen_in_every_position(monkeypatch):
    # With 2,000 asks a chance of 0.09 in place of 1/17 is seen with probability above 0.9.
    counts = np.zeros((2, 20))
    for seed in range(2_000):
        counts[range(2), asked_of_one_arm(monkeypatch, 0.3, 5, seed)[3:]] += 1
    chosen = np.argsort(-DEVIATING.std(axis=0)[0])[:3]
    assert not counts[:, chosen].any()
    for position in np.delete(counts, chosen, axis=1):
        assert chisquare(position).pvalue > FALSE_ALARM
        assert chisquare(np.sort(position) * np.linspace(0.7, 1.3, 17)).pvalue < FALSE_ALARM


def test_an_audit_lets_the_best_be_separated_where_chosen_pairs_alone_do_not():
    world = BestMeanWorld(n_arms=3, n_examples=400, seed=4)
    world.scores = (world.scores < np.array([[0.2], [0.5], [0.9]])).astype(float)
    spent = {}
    for audit in (0.0, 0.5):
        selector = world.selector("ucb-e-lrf", audit=audit, delta=0.05, batch_size=20)
        spent[audit] = sum(len(batch) for batch, _ in world.rounds(selector))
        assert (selector.decision().best, selector.decision().reason) == (2, "confident")
    assert spent[0.5] < 0.6 * spent[0.0]


def test_a_resumed_selector_knows_which_pairs_were_drawn():
    world = BestMeanWorld(n_arms=4, n_examples=60)
    params = {"audit": 0.4, "delta": 0.3, "batch_size": 10}
    original = world.selector("ucb-e-lrf", **params)
    history, decisions = [], []
    for batch, outcomes in world.rounds(original):
        history.append((batch, outcomes))
        decisions.append(original.decision())
    resumed = world.selector("ucb-e-lrf", **params)
    for (batch, outcomes), decision in zip(history, decisions, strict=True):
        resumed.tell(batch, outcomes)
        assert resumed.decision() == decision
    assert np.ptp(decisions[4].upper - decisions[4].lower) > 0.05
