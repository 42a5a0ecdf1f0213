import numpy as np
import pytest
from scipy.stats import chisquare
from selector_worlds import BestMeanWorld

from winnow.algorithms.best_mean.config import BestMeanConfig
from winnow.algorithms.papers.best_mean.ucb_e import UcbE
from winnow.algorithms.protocols import Batch, round_rng
from winnow.algorithms.registry import create_selector

FALSE_ALARM = 1e-6


def told(a=1.0, n_examples=100, batch_size=5, **scores_by_arm):
    """UCB-E after some scores: `told(arm0=[1, 0], arm1=[0.5])`."""
    selector = create_selector(
        "ucb-e",
        n_arms=len(scores_by_arm),
        n_examples=n_examples,
        batch_size=batch_size,
        a=a,
        variant="paper",
    )
    for arm, scores in enumerate(scores_by_arm.values()):
        selector.tell(Batch([arm] * len(scores), range(len(scores))), scores)
    return selector


class LiteralUcbE:
    """Algorithm 1 from the list of all that was told, recomputed at every ask."""

    def __init__(self, n_arms, n_examples, batch_size, a):
        self.n_arms, self.n_examples, self.batch_size, self.a = n_arms, n_examples, batch_size, a
        self.scores = {arm: {} for arm in range(n_arms)}

    def bound(self, arm):
        seen = list(self.scores[arm].values())
        return sum(seen) / len(seen) + np.sqrt(self.a / len(seen)) if seen else np.inf

    def ask(self, rng):
        unfinished = [arm for arm in range(self.n_arms) if len(self.scores[arm]) < self.n_examples]
        highest = max(map(self.bound, unfinished))
        ties = [arm for arm in unfinished if self.bound(arm) == highest]
        arm = ties[rng.integers(len(ties))]
        unseen = [example for example in range(self.n_examples) if example not in self.scores[arm]]
        return arm, rng.choice(unseen, size=min(self.batch_size, len(unseen)), replace=False)


@pytest.mark.parametrize("a", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("batch_size", [1, 4])
def test_choices_equal_those_of_the_paper_followed_literally(a, batch_size):
    world = BestMeanWorld(n_arms=5, n_examples=9)
    world.scores = np.round(world.scores * 4) / 4  # sums are exact, and bounds often tie
    literal = LiteralUcbE(5, 9, batch_size, a)
    selector = world.selector("ucb-e", a=a, batch_size=batch_size, variant="paper")
    for played, (batch, outcomes) in enumerate(world.rounds(selector)):
        arm, examples = literal.ask(round_rng(7, played))
        assert batch == Batch([arm] * len(examples), examples)
        literal.scores[arm].update(zip(examples, outcomes, strict=True))
    assert all(len(seen) == 9 for seen in literal.scores.values())


def test_the_highest_bound_is_asked():
    # a = 1: 1/2 + sqrt(1/4) = 1, 3/4 + sqrt(1/16) = 1, 0 + sqrt(1/2) = 0.707.
    # a = 4: 1/2 + sqrt(4/4) = 1.5, 3/4 + sqrt(4/16) = 1.25, 0 + sqrt(4/2) = 1.414.
    scores = {"arm0": [1, 0, 1, 0], "arm1": [0.75] * 16, "arm2": [0, 0]}
    asked = [set(told(a=a, **scores).ask(round_rng(s, 0)).arms) for s in range(30) for a in (1.0, 4.0)]
    assert set.union(*asked[0::2]) == {0, 1}
    assert set.union(*asked[1::2]) == {0}


def test_unscored_pairs_count_as_pulls_but_not_in_the_mean():
    # Arm 0 has 0.5 + sqrt(1/4) = 1; arm 1 has 0.5 + sqrt(1/2) = 1.207 after two pulls and
    # 0.5 + sqrt(1/5) = 0.947 after five.
    few, many = [0.5, np.nan], [0.5, 0.5, 0.5, np.nan, np.nan]
    assert set(told(arm0=[1, 0, 1, 0], arm1=few).ask(round_rng(0, 0)).arms) == {1}
    assert set(told(arm0=[1, 0, 1, 0], arm1=many).ask(round_rng(0, 0)).arms) == {0}


def test_the_last_batch_of_a_row_is_shorter_and_finished_rows_are_left():
    selector = told(n_examples=6, arm0=[1, 1, 1, 1], arm1=[0, 0, 0, 0])
    last = selector.ask(round_rng(0, 0))
    assert (set(last.arms), set(last.examples)) == ({0}, {4, 5})
    selector.tell(last, [1, 1])
    assert set(selector.ask(round_rng(0, 1)).arms) == {1}


def test_untried_arms_come_before_those_being_tried():
    selector = create_selector("ucb-e", n_arms=6, n_examples=50, batch_size=2, variant="paper")
    asked = [int(selector.ask(round_rng(3, t)).arms[0]) for t in range(12)]
    assert sorted(asked[:6]) == sorted(asked[6:]) == list(range(6))


def test_a_pending_batch_leaves_the_bounds_as_they_are():
    selector = told(arm0=[0.6, 0.6], arm1=[0.5, 0.5])
    assert [set(selector.ask(round_rng(0, t)).arms) for t in range(3)] == [{0}] * 3


def is_uneven(counts):
    """Whether equal chances would give counts this uneven with probability below FALSE_ALARM."""
    return chisquare(counts).pvalue < FALSE_ALARM


@pytest.mark.statistical
def test_ties_are_broken_uniformly_and_examples_drawn_uniformly_in_every_position():
    # With 4,000 asks a chance of 0.30 in place of 0.25 is seen with probability above 0.9.
    first, positions = np.zeros(4), np.zeros((3, 6))
    config = BestMeanConfig(n_arms=4, n_examples=6, batch_size=3)
    for seed in range(4_000):
        batch = UcbE(config, variant="paper").ask(round_rng(seed, 0))
        first[batch.arms[0]] += 1
        positions[range(3), batch.examples] += 1
    assert not is_uneven(first)
    assert not any(map(is_uneven, positions))


@pytest.mark.statistical
def test_the_check_catches_a_first_arm_rule_and_sorted_examples():
    sorted_draws = np.zeros((3, 6))
    for seed in range(4_000):
        drawn = np.sort(round_rng(seed, 0).choice(6, size=3, replace=False))
        sorted_draws[range(3), drawn] += 1
    assert is_uneven([4_000, 0, 0, 0])
    assert all(map(is_uneven, sorted_draws))
