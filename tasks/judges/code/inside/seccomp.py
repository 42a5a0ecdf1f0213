"""A seccomp filter of system calls, without the library libseccomp.

A filter is a program for the kernel's packet filter (see seccomp(2)): it sees the number of a call and its
numeric arguments, but nothing that an argument points to. It cannot be removed.
"""

import ctypes
import errno
import os
from collections.abc import Sequence
from dataclasses import dataclass

from winnow.tasks.judges.code.inside.syscalls import ABSENT, ALLOWED, LIMITED

ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
"""By machine name: the column in the tables of calls, and the kernel's AUDIT_ARCH number."""

PR_SET_SECCOMP = 22
SECCOMP_MODE_FILTER = 2

_LOAD, _JUMP_EQUAL, _AND, _RETURN = 0x20, 0x15, 0x54, 0x06
_ALLOW, _KILL = 0x7FFF0000, 0x80000000
_EPERM, _ENOSYS = 0x00050000 | errno.EPERM, 0x00050000 | errno.ENOSYS
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16  # offsets within struct seccomp_data

_NEW_NAMESPACES = 0x7E020000
_CLONE_THREAD = 0x00010000
_O_ACCMODE, _O_TRUNC = 0o3, 0o1000
_AF_UNIX, _SOCK_STREAM, _SOCK_TYPES = 1, 1, 0xF
_FCNTL = (
    0,
    1,
    2,
    3,
    4,
    5,
    6,
    7,
    1030,
)  # DUPFD, flags, locks, DUPFD_CLOEXEC; no F_SETOWN, which sends signals
_IOCTL = (
    0x5401,
    0x5413,
    0x541B,
    0x5421,
    0x5450,
    0x5451,
)  # TCGETS, TIOCGWINSZ, FIONREAD, FIONBIO, FI(O|N)CLEX
_PRCTL = (15, 16, 0x53564D41)  # the name of a thread, and of memory

Instruction = tuple[int, int, int, int]
"""Code, jump if true, jump if false, constant."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on an argument: after masking, it equals one of some values."""

    argument: int
    values: Sequence[int]
    mask: int = 0xFFFFFFFF
    is_excluded: bool = False
    """Whether the argument must be none of the values."""
    upper: bool = False
    """Whether to test the upper half of the 64-bit argument."""


CONDITIONS = {
    "clone": [Condition(0, [_CLONE_THREAD], _CLONE_THREAD | _NEW_NAMESPACES)],
    "fcntl": [Condition(1, _FCNTL)],
    "ioctl": [Condition(1, _IOCTL)],
    # Landlock takes a file that is opened to be read for one that is only read, and older ones let it be cut.
    "open": [Condition(1, [_O_TRUNC], _O_TRUNC | _O_ACCMODE, is_excluded=True)],
    "openat": [Condition(2, [_O_TRUNC], _O_TRUNC | _O_ACCMODE, is_excluded=True)],
    "prctl": [Condition(0, _PRCTL)],
    # Limits of this very process are read; root could raise them, too.
    "prlimit64": [Condition(0, [0]), Condition(2, [0]), Condition(2, [0], upper=True)],
    # A pair that is connected for good; asyncio needs one.
    "socketpair": [Condition(0, [_AF_UNIX]), Condition(1, [_SOCK_STREAM], _SOCK_TYPES)],
}


class _Filter(ctypes.Structure):
    _fields_ = (
        ("code", ctypes.c_ushort),
        ("jump_true", ctypes.c_ubyte),
        ("jump_false", ctypes.c_ubyte),
        ("constant", ctypes.c_uint),
    )


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.POINTER(_Filter)))


def filter_rules(machine: str) -> list[Instruction]:
    """The filter's program for a kind of machine, a key of `ARCHITECTURES`."""
    column, architecture = ARCHITECTURES[machine]
    rules: list[Instruction] = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_JUMP_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
    ]
    for numbers, action in ((ALLOWED, _ALLOW), (ABSENT, _ENOSYS)):
        for each in numbers.values():
            if (number := each[column]) is not None:
                rules += [(_JUMP_EQUAL, 0, 1, number), (_RETURN, 0, 0, action)]
    for name, each in LIMITED.items():
        if (number := each[column]) is not None:
            checks = [step for condition in CONDITIONS[name] for step in _check(condition)]
            rules += [(_JUMP_EQUAL, 0, len(checks) + 1, number), *checks, (_RETURN, 0, 0, _ALLOW)]
    return [*rules, (_RETURN, 0, 0, _EPERM)]


def _check(condition: Condition) -> list[Instruction]:
    """Continue if the condition holds, else return EPERM."""
    offset = _ARGUMENTS + 8 * condition.argument + (4 if condition.upper else 0)  # both are little-endian
    steps: list[Instruction] = [(_LOAD, 0, 0, offset), (_AND, 0, 0, condition.mask)]
    values = condition.values
    if condition.is_excluded:
        steps += [(_JUMP_EQUAL, len(values) - place, 0, value) for place, value in enumerate(values)]
        return [*steps[:-1], (_JUMP_EQUAL, 0, 1, values[-1]), (_RETURN, 0, 0, _EPERM)]
    steps += [(_JUMP_EQUAL, len(values) - place, 0, value) for place, value in enumerate(values)]
    return [*steps, (_RETURN, 0, 0, _EPERM)]


def install_filter(libc: ctypes.CDLL) -> None:
    """Filter this process's system calls from now on.

    Raises:
        OSError: If the kernel rejects the filter.
    """
    rules = filter_rules(os.uname().machine)
    filters = (_Filter * len(rules))(*(_Filter(*rule) for rule in rules))
    program = _Program(len(rules), filters)
    if libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0):
        raise OSError(ctypes.get_errno(), "the filter of system calls was refused")
