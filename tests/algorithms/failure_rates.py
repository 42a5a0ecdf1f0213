"""Whether something fails more often than promised, by seeded simulations with a stated false-alarm rate."""

from collections.abc import Iterable
from functools import cache
from itertools import islice

import numpy as np
from scipy.optimize import brentq
from scipy.stats import binom

FALSE_ALARM = 1e-6

EARLY_ALARM = 1e-7
"""The part of FALSE_ALARM that is for alarms before all runs are made."""

SEEN = 0.9
"""A rate is seen where the whole simulation raises the alarm with this probability."""

OVERLOOKED = 0.01
"""The highest probability with which runs are stopped early although the true rate is one that is seen.

Whole simulations overlook the lowest such rate ten times as often: a lower one would only make more runs.
"""


def too_many(failures: int, runs: int, promised: float, alarm: float = FALSE_ALARM) -> bool:
    """Whether Binomial(runs, promised) would reach `failures` with probability below `alarm`."""
    return bool(binom.sf(failures - 1, runs, promised) < alarm)


def fails_too_often(failed: Iterable[bool], runs: int, promised: float) -> bool:
    """Whether there are too many failures among `runs`; those that are not needed for the answer are not run.

    The alarm is raised with probability FALSE_ALARM at most: at the number of failures that is too many among
    all runs, or where the promised rate is refuted before. The answer is no where there cannot be so many any
    more, or where the lowest rate that the whole simulation would see is refuted.

    Args:
        failed: Says of one run after the other, each made when it is asked for, whether it failed. What
            differs from run to run (a world, say) changes in turn, so that the first runs are like all.
        runs: How many make a whole simulation.
        promised: The highest allowed probability of a failure.

    Raises:
        ValueError: If there are fewer runs, and too few for an answer.
    """
    made, failures = 0, 0
    for one in islice(failed, runs):
        made, failures = made + 1, failures + bool(one)
        answer = answer_after(made, failures, runs, promised)
        if answer is not None:
            return answer
    raise ValueError(f"{runs - made} runs of {runs} are missing")


@cache
def answer_after(made: int, failures: int, runs: int, promised: float) -> bool | None:
    """The answer when so many of the runs are made, None where more are needed."""
    alarm = alarm_at(runs, promised)
    if failures >= alarm or is_higher(promised, made, failures):
        return True
    if failures + runs - made < alarm or is_lower(lowest_seen(runs, promised), made, failures):
        return False
    return None


@cache
def alarm_at(runs: int, promised: float) -> int:
    """The lowest number of failures that is too many."""
    level = FALSE_ALARM - EARLY_ALARM
    return next(failures for failures in range(runs + 2) if too_many(failures, runs, promised, level))


@cache
def lowest_seen(runs: int, promised: float) -> float:
    """The true rate at which the whole simulation raises the alarm with probability SEEN."""
    alarm = alarm_at(runs, promised)
    return brentq(lambda rate: binom.sf(alarm - 1, runs, rate) - SEEN, promised, 1.0)


def is_higher(rate: float, made: int, failures: int) -> bool:
    """Whether these runs show, at level EARLY_ALARM, that they fail more often than at this rate."""
    return (
        likelihood_ratio(rate + (1.0 - rate) * np.arange(0.2, 1.0, 0.2), rate, made, failures)
        >= 1 / EARLY_ALARM
    )


def is_lower(rate: float, made: int, failures: int) -> bool:
    """Whether these runs show, at level OVERLOOKED, that they fail more seldom than at this rate."""
    return likelihood_ratio(rate * np.array([0.0, 0.25, 0.5]), rate, made, failures) >= 1 / OVERLOOKED


def likelihood_ratio(others: np.ndarray, rate: float, made: int, failures: int) -> float:
    """The mean of the likelihoods of other rates, in units of that of this one.

    It is a supermartingale under this rate, and under all that lie on its other side: however often one
    looks, by Ville's inequality it reaches c with probability 1 / c at most.
    """
    ratios = (others / rate) ** failures * ((1.0 - others) / (1.0 - rate)) ** (made - failures)
    return float(ratios.mean())
