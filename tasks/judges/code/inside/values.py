"""Encoding of values between tests and program, as JSON that creates only plain objects.

Received values have exactly the types listed here, so no returned object can claim to equal what a test
expects. Objects of other types stay in their process, and are identified by a number.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

JSON = Any
"""A value that `json` reads and writes."""

MOST_OF_A_PLAIN_INT = 1 << 53


class Unreadable(Exception):
    """The received JSON is not a valid encoding."""


_KINDS: Mapping[type, tuple[str, Callable[[JSON], JSON]]] = {
    float: ("float", lambda value: float.hex(float.__float__(value))),
    complex: ("complex", lambda value: [float.hex(value.real), float.hex(value.imag)]),
    bytes: ("bytes", lambda value: bytes.hex(value)),
    bytearray: ("bytearray", lambda value: bytearray.hex(value)),
    Decimal: ("decimal", lambda value: Decimal.__str__(value)),
    Fraction: ("fraction", lambda value: [hex(value.numerator), hex(value.denominator)]),
    range: ("range", lambda value: [hex(each) for each in (value.start, value.stop, value.step)]),
}

_BOXES: Mapping[type[Iterable[object]], str] = {
    list: "list",
    tuple: "tuple",
    set: "set",
    frozenset: "frozenset",
    deque: "deque",
}

_READERS: Mapping[str, Callable[[JSON], object]] = {
    "int": lambda said: int(said, 16),
    "float": float.fromhex,
    "complex": lambda said: complex(float.fromhex(said[0]), float.fromhex(said[1])),
    "bytes": bytes.fromhex,
    "bytearray": bytearray.fromhex,
    "decimal": Decimal,
    "fraction": lambda said: Fraction(int(said[0], 16), int(said[1], 16)),
    "range": lambda said: range(*(int(each, 16) for each in said)),
}

_MAKERS: Mapping[str, Callable[[list[JSON]], object]] = {
    "list": list,
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
    "deque": deque,
}


def encoded(value: object, other: Callable[[object], JSON]) -> JSON:
    """Encode a value as JSON; a subclass is encoded as its base.

    Args:
        value: Any object.
        other: Encodes an object of any other type, as a mapping with one key not used here.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        number = int.__int__(value)
        return number if abs(number) < MOST_OF_A_PLAIN_INT else {"int": hex(number)}
    for kind, name in _BOXES.items():
        if isinstance(value, kind):
            return {name: [encoded(each, other) for each in kind.__iter__(value)]}
    if isinstance(value, dict):
        pairs = dict.items(value)
        return {"dict": [[encoded(key, other), encoded(each, other)] for key, each in pairs]}
    for kind, (name, encode) in _KINDS.items():
        if isinstance(value, kind):
            return {name: encode(value)}
    return other(value)


def decoded(said: JSON, other: Callable[[str, JSON], object]) -> object:
    """Decode an encoded value.

    Args:
        said: The received encoding.
        other: Decodes values encoded by the `other` of `encoded`, given the one key and its value.

    Raises:
        Unreadable: If the encoding is invalid.
    """
    if said is None or isinstance(said, bool | str | int):
        return said
    if not isinstance(said, dict) or len(said) != 1:
        raise Unreadable(f"invalid encoding of a value: {said!r:.100}")
    ((name, content),) = said.items()
    try:
        if name in _MAKERS:
            return _MAKERS[name]([decoded(each, other) for each in content])
        if name == "dict":
            return {decoded(key, other): decoded(each, other) for key, each in content}
        if name in _READERS:
            return _READERS[name](content)
    except (ArithmeticError, TypeError, ValueError, IndexError, RecursionError) as error:
        raise Unreadable(f"invalid {name}: {type(error).__name__}") from error
    return other(name, content)
