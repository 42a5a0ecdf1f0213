"""Other forms of targets, for judges that compare them with outputs as text or number.

Some file formats write values in a form that models do not output: 5.0 for the whole number 5,
0.10000000149011612 for a 32-bit 0.1, Python's True. A judge accepts both such a form and the usual one. The
stored target is unchanged.

A campaign stores whether it uses this rule; without the rule, only the stored form is accepted.
"""

import math
import re
import struct
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Literal

from winnow.storage.json_types import JsonView

KEY = "target_forms"
"""Identity key that stores whether other forms of targets are accepted."""

Use = Literal["always", "if unreadable", "never"]
"""When a judge gets other forms: always, never, or only if it can read no target unchanged."""

_USES: dict[str, Use] = {
    **dict.fromkeys(("exact", "f1", "math", "normalised", "numeric", "regex", "squad"), "always"),
    **dict.fromkeys(("bleu", "chrf", "rouge", "ter"), "always"),
    **dict.fromkeys(("acc", "acc_norm", "choice"), "if unreadable"),
}

MOST_DIGITS = 32
"""Maximum digits of a whole number that is written out in its other form."""

SPARED_DIGITS = 4
"""Minimum number of characters that the other form of a 32-bit number must save."""

DIGITS_OF_32_BITS = 9
"""Number of digits that identify any 32-bit number."""

_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?")


def has_forms(identity: JsonView) -> bool:
    """Whether a stored campaign accepts targets in their other forms."""
    return bool(identity.get(KEY, False))


def use_of(judge: str, params: JsonView) -> Use:
    """When a judge with these parameters gets other forms of targets."""
    if judge == "contains":  # with match: all, each additional form would be one more required text
        return "never" if params.get("match") == "all" else "always"
    return _USES.get(judge, "never")


def with_forms(targets: Sequence[str]) -> tuple[str, ...]:
    """The targets, followed by their other forms."""
    found = (form for target in targets for form in other_forms(target))
    return tuple(dict.fromkeys((*targets, *found)))


def have_forms(targets: Iterable[Sequence[str]]) -> bool:
    """Whether a target of any example has another form."""
    return any(other_forms(each) for accepted in targets for each in accepted)


def other_forms(target: str) -> tuple[str, ...]:
    """Other forms of a target; empty for most targets."""
    if target in ("True", "TRUE", "False", "FALSE"):
        return (target.lower(),)
    is_fraction = ("." in target or "e" in target) and _NUMBER.fullmatch(target)
    if not is_fraction or repr(float(target)) != target:  # written by hand, such as 5.00
        return ()
    if (whole := _whole(target)) is not None:
        return (whole,)
    shortest = _shortest(target)
    return () if shortest is None else (shortest,)


def _whole(number: str) -> str | None:
    value = Decimal(number)
    if value != value.to_integral_value() or value.adjusted() >= MOST_DIGITS:
        return None
    return format(abs(value) if value.is_zero() else value, "f").partition(".")[0]


def _shortest(number: str) -> str | None:
    """Shortest form of a 32-bit number; None for other numbers, or if it saves few digits."""
    value = float(number)
    if _in_32_bits(value) != value:
        return None
    found = (float(f"{value:.{digits}g}") for digits in range(1, DIGITS_OF_32_BITS + 1))
    shortest = repr(next(each for each in found if _in_32_bits(each) == value))
    return shortest if len(shortest) <= len(number) - SPARED_DIGITS else None


def _in_32_bits(value: float) -> float:
    try:
        rounded: float = struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return math.inf
    return rounded
