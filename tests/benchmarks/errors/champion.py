"""Champions among few and many arms, on few and many examples, at several error probabilities.

What is told is made to mislead the champion; arms are dropped, join, or miss a constraint.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from tests.benchmarks.errors.cells import Scene
from winnow.algorithms.best_mean.config import BestMeanConfig
from winnow.algorithms.champion.selector import Champion
from winnow.algorithms.decision import Decision
from winnow.algorithms.protocols import Batch

DELTAS = 0.2, 0.1, 0.05, 0.01
BATCH = 64
SAME_MEAN = 1e-9
AT_LEAST = 0.75

Rng = np.random.Generator
Scores = np.ndarray


def near_ties(rng: Rng, n_arms: int, n_examples: int) -> Scores:
    """All arms are right equally often, but the first on one example more."""
    rows = np.arange(n_examples) < n_examples // 2 + (np.arange(n_arms) == 0)[:, np.newaxis]
    return rng.permuted(rows, axis=1).astype(float)


def paired_near_ties(rng: Rng, n_arms: int, n_examples: int) -> Scores:
    """All arms are right on nearly the same examples, and the first on one more."""
    scores = np.tile(rng.permutation(np.arange(n_examples) < n_examples // 2).astype(float), (n_arms, 1))
    right, wrong = np.flatnonzero(scores[0] == 1.0), np.flatnonzero(scores[0] == 0.0)
    for arm in range(n_arms):
        scores[arm, rng.choice(right, 5, replace=False)] = 0.0
        scores[arm, rng.choice(wrong, 6 if arm == 0 else 5, replace=False)] = 1.0
    return scores


def clones_that_anticorrelate(rng: Rng, n_arms: int, n_examples: int) -> Scores:
    """Half of the arms are right just where the first, the best by two examples, is wrong."""
    best = rng.permutation(np.arange(n_examples) < n_examples // 2 + 1)
    scores = near_ties(rng, n_arms, n_examples)
    scores[0], scores[n_arms // 2 :] = best, ~best
    return scores


def one_deviating_example(rng: Rng, n_arms: int, n_examples: int) -> Scores:
    """All arms agree but on one example, which alone decides."""
    scores = np.tile((rng.random(n_examples) < 0.7).astype(float), (n_arms, 1))
    decisive = rng.integers(n_examples)
    scores[:, decisive] = 0.0
    scores[0, decisive] = 1.0
    return scores


def continuous(rng: Rng, n_arms: int, n_examples: int) -> Scores:
    """All arms have the same scores between 0 and 1 in other orders, but the lowest of the first is 1."""
    scores = rng.permuted(np.tile(rng.beta(2.0, 2.0, n_examples), (n_arms, 1)), axis=1)
    scores[0, scores[0].argmin()] = 1.0
    return scores


def rare_large(rng: Rng, n_arms: int, n_examples: int) -> Scores:
    """Scores near 0, and a few of 1: one more of the first arm."""
    scores = 0.05 * rng.permuted(np.tile(rng.random(n_examples), (n_arms, 1)), axis=1)
    for arm in range(n_arms):
        scores[arm, rng.choice(n_examples, 3 if arm == 0 else 2, replace=False)] = 1.0
    return scores


def constant(rng: Rng, n_arms: int, n_examples: int) -> Scores:
    """Each arm has the same score on all examples, and the first a hair more than the others."""
    levels = np.full(n_arms, rng.uniform(0.2, 0.8))
    levels[0] += 1.0 / n_examples
    return np.tile(levels[:, np.newaxis], (1, n_examples))


def duplicates_of_the_best(rng: Rng, n_arms: int, n_examples: int) -> Scores:
    """A third of the arms have the first arm's row; all others are right on one example fewer."""
    scores = near_ties(rng, n_arms, n_examples)
    scores[: n_arms // 3] = scores[0]
    return scores


def graded(rng: Rng, n_arms: int, n_examples: int) -> Scores:
    """The first arm is right on 65% of the examples, and each further one on 5% fewer."""
    rights = np.round((0.65 - 0.05 * np.arange(n_arms)) * n_examples)
    return rng.permuted(np.arange(n_examples) < rights[:, np.newaxis], axis=1).astype(float)


STEP = 0.15
EPSILON = 0.2


def epsilon_apart(rng: Rng, n_arms: int, n_examples: int) -> Scores:
    """The first arm is right on one example more than 20% of them more than all others."""
    rights = np.full(n_arms, round((0.9 - EPSILON) * n_examples) - 1)
    rights[0] = round(0.9 * n_examples)
    return rng.permuted(np.arange(n_examples) < rights[:, np.newaxis], axis=1).astype(float)


def in_steps(rng: Rng, n_arms: int, n_examples: int) -> Scores:
    """Each arm is right on 15% of the examples fewer than the one before, on other ones."""
    rights = np.round((0.8 - STEP * np.arange(n_arms)) * n_examples)
    return rng.permuted(np.arange(n_examples) < rights[:, np.newaxis], axis=1).astype(float)


class Case(NamedTuple):
    """A world: its tables, their size, how they are told and what the selector is given."""

    draw: Callable[[Rng, int, int], Scores]
    n_arms: int
    n_examples: int
    happens: str = ""
    """What befalls a campaign, in a sentence; "" if nothing does."""
    way: str = "plain"
    """A key of `WAYS`."""
    params: Mapping[str, Any] = {}
    """The selector's own."""
    epsilon: float = 0.0
    is_shown: bool = True
    """Whether intervals are worked out: nothing is decided by them, and they take half of the time."""

    @property
    def says(self) -> str:
        """What is in it, in sentences."""
        table = " ".join((self.draw.__doc__ or "").split())
        epsilon = f"Epsilon is {self.epsilon:g}." if self.epsilon else ""
        size = f"{self.n_arms} x {self.n_examples}."
        return " ".join(filter(None, (size, table, self.happens, epsilon)))


MISSING = "Up to 40% of the wrong outputs of the lower half of the arms are unscored."
DROPPED = "The first arm is unscored from some draw on, and dropped."
JOINING = "Half of the arms, any of them, join after 100 comparisons."
TOPPED_UP = "Two arms, any of them, are there; whenever it is decided, two more join."
AGAIN = (
    "Up to 40% of all wrong outputs fail. After each round and at the end those of all arms, of the leader, "
    "of all others or of none are asked again, and are scored or fail once more."
)
OPPOSED = "In the history easy examples are those that are hard for the arms."
CONSTRAINED = "The first arm misses a constraint by one example; the others just meet it."

CASES: Mapping[str, Case] = {
    "near ties, 3 arms": Case(near_ties, 3, 1),
    "near ties, 2 arms": Case(near_ties, 2, 1000),
    "near ties, 30 arms": Case(near_ties, 30, 60),
    "near ties, 300 arms": Case(near_ties, 300, 12),
    "paired near ties": Case(paired_near_ties, 12, 60),
    "clones that anticorrelate": Case(clones_that_anticorrelate, 8, 60),
    "one deviating example": Case(one_deviating_example, 20, 40),
    "continuous": Case(continuous, 8, 100),
    "rare large": Case(rare_large, 20, 60),
    "constant": Case(constant, 5, 300),
    "duplicates of the best": Case(duplicates_of_the_best, 12, 60),
    "graded": Case(graded, 10, 200),
    "missing where wrong": Case(graded, 6, 100, MISSING, "missing"),
    "failed where wrong, asked again": Case(graded, 6, 100, AGAIN, "asked again"),
    "failed where wrong, asked again, no race": Case(
        graded, 6, 100, AGAIN, "asked again", {"start": "champion"}
    ),
    "best is dropped": Case(graded, 6, 100, DROPPED, "dropped"),
    "best is dropped, reserved for": Case(graded, 6, 100, DROPPED, "dropped", {"dropping": "reserved"}),
    "arms join": Case(near_ties, 10, 60, JOINING, "joining"),
    "arms join when it is decided": Case(graded, 6, 100, TOPPED_UP, "topped up", {"additions": "expected"}),
    "hostile history": Case(near_ties, 8, 60, OPPOSED, "opposed", {"start": "champion"}),
    "epsilon apart": Case(epsilon_apart, 2, 100, epsilon=EPSILON),
    "epsilon apart, in steps": Case(in_steps, 4, 100, epsilon=EPSILON),
    "epsilon apart, missing where wrong": Case(epsilon_apart, 4, 100, MISSING, "missing", epsilon=EPSILON),
    "epsilon apart, failed where wrong, asked again": Case(
        epsilon_apart, 4, 100, AGAIN, "asked again", epsilon=EPSILON
    ),
    "epsilon apart, best is dropped": Case(in_steps, 5, 100, DROPPED, "dropped", epsilon=EPSILON),
    "constraint missed": Case(graded, 6, 100, CONSTRAINED, "constrained"),
}


def scene(
    case: str,
    delta: float,
    rng: Rng,
    *,
    unconstrained: bool = False,
    is_shown: bool = True,
    are_leaders_alone: bool = False,
) -> Scene:
    """A table, and a champion at its start.

    Args:
        case: A key of `CASES`.
        delta: The error probability that is asked for.
        rng: Draws the table.
        unconstrained: Whether the constraint is told as met everywhere, on purpose.
        is_shown: See `Case`.
        are_leaders_alone: Whether only failed outputs of the leader are asked again, and all others thought
            to be right, on purpose.
    """
    found = CASES[case]._replace(is_shown=is_shown)
    scores = found.draw(rng, found.n_arms, found.n_examples)
    drawn = WAYS[found.way](found, delta, scores, rng)
    if isinstance(drawn.selector, AskedAgain):
        drawn.selector.are_leaders_alone = are_leaders_alone
    if unconstrained:
        return drawn._replace(outcomes=lambda batch, rng: np.maximum(drawn.outcomes(batch, rng), [0.0, 1.0]))
    return drawn


def _champion(case: Case, delta: float, n_arms: int, **params: Any) -> Champion:
    config = BestMeanConfig(
        n_arms=n_arms,
        n_examples=case.n_examples,
        batch_size=BATCH,
        delta=delta,
        epsilon=case.epsilon,
        max_unscored=0.5,
    )
    champion = Champion(config, **{**case.params, **params})
    if not case.is_shown:
        champion._verdict._intervals = None
    return champion


def _plain(case: Case, delta: float, scores: Scores, rng: Rng) -> Scene:
    del rng
    return Scene(_champion(case, delta, len(scores)), _told(scores), _names_a_worse_one(scores, case.epsilon))


def _opposed(case: Case, delta: float, scores: Scores, rng: Rng) -> Scene:
    del rng
    history = 1.0 - np.concatenate([scores, scores])
    return Scene(
        _champion(case, delta, len(scores), history=history),
        _told(scores),
        _names_a_worse_one(scores, case.epsilon),
    )


def _missing(case: Case, delta: float, scores: Scores, rng: Rng) -> Scene:
    told = scores.copy()
    told[(scores == 0.0) & (rng.random(scores.shape) < rng.uniform(0.0, 0.4))] = np.nan
    told[: len(scores) // 2] = scores[: len(scores) // 2]
    return Scene(_champion(case, delta, len(scores)), _told(told), _names_a_worse_one(scores, case.epsilon))


def _dropped(case: Case, delta: float, scores: Scores, rng: Rng) -> Scene:
    """The first arm's outputs are unscored after a number of draws."""
    left = int(rng.integers(case.n_examples // 4))

    def outcomes(batch: Batch, _: Rng) -> Scores:
        nonlocal left
        told = scores[batch.arms, batch.examples]
        of_first = np.flatnonzero(batch.arms == 0)
        told[of_first[left:]] = np.nan
        left = max(left - len(of_first), 0)
        return told

    return Scene(_champion(case, delta, len(scores)), outcomes, _names_a_worse_one(scores, case.epsilon))


def _joining(case: Case, delta: float, scores: Scores, rng: Rng) -> Scene:
    """The best arm may be there from the start or join."""
    scores = scores[rng.permutation(len(scores))]
    selector, told = _champion(case, delta, case.n_arms // 2), 0

    def outcomes(batch: Batch, _: Rng) -> Scores:
        nonlocal told
        if told < 100 <= told + len(batch):
            selector.add_arms(case.n_arms - case.n_arms // 2)
        told += len(batch)
        return scores[batch.arms, batch.examples]

    return Scene(selector, outcomes, _names_a_worse_one(scores, case.epsilon))


class ToppedUp:
    """A champion whose owner, whenever it has decided, lets some more arms take part."""

    def __init__(self, selector: Champion, n_arms: int) -> None:
        self._selector, self._n_arms = selector, n_arms
        self.tell, self.decision = selector.tell, selector.decision

    def ask(self, rng: Rng) -> Batch:
        """Propose pairs; with more arms where there would be none."""
        batch = self._selector.ask(rng)
        if len(batch) == 0 and self._selector.n_arms < self._n_arms:
            self._selector.add_arms(2)
            batch = self._selector.ask(rng)
        return batch


def _topped_up(case: Case, delta: float, scores: Scores, rng: Rng) -> Scene:
    scores = scores[rng.permutation(len(scores))]
    selector = _champion(case, delta, 2)
    return Scene(ToppedUp(selector, case.n_arms), _told(scores), _names_a_worse_one(scores, case.epsilon))


def _constrained(case: Case, delta: float, scores: Scores, rng: Rng) -> Scene:
    at_least = round(AT_LEAST * case.n_examples)
    met = np.arange(case.n_examples) < at_least - (np.arange(len(scores)) == 0)[:, np.newaxis]
    outcomes = np.stack([scores, rng.permuted(met, axis=1).astype(float)], axis=2)
    may_be_named = np.arange(len(scores)) > 0
    return Scene(
        _champion(case, delta, len(scores), constraints=np.array([at_least / case.n_examples])),
        _told(outcomes),
        _names_a_worse_one(scores, case.epsilon, may_be_named),
    )


class AskedAgain:
    """A champion whose owner asks failed outputs again, those that scores so far suggest to him."""

    def __init__(self, selector: Champion, scores: Scores) -> None:
        self._selector, self._scores = selector, scores
        self._failed: list[tuple[int, int]] = []
        self._n_at_end = 2
        self.are_leaders_alone = False
        self.decision = selector.decision

    def ask(self, rng: Rng) -> Batch:
        """Propose pairs, after some failed ones were asked again."""
        self._ask_again(rng)
        while len(batch := self._selector.ask(rng)) == 0 and self._n_at_end and self._failed:
            self._n_at_end -= 1
            self._ask_again(rng)
        return batch

    def tell(self, batch: Batch, outcomes: Scores) -> None:
        """Tell outcomes, of which failed ones are NaN."""
        failed = np.isnan(outcomes)
        pairs = zip(batch.arms[failed].tolist(), batch.examples[failed].tolist(), strict=True)
        if self.are_leaders_alone:
            true = self._scores[batch.arms, batch.examples]
            guessed = np.where(batch.arms == self._leader, true, 1.0)
            self._selector.tell(batch, np.where(failed, guessed, outcomes))
            return
        self._failed += pairs
        self._selector.tell(batch, outcomes)

    @property
    def _leader(self) -> int:
        """The arm with the highest mean so far."""
        draws = self._selector.evidence.draws
        return int((draws.low / np.maximum(draws.scored, 1)).argmax())

    def _ask_again(self, rng: Rng) -> None:
        which = rng.integers(4)
        chosen = [
            (arm, example)
            for arm, example in self._failed
            if which == 0 or (which in (1, 2) and (arm == self._leader) == (which == 1))
        ]
        if not chosen:
            return
        arms, examples = np.array(sorted(chosen)).T
        outcomes = self._scores[arms, examples].copy()
        outcomes[rng.random(len(outcomes)) < 0.2] = np.nan
        known = ~np.isnan(outcomes)
        scored = set(zip(arms[known].tolist(), examples[known].tolist(), strict=True))
        self._failed = [pair for pair in self._failed if pair not in scored]
        self._selector.revise(Batch(arms, examples), outcomes)


def _asked_again(case: Case, delta: float, scores: Scores, rng: Rng) -> Scene:
    told = scores.copy()
    told[(scores == 0.0) & (rng.random(scores.shape) < rng.uniform(0.0, 0.4))] = np.nan
    selector = AskedAgain(_champion(case, delta, len(scores)), scores)
    return Scene(selector, _told(told), _names_a_worse_one(scores, case.epsilon))


WAYS: Mapping[str, Callable[[Case, float, Scores, Rng], Scene]] = {
    "plain": _plain,
    "opposed": _opposed,
    "missing": _missing,
    "asked again": _asked_again,
    "dropped": _dropped,
    "joining": _joining,
    "topped up": _topped_up,
    "constrained": _constrained,
}


def _told(outcomes: Scores) -> Callable[[Batch, Rng], Scores]:
    return lambda batch, _: outcomes[batch.arms, batch.examples]


def _names_a_worse_one(
    scores: Scores, epsilon: float, may_be_named: Scores | None = None
) -> Callable[[Decision], bool]:
    """Whether nobody is named, or an arm that may not be, or one that an arm not dropped is far above."""
    means = np.where(True if may_be_named is None else may_be_named, scores.mean(axis=1), -np.inf)

    def is_wrong(decision: Decision) -> bool:
        status = np.array(decision.status)
        named, there = np.isin(status, ("best", "tied")), means[: len(status)]
        highest = there[status != "dropped"].max()
        return not named.any() or bool(there[named].min() < highest - epsilon - SAME_MEAN)

    return is_wrong
