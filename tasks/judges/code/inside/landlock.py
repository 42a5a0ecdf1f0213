"""Landlock: restrict the files that a process can open, enforced by the kernel (see landlock(7))."""

import ctypes
import os
from collections.abc import Sequence

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446  # the same on all architectures
_ABI_REQUEST = 1
_PATH_BENEATH = 1

WRITE_FILE, READ_FILE, READ_DIR, REMOVE_FILE = 1 << 1, 1 << 2, 1 << 3, 1 << 5
MAKE_FILE, TRUNCATE = 1 << 8, 1 << 14
_ON_FILES = WRITE_FILE | READ_FILE | TRUNCATE

READ = READ_FILE | READ_DIR
WORK = READ | WRITE_FILE | REMOVE_FILE | MAKE_FILE | TRUNCATE
"""Files can be created, written and removed, but no folders, links, sockets or devices created."""

_HANDLED_FS = {1: 0x1FFF, 2: 0x3FFF, 3: 0x7FFF, 4: 0x7FFF}
_ALL_FS = 0xFFFF
_ALL_NETWORK = 0b11  # bind and connect by TCP, from version 4
_ALL_SCOPES = 0b11  # abstract sockets and signals, from version 6


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scopes", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("folder", ctypes.c_int32))


def landlock_version(libc: ctypes.CDLL) -> int:
    """The version of the kernel's Landlock, 0 if there is none."""
    return max(0, int(libc.syscall(CREATE_RULESET, None, ctypes.c_size_t(0), _ABI_REQUEST)))


def restrict_files(libc: ctypes.CDLL, allowed: Sequence[tuple[str, int]]) -> None:
    """Remove all file rights of this process except the named ones.

    Args:
        libc: With `use_errno`.
        allowed: Paths, with the rights for each and everything below it. A missing path is ignored.

    Raises:
        OSError: If the kernel refuses.
    """
    version = landlock_version(libc)
    handled = _HANDLED_FS.get(version, _ALL_FS)
    ruleset = _Ruleset(handled, _ALL_NETWORK if version >= 4 else 0, _ALL_SCOPES if version >= 6 else 0)
    size = 8 if version < 4 else 16 if version < 6 else 24
    rules = _checked(libc.syscall(CREATE_RULESET, ctypes.byref(ruleset), ctypes.c_size_t(size), 0))
    for path, rights in allowed:
        _allow(libc, rules, path, rights & handled)
    _checked(libc.syscall(RESTRICT_SELF, rules, 0))
    os.close(rules)


def _allow(libc: ctypes.CDLL, rules: int, path: str, rights: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        beneath = _Beneath(rights if os.path.isdir(path) else rights & _ON_FILES, place)
        _checked(libc.syscall(ADD_RULE, rules, _PATH_BENEATH, ctypes.byref(beneath), 0))
    finally:
        os.close(place)


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"Landlock was refused: {os.strerror(number)}")
    return int(result)
