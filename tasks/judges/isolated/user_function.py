"""A user's function in its own process: import, calls, and checks of its results."""

import inspect
import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from numbers import Real

from winnow.algorithms.errors import at_bound
from winnow.tasks.judges.protocol import InvalidScore, Sample, Verdict
from winnow.tasks.plugins.python_files import import_function


def loaded(
    file: str, function: str, low: float, high: float, digests: Mapping[str, str]
) -> Callable[[Sample], Verdict]:
    """Import a user's function as a judging function.

    Raises:
        ImportError: If the code no longer matches the digests.
        AttributeError, TypeError: If the file has no such function, or the function does not accept one
            argument.
    """
    call = import_function(file, function, digests)
    _require_one_argument(function, call)
    return lambda sample: _verdict(call(sample), low, high)


def _require_one_argument(function: str, call: Callable[..., object]) -> None:
    """Refuse a function that would fail on every output because of its arguments."""
    with suppress(ValueError):  # some callables have no signature
        arguments = inspect.signature(call)
        try:
            arguments.bind(None)
        except TypeError:
            raise TypeError(f"it must accept one argument, a sample, got {function}{arguments}") from None


def _verdict(said: object, low: float, high: float) -> Verdict:
    if isinstance(said, Verdict):
        return said
    number = at_bound(float(said), low, high) if isinstance(said, Real) else math.nan
    if not low <= number <= high:
        raise InvalidScore(f"a score must be a number from {low:g} to {high:g}, got {repr(said)[:100]}")
    return Verdict(score=(number - low) / (high - low), answer=f"{number:g}")
