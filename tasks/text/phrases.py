"""Format numbers and lists for sentences and tables.

These are estimates, intervals, amounts, shares, counts and names.
"""

import math
import re
from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal

MOST_DECIMALS = 9

MOST_NAMES = 5


def rounded(value: float, sign: str = "") -> str:
    """Round to three decimals, or more if the result would wrongly read as 0, 1 or -1.

    Args:
        value: A score, a share, or a difference of two of these.
        sign: "+" to always write the sign.
    """
    return _written(value, sign, ROUND_HALF_EVEN)


def ends(lower: float, upper: float, sign: str = "") -> tuple[str, str]:
    """The ends of an interval, each rounded outward.

    So the written interval contains the exact one. If both ends are equal, they are rounded as by `rounded`.
    """
    if lower == upper:
        return rounded(lower, sign), rounded(upper, sign)
    return _written(lower, sign, ROUND_FLOOR), _written(upper, sign, ROUND_CEILING)


def span(lower: float, upper: float) -> str:
    """An interval for tables; see `ends`."""
    return "{} to {}".format(*ends(lower, upper))


def with_decimals(value: float, decimals: int, direction: str) -> Decimal:
    """Round a finite number in a direction of the module `decimal`; zero has no sign."""
    exact = Decimal(f"{value:.{MOST_DECIMALS}f}")  # a sum that differs from 0.3 in the last bits is 0.3
    return exact.quantize(Decimal(1).scaleb(-decimals), direction) + 0


def _written(value: float, sign: str, direction: str) -> str:
    if not math.isfinite(value):
        return f"{value:{sign}}"
    shown = (with_decimals(value, n, direction) for n in range(3, MOST_DECIMALS + 1))
    first, *longer = shown
    found = next((each for each in (first, *longer) if each % 1), first)
    return f"{found:{sign}f}"


def amount(value: float) -> str:
    """A number with thousands separated and at most three decimals.

    More decimals are written if it would read as 0.
    """
    plain = f"{value:,.3f}"
    if value and not float(plain.replace(",", "")):
        return f"{value:.{1 - math.floor(math.log10(abs(value)))}f}".rstrip("0")
    return plain.rstrip("0").rstrip(".")


def about(count: int) -> str:
    """A count with two significant digits and thousands separated."""
    digits = len(str(count))
    return f"{round(count, 2 - digits) if digits > 2 else count:,}"


def percentage(share: float, decimals: int = 1) -> str:
    """A share in percent, with `decimals` decimals.

    More decimals are written if it would wrongly read as 0 or 100%.
    """
    texts = [f"{100.0 * share:.{each}f}" for each in range(decimals, 8)]
    return f"{next((text for text in texts if float(text) not in (0.0, 100.0)), texts[0])}%"


def count_of(number: int, what: str) -> str:
    """A count with its noun, such as "1 example" and "12,032 examples"."""
    return f"{number:,} {what}{'s' * (number != 1)}"


def there_already(number: int) -> str:
    """A phrase for a number of items that were stored before."""
    return f"{number:,} {'was' if number == 1 else 'were'} there already"


def percent(delta: float) -> str:
    """1 - delta in percent, with all significant digits.

    So 99.9% does not become 100%.
    """
    return f"{100.0 * (1.0 - delta):.10g}%"


def points(difference: float) -> str:
    """A difference of scores in hundredths of the scale, such as "5 points"."""
    said = f"{100.0 * difference:.10g}"
    return f"{said} point{'s' * (said != '1')}"


def risk_of(delta: float) -> str:
    """An error probability as a phrase, such as "5% risk of error"."""
    return f"{100.0 * delta:.10g}% risk of error"


def list_of(names: Sequence[str], most: int = MOST_NAMES) -> str:
    """Names for a sentence; of more than `most` names, the rest is only counted."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


DIGEST = re.compile(r"[0-9a-f]{16}(-\d+)?")
"""Matches the stored key of an example whose data has no ids."""


def example_name(key: str, number: int) -> str:
    """The id of an example; if its data has no ids, "#" and its number in the dataset, from 1.

    Args:
        key: Stored key of the example: its id, or a digest if the data has no ids.
        number: Position of the example in the dataset, from 0.
    """
    return f"#{number + 1}" if DIGEST.fullmatch(key) else key
