"""How long to race before testing against a filled row.

A mode is fixed beforehand; cost estimates decide when to leave the race. No claim depends on the cost
estimates: the decision to leave the race can use any observation.
"""

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from winnow.algorithms.champion.race import OPPONENT_COUNTS
from winnow.algorithms.state.arrays import FloatArray

Start = Literal["auto", "race", "champion"]

COLUMNS_PER_RIVAL = 0.75  # race and tests cost the same at N = 0.75 K^2, fitted to tables of scores
LEAST_WEIGHT, MOST_WEIGHT = 0.2, 0.95
FEWEST_COLUMNS = 2
FIRST_DRAWS = 4
SHARE_OF_FIRST_COLUMNS = 0.3  # cost of the first common examples of all arms, as a share of a row


@dataclass(frozen=True, slots=True)
class Mode:
    """Shares of the stake and limits of the race, chosen before any observation.

    If a share depended on observations, a union bound would be needed.
    """

    weight: float
    """w, share of each arm's stake bet in the race.
    0 for tests against a filled row alone."""
    columns: int
    """Number of common examples proposed before the race can be left."""
    leaves: bool
    """Whether the race can be left for tests against a filled row."""
    within: float = 0.0
    """v, share of each arm's stake bet in the race on not exceeding others by epsilon."""


def mode_of(n_arms: int, n_examples: int, start: Start, *, delta: float, epsilon: float) -> Mode:
    """Choose the mode for a K x N matrix."""
    if start == "race":
        within = _share_within(n_arms, n_examples, delta, epsilon)
        return Mode(MOST_WEIGHT, n_examples, leaves=False, within=within)
    if start == "champion":
        return Mode(0.0, min(FIRST_DRAWS, n_examples), leaves=True)
    columns = max(FEWEST_COLUMNS, int(SHARE_OF_FIRST_COLUMNS * n_examples / n_arms))
    odds = (n_examples / (COLUMNS_PER_RIVAL * n_arms**2)) ** 3
    weight = odds / (1.0 + odds)
    if weight < LEAST_WEIGHT:
        return Mode(0.0, min(columns, n_examples), leaves=True)
    within = _share_within(n_arms, n_examples, delta, epsilon, most_rows=WORTH_OF_A_ROW)
    return Mode(min(weight, MOST_WEIGHT), min(columns, n_examples), leaves=True, within=within)


SHARE_WITHIN = 0.5
VARIANCE_OF_LEADS = 0.12  # approximate variance of a score's lead over that of a similar model on an example
MOST_OF_A_ROW = 0.9  # largest share of a row's examples: beyond it, almost nothing can be saved
WORTH_OF_A_ROW = 3.0  # the race is left if it costs more than this number of rows: tests follow a fill


def _share_within(
    n_arms: int, n_examples: int, delta: float, epsilon: float, *, most_rows: float = math.inf
) -> float:
    """Share v of the stake for bets within epsilon.

    0 if such bets would need too many draws. That is, to separate arms of equal mean from arms epsilon apart
    would need more than `MOST_OF_A_ROW` of each row, or more than `most_rows` rows in total.
    """
    if epsilon == 0.0:
        return 0.0
    log_level = _log_level_within(n_arms, delta, SHARE_WITHIN)
    needed = np.array(2.0 * (log_level + 1.0) * VARIANCE_OF_LEADS / epsilon**2)
    rows = _without_replacement(n_examples, needed).item() / n_examples
    return SHARE_WITHIN if rows <= MOST_OF_A_ROW and n_arms * rows <= most_rows else 0.0


def _log_level_within(n_arms: int, delta: float, within: float) -> float:
    """ln((K - 1) / (v delta)), log wealth for the bets against one arm.

    These bets must reach it by themselves. Infinite if v is 0.
    """
    return math.log((n_arms - 1) / (within * delta)) if within > 0.0 else math.inf


DRAWS = 24
GUESS_PER_ARM = 2.5  # n_0 / K: guessed columns of a race of K arms, before any observation
TRUSTED_COLUMNS = 32  # number of observed columns at which the estimate weighs as much as the guess


class Goal(NamedTuple):
    """Condition that ends a race.

    All arms but one are eliminated, or do not exceed that one by epsilon.
    """

    log_level: float
    """ln(1 / delta)."""
    log_level_within: float
    """ln((K - 1) / (v delta)); infinite without such bets."""
    epsilon: float

    @classmethod
    def of(cls, mode: Mode, n_arms: int, delta: float, epsilon: float) -> "Goal":
        """Create the goal for K arms."""
        return cls(-math.log(delta), _log_level_within(n_arms, delta, mode.within), epsilon)


def race_costs_more(
    n_examples: int,
    n_columns: int,
    goal: Goal,
    means: FloatArray,
    products: FloatArray,
    n_arms: int,
    rng: np.random.Generator,
) -> bool:
    """Whether the rest of the race is expected to cost more than leaving it.

    Args:
        n_examples: N.
        n_columns: t, observed common examples, at least 2.
        goal: The condition that would end the race.
        means: Shape (A,), mean scores of the arms in the race.
        products: Shape (A, A), mean products of their scores.
        n_arms: K.
        rng: Draws plausible means.
    """
    guessed = _without_replacement(n_examples, np.array(GUESS_PER_ARM * n_arms)).item() * len(means)
    seen = _expected_cost(n_examples, n_columns, goal, means, products, rng)
    trust = n_columns / (n_columns + TRUSTED_COLUMNS)
    cost = max(seen, 1.0) ** trust * guessed ** (1.0 - trust)
    return bool(cost > WORTH_OF_A_ROW * (n_examples - n_columns))


def _expected_cost(
    n_examples: int,
    t: int,
    goal: Goal,
    means: FloatArray,
    products: FloatArray,
    rng: np.random.Generator,
) -> float:
    """Expected comparisons until the race ends.

    The average over plausible means of the arms.
    """
    covariances = products - np.outer(means, means)  # (A, A)
    own = covariances.diagonal()
    specific = np.maximum(own - 2.0 * covariances.mean(axis=1) + covariances.mean(), 1e-4)  # (A,) q
    kept = max(0.05, 1.0 - (specific / t).mean() / max(means.var(), 1e-12))
    centre = means.mean() + kept * (means - means.mean())
    noise = np.sqrt(kept * specific / t * (1.0 - t / n_examples))
    drawn = centre + noise * rng.standard_normal((DRAWS, len(means)))  # (R, A)
    order = np.argsort(-drawn, axis=1, kind="stable")
    best = order[:, 0]
    sizes = OPPONENT_COUNTS[: max(1, int(np.searchsorted(OPPONENT_COUNTS, len(means))))]
    highest = (
        np.take_along_axis(drawn, order[:, : int(sizes[-1])], axis=1).cumsum(axis=1)[:, sizes - 1] / sizes
    )
    gap = np.maximum(highest[:, np.newaxis, :] - drawn[:, :, np.newaxis], 1e-6)  # (R, A, G)
    spread = np.broadcast_to(specific[:, np.newaxis] + specific.mean() / sizes, gap.shape).copy()
    spread[:, :, 0] = np.maximum(own[best][:, np.newaxis] + own - 2.0 * covariances[best], 1e-4)
    rate = (gap**2 / (spread + 0.35 * gap)).max(axis=2)  # (R, A)
    is_best = (np.arange(DRAWS), best)
    needed = _without_replacement(n_examples, 2.0 * (goal.log_level + 1.0) / rate)
    needed[is_best] = t
    end = needed.max(axis=1)  # columns at the end of the race; until then the remaining arms get examples
    if math.isfinite(goal.log_level_within):
        ahead = gap[:, :, 0] + goal.epsilon
        rate = ahead**2 / (spread[:, :, 0] + 0.35 * ahead)
        within = _without_replacement(n_examples, 2.0 * (goal.log_level_within + 1.0) / rate)
        within[is_best] = t
        end = np.minimum(needed, within).max(axis=1)
    stays = np.minimum(needed, end[:, np.newaxis])
    return float((np.maximum(stays - t, 0.0).sum(axis=1) + np.maximum(end - t, 0.0)).mean())


def _without_replacement(n_examples: int, with_replacement: FloatArray) -> FloatArray:
    """Number of draws without replacement that inform as much as draws with it."""
    return np.asarray(n_examples * with_replacement / (n_examples + with_replacement))
