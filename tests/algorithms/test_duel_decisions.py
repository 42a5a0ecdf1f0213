"""When campaigns of duels by counts stop, and what they then claim of which arm."""

import numpy as np
import pytest
from selector_worlds import FixedDuelWorld

from winnow.algorithms.claims import EXACT, HEURISTIC, NOTHING_CLAIMED, Claim
from winnow.algorithms.protocols import Batch, round_rng
from winnow.algorithms.registry import create_selector


def decided(duels, n_arms=3, **params):
    """The decision after (first arm, second arm, how many duels, how many of them the first won)."""
    params = {"delta": 0.05, "n_examples": 1_000, **params}
    selector = create_selector("round-robin", n_arms=n_arms, **params)
    for first, second, told, won in duels:
        outcomes = np.full(told, np.nan) if won is None else (np.arange(told) < won).astype(float)
        selector.tell(Batch([[first, second]] * told, np.arange(told)), outcomes)
    return selector.decision()


CLEAR = [(0, 1, 40, 36), (0, 2, 40, 36), (1, 2, 40, 20)]
BEATEN_BY_EACH_OTHER = [(0, 1, 100, 60), (0, 2, 100, 60), (0, 3, 100, 60)]
ROUND = [(1, 2, 100, 90), (2, 3, 100, 90), (3, 1, 100, 90)]


def test_an_arm_shown_by_its_own_duels_is_proven_to_be_the_best_without_an_assumption():
    decision = decided(CLEAR)
    assert (decision.best, decision.stop, decision.reason) == (0, True, "confident")
    assert decision.claim == Claim(kind="proven", delta=0.05)
    assert decision.status == ("best", "eliminated", "eliminated")


def test_where_a_winner_is_assumed_the_claim_says_so():
    duels = BEATEN_BY_EACH_OTHER + ROUND
    assert decided(duels, n_arms=4).reason == "running"
    decision = decided(duels, n_arms=4, assume_winner=True)
    assert (decision.best, decision.reason) == (0, "confident")
    assert decision.claim == Claim(kind="proven", delta=0.05, assumptions=("winner-exists",))
    assert decision.status == ("best", *["eliminated"] * 3)


def test_before_the_end_arms_ruled_out_are_named_and_nothing_is_claimed():
    decision = decided([(0, 1, 40, 36), (0, 2, 40, 22), (1, 2, 40, 20)])
    assert decision.status == ("active", "eliminated", "active")
    assert (decision.reason, decision.claim) == ("running", NOTHING_CLAIMED)
    assert decided([(0, 1, 40, 36)], delta=None).status == ("active",) * 3


@pytest.mark.parametrize(
    ("assume_winner", "m", "delta"), [(False, 1, 0.1), (False, 2, 0.15), (True, 1, 0.15), (True, 2, 0.25)]
)
def test_with_dropped_arms_the_claim_states_the_bound_that_the_proof_gives(assume_winner, m, delta):
    unreadable = [(arm, 0, 9, None) for arm in (3, 4)[:m]]
    decision = decided(CLEAR + unreadable, n_arms=5 if m == 2 else 4, assume_winner=assume_winner)
    assert decision.status == ("best", "eliminated", "eliminated", *["dropped"] * m)
    assert decision.claim.delta == pytest.approx(delta)
    assert decision.claim.raised_by == ("dropped",)
    assert (decision.claim.assumptions == ("winner-exists",)) == assume_winner


def test_where_the_bound_reaches_1_nothing_is_claimed():
    unreadable = [(3, 0, 9, None)]
    assert decided(CLEAR + unreadable, n_arms=4, delta=0.4).reason == "confident"
    decision = decided(CLEAR + unreadable, n_arms=4, delta=0.5)
    assert (decision.reason, decision.claim) == ("running", NOTHING_CLAIMED)
    assert decided(CLEAR + unreadable, n_arms=4, delta=0.4, assume_winner=True).reason == "running"


def test_unscored_duels_take_the_answer_back():
    unscored = [(0, 1, 20, None)]
    assert decided(CLEAR + unscored, max_unscored=1.0).reason == "running"
    assert decided(CLEAR + unscored, max_unscored=1.0, assume_winner=True).reason == "running"


def test_within_epsilon_others_are_only_known_to_be_no_better():
    decision = decided([(0, 1, 300, 155), (0, 2, 300, 290), (1, 2, 300, 280)], epsilon=0.15)
    assert (decision.best, decision.reason) == (0, "confident")
    assert decision.status == ("best", "not-better", "not-better")


def test_a_budget_without_delta_makes_a_heuristic_and_with_it_nothing():
    duels = [(0, 1, 10, 6), (0, 2, 10, 6), (1, 2, 10, 5)]
    assert decided(duels, delta=None, budget=30).claim == HEURISTIC
    assert decided(duels, budget=30).claim == NOTHING_CLAIMED


# Duels that come out the same whenever they are fought, on 20 examples.
FIXED = {"n_examples": 20, "deterministic": np.ones(3, dtype=bool)}


def test_an_arm_that_gained_more_than_half_of_all_examples_wins_for_certain():
    decision = decided([(0, 1, 12, 11), (0, 2, 11, 11)], delta=1e-9, **FIXED)
    assert (decision.best, decision.reason) == (0, "confident")
    assert decision.claim == EXACT
    assert decision.status == ("best", "eliminated", "eliminated")
    short = decided([(0, 1, 12, 10), (0, 2, 11, 11)], delta=1e-9, **FIXED)
    assert (short.reason, short.status) == ("running", ("active", "active", "eliminated"))


def test_arms_that_are_tied_for_certain_end_the_campaign():
    decision = decided([(0, 1, 20, 10), (0, 2, 11, 11), (1, 2, 11, 11)], **FIXED)
    assert (decision.stop, decision.reason, decision.claim) == (True, "exhausted", EXACT)
    assert decision.status == ("tied", "tied", "eliminated")
    assert decision.best == 0


def test_a_cycle_that_is_certain_has_no_best_arm():
    decision = decided([(0, 1, 11, 11), (1, 2, 11, 11), (2, 0, 11, 11)], **FIXED)
    assert (decision.stop, decision.reason, decision.claim) == (True, "exhausted", EXACT)
    assert decision.status == ("eliminated",) * 3


def test_an_arm_that_ties_one_and_is_beaten_by_none_is_the_best_where_all_others_are_beaten():
    decision = decided([(0, 1, 20, 10), (2, 1, 11, 11), (0, 2, 11, 11)], **FIXED)
    assert (decision.best, decision.reason, decision.claim) == (0, "confident", EXACT)
    assert decision.status == ("best", "eliminated", "eliminated")


def test_what_would_be_certain_if_there_is_a_winner_is_proven_under_that_assumption():
    three_lose = [(1, 2, 11, 11), (2, 3, 11, 11), (3, 1, 11, 11), (0, 1, 9, 9), (0, 2, 9, 9), (0, 3, 9, 9)]
    fixed = {"n_examples": 20, "deterministic": np.ones(4, dtype=bool), "assume_winner": True}
    decision = decided(three_lose, n_arms=4, **fixed)
    assert (decision.best, decision.reason) == (0, "confident")
    assert decision.claim == Claim(kind="proven", delta=0.05, assumptions=("winner-exists",))


def test_an_arm_that_is_good_enough_for_certain_is_exactly_that():
    duels = [(0, 1, 18, 9), (0, 2, 18, 12), (1, 2, 12, 7)]
    decision = decided(duels, epsilon=0.1, delta=1e-9, **FIXED)
    assert (decision.best, decision.reason, decision.claim) == (0, "confident", EXACT)
    assert decision.status == ("best", "not-better", "eliminated")


def test_without_delta_a_campaign_goes_on_to_the_end_of_the_examples_and_is_exact_there():
    duels = [(0, 1, 20, 15), (0, 2, 20, 15)]
    assert not decided([*duels, (1, 2, 19, 9)], delta=None, **FIXED).stop
    decision = decided([*duels, (1, 2, 20, 9)], delta=None, **FIXED)
    assert (decision.reason, decision.claim) == ("exhausted", EXACT)
    assert decision.status == ("best", "eliminated", "eliminated")


def test_unscored_duels_of_deterministic_arms_stay_so_for_ever_and_count_at_their_worst():
    unscored = [(0, 1, 5, None), (0, 2, 20, 20), (1, 2, 20, 20)]

    def decide(won):
        selector = create_selector("round-robin", n_arms=3, delta=0.05, max_unscored=1.0, **FIXED)
        for first, second, told, wins in unscored:
            outcomes = np.full(told, np.nan) if wins is None else np.ones(told)
            selector.tell(Batch([[first, second]] * told, np.arange(told)), outcomes)
        selector.tell(Batch([[0, 1]] * 15, np.arange(5, 20)), (np.arange(15) < won).astype(float))
        return selector.decision()

    assert (decide(11).best, decide(11).reason, decide(11).claim) == (0, "confident", EXACT)
    undecided = decide(8)
    assert (undecided.reason, undecided.claim) == ("exhausted", NOTHING_CLAIMED)
    assert undecided.status == ("active", "active", "eliminated")
    assert (undecided.lower[0], undecided.upper[0]) == pytest.approx((0.4, 0.65))
    assert undecided.estimates[0] == pytest.approx(8 / 15)


def test_two_arms_are_decided_long_before_a_campaign_that_draws_again_could_be():
    # 450 examples of which 236 are won: 0.524. Drawn again and again, no 3,000 duels would show it.
    world = FixedDuelWorld(n_examples=450)
    won = np.random.default_rng(0).permutation(np.arange(450) < 236)
    world.outcomes_by_pair[0, 1], world.outcomes_by_pair[1, 0] = won, ~won
    world.n_arms = 2
    ends = {}
    for once in (True, False):
        selector = create_selector(
            "llm-po",
            n_arms=2,
            n_examples=450,
            delta=0.05,
            budget=3_000,
            deterministic=np.ones(2, dtype=bool) if once else None,
        )
        told = sum(len(batch) for batch, _ in world.rounds(selector))
        ends[once] = (told, selector.decision().reason)
    assert ends[True] == (pytest.approx(440, abs=10), "confident")
    assert ends[False] == (3_000, "budget")


def test_rounds_of_drawn_examples_in_flight_can_be_told_again_as_they_were():
    world = FixedDuelWorld(n_examples=30, unscored=0.1)
    one, other = (world.selector("llm-po", delta=0.05, budget=None) for _ in range(2))
    for selector in (one, other):
        for batch in [selector.ask(round_rng(3, t)) for t in range(6)]:
            selector.tell(batch, world.outcomes(batch))
    assert one.ask(round_rng(3, 6)) == other.ask(round_rng(3, 6))
    assert one.decision() == other.decision()
