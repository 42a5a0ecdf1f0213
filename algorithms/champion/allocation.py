"""Choose, outside the race, which arms to propose next and how often.

Claims do not depend on these choices. If the arms are compared by the least mean of their groups, an arm's
optimistic value is the least optimistic value of its groups, and its draws go to the group that looks worst.
With constraints, arms that optimistically meet them come first.
"""

import math

import numpy as np

from winnow.algorithms.champion.draw_order import Draws
from winnow.algorithms.champion.elimination import Evidence
from winnow.algorithms.champion.switch import FIRST_DRAWS
from winnow.algorithms.state.arrays import BoolArray, FloatArray, IntArray

BOLDNESS = 0.8  # a: factor of the bonus for few observations
FILL_SHARE = 0.25  # phi: once this share of a row was proposed, the rest is proposed at once
SMALLEST = 4
MOST_ARMS = 8  # per round of tests
GROWTH = 0.1  # relative to the examples proposed for an arm so far
FILL_STEPS = 6  # minimum number of rounds of an arm before it is filled completely
LEAD_GROWTH = 0.5  # for the leading arm, relative to its proposed examples; the lead is still uncertain
RIVALS, SMALLEST_RIVAL = 5, 3  # number of other arms in a round of the search, and their smallest portion
SHARE_OF_NEED = 0.4  # largest portion, as a share of the estimated draws until an arm is eliminated
MOST_STEPS = 64  # number of steps in which an arm's draws are distributed over its groups

Portion = tuple[int, int]
"""An arm and the number of its examples to propose."""


def plan(evidence: Evidence, asked: IntArray, round_size: int) -> list[Portion]:
    """Plan the next portions; empty if no arm in question has an example left.

    Args:
        evidence: The evidence from all observations.
        asked: Shape (K, P), number of examples of each part observed or in flight for each arm.
        round_size: Approximate number of pairs in a round.
    """
    in_all = asked.sum(axis=1)
    arms = np.flatnonzero(evidence.alive & (in_all < evidence.n_examples))
    if arms.size == 0:
        return []
    if evidence.groups.n_parts > 1 and (new := arms[in_all[arms] == 0]).size:
        return [(int(arm), FIRST_DRAWS) for arm in new]
    if evidence.champion is None:
        return _search(evidence, arms, asked[arms], round_size)
    return _test(evidence, arms, asked[arms], round_size)


def _search(evidence: Evidence, arms: IntArray, asked: IntArray, round_size: int) -> list[Portion]:
    """Portions that look for the row to fill.

    The most promising arm gets the largest portion. Once `FILL_SHARE` of its row was proposed, it gets the
    rest of the row.
    """
    order = np.lexsort((-_optimistic_values(evidence, arms, asked), ~_may_meet(evidence, arms)))
    asked = asked.sum(axis=1)
    first, n_first = int(arms[order[0]]), int(asked[order[0]])
    enough = FILL_SHARE * evidence.n_examples
    if n_first >= enough:
        return [(first, evidence.n_examples - n_first)]
    if round_size <= SMALLEST:
        return [(first, round_size)]
    lead = min(round_size, int(enough / FILL_STEPS), int(LEAD_GROWTH * n_first) + SMALLEST)
    portions = [(first, max(SMALLEST, lead))]
    for each in order[1 : 1 + RIVALS]:
        portions.append((int(arms[each]), max(SMALLEST_RIVAL, int(GROWTH * asked[each]))))
    return portions


def _test(evidence: Evidence, arms: IntArray, asked: IntArray, round_size: int) -> list[Portion]:
    """Portions of the most promising arms.

    Testing these first soon raises the threshold for all others.
    """
    order = np.lexsort((-_optimistic_values(evidence, arms, asked, shrinks=True), ~_may_meet(evidence, arms)))
    if round_size <= SMALLEST:
        return [(int(arms[order[0]]), round_size)]
    order = order[:MOST_ARMS]
    counts = _counts(evidence, arms[order])
    sizes = np.maximum(math.ceil(round_size / len(order)), GROWTH * counts)
    sizes = np.minimum(sizes, SHARE_OF_NEED * _need(evidence, arms[order]) + 2.0)
    return [(int(arm), max(1, int(size))) for arm, size in zip(arms[order], sizes, strict=True)]


def spread(
    evidence: Evidence, arm: int, asked: IntArray, wanted: int, rng: np.random.Generator
) -> list[tuple[int, int]]:
    """Distribute the next examples of an arm over its parts.

    Args:
        evidence: The evidence from all observations.
        arm: The arm.
        asked: Shape (P,), number of its examples of each part observed or in flight.
        wanted: Number of examples to distribute, at least 1; fewer are returned if fewer are free.
        rng: Breaks ties between parts.

    Returns:
        Pairs of a part and a number of its examples, each part once.
    """
    groups, given = evidence.groups, np.zeros_like(asked)
    free = groups.part_sizes - asked
    rows = groups.rows_of(np.array([arm]))
    means = evidence.controls.estimates(evidence.draws, rows)
    chance = rng.permutation(len(asked))
    wanted = min(wanted, int(free.sum()))
    step = max(1, wanted // MOST_STEPS)
    while (rest := wanted - int(given.sum())) > 0:
        n = asked + given
        least = np.where(n > 0, means - np.sqrt(BOLDNESS / np.maximum(n, 1)), -np.inf)
        part = int(np.lexsort((chance, np.where(given < free, least, np.inf)))[0])
        given[part] += min(step, rest, int(free[part] - given[part]))
    return [(int(part), int(given[part])) for part in np.flatnonzero(given)]


def _optimistic_values(
    evidence: Evidence, arms: IntArray, asked: IntArray, *, shrinks: bool = False
) -> FloatArray:
    """Optimistic value of each of A arms, shape (A,).

    Args:
        evidence: The evidence from all observations.
        arms: Shape (A,).
        asked: Shape (A, P), number of examples of each part observed or in flight.
        shrinks: Whether the bonus decreases with the share of a row that remains.
    """
    rows, n = evidence.groups.rows_of(arms), asked.ravel()
    bonus = _bonus(evidence.draws, rows, n)
    if shrinks:
        n_left = 1.0 - n / np.tile(evidence.groups.part_sizes, len(arms))
        bonus = np.where(n_left > 0.0, bonus * n_left, 0.0)
    return evidence.groups.least(evidence.controls.estimates(evidence.draws, rows) + bonus)


def _counts(evidence: Evidence, arms: IntArray) -> IntArray:
    """Number of draws of each of A arms, shape (A,)."""
    rows = evidence.groups.rows_of(arms)
    return np.asarray(evidence.draws.count[rows].reshape(-1, evidence.groups.n_parts).sum(axis=1))


def _may_meet(evidence: Evidence, arms: IntArray) -> BoolArray:
    """Which of A arms optimistically meet all constraints, shape (A,)."""
    hoped = np.ones(len(arms), dtype=np.bool_)
    for each in evidence.constraints:
        counts = each.draws.count[arms]
        means = each.draws.high[arms] / np.maximum(counts, 1)
        hoped &= means + _bonus(each.draws, arms, counts) >= each.least / evidence.n_examples
    return hoped


def _bonus(draws: Draws, arms: IntArray, asked: IntArray) -> FloatArray:
    n = np.maximum(asked, 1)
    by_variance = np.sqrt(4.0 * BOLDNESS * (draws.variances[arms] + 1.0 / n) / n)
    return np.where(asked > 0, np.minimum(by_variance, np.sqrt(BOLDNESS / n)), np.inf)


def _need(evidence: Evidence, arms: IntArray) -> FloatArray:
    """Estimated further draws until each arm is eliminated, shape (A,).

    Assumes that an arm's wealth keeps its growth rate; infinite if the wealth has not grown.
    """
    logs = np.log(np.maximum(evidence.wealths(arms), 1e-300))
    counts = np.maximum(_counts(evidence, arms), 1)
    need = (np.log(evidence.levels[arms]) - logs) * counts / np.where(logs > 0.0, logs, 1.0)
    return np.where(logs > 0.0, np.maximum(need, 0.0), np.inf)
