"""What a judge may give for a number: a score in [0, 1], and the unit that it was measured in.

What plug-ins give is not taken on trust. Everything that is proved of scores is proved of numbers in [0, 1]:
a measure with another range is mapped there, by the same formula for every output, whatever others are like.
"""

from collections.abc import Callable
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """What a judge measures in, and what its values are worth."""

    unit: str
    """The native unit, with its range where it has one."""
    formula: str
    """The map, as users read it."""
    convert: Callable[[float], float] = float
    """The map: native value -> score; what it gives beyond [0, 1] is cut off there."""

    def score(self, value: float) -> float:
        """The score of a native value, in [0, 1]; NaN for NaN."""
        converted = self.convert(value)
        return converted if 0.0 <= converted <= 1.0 or converted != converted else float(converted > 0.5)


RIGHT_OR_WRONG = Scale(unit="right or wrong", formula="1 if right, 0 if wrong")
PERCENT = Scale(unit="points, 0 to 100", formula="points / 100", convert=lambda points: points / 100.0)
SHARE = Scale(unit="score, 0 to 1", formula="as it is")
