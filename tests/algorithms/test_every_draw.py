"""All that chance may do to small campaigns: each arm's next example is uniform given all that was told.

Then a score less the mean of the arm's scores that are left, times whatever was known before the round, has a
mean of 0. Rounds are planned while up to two others are in flight.
"""

from collections import deque

import numpy as np
import pytest

from winnow.algorithms.protocols import EMPTY_BATCH, Batch
from winnow.algorithms.registry import create_selector

SCORES = np.array([[1.0, 0.0, 0.5], [0.0, 1.0, 0.6]])
N_ARMS, N_EXAMPLES = SCORES.shape
DELTA = 0.6
SELECTORS = ["champion", "filled-subset", "gate", "halving", "race", "ucb-e"]
"""One of each way to draw examples; of others more may happen than can be gone through here."""


class Chance:
    """A generator whose outcomes are met one after the other, each with its probability."""

    def __init__(self):
        self._path, self._ways, self._depth = [], [], 0
        self.probability = 1.0

    def begin(self):
        self._ways.clear()
        self._depth, self.probability = 0, 1.0

    def advance(self):
        """Whether there is an outcome that was not met."""
        del self._path[self._depth :]
        while self._path:
            self._path[-1] += 1
            if self._path[-1] < self._ways[len(self._path) - 1]:
                return True
            self._path.pop()
        return False

    def integers(self, ways):
        if self._depth == len(self._path):
            self._path.append(0)
        self._ways.append(int(ways))
        self._depth += 1
        self.probability /= ways
        return self._path[self._depth - 1]

    def choice(self, values, size, replace):
        left = list(values)
        return np.array([left.pop(self.integers(len(left))) for _ in range(size)], dtype=np.int64)

    def multivariate_hypergeometric(self, colors, size, method):
        drawn = self.choice(np.repeat(np.arange(len(colors)), colors), size, replace=False)
        return np.bincount(drawn, minlength=len(colors))

    def standard_normal(self, shape):
        return np.zeros(shape)


def surprises(selector, chance, ahead):
    """What a campaign tells less what was to be expected, by arm; and that times what others had scored."""
    found, rounds = np.zeros((N_ARMS, 2)), deque()
    left, told = [list(range(N_EXAMPLES)) for _ in SCORES], [[] for _ in SCORES]
    while True:
        while not selector.decision().stop and len(rounds) <= ahead and len(batch := selector.ask(chance)):
            rounds.append(batch)
        if not rounds:
            return found
        batch = rounds.popleft()
        known = [0.5 * len(of_others) - sum(of_others) for of_others in told[::-1]]
        for arm, example in zip(batch.arms, batch.examples, strict=True):
            surprise = SCORES[arm, example] - SCORES[arm, left[arm]].mean()
            found[arm] += surprise * np.array([1.0, known[arm]])
            left[arm].remove(example)
            told[arm].append(SCORES[arm, example])
        selector.tell(batch, SCORES[batch.arms, batch.examples])


def mean_of_all(create, ahead):
    """The mean surprises, and with what probability a proven answer is wrong, over all that may happen."""
    chance, found, wrong, total = Chance(), np.zeros((N_ARMS, 2)), 0.0, 0.0
    while True:
        chance.begin()
        selector = create()
        found += surprises(selector, chance, ahead) * chance.probability
        decision = selector.decision()
        is_wrong = decision.claim.kind == "proven" and decision.best != SCORES.mean(axis=1).argmax()
        wrong, total = wrong + is_wrong * chance.probability, total + chance.probability
        if not chance.advance():
            assert total == pytest.approx(1.0)
            return found, wrong


@pytest.mark.parametrize("ahead", [0, 2])
@pytest.mark.parametrize("name", SELECTORS)
def test_no_selector_knows_more_of_the_next_score_than_its_mean_over_what_is_left(name, ahead):
    for budget in (None, 5) if ahead else (5,):
        sizes = {"n_arms": N_ARMS, "n_examples": N_EXAMPLES, "batch_size": 2, "budget": budget}
        found, wrong = mean_of_all(lambda sizes=sizes: create_selector(name, delta=DELTA, **sizes), ahead)
        np.testing.assert_allclose(found, 0.0, atol=1e-12)
        assert name == "gate" or wrong <= DELTA


class FollowsTheOther:
    """Asks arm 0 two examples, then arm 1 the one of them on which arm 0 did better."""

    def __init__(self):
        self._told = []

    def ask(self, rng):
        if not self._told:
            return Batch([0, 0], rng.choice(range(N_EXAMPLES), size=2, replace=False))
        (batch, scores), *more = self._told
        return EMPTY_BATCH if more else Batch([1], [batch.examples[scores.argmax()]])

    def tell(self, batch, scores):
        self._told.append((batch, scores))

    def decision(self):
        return create_selector("row-mean", n_arms=N_ARMS, n_examples=N_EXAMPLES).decision()


def test_examples_that_are_chosen_by_what_others_scored_on_them_are_caught():
    assert abs(mean_of_all(FollowsTheOther, 0)[0][1, 0]) > 0.05
