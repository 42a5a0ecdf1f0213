# ruff: noqa: E501 -- lists of odd values
"""What every case has to do: succeed, or end in one sentence of ours, soon and within little memory."""

import resource
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from hypothesis import strategies as st

from winnow.algorithms.errors import AlgorithmError
from winnow.storage.errors import StorageError
from winnow.tasks.errors import WinnowError
from winnow.tasks.text.printable import LONGEST

CORPUS = Path(__file__).with_name("corpus")

OURS = (WinnowError, StorageError, AlgorithmError)

MOST_SECONDS = 20
"""Of the process's own time, so that a busy machine is no fault; all but templates take far less."""

MOST_MEMORY = 768 << 20
"""Bytes by which a case may raise the most that the process ever had."""


class TooSlow(BaseException):
    """No `except Exception` is to catch it."""


def settles(action: Callable[..., Any], *arguments: Any, one_line: bool = True) -> Any:
    """Run a case; return what it gives, or the error of ours that it ends in.

    Args:
        action: Does it.
        arguments: Of `action`.
        one_line: Whether an error is one sentence. Of several mistakes in a file each has a line.
    """
    before = _peak()
    try:
        with _bounded():
            found = action(*arguments)
    except OURS as error:
        found = error
        said = str(error)
        assert said.strip(), "an error without a sentence"
        assert "Traceback" not in said, said
        lines = said.split("\n")
        assert not one_line or len(lines) == 1, said
        assert all(line.strip() and line.isprintable() for line in lines), ascii(said)
        assert len(said) < 120_000, f"{len(said)} characters: {said[:200]}"
        assert max(map(len, lines)) <= LONGEST
    assert _peak() - before < MOST_MEMORY
    return found


def kept(surface: str) -> list[Path]:
    """The inputs of a surface that are kept, by name."""
    return sorted((CORPUS / surface).iterdir())


@st.composite
def damaged(draw: st.DrawFn, whole: bytes) -> bytes:
    """What a file of these bytes may become: cut, flipped, repeated, overwritten."""
    content = bytearray(whole)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(content)))
        match draw(st.sampled_from(["cut", "flip", "insert", "repeat", "remove", "number"])):
            case "cut":
                del content[at:]
            case "flip" if at < len(content):
                content[at] = draw(st.integers(0, 255))
            case "insert":
                content[at:at] = draw(st.binary(max_size=12) | st.sampled_from(TROUBLE))
            case "repeat":
                part = content[at : at + draw(st.integers(1, 200))]
                content[at:at] = part * draw(st.integers(1, 20))
            case "remove":
                del content[at : at + draw(st.integers(1, 40))]
            case "number" if at + 4 <= len(content):
                content[at : at + 4] = draw(st.sampled_from(NUMBERS))
    return bytes(content)


NUMBERS = [b"\xff\xff\xff\xff", b"\x00\x00\x00\x00", b"\xff\xff\xff\x7f", b"9999", b"\x00\x00\x00\x80"]

TROUBLE = [
    b"\x00", b"\x1b[2J", b"\xef\xbb\xbf", b"\xff\xfe", b"\xed\xa0\x80", "\u202e".encode(), "\u2028".encode(),
    b'"', b"'", b"\n", b"\r", b"\r\n", b"\t", b",", b"[", b"{", b"{{", b"}}", b"{% ", b"&a", b"*a", b"<<: ",
    b"NaN", b"Infinity", b"-1e999", b"1e400", b"9" * 400, b"[" * 2_000, b'{"a":' * 2_000, b"null", b"!!python/name:os.system",
    b"0x1F", b"1_000", b"12:30:45", b"2024-13-45", b"~", b"? ", b"%TAG ! x", b"--- ", b"\\ud800", b"\\u0000",
]  # fmt: skip
"""What parsers stumble over."""

NASTY_TEXT = st.text(max_size=30) | st.sampled_from(
    [each.decode("utf-8", "surrogateescape") for each in TROUBLE] + ["\ud800", "", " ", "a" * 5_000]
)

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | NASTY_TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NASTY_TEXT, inner, max_size=4),
    max_leaves=8,
)
"""Whatever JSON, or YAML, may hold, NaN and infinities included."""


def paths_in(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in nested dicts and lists."""
    if path:
        yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        yield from paths_in(each, (*path, key))


def put(value: Any, path: tuple[Any, ...], new: Any) -> None:
    """Put something at a place; nothing where there is no such place."""
    holder = _holder(value, path)
    if isinstance(holder, dict):
        holder[str(path[-1])] = new
    elif isinstance(holder, list) and isinstance(path[-1], int) and path[-1] < len(holder):
        holder[path[-1]] = new


def taken_out(value: Any, path: tuple[Any, ...]) -> None:
    """Take out what is at a place."""
    holder = _holder(value, path)
    if isinstance(holder, dict):
        holder.pop(path[-1], None)


def _holder(value: Any, path: tuple[Any, ...]) -> Any:
    """What holds a place; None where there is no such place."""
    if not path:
        return None
    for part in path[:-1]:
        try:
            value = value[part]
        except (KeyError, IndexError, TypeError):
            return None
    return value


@contextmanager
def _bounded() -> Iterator[None]:
    def give_up(_: int, frame: FrameType | None) -> None:
        raise TooSlow(f"more than {MOST_SECONDS} s of work, at {frame}")

    previous = signal.signal(signal.SIGVTALRM, give_up)
    signal.setitimer(signal.ITIMER_VIRTUAL, MOST_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, previous)


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
