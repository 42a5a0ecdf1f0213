import numpy as np
import pytest
from selector_worlds import BestDuelWorld

from winnow.algorithms.best_duel.llm_po import likeliest_best, optimal_shares
from winnow.algorithms.best_duel.win_tables import Standings
from winnow.algorithms.errors import InvalidParameter
from winnow.algorithms.protocols import Batch, round_rng
from winnow.algorithms.registry import create_selector


class LiteralLlmPo:
    """Which pairs equation (6) allows next, from the list of all duels, recomputed at every ask."""

    def __init__(self, n_arms, exploration, n0):
        self.n_arms, self.exploration, self.n0 = n_arms, exploration, n0
        self.asked = []
        self.told = []

    def preference(self, i, j):
        won = [result if (i, j) == arms else 1 - result for arms, result in self.told if set(arms) == {i, j}]
        return sum(won) / len(won) if won else np.nan

    def allowed(self):
        arms = range(self.n_arms)
        pairs = [(i, j) for j in arms for i in range(j)]
        asked = {pair: sum(set(arms) == set(pair) for arms in self.asked) for pair in pairs}
        least = min(asked.values())
        if least < self.n0 or least < self.exploration * np.sqrt(len(self.asked)):
            return {pair for pair in pairs if asked[pair] == least}
        preferences = np.array([[0.5 if i == j else self.preference(i, j) for j in arms] for i in arms])
        worst = [min(preferences[i][j] for j in arms if j != i) for i in arms]
        best = max(arms, key=lambda i: (worst[i], preferences[i].mean()))
        everyone = np.ones(self.n_arms, dtype=bool)
        fought = np.array([[sum(set(duel) == {i, j} for duel in self.asked) for j in arms] for i in arms])
        standings = Standings(preferences, fought, everyone)
        leader = likeliest_best(standings, best, everyone)
        shares = optimal_shares(standings, leader, np.array([i for i in arms if i != leader]))
        wanted = list(shares)
        total = sum(asked[pair] for pair in wanted)
        behind = {pair: total * shares[pair] - asked[pair] for pair in wanted}
        return {pair for pair in wanted if np.isclose(behind[pair], max(behind.values()))}


@pytest.mark.parametrize(("exploration", "n0"), [(0.1, 1), (0.5, 2)])
def test_every_choice_is_one_that_the_paper_allows(exploration, n0):
    world = BestDuelWorld(3, spread=1.0)
    literal = LiteralLlmPo(3, exploration, n0)
    selector = world.selector("llm-po", batch_size=1, budget=200, exploration=exploration, n0=n0)
    tracked = 0
    for played in range(200):
        batch = selector.ask(round_rng(7, played))
        duel = tuple(batch.arms[0].tolist())
        allowed = literal.allowed()
        tracked += len(allowed) == 1
        assert tuple(sorted(duel)) in allowed
        outcome = world.outcomes(batch, played)
        selector.tell(batch, outcome)
        literal.asked.append(duel)
        literal.told.append((duel, outcome[0]))
    assert tracked > 50


def counts(batches):
    table = np.zeros((4, 4), dtype=int)
    for batch in batches:
        np.add.at(table, tuple(np.sort(batch.arms, axis=1).T), 1)
    return table


def test_a_batch_spreads_over_pairs_as_single_duels_in_flight_do():
    world = BestDuelWorld(4)
    # Distinct shares, so that no draw among equals can make a difference.
    arms = np.repeat([[1, 0], [1, 2], [1, 3], [2, 3], [2, 0], [3, 0]], 40, axis=0)
    won = np.concatenate([np.arange(40) < wins for wins in (37, 26, 33, 31, 28, 22)])
    first = Batch(arms, np.zeros(240, dtype=int))
    one, many = (
        world.selector("llm-po", batch_size=size, budget=None, exploration=0.01) for size in (300, 1)
    )
    for selector in (one, many):
        selector.tell(first, won)
    at_once, singly = (
        counts([one.ask(round_rng(0, 0))]),
        counts([many.ask(round_rng(0, t)) for t in range(300)]),
    )
    assert (at_once > 0).sum() == 2
    np.testing.assert_array_equal(at_once, singly)


def test_every_pair_is_asked_before_any_is_asked_again():
    batch = create_selector("llm-po", n_arms=6, n_examples=9, batch_size=15).ask(round_rng(0, 0))
    assert len({tuple(sorted(arms)) for arms in batch.arms.tolist()}) == 15


def test_once_the_others_are_ruled_out_the_best_arm_fights_whom_it_is_not_shown_to_beat():
    selector = create_selector(
        "llm-po", n_arms=3, n_examples=9, batch_size=20, delta=0.05, exploration=0.01, budget=None
    )
    arms = np.repeat([[0, 1], [1, 2], [0, 2]], [60, 60, 20], axis=0)
    won = np.concatenate([np.arange(60) < 50, np.arange(60) < 50, np.arange(20) < 13])
    selector.tell(Batch(arms, np.zeros(140, dtype=int)), won)
    assert not selector.decision().stop
    asked = selector.ask(round_rng(0, 0))
    np.testing.assert_array_equal(np.sort(asked.arms, axis=1), [[0, 2]] * 20)
    for _ in range(2):
        selector.tell(asked, asked.arms[:, 0] == 0)
    assert selector.decision().reason == "confident"


def test_a_pair_never_scored_does_not_take_all_duels():
    selector = create_selector("llm-po", n_arms=3, n_examples=9, batch_size=1, max_unscored=1.0, budget=300)
    asked = np.zeros((3, 3))
    for played in range(300):
        batch = selector.ask(round_rng(0, played))
        pair = tuple(sorted(batch.arms[0]))
        asked[pair] += 1
        selector.tell(batch, [np.nan if pair == (0, 1) else float(batch.arms[0, 0] < batch.arms[0, 1])])
    assert asked[0, 2] >= 2
    assert asked[1, 2] >= 2


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"exploration": 0.0}, "exploration must be positive and finite, got 0.0"),
        ({"exploration": float("inf")}, "exploration must be positive and finite, got inf"),
        ({"n0": 0}, "n0 must be at least 1, got 0"),
    ],
)
def test_a_parameter_out_of_range_is_refused(params, message):
    with pytest.raises(InvalidParameter, match=f"^{message}$"):
        create_selector("llm-po", n_arms=3, n_examples=4, **params)
