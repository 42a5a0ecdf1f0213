import numpy as np
import pytest
from scipy.stats import beta, chisquare
from selector_worlds import BestDuelWorld

from winnow.algorithms.errors import InvalidParameter
from winnow.algorithms.protocols import Batch, round_rng
from winnow.algorithms.registry import create_selector

FALSE_ALARM = 1e-6


def told(name, duels, n_arms=3, **params):
    """A selector after (first arm, second arm, wins of the first, wins of the second)."""
    selector = create_selector(name, n_arms=n_arms, n_examples=9, **params)
    for first, second, won, lost in duels:
        batch = Batch([[first, second]] * (won + lost), np.zeros(won + lost, dtype=int))
        selector.tell(batch, [1.0] * won + [0.0] * lost)
    return selector


def asked(selector, rounds=1, seed=0):
    """The pairs of some rounds in flight, the lower arm first."""
    arms = np.concatenate([selector.ask(round_rng(seed, t)).arms for t in range(rounds)])
    return [tuple(sorted(pair)) for pair in arms.tolist()]


def test_round_robin_goes_through_the_pairs_in_order_over_and_over():
    order = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    selector = create_selector("round-robin", n_arms=4, n_examples=9, batch_size=5)
    assert asked(selector, rounds=6) == order * 5


def test_round_robin_makes_up_for_what_it_was_told():
    selector = told("round-robin", [(0, 1, 2, 0), (1, 2, 1, 0)], batch_size=4)
    assert asked(selector) == [(0, 2), (0, 2), (1, 2), (0, 1)]


def is_uneven(counts, chances=None):
    """Whether these chances, or equal ones, give such counts with probability below FALSE_ALARM."""
    expected = None if chances is None else np.sum(counts) * np.asarray(chances)
    return chisquare(counts, expected).pvalue < FALSE_ALARM


@pytest.mark.statistical
def test_random_pairs_are_uniform():
    # With 6,000 duels a chance of 0.20 in place of 1/6 is seen with probability above 0.9.
    pairs = asked(create_selector("random-pair", n_arms=4, n_examples=9, batch_size=6_000))
    counts = [pairs.count(pair) for pair in sorted(set(pairs))]
    assert len(counts) == 6
    assert not is_uneven(counts)
    assert is_uneven([1_200, 1_200, 900, 900, 900, 900])


def test_the_greedy_duel_is_of_the_best_arm_and_its_strongest_opponent():
    duels = [(0, 1, 7, 3), (0, 2, 6, 4), (1, 2, 5, 5)]
    assert set(asked(told("eps-greedy", duels, exploration=0.0))) == {(0, 2)}


def test_the_best_arm_meets_first_whom_it_has_not_met():
    assert set(asked(told("eps-greedy", [(0, 1, 7, 3)], exploration=0.0))) == {(0, 2)}


def test_equally_strong_opponents_take_turns():
    pairs = asked(told("eps-greedy", [(0, 1, 7, 3), (0, 2, 7, 3)], exploration=0.0, batch_size=10))
    assert (pairs.count((0, 1)), pairs.count((0, 2))) == (5, 5)


@pytest.mark.statistical
def test_exploration_is_the_share_of_random_duels():
    duels = [(0, 1, 7, 3), (0, 2, 6, 4), (1, 2, 5, 5)]
    pairs = asked(told("eps-greedy", duels, exploration=0.3, batch_size=5_000))
    counts = [pairs.count(pair) for pair in ((0, 1), (0, 2), (1, 2))]
    assert not is_uneven(counts, [0.1, 0.8, 0.1])
    assert is_uneven([250, 4_500, 250], [0.1, 0.8, 0.1])


@pytest.mark.statistical
def test_thompson_draws_the_arm_and_its_opponent_from_the_posterior():
    # Two arms of three are chosen through six independent Beta draws, which an integral by sampling repeats.
    duels = [(0, 1, 6, 4), (0, 2, 5, 3), (1, 2, 2, 4)]
    pairs = asked(told("thompson", duels, batch_size=20_000))
    rng = np.random.default_rng(1)
    expected = dict.fromkeys([(0, 1), (0, 2), (1, 2)], 0)
    draws = [
        {(i, j): beta.rvs(1 + w, 1 + n, size=20_000, random_state=rng) for i, j, w, n in duels} for _ in "12"
    ]
    for k in range(20_000):
        first, second = ({pair: values[k] for pair, values in draw.items()} for draw in draws)

        def chance(i, j, of):
            return of[i, j] if i < j else 1.0 - of[j, i]

        beaten = [sum(chance(i, j, first) > 0.5 for j in range(3) if j != i) for i in range(3)]
        arm = rng.choice(np.flatnonzero(np.array(beaten) == max(beaten)))
        opponent = max((j for j in range(3) if j != arm), key=lambda j: chance(j, arm, second))
        expected[tuple(sorted((int(arm), opponent)))] += 1
    counts = [pairs.count(pair) for pair in expected]
    chances = np.array(list(expected.values())) / 20_000
    assert np.abs(np.array(counts) / 20_000 - chances).max() < 0.025  # 5 standard errors of the difference
    assert not np.abs(np.array([1, 1, 1]) / 3 - chances).max() < 0.025


def test_thompson_does_not_ask_what_is_settled():
    duels = [(0, 1, 300, 0), (0, 2, 10, 9), (1, 2, 0, 300)]
    pairs = asked(told("thompson", duels, batch_size=200))
    assert pairs.count((0, 2)) > 190


def literal_upper(duels, n_arms, alpha):
    upper = np.ones((n_arms, n_arms))
    np.fill_diagonal(upper, 0.5)
    t = sum(won + lost for *_, won, lost in duels)
    for i, j, won, lost in duels:
        width = np.sqrt(alpha * np.log(t) / (won + lost))
        upper[i, j], upper[j, i] = won / (won + lost) + width, lost / (won + lost) + width
    return upper


@pytest.mark.parametrize("alpha", [0.51, 2.0])
def test_rucb_asks_a_possible_winner_and_its_likeliest_conqueror(alpha):
    rng = np.random.default_rng(0)
    for _ in range(30):
        wins = rng.integers(1, 30, size=(4, 4))
        duels = [(i, j, int(wins[i, j]), int(wins[j, i])) for j in range(4) for i in range(j)]
        upper = np.minimum(literal_upper(duels, 4, alpha), 1.0)
        possible = [i for i in range(4) if (upper[i] >= 0.5).all()] or range(4)
        allowed = set()
        for champion in possible:
            over = np.where(np.arange(4) == champion, -1.0, upper[:, champion])
            allowed |= {tuple(sorted((champion, int(j)))) for j in np.flatnonzero(over == over.max())}
        for t in range(5):
            selector = told("rucb", duels, n_arms=4, alpha=alpha, batch_size=1)
            assert asked(selector, seed=t)[0] in allowed


@pytest.mark.statistical
def test_rucb_takes_half_of_the_time_the_arm_that_was_the_only_possible_winner():
    # In the end all is even, and only a duel of champion 0 has arm 0 in it, as its pairs have more duels.
    once_alone = [(0, j, 20, 0) for j in (1, 2, 3)] + [(i, j, 10, 10) for j in (2, 3) for i in range(1, j)]
    even = [*once_alone, *((0, j, 0, 20) for j in (1, 2, 3))]
    arms = np.concatenate([[[i, j]] * (won + lost) for i, j, won, lost in even])
    won = np.concatenate([[1.0] * won + [0.0] * lost for *_, won, lost in even])
    of_favourite = of_none = 0
    for seed in range(300):
        never_alone = create_selector("rucb", n_arms=4, n_examples=9, batch_size=1)
        never_alone.tell(Batch(arms, np.zeros(len(arms), dtype=int)), won)
        of_none += 0 in asked(never_alone, seed=seed)[0]
        of_favourite += 0 in asked(told("rucb", even, n_arms=4, batch_size=1), seed=seed)[0]
    # Expected 150 and 75; the bounds are 5 standard deviations from one and 3 or more from the other.
    assert 107 < of_favourite < 193
    assert 38 < of_none < 112


def test_a_batch_of_rucb_spreads_as_its_duels_narrow_the_bounds():
    # Only arm 0 may beat every other; against it arm 2 is nearly as strong as arm 1.
    duels = [(0, 1, 60, 40), (0, 2, 61, 39), (1, 2, 100, 0)]
    pairs = asked(told("rucb", duels, batch_size=40))
    assert set(pairs) == {(0, 1), (0, 2)}


@pytest.mark.parametrize("name", ["thompson", "eps-greedy", "llm-po"])
def test_duels_told_one_by_one_lead_to_the_same_asks_as_all_at_once(name):
    duels = [(0, 1, 12, 9), (0, 2, 9, 7), (1, 2, 8, 3), (0, 3, 2, 9), (1, 3, 5, 9), (2, 3, 5, 5)]
    at_once, singly = (create_selector(name, n_arms=4, n_examples=9, batch_size=30) for _ in "12")
    arms = np.concatenate([[[i, j]] * (won + lost) for i, j, won, lost in duels])
    won = np.concatenate([[1.0] * won + [0.0] * lost for *_, won, lost in duels])
    at_once.tell(Batch(arms, np.zeros(len(arms), dtype=int)), won)
    for duel, outcome in zip(arms[::-1], won[::-1], strict=True):
        singly.tell(Batch([duel], [0]), [outcome])
    assert at_once.ask(round_rng(0, 0)) == singly.ask(round_rng(0, 0))
    assert at_once.decision() == singly.decision()


@pytest.mark.parametrize("name", ["rucb", "thompson", "llm-po"])
def test_adaptive_methods_settle_on_duels_of_the_best_arm(name):
    world = BestDuelWorld(8, spread=4.0, ties=0.0)
    pairs = np.concatenate([batch.arms for batch, _ in world.rounds(world.selector(name, budget=1_500))])
    assert (pairs[-300:] == 1).any(axis=1).mean() > 0.5
    uniform = world.selector("round-robin", budget=1_500)
    pairs = np.concatenate([batch.arms for batch, _ in world.rounds(uniform)])
    assert (pairs[-300:] == 1).any(axis=1).mean() < 0.3


@pytest.mark.parametrize(
    ("name", "params", "message"),
    [
        ("eps-greedy", {"exploration": 1.5}, r"exploration must be in \[0, 1\], got 1.5"),
        ("rucb", {"alpha": 0.5}, "alpha must be above 1/2 and finite, got 0.5"),
        ("rucb", {"alpha": float("nan")}, "alpha must be above 1/2 and finite, got nan"),
    ],
)
def test_a_parameter_of_a_baseline_out_of_range_is_refused(name, params, message):
    with pytest.raises(InvalidParameter, match=f"^{message}$"):
        create_selector(name, n_arms=3, n_examples=4, **params)
