"""Every write, flush, rename, removal and send of a process, seen before it is made, by another process.

The kernel asks this process about each of them (seccomp's user notifications) and lets the caller wait for
the answer: to go on, to fail with an error, or to die there. So a process can be killed with SIGKILL at any
of its calls, those that SQLite and libpq make in C included, and a file system can become read-only or full
under it. Linux 5.5 or later, no privileges.
"""

import ctypes
import errno
import fcntl
import os
import platform
import re
import select
import signal
import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

X86 = {"write": 1, "pwrite64": 18, "writev": 20, "sendto": 44, "fsync": 74, "fdatasync": 75,
       "ftruncate": 77, "rename": 82, "unlink": 87, "openat": 257, "unlinkat": 263, "renameat": 264,
       "pwritev": 296, "renameat2": 316, "seccomp": 317}  # fmt: skip
ARM = {"unlinkat": 35, "renameat": 38, "ftruncate": 46, "openat": 56, "write": 64, "writev": 66,
       "pwrite64": 68, "pwritev": 70, "fsync": 82, "fdatasync": 83, "sendto": 206, "renameat2": 276,
       "seccomp": 277}  # fmt: skip
NUMBERS = ARM if platform.machine() == "aarch64" else X86
NAMES = {number: name for name, number in NUMBERS.items()}

PATHS = {"rename": 0, "unlink": 0, "openat": 1, "unlinkat": 1, "renameat": 1, "renameat2": 1}
"""Which argument is the address of a path; of all others the first is a file descriptor."""

FOR_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC

BEGUN = 987_654
"""Who flushes this descriptor, which nobody has, says that its calls are to be counted from now on."""
ENDED = BEGUN + 1
"""And who flushes this one, that they are not any more."""

OURS = re.compile(r"asked\.jsonl|held-|go-|met$|count-|length\.json|killed$")
"""Files in a campaign's folder that it would not write, did we not watch it."""

_SET_NO_NEW_PRIVILEGES, _SET_FILTER, _NEW_LISTENER = 38, 1, 8
_ASK, _ALLOW = 0x7FC0_0000, 0x7FFF_0000
_LOAD, _AND, _EQUAL, _RETURN = 0x20, 0x54, 0x15, 0x06
_ARGUMENTS = 16
_RECEIVE, _ANSWER = 0xC050_2100, 0xC018_2101
_GO_ON = 1
_NOTICE = struct.Struct("=QIIiIQ6Q")
_REPLY = struct.Struct("=QqiI")


@dataclass(frozen=True, kw_only=True)
class Call:
    """A system call that its process waits to make."""

    number: int
    """From 1, among those on the campaign's files and connections since they are counted."""
    name: str
    target: str
    """The file's name in its folder, or "PostgreSQL"."""
    process: int
    """Who makes it."""


Answer = Callable[[Call], int | None]
"""What becomes of a call: None for going on, the number of an error, or `KILL`."""
KILL = -1


def goes_on(call: Call) -> None:
    """Every call is made."""


class Overseer:
    """Asked about the calls of one process, and of those it starts, from a thread of this process."""

    def __init__(self, folder: Path, answer: Answer, port: int | None = None) -> None:
        """
        Args:
            folder: Whose files are meant.
            answer: Decides on each call, one at a time.
            port: On which PostgreSQL listens, where sending there is meant as well.
        """
        self.calls: list[Call] = []
        self._folder, self._answer, self._port = folder, answer, port
        self._counts = False
        self._sockets: dict[str, bool] = {}
        self._door = socket.socket(socket.AF_UNIX)
        self._door.bind(f"\0winnow-faults-{os.getpid()}-{id(self)}")
        self._door.listen()
        self._thread = threading.Thread(target=self._oversee, daemon=True)
        self._thread.start()

    @property
    def tampering(self) -> "Overseen":
        """What the process has to do first."""
        return Overseen(self._door.getsockname())

    def close(self) -> None:
        """Wait until no process is overseen any more; call it when they have ended."""
        with suppress(OSError), socket.socket(socket.AF_UNIX) as caller:
            caller.connect(self._door.getsockname())  # where none ever came
        self._thread.join(60.0)
        self._door.close()

    def _oversee(self) -> None:
        caller, _ = self._door.accept()
        with caller:
            _, (listener, *_), _, _ = socket.recv_fds(caller, 16, 1)
        try:
            poll = select.poll()
            poll.register(listener, select.POLLIN)
            while poll.poll()[0][1] & select.POLLIN:
                with suppress(FileNotFoundError, ProcessLookupError):  # who asked is gone
                    self._answer_one(listener)
        finally:
            os.close(listener)

    def _answer_one(self, listener: int) -> None:
        notice = bytearray(_NOTICE.size)
        fcntl.ioctl(listener, _RECEIVE, notice)
        asked, thread, _, number, _, _, *arguments = _NOTICE.unpack(notice)
        verdict = self._verdict(thread, NAMES[number], arguments)
        if verdict == KILL:
            return
        reply = _REPLY.pack(asked, 0, -verdict, 0) if verdict else _REPLY.pack(asked, 0, 0, _GO_ON)
        fcntl.ioctl(listener, _ANSWER, bytearray(reply))

    def _verdict(self, thread: int, name: str, arguments: list[int]) -> int | None:
        if name == "fsync" and arguments[0] in (BEGUN, ENDED):
            self._counts = arguments[0] == BEGUN
            return errno.EBADF
        target = self._target(thread, name, arguments) if self._counts else None
        if target is None:
            return None
        process = _process_of(thread)
        call = Call(number=len(self.calls) + 1, name=name, target=target, process=process)
        self.calls.append(call)
        verdict = self._answer(call)
        if verdict == KILL:
            os.kill(process, signal.SIGKILL)
        return verdict

    def _target(self, thread: int, name: str, arguments: list[int]) -> str | None:
        if name in PATHS:
            path = Path(f"/proc/{thread}/cwd").readlink() / _text(thread, arguments[PATHS[name]])
        else:
            path = Path(f"/proc/{thread}/fd/{arguments[0]}").readlink()
        if path.is_relative_to(self._folder):
            name = str(path.relative_to(self._folder))
            return None if OURS.match(name) else name
        return "PostgreSQL" if self._port and self._is_postgresql(thread, str(path)) else None

    def _is_postgresql(self, thread: int, path: str) -> bool:
        if not path.startswith("socket:["):
            return False
        if path not in self._sockets:
            remote = f":{self._port:04X}"
            lines = Path(f"/proc/{thread}/net/tcp").read_text().splitlines()[1:]
            fields = [line.split() for line in lines]
            self._sockets[path] = any(f"socket:[{f[9]}]" == path and f[2].endswith(remote) for f in fields)
        return self._sockets[path]


@dataclass(frozen=True)
class Overseen:
    """A tampering: have an `Overseer` asked about the calls of this process; can be pickled."""

    door: bytes

    def __call__(self) -> None:
        with socket.socket(socket.AF_UNIX) as caller:
            caller.connect(self.door)
            listener = _install_filter()
            socket.send_fds(caller, [b"calls"], [listener])  # sendmsg: that is not asked about
            os.close(listener)


def begin_counting() -> None:
    """Tell the overseer that from now on calls count."""
    with suppress(OSError):
        os.fsync(BEGUN)


def end_counting() -> None:
    """Tell the overseer that calls do not count any more."""
    with suppress(OSError):
        os.fsync(ENDED)


def _install_filter() -> int:
    """Have the kernel ask about calls; return the descriptor of what hears its questions."""
    steps = _steps()
    code = b"".join(struct.pack("=HBBI", *step) for step in steps)
    buffer = ctypes.create_string_buffer(code)
    program = struct.pack("@HP", len(steps), ctypes.addressof(buffer))
    library = ctypes.CDLL(None, use_errno=True)
    library.prctl(_SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    listener = library.syscall(NUMBERS["seccomp"], _SET_FILTER, _NEW_LISTENER, program)
    if listener < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"the kernel lets no system call be overseen ({os.strerror(number)})")
    return int(listener)


def _steps() -> list[tuple[int, int, int, int]]:
    """A program of the kernel's: (code, steps to skip if so, if not, operand)."""
    asked = [number for name, number in NUMBERS.items() if name not in ("seccomp", "openat")]
    return [
        (_LOAD, 0, 0, 0),
        *((_EQUAL, len(asked) - at + 3, 0, number) for at, number in enumerate(asked)),
        (_EQUAL, 0, 4, NUMBERS["openat"]),
        (_LOAD, 0, 0, _ARGUMENTS + 2 * 8),
        (_AND, 0, 0, FOR_WRITING),
        (_EQUAL, 1, 0, 0),
        (_RETURN, 0, 0, _ASK),
        (_RETURN, 0, 0, _ALLOW),
    ]


def _text(thread: int, address: int) -> str:
    """A path in the memory of a thread that waits."""
    with Path(f"/proc/{thread}/mem").open("rb", buffering=0) as memory:
        memory.seek(address)
        return os.fsdecode(memory.read(4096).partition(b"\0")[0])


def _process_of(thread: int) -> int:
    lines = Path(f"/proc/{thread}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("Tgid:")).split()[1])
