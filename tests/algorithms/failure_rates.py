"""Whether something fails more often than promised, by seeded simulations with a stated false-alarm rate."""

from collections.abc import Iterable
from itertools import islice

from scipy.stats import binom

FALSE_ALARM = 1e-6


def too_many(failures: int, runs: int, promised: float) -> bool:
    """Whether Binomial(runs, promised) would reach `failures` with probability below FALSE_ALARM."""
    return bool(binom.sf(failures - 1, runs, promised) < FALSE_ALARM)


def fails_too_often(failed: Iterable[bool], runs: int, promised: float) -> bool:
    """Whether there are too many failures among `runs`; those that cannot change the answer are not run.

    Args:
        failed: Says of one run after the other, each made when it is asked for, whether it failed.
        runs: How many make a whole simulation.
        promised: The highest allowed probability of a failure.

    Raises:
        ValueError: If there are fewer runs, and too few for an answer.
    """
    alarm = next(failures for failures in range(runs + 2) if too_many(failures, runs, promised))
    left, failures = runs, 0
    for one in islice(failed, runs):
        left, failures = left - 1, failures + bool(one)
        if failures >= alarm:
            return True
        if failures + left < alarm:
            return False
    raise ValueError(f"{left} runs of {runs} are missing")
