"""Whether log-probabilities that were told are such that something follows from them.

They come from elsewhere: a model with broken weights has NaN, a server may write a placeholder where it knows
nothing. What follows from those would be a certain verdict or a tie that nobody gave.
"""

import math
from collections.abc import Iterable, Mapping
from typing import TypeVar

Option = TypeVar("Option")

PLACEHOLDER = -9999.0
"""The number that OpenAI's API writes for a token that is not among the most probable ones, and vLLM's server
in the place of minus infinity."""

MOST = 1.01
"""The most that the probabilities of different continuations may add up to; some servers round to two
digits."""


def why_unusable(logprobs: Mapping[Option, float], options: Iterable[Option]) -> str | None:
    """The reason why log-probabilities of options say nothing, as the end of a sentence; None if they do.

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
    """The mean of the options' values under their probabilities, normalised over these options.

    Args:
        values: Values by option, each in [0, 1].
        logprobs: Log-probabilities that an engine told, of these options at least; None where it told none.

    Returns:
        None where no probabilities were told, or none that can be used; see `why_unusable`.
    """
    if logprobs is None or why_unusable(logprobs, values):
        return None
    highest = max(logprobs[option] for option in values)
    weights = {option: math.exp(logprobs[option] - highest) for option in values}
    total = math.fsum(weights.values())
    mean = math.fsum(values[option] * weight / total for option, weight in weights.items())
    return min(1.0, max(0.0, mean))
