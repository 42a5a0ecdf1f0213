"""Checks that returned log-probabilities are usable.

Log-probabilities are untrusted: a model with broken weights returns NaN, and a server may write a placeholder
for an unknown value. Unchecked, such values would give a verdict of certainty or a tie without any basis.
"""

import math
from collections.abc import Iterable, Mapping
from typing import TypeVar

Option = TypeVar("Option")

PLACEHOLDER = -9999.0
"""Placeholder log-probability: OpenAI's API returns it for a token that is not among the most probable ones,
and vLLM's server instead of minus infinity."""

MOST = 1.01
"""Maximum sum of the probabilities of different continuations; above 1 because some servers round to two
digits."""


def why_unusable(logprobs: Mapping[Option, float], options: Iterable[Option]) -> str | None:
    """Reason why log-probabilities of options are unusable, as a clause; None if usable.

    Each must be a finite number above `PLACEHOLDER`, and the probabilities may add up to at most `MOST`.
    Small values are accepted, because only their ratios count.

    Args:
        logprobs: Natural log-probabilities of continuations, none of which is the beginning of another.
        options: The options that are needed, each once.
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
        logprobs: Log-probabilities by option as the engine returned them, or None.

    Returns:
        The mean, in [0, 1]; None if no log-probabilities were returned or `why_unusable` rejects them.
    """
    if logprobs is None or why_unusable(logprobs, values):
        return None
    highest = max(logprobs[option] for option in values)
    weights = {option: math.exp(logprobs[option] - highest) for option in values}
    total = math.fsum(weights.values())
    mean = math.fsum(values[option] * weight / total for option, weight in weights.items())
    return min(1.0, max(0.0, mean))
