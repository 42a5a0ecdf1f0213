"""Process that runs the program, and applies the tests' operations to its objects.

The program can access everything imported here. Verdicts are made only in the other process.
"""

import builtins
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from types import ModuleType

from winnow.tasks.judges.code.inside.link import Link
from winnow.tasks.judges.code.inside.values import JSON, decoded, encoded

PROGRAM = "program"
"""Module name of the program."""

MUTABLE = (list, dict, set, bytearray)
"""Types of arguments that a program can change; the tests then receive the changed values."""

MOST_OF_A_MESSAGE = 500
"""Maximum length of an exception's message, in characters."""


def run_program(source: str) -> dict[str, object]:
    """Run a program as a module; return its global names. Its exceptions propagate."""
    module = ModuleType(PROGRAM)
    sys.modules[PROGRAM] = module
    exec(compile(source, f"{PROGRAM}.py", "exec"), module.__dict__)
    return module.__dict__


def serve(program: Callable[[Collection[str]], str], link: Link) -> None:
    """Run the program, report its names, and answer requests until the tests are done.

    Args:
        program: Returns its source, given the names that it should define.
        link: The link to the tests, which first send those names and the ones that can be reported.
    """
    objects = _Objects()
    asked = link.receive()
    try:
        names = dict(run_program(program(asked["wanted"])))
    except BaseException as error:
        link.send(raised(error))
        return
    link.send({"names": {name: objects.told(names[name]) for name in asked["names"] if name in names}})
    while True:
        answer = objects.answer(link.receive())
        try:
            link.send(answer)
        except (MemoryError, ValueError) as error:  # it is too long
            link.send(raised(error))


def raised(error: BaseException) -> dict[str, JSON]:
    """Message of an exception, and the names of its built-in classes."""
    names = [each.__name__ for each in type(error).__mro__ if getattr(builtins, each.__name__, None) is each]
    try:
        message = str(error)
    except BaseException:
        message = ""
    return {"raised": type(error).__name__, "built_in": names, "message": message[:MOST_OF_A_MESSAGE]}


class _Objects:
    """Objects of the program that the tests refer to by number."""

    def __init__(self) -> None:
        self._kept: list[object] = []
        self._numbers: dict[int, int] = {}

    def told(self, value: object) -> JSON:
        """Encode a value for the tests."""
        return encoded(value, self._named)

    def answer(self, request: Mapping[str, JSON]) -> dict[str, JSON]:
        """Execute one request of the tests; exceptions become part of the answer."""
        try:
            operation = OPERATIONS[request["do"]]
            args = [decoded(each, self._meant) for each in request["args"]]
            kwargs = {name: decoded(each, self._meant) for name, each in request["kwargs"].items()}
            value = operation(*args, **kwargs)
            changed = [self.told(each) if isinstance(each, MUTABLE) else None for each in args]
            return {"value": self.told(value), "args": changed}
        except BaseException as error:
            return raised(error)

    def _named(self, value: object) -> JSON:
        if isinstance(value, ModuleType):
            return {"module": value.__name__}
        if (number := self._numbers.get(id(value))) is None:
            number = self._numbers[id(value)] = len(self._kept)
            self._kept.append(value)
        return {"object": [number, type(value).__name__, _equals_values(value)]}

    def _meant(self, name: str, said: JSON) -> object:
        return getattr(builtins, said) if name == "built_in" else self._kept[said]


def _equals_values(value: object) -> bool:
    """Whether the object's type has its own equality and is not defined by the program."""
    kind = type(value)
    return kind.__module__ != PROGRAM and kind.__eq__ is not object.__eq__


def _call(function: Callable[..., object], /, *args: object, **kwargs: object) -> object:
    return function(*args, **kwargs)


def _next(iterator: Iterator[object]) -> list[object]:
    """The next value in a list; an empty list at the end."""
    for value in iterator:
        return [value]
    return []


OPERATIONS: Mapping[str, Callable[..., object]] = {
    "call": _call,
    "get": getattr,
    "set": setattr,
    "iterate": iter,
    "next": _next,
    "length": len,
    "item": lambda value, key: value[key],
    "set item": lambda value, key, item: value.__setitem__(key, item),
    "truth": bool,
    "text": str,
    "shown": repr,
    "==": lambda a, b: bool(a == b),
    "<": lambda a, b: bool(a < b),
    "<=": lambda a, b: bool(a <= b),
    ">": lambda a, b: bool(a > b),
    ">=": lambda a, b: bool(a >= b),
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
}
"""Operations that tests can apply to the program's objects, by name."""
