"""Comparison of an output with targets by Inspect's rules `match`, `includes`, `exact` and `f1`."""

import re
import string
from collections import Counter
from collections.abc import Sequence
from math import isfinite
from typing import Literal

from winnow.tasks.judges.rules.inspect.numbers import number

Location = Literal["begin", "end", "any", "exact"]

_ESCAPED = re.compile(r"\\([$,£€*_])")
_DECORATION = re.compile(r"[$,£€*_]")
_FULL_STOP = re.compile(r"\.(?=\s|$|\D)")
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def matches(output: str, target: str, location: Location, *, ignore_case: bool, numeric: bool) -> bool:
    """Whether the target is at the searched location; numbers are compared by value if `numeric`."""
    said, wanted = output.strip(), target.strip()
    if ignore_case:
        said, wanted = said.casefold(), wanted.casefold()
    if numeric:
        wanted = _undecorated(wanted)
        if number(wanted) is not None:
            return _same_number(_undecorated(said), _normal(wanted), location)
    said, wanted = _bare(said), _bare(wanted)
    if location == "begin":
        return said.startswith(wanted)
    if location == "end":
        return said.endswith(wanted)
    return said == wanted if location == "exact" else wanted in said


def _same_number(said: str, wanted: str, location: Location) -> bool:
    """Compare the first or last word that is a number, the whole text, or any word."""
    if location == "exact":
        return _normal(said, trims=False) == wanted
    words = re.split(r"\s+", said)
    if location == "end":
        words.reverse()
    numbers = (_normal(word) for word in words if number(word) is not None)
    return wanted in numbers if location == "any" else next(numbers, "") == wanted


def _normal(text: str, *, trims: bool = True) -> str:
    value = number(text, trims=trims)
    return text if value is None else f"{value:.5g}"


def _bare(text: str) -> str:
    return text.strip(string.whitespace + string.punctuation)


def _undecorated(text: str) -> str:
    """The text without currencies, thousands separators, emphasis marks and full stops."""
    return _FULL_STOP.sub("", _DECORATION.sub("", _ESCAPED.sub(r"\1", text)))


def includes(output: str, target: str, *, ignore_case: bool) -> bool:
    """Whether the target is part of the output."""
    return target.casefold() in output.casefold() if ignore_case else target in output


def is_exact(output: str, targets: Sequence[str]) -> bool:
    """Whether both have the same words; a target without words never matches."""
    said = _words(output, ())
    return any(said == wanted for target in targets if (wanted := _words(target, ())))


def f1(output: str, targets: Sequence[str], stop_words: Sequence[str]) -> float:
    """The best harmonic mean of precision and recall of words, in hundredths; 0 to 1."""
    left_out = [_token(word) for word in stop_words]
    said = Counter(_words(output, left_out))
    wanted = (Counter(_words(target, left_out)) for target in targets)
    return round(max((_f1(said, each) for each in wanted if each), default=0.0), 2)


def _f1(said: Counter[str], wanted: Counter[str]) -> float:
    common = (said & wanted).total()
    precision = common / said.total() if said else 1.0
    recall = common / wanted.total()
    return 0.0 if precision == recall == 0.0 else 2 * precision * recall / (precision + recall)


def _words(text: str, left_out: Sequence[str]) -> list[str]:
    tokens = (_token(each) for each in re.split(" |-", text))
    return " ".join(each for each in tokens if each not in left_out and each.strip()).split()


def _token(text: str) -> str:
    text = _without_punctuation(text.casefold())
    text = str(float(text)) if _is_number(text) else text
    return " ".join(_ARTICLES.sub(" ", text).split())


def _without_punctuation(text: str) -> str:
    if _is_number(text):
        return text
    bare = _bare(text)
    return bare if _is_number(bare) else text.translate(_PUNCTUATION)


def _is_number(text: str) -> bool:
    try:
        return isfinite(float(text))
    except ValueError:
        return False
