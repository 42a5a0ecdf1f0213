"""The program as seen by the tests, which run in another process.

Plain values arrive as copies of exactly their types. Any other object of the program is a `Remote`: it can be
called, inspected and iterated, and compared with another object of the program. It is never compared with a
value of the tests, because only the program could answer that.
"""

import builtins
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from importlib import import_module
from sys import stdlib_module_names
from typing import Any, NoReturn

from winnow.tasks.judges.code.inside.link import Link, LinkEnded
from winnow.tasks.judges.code.inside.program_side import MUTABLE
from winnow.tasks.judges.code.inside.values import JSON, Unreadable, decoded, encoded


class ProgramEnded(BaseException):
    """The program's process has ended or sent no valid answer.

    A `BaseException`, so that `except Exception` in a test does not catch it.
    """


class NotCarried(BaseException):
    """The tests use a feature that works in one interpreter only; the message names it."""


class RaisedByProgram(Exception):
    """The program raised an exception that is not built in."""


class Program:
    """Connection to the program's process.

    Args:
        link: The link to the process.
    """

    def __init__(self, link: Link) -> None:
        self._link = link
        self.broken: ProgramEnded | NotCarried | None = None
        """Exception that ended the tests or the program; kept even if the tests caught it."""

    def names(self, names: Collection[str], wanted: Collection[str]) -> dict[str, object]:
        """Wait until the program has run, and return some of its global names.

        Args:
            names: The names to return; a built-in name is always Python's own.
            wanted: The names that the program has to define, by which it is chosen from the output.

        Raises:
            Exception: If the program raised one.
            ProgramEnded: If the program ended before it reported its names.
        """
        told = sorted(name for name in names if not hasattr(builtins, name))
        self._send({"names": told, "wanted": sorted(wanted)})
        reply = self._received()
        if "raised" in reply:
            raise _exception(reply)
        return {name: self._value(said) for name, said in dict(reply.get("names", {})).items()}

    def ask(self, operation: str, args: Sequence[object], kwargs: Mapping[str, object] = {}) -> Any:  # noqa: ANN401
        """Apply an operation to the program's objects; return its value, and update the arguments.

        Raises:
            Exception: If the program raised one.
            ProgramEnded: If the program has ended.
            NotCarried: If an argument is not a plain value.
        """
        told = [encoded(each, self._sent) for each in args]
        named = {name: encoded(each, self._sent) for name, each in kwargs.items()}
        self._send({"do": operation, "args": told, "kwargs": named})
        reply = self._received()
        if "raised" in reply:
            raise _exception(reply)
        for mine, theirs in zip(args, reply.get("args", ()), strict=False):
            if theirs is not None:
                _change(mine, self._value(theirs))
        return self._value(reply.get("value"))

    def refuse(self, sentence: str) -> NoReturn:
        """End the tests for a reason that is not the program's fault; raises `NotCarried`."""
        self.broken = self.broken or NotCarried(sentence)
        raise self.broken

    def _send(self, message: JSON) -> None:
        try:
            self._link.send(message)
        except LinkEnded as error:
            self._end(str(error))

    def _received(self) -> Mapping[str, JSON]:
        try:
            reply = self._link.receive()
        except LinkEnded as error:
            self._end(str(error))
        if not isinstance(reply, dict):
            self._end("an invalid answer")
        return reply

    def _value(self, said: JSON) -> object:
        try:
            return decoded(said, self._named)
        except (Unreadable, RecursionError) as error:
            self._end(str(error))

    def _named(self, name: str, said: JSON) -> object:
        if name == "module" and isinstance(said, str) and said.partition(".")[0] in stdlib_module_names:
            return import_module(said)
        if name == "object" and isinstance(said, list) and len(said) == 3:
            return Remote(self, int(said[0]), str(said[1]), equals_values=said[2] is True)
        return self._end(f"an answer with {name!r:.50}")

    def _sent(self, value: object) -> JSON:
        if isinstance(value, Remote):
            return {"mine": object.__getattribute__(value, "_number")}
        if getattr(builtins, name := getattr(value, "__name__", ""), None) is value:
            return {"built_in": name}
        return self.refuse(f"the tests give the program a {type(value).__name__}")

    def _end(self, why: str) -> NoReturn:
        self.broken = self.broken or ProgramEnded(why)
        raise self.broken


def _exception(reply: Mapping[str, JSON]) -> BaseException:
    message = str(reply.get("message", ""))
    for name in reply.get("built_in", ()):
        kind = getattr(builtins, str(name), None)
        if isinstance(kind, type) and issubclass(kind, BaseException) and kind is not Exception:
            try:
                return kind(message)
            except TypeError:  # such as UnicodeDecodeError, which needs more arguments
                continue
    return RaisedByProgram(f"{reply['raised']}: {message}")


def _change(mine: JSON, theirs: JSON) -> None:
    """Update an argument with the program's changes to its copy."""
    if type(mine) is not type(theirs) or not isinstance(mine, MUTABLE) or repr(mine) == repr(theirs):
        return
    mine.clear()
    (mine.extend if isinstance(mine, list | bytearray) else mine.update)(theirs)


def _between(operation: str) -> Callable[["Remote", object], object]:
    def compared(self: "Remote", other: object) -> object:
        program: Program = object.__getattribute__(self, "_program")
        if not isinstance(other, Remote):
            kind = object.__getattribute__(self, "_kind")
            program.refuse(f"the tests compare a {kind} of the program with a {type(other).__name__}")
        return program.ask(operation, [self, other])

    return compared


def _asked(operation: str) -> Callable[..., JSON]:
    def asked(self: "Remote", *args: object) -> object:
        return object.__getattribute__(self, "_program").ask(operation, [self, *args])

    return asked


_EQUAL = _between("==")


class Remote:
    """An object of the program that is not a plain value."""

    def __init__(self, program: Program, number: int, kind: str, *, equals_values: bool) -> None:
        object.__setattr__(self, "_program", program)
        object.__setattr__(self, "_number", number)
        object.__setattr__(self, "_kind", kind)
        object.__setattr__(self, "_equals_values", equals_values)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Remote) and not object.__getattribute__(self, "_equals_values"):
            return False
        return bool(_EQUAL(self, other))

    def __call__(self, *args: object, **kwargs: object) -> object:
        """Call the object in the program's process."""
        return object.__getattribute__(self, "_program").ask("call", [self, *args], kwargs)

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        return object.__getattribute__(self, "_program").ask("get", [self, name])

    def __iter__(self) -> Iterator[object]:
        program: Program = object.__getattribute__(self, "_program")
        iterator = program.ask("iterate", [self])
        while found := program.ask("next", [iterator]):
            yield found[0]

    def __next__(self) -> object:
        if found := object.__getattribute__(self, "_program").ask("next", [self]):
            return found[0]
        raise StopIteration

    __hash__ = object.__hash__
    __setattr__ = _asked("set")
    __len__ = _asked("length")
    __getitem__ = _asked("item")
    __setitem__ = _asked("set item")
    __bool__ = _asked("truth")
    __str__ = _asked("text")
    __repr__ = _asked("shown")
    __lt__ = _between("<")
    __le__ = _between("<=")
    __gt__ = _between(">")
    __ge__ = _between(">=")
    __add__ = __radd__ = _between("+")
    __sub__ = __rsub__ = _between("-")
    __mul__ = __rmul__ = _between("*")
    __truediv__ = __rtruediv__ = _between("/")
