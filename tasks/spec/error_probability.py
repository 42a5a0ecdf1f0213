"""The error probability that a new campaign may state: not the confidence written in its place."""

from numbers import Real

from winnow.tasks.errors import SpecError

LARGEST = 0.5
"""Largest `delta` of a new campaign; above it, the confidence was meant."""


def refuse_confidence(delta: object, place: str = "stopping.delta") -> None:
    """Refuse a confidence such as 0.95 that was written where the error probability belongs.

    Campaigns that were begun with such a value stay as they are, so only new ones are checked. What is no
    number, or lies outside (0, 1), is left to whatever reads the value.

    Args:
        delta: The value given.
        place: The key, parameter or option that it was given as.

    Raises:
        SpecError: With the value that states this confidence.
    """
    if not isinstance(delta, Real) or not LARGEST < float(delta) < 1.0:
        return
    confidence = float(delta)
    raise SpecError(
        "delta is the probability of a wrong answer, not the confidence; for a confidence of "
        f"{confidence:g} write {1.0 - confidence:.6g} (got {confidence:g})",
        path=place,
    )
