"""What a judge may give for a number; those of plug-ins are not taken on trust."""

from numbers import Real
from typing import TypeVar

INVALID_SCORE = "invalid_score"
"""Reason of a comparison whose judge gave what is no verdict."""

JUDGE_FAILED = "judge_failed"
"""Reason of a comparison whose judge, a plug-in, raised an exception."""

MOST_OF_A_REASON = 64
"""Characters of a reason, which is a short name."""

Expected = TypeVar("Expected")


class InvalidScore(ValueError):
    """A judge gave what is no number in [0, 1], or no verdict at all."""


def checked_score(value: object, what: str) -> float:
    """The value as a plain `float`, such as a database stores; `what` names it in the message.

    Raises:
        InvalidScore: If it is not a number in [0, 1]; NaN is not.
    """
    if not isinstance(value, Real) or not 0.0 <= float(value) <= 1.0:
        raise InvalidScore(f"{what} lies in [0, 1], got {repr(value)[:100]}")
    return float(value)


def checked_kind(value: object, kind: type[Expected]) -> Expected:
    """The value, where it is of this kind.

    Raises:
        InvalidScore: If it is of another one.
    """
    if not isinstance(value, kind):
        raise InvalidScore(f"a judge returns a {kind.__name__}, got {type(value).__name__}")
    return value


def check_words(reason: object, **others: object) -> None:
    """Refuse what is no reason, and others that are neither a text nor None.

    Raises:
        InvalidScore: If a reason is empty, longer than `MOST_OF_A_REASON` or no text, or another is no text.
    """
    for name, value in {"reason": reason, **others}.items():
        if not isinstance(value, str | None):
            raise InvalidScore(f"{name} is a text or None, got {type(value).__name__}")
    if isinstance(reason, str) and not 0 < len(reason) <= MOST_OF_A_REASON:
        raise InvalidScore(f"a reason has 1 to {MOST_OF_A_REASON} characters, got {len(reason)}")
