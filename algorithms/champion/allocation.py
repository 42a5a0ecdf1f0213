"""Which arms to ask next, and how often, outside the race; nothing here changes what may be claimed."""

import math

import numpy as np

from winnow.algorithms.champion.evidence import Evidence
from winnow.algorithms.state.arrays import FloatArray, IntArray

BOLDNESS = 0.8  # a: of the bonus for what was seen little
FILL_SHARE = 0.25  # phi: a row is filled outright once so much of it was asked
SMALLEST = 4
MOST_ARMS = 8  # in a round of tests
GROWTH = 0.1  # of what an arm was asked already
FILL_STEPS = 6  # rounds that an arm is asked at least before it is filled outright
LEAD_GROWTH = 0.5  # of what the arm in front was asked already: it may not be in front for long
RIVALS, SMALLEST_RIVAL = 5, 3  # other arms in a round of the search
SHARE_OF_NEED = 0.4  # of the draws that an arm may need until it is out

Portion = tuple[int, int]
"""An arm, and how many of its examples to ask."""


def plan(evidence: Evidence, asked: IntArray, round_size: int) -> list[Portion]:
    """What to ask next; nothing where no arm in question has an example left.

    Args:
        evidence: What was told.
        asked: Shape (K,), examples told of each arm or in flight.
        round_size: Pairs that a round should have, about.
    """
    arms = np.flatnonzero(evidence.alive & (asked < evidence.n_examples))
    if arms.size == 0:
        return []
    if evidence.champion is None:
        return _search(evidence, arms, asked[arms], round_size)
    return _test(evidence, arms, asked[arms], round_size)


def _search(evidence: Evidence, arms: IntArray, asked: IntArray, round_size: int) -> list[Portion]:
    """Look for the row to fill: the arms that may be best, until one was asked often enough."""
    means = evidence.controls.estimates(evidence.draws, arms)
    order = np.argsort(-(means + _bonus(evidence, arms, asked)), kind="stable")
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
    """Test the arms that may be best, so that a better one soon raises the level for all others."""
    means = evidence.controls.estimates(evidence.draws, arms)
    bonus = _bonus(evidence, arms, asked) * (1.0 - asked / evidence.n_examples)
    order = np.argsort(-(means + bonus), kind="stable")
    if round_size <= SMALLEST:
        return [(int(arms[order[0]]), round_size)]
    order = order[:MOST_ARMS]
    counts = evidence.draws.count[arms[order]]
    sizes = np.maximum(math.ceil(round_size / len(order)), GROWTH * counts)
    sizes = np.minimum(sizes, SHARE_OF_NEED * _need(evidence, arms[order]) + 2.0)
    return [(int(arm), max(1, int(size))) for arm, size in zip(arms[order], sizes, strict=True)]


def _bonus(evidence: Evidence, arms: IntArray, asked: IntArray) -> FloatArray:
    n = np.maximum(asked, 1)
    by_variance = np.sqrt(4.0 * BOLDNESS * (evidence.draws.variances[arms] + 1.0 / n) / n)
    return np.where(asked > 0, np.minimum(by_variance, np.sqrt(BOLDNESS / n)), np.inf)


def _need(evidence: Evidence, arms: IntArray) -> FloatArray:
    """Draws that each arm may need until it is out, if it goes on as so far; infinite where it does not."""
    logs = np.log(np.maximum(evidence.wealths(arms), 1e-300))
    counts = np.maximum(evidence.draws.count[arms], 1)
    need = (np.log(evidence.levels[arms]) - logs) * counts / np.where(logs > 0.0, logs, 1.0)
    return np.where(logs > 0.0, np.maximum(need, 0.0), np.inf)
