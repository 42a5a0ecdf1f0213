"""Whether something fails more often than promised, by seeded simulations with a stated false-alarm rate."""

from collections.abc import Iterable
from functools import cache
from itertools import islice

import numpy as np
from scipy.optimize import brentq
from scipy.stats import binom

FALSE_ALARM = 1e-6

SEEN = 0.9
"""A rate is seen where the whole simulation raises the alarm with this probability."""

OVERLOOKED = 1e-4
"""The highest probability with which runs are stopped early although the true rate is one that is seen."""


def too_many(failures: int, runs: int, promised: float) -> bool:
    """Whether Binomial(runs, promised) would reach `failures` with probability below FALSE_ALARM."""
    return bool(binom.sf(failures - 1, runs, promised) < FALSE_ALARM)


def fails_too_often(failed: Iterable[bool], runs: int, promised: float) -> bool:
    """Whether there are too many failures among `runs`; those that are not needed for the answer are not run.

    There is no alarm that the whole simulation would not raise. An answer of no comes early where the lowest
    rate that the whole simulation would see is refuted at level OVERLOOKED by the runs so far; see `refuted`.

    Args:
        failed: Says of one run after the other, each made when it is asked for, whether it failed. What
            differs from run to run (a world, say) changes in turn, so that the first runs are like all.
        runs: How many make a whole simulation.
        promised: The highest allowed probability of a failure.

    Raises:
        ValueError: If there are fewer runs, and too few for an answer.
    """
    alarm = alarm_at(runs, promised)
    made, failures = 0, 0
    for one in islice(failed, runs):
        made, failures = made + 1, failures + bool(one)
        if failures >= alarm:
            return True
        if failures + runs - made < alarm or refuted(lowest_seen(runs, promised), made, failures):
            return False
    raise ValueError(f"{runs - made} runs of {runs} are missing")


@cache
def alarm_at(runs: int, promised: float) -> int:
    """The lowest number of failures that is too many."""
    return next(failures for failures in range(runs + 2) if too_many(failures, runs, promised))


@cache
def lowest_seen(runs: int, promised: float) -> float:
    """The true rate at which the whole simulation raises the alarm with probability SEEN."""
    alarm = alarm_at(runs, promised)
    return brentq(lambda rate: binom.sf(alarm - 1, runs, rate) - SEEN, promised, 1.0)


def refuted(rate: float, made: int, failures: int) -> bool:
    """Whether these runs show, at level OVERLOOKED and however often one looks, that they fail more seldom.

    The mean of likelihood ratios of lower rates to this one is a supermartingale under this and every higher
    rate, and by Ville's inequality seldom ever reaches 1 / OVERLOOKED.
    """
    lower = rate * np.array([0.0, 0.25, 0.5])
    ratios = (lower / rate) ** failures * ((1.0 - lower) / (1.0 - rate)) ** (made - failures)
    return bool(ratios.mean() >= 1.0 / OVERLOOKED)
