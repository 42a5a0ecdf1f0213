"""Read numbers as Inspect does, including digits, fractions and signs of other scripts.

It accepts what Inspect 0.3.285 (MIT licence) accepts: "2½", "１２", "1.5⁻³", "十二", "三万五千". A comma
before one to three digits is a decimal comma.
"""

import math
import unicodedata
from collections.abc import Callable

AROUND = "!?:;()[]{}'\"`"
"""Characters that are removed around a number."""

MINUS = frozenset("-−﹣－负負")
PLUS = frozenset("+＋﹢正")
DECIMAL_POINTS = frozenset("٫．")
SEPARATORS = frozenset(",，﹐、٬ \u00a0\u202f\u2009\u2007\u2008'’ʼ＇")
SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹"
TO_ASCII = str.maketrans(f"{SUPERSCRIPTS}⁻⁺", "0123456789-+")

DIGITS = {
    **{
        digit: value
        for value, digits in enumerate(("零〇○", "一壹幺", "二贰貳两兩", "三叁參", "四肆"))
        for digit in digits
    },
    **{
        digit: value
        for value, digits in enumerate(("五伍", "六陆陸", "七柒", "八捌", "九玖"), 5)
        for digit in digits
    },
}
TENS = {"廿": 20, "卅": 30, "卌": 40}
SMALL_UNITS = {"十": 10, "拾": 10, "百": 100, "佰": 100, "千": 1000, "仟": 1000}
LARGE_UNITS = {"万": 10**4, "萬": 10**4, "亿": 10**8, "億": 10**8, "兆": 10**12}
POINTS = "点點"
CHINESE = frozenset({*DIGITS, *TENS, *SMALL_UNITS, *LARGE_UNITS, *POINTS, *"负負正"})


def number(text: str, *, trims: bool = True) -> float | None:
    """Parse a text as a finite number; None if it is not a finite number.

    Args:
        text: The unmodified text.
        trims: Whether brackets, quotation marks and similar characters around the number are ignored.
    """
    trimmed = text.strip(AROUND) if trims else text
    readings: tuple[Callable[[str], float | None], ...] = (float, _read)
    for read in readings:
        try:
            found = read(trimmed)
        except (ValueError, ArithmeticError):
            continue
        if found is not None and math.isfinite(found):
            return found
    return None


def _read(text: str) -> float | None:
    text = text.strip()
    at = next((at for at, each in enumerate(text) if not _is_sign(each)), len(text))
    is_negative = sum(each in MINUS for each in text[:at]) % 2 == 1
    unsigned = text[at:]
    value = _single(unsigned)
    if value is not None:
        return -value if is_negative else value
    base, exponent = _without_exponent(unsigned)
    value = _with_fraction(base)
    if value is None:
        return None
    value = -value if is_negative else value
    return value if exponent is None else float(value**exponent)


def _is_sign(character: str) -> bool:
    return character in MINUS or character in PLUS or character.isspace()


def _single(text: str) -> float | None:
    return unicodedata.numeric(text, None) if len(text) == 1 else None


def _without_exponent(text: str) -> tuple[str, int | None]:
    """The text before superscript digits at its end, and the superscript's value or None."""
    end = len(text)
    while end and (text[end - 1].isspace() or text[end - 1] in SEPARATORS):
        end -= 1
    start = end
    while start and text[start - 1] in SUPERSCRIPTS:
        start -= 1
    if start == end:
        return text.strip(), None
    if start and text[start - 1] in "⁻⁺":
        start -= 1
    base = text[:start].rstrip()
    return (base, int(text[start:end].translate(TO_ASCII))) if base else (text.strip(), None)


def _with_fraction(text: str) -> float | None:
    """A number, possibly followed by a single-character fraction; None if it is not a number."""
    parts = [(at, unicodedata.numeric(each, 0.0)) for at, each in enumerate(text)]
    found = [(at, part) for at, part in parts if 0.0 < part < 1.0]
    if not found:
        return _plain(text)
    at, fraction = found[0]
    if len(found) > 1 or any(not (each.isspace() or each in SEPARATORS) for each in text[at + 1 :].strip()):
        return None
    if not (whole := text[:at].strip()):
        return fraction
    value = _plain(whole)
    return None if value is None else value + fraction


def _plain(text: str) -> float | None:
    text = text.strip()
    if not text:
        return None
    if not CHINESE.isdisjoint(text) and (value := _chinese(text)) is not None:
        return value
    value = _western(text)
    return _single(text) if value is None else value


def _western(text: str) -> float | None:
    """A number in digits of any script, with separators, a decimal point or comma, and an exponent.

    None if the text is not such a number.
    """
    point = _point(text)
    ascii_text: list[str] = []
    has_point = has_exponent = after_exponent = False
    for each in text:
        if after_exponent and _is_sign(each) and not each.isspace():
            ascii_text.append("+" if each in PLUS else "-")
            after_exponent = False
            continue
        after_exponent = False
        if each in "eE" and not has_exponent:
            if not ascii_text:
                return None
            ascii_text.append(each)
            has_exponent = after_exponent = True
        elif each in DECIMAL_POINTS or each == point:
            if has_point:
                return None
            ascii_text.append(".")
            has_point = True
        elif each in SEPARATORS or each.isspace() or (point and each in ",."):
            continue
        elif (digit := _digit(each)) is not None:
            ascii_text.append(digit)
        else:
            return None
    try:
        return float("".join(ascii_text))
    except ValueError:
        return None


def _point(text: str) -> str | None:
    """The decimal sign of a number: the last of point and comma.

    Without a point, a comma needs one to three digits after the last one. None without a decimal sign.
    """
    if "." in text:
        return "," if text.rfind(",") > text.rfind(".") else "."
    _, comma, tail = text.rpartition(",")
    return "," if comma and sum(_digit(each) is not None for each in tail) in (1, 2, 3) else None


def _digit(character: str) -> str | None:
    found = unicodedata.decimal(character, None)
    if found is None:
        found = unicodedata.digit(character, None)
    if found is None:
        found = DIGITS.get(character)
    return None if found is None else str(int(found))


def _chinese(text: str) -> float | None:
    whole, fraction = text, ""
    for point in (*POINTS, "．", "."):
        if point in text:
            whole, _, fraction = text.partition(point)
            break
    units = {*SMALL_UNITS, *LARGE_UNITS, *TENS}
    value = _by_units(whole) if any(each in units for each in whole) else _digits(whole)
    if value is None:
        return None
    total, place = float(value), 0.1
    for each in fraction:
        if each.isspace():
            continue
        if (digit := _digit(each)) is None:
            return None
        total += int(digit) * place
        place /= 10.0
    return total


def _digits(text: str) -> int | None:
    found = [_digit(each) for each in text if not each.isspace()]
    if None in found:
        return None
    return int("".join(each for each in found if each)) if found else 0


def _by_units(text: str) -> int | None:
    """A whole Chinese number written with units such as tens and hundreds; None if invalid."""
    total = section = last = 0
    for each in text:
        if each.isspace() or each in "零〇○":
            continue
        if each in TENS:
            section += TENS[each]
        elif (digit := _digit(each)) is not None:
            last = int(digit)
        elif each in SMALL_UNITS:
            section += (last or 1) * SMALL_UNITS[each]
            last = 0
        elif each in LARGE_UNITS:
            total += (section + last) * LARGE_UNITS[each]
            section = last = 0
        else:
            return None
    return total + section + last
