"""Checks that returned log-probabilities can be used.

They are untrusted: a model with broken weights returns NaN, and a server may write a placeholder for an
unknown value. Without the checks, these would give a certain verdict or a tie without any basis.
"""

import math
from collections.abc import Iterable, Mapping
from typing import TypeVar

Option = TypeVar("Option")

PLACEHOLDER = -9999.0
"""Number that OpenAI's API writes for a token that is not among the most probable ones, and vLLM's server
instead of minus infinity."""

MOST = 1.01
"""Maximum sum of the probabilities of different continuations; some servers round to two digits."""


def why_unusable(logprobs: Mapping[Option, float], options: Iterable[Option]) -> str | None:
    """Reason why log-probabilities of options cannot be used, as the end of a sentence; None if they can.

    Each must be a finite number above `PLACEHOLDER`, and together they may not be more probable than 1. How
    small they are does not matter: their ratios count.

    Args:
        logprobs: Natural log-probabilities of continuations of which none begins another.
        options: Those that are needed, each once.
    """
    wanted = list(options)
    for option in wanted:
        if option not in logprobs:
            return f"no log-probability of {option!r}"
        if not PLACEHOLDER < logprobs[option] < math.inf:  # NaN is in no interval
            return f"{logprobs[option]} as the log-probability of {option!r}"
    highest = max(logprobs[option] for option in wanted)
    if highest > 1.0 or math.fsum(math.exp(logprobs[option]) for option in wanted) > MOST:
        return "probabilities that add up to more than 1"
    return None


def expected_value(values: Mapping[str, float], logprobs: Mapping[str, float] | None) -> float | None:
    """Mean of the options' values under their probabilities, normalised over these options.

    Args:
        values: Values by option, each in [0, 1].
        logprobs: Log-probabilities from an engine, of at least these options; None if it returned none.

    Returns:
        None if no probabilities were returned, or none that can be used; see `why_unusable`.
    """
    if logprobs is None or why_unusable(logprobs, values):
        return None
    highest = max(logprobs[option] for option in values)
    weights = {option: math.exp(logprobs[option] - highest) for option in values}
    total = math.fsum(weights.values())
    mean = math.fsum(values[option] * weight / total for option, weight in weights.items())
    return min(1.0, max(0.0, mean))
