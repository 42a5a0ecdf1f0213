"""Number of prompts after which a route campaign can show a benefit, in an assumed world."""

from dataclasses import dataclass

import numpy as np

from winnow.algorithms.route.advantage import AdvantageRecord

GAIN = 0.1
"""Assumed gain in mean score of routing over the best single candidate."""
BEST = 0.8
"""Mean score of the right candidate for a prompt."""
MOST_PROMPTS = 100_000
AT_ONCE = 1_000
BETWEEN_LOOKS = 1.1
"""Growth factor of the number of prompts between two looks."""
SEED = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Exploring:
    """The assumed result of an explored share."""

    explore: float
    gain: float
    prompts: int | None
    """The number of prompts in one random world; None if more than `MOST_PROMPTS` are needed."""


def prompts_to_show(n_arms: int, *, explore: float, delta: float) -> Exploring:
    """Number of prompts until the interval of the line *pays* is above 0.

    Assumptions: each candidate is the right one for equally many prompts, routing finds it for all prompts
    that are not explored, and scores are 0 or 1. The interval is that of `AdvantageRecord`, which narrows
    with the number of explored prompts of each candidate: fewer explored prompts or more candidates need more
    prompts.

    Args:
        n_arms: K, at least two.
        explore: Share of prompts whose candidate is drawn at random, in (0, 1].
        delta: Error probability of the interval.
    """
    prompts = _until_shown(n_arms, explore, delta, np.random.default_rng(SEED))
    return Exploring(explore=explore, gain=GAIN, prompts=prompts)


def _until_shown(n_arms: int, explore: float, delta: float, rng: np.random.Generator) -> int | None:
    record = AdvantageRecord(n_arms, explore=explore, delta=delta, max_unscored=1.0)
    worse = BEST - GAIN * n_arms / (n_arms - 1)
    prompts = looked = 0
    while prompts < MOST_PROMPTS:
        right = rng.integers(n_arms, size=AT_ONCE)
        arms = np.where(rng.random(AT_ONCE) < explore, rng.integers(n_arms, size=AT_ONCE), right)
        propensities = np.where(arms == right, 1.0 - explore, 0.0) + explore / n_arms
        scores = (rng.random(AT_ONCE) < np.where(arms == right, BEST, worse)).astype(np.float64)
        record.tell(arms, 2.0 * scores - 1.0, propensities)
        prompts += AT_ONCE
        if prompts < BETWEEN_LOOKS * looked:
            continue
        looked = prompts
        advantage = record.advantage()
        if advantage is not None and advantage.lower > 0.0:
            return prompts
    return None
