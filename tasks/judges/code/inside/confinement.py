"""Confinement of a process, which it applies to itself before it runs a model's program.

The confinement is permanent. Afterwards the process can compute, within limits; read the standard library;
write files into one folder; and use the pipes that it was given. It has no privileges, cannot create a
process, open a socket, send a signal or read any other file, and it ends with its parent.

The kernel's Landlock restricts the files that the process can open; see landlock(7).
"""

import ctypes
import os
import resource
import signal
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from winnow.tasks.judges.code.inside.seccomp import ARCHITECTURES, install_filter

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446  # the same on all architectures
_ABI_REQUEST = 1
_PATH_BENEATH = 1

WRITE_FILE, READ_FILE, READ_DIR, REMOVE_FILE = 1 << 1, 1 << 2, 1 << 3, 1 << 5
MAKE_FILE, TRUNCATE = 1 << 8, 1 << 14
_ON_FILES = WRITE_FILE | READ_FILE | TRUNCATE

READ = READ_FILE | READ_DIR
WORK = READ | WRITE_FILE | REMOVE_FILE | MAKE_FILE | TRUNCATE
"""File rights in the writable folder: create, write and remove files, but create no folders, links, sockets
or devices."""

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
    """Version of the kernel's Landlock; 0 if the kernel has none."""
    return max(0, int(libc.syscall(CREATE_RULESET, None, ctypes.c_size_t(0), _ABI_REQUEST)))


def restrict_files(libc: ctypes.CDLL, allowed: Sequence[tuple[str, int]]) -> None:
    """Remove all file rights of this process except the named ones.

    Args:
        libc: The C library, opened with `use_errno`.
        allowed: Paths, with the rights for each path and everything below it. A missing path is ignored.

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


MOST_OF_A_FILE = 8 << 20
MOST_OPEN = 32

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS, _PR_GET_SECCOMP = 1, 4, 38, 21
_CAPABILITY_VERSION = 0x20080522
_PACKAGES = ("site-packages", "dist-packages")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits on the time and the memory of one process."""

    seconds: int
    """Seconds of processor time."""
    memory: int
    """Bytes on top of the process's memory at the start."""


def missing() -> str | None:
    """Name of the sandbox feature that this machine lacks; None if no feature is missing."""
    if not sys.platform.startswith("linux") or os.uname().machine not in ARCHITECTURES:
        return f"Linux on {' or '.join(ARCHITECTURES)}"
    libc = ctypes.CDLL(None, use_errno=True)
    if landlock_version(libc) < 1:
        return "Landlock, which Linux has from 5.13 on and which can be turned off there or by a container"
    if libc.prctl(_PR_GET_SECCOMP, 0, 0, 0, 0) < 0:
        return "seccomp, which the kernel was built without"
    return None


def confine(limits: Limits, folder: str | None, parent: int, reads: Sequence[str] = ()) -> None:
    """Confine this process permanently.

    Args:
        limits: Limits on the time and memory of the process.
        folder: The only writable folder, which becomes the working directory; None for no folder.
        parent: Id of the parent process, with which this process ends.
        reads: Additional files and folders that the process may read.

    Raises:
        OSError: If the system refuses; then nothing may be run.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    _call(libc, _PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        raise OSError("the judge has ended")
    files = list(readable())
    os.chdir(folder or "/")
    _set_limits(limits)
    _call(libc, _PR_SET_DUMPABLE, 0)
    _call(libc, _PR_SET_NO_NEW_PRIVS, 1)
    _drop_capabilities(libc)
    devices = [("/dev/null", READ | WRITE_FILE), ("/dev/zero", READ), ("/dev/urandom", READ)]
    own = [*((each, READ) for each in reads), *([(folder, WORK)] if folder else [])]
    restrict_files(libc, [*files, *devices, *own])
    install_filter(libc)


def readable() -> Iterator[tuple[str, int]]:
    """Yield the paths that the confined program can open, each with its access rights.

    These are the entries of the folders on `sys.path`, the shared libraries loaded now, the linker's cache,
    and the time zones. A folder of installed packages is included only if it is itself on `sys.path`.
    """
    library = [path for path in sys.path if os.path.isdir(path)]
    for folder in library:
        if os.path.basename(folder) in _PACKAGES:  # the process can import installed packages
            yield folder, READ
            continue
        yield folder, READ_DIR
        yield from ((entry.path, READ) for entry in os.scandir(folder) if entry.name not in _PACKAGES)
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        mapped = {line.split(None, 5)[-1].rstrip("\n") for line in maps if ".so" in line}
    for folder in {os.path.dirname(path) for path in mapped if os.path.exists(path)}:
        if any(os.path.commonpath([folder, each]) == folder for each in map(os.path.realpath, library)):
            yield from ((entry.path, READ) for entry in os.scandir(folder) if ".so" in entry.name)
        else:
            yield folder, READ
    yield from (("/etc/ld.so.cache", READ), ("/usr/share/zoneinfo", READ))


def _set_limits(limits: Limits) -> None:
    with open("/proc/self/statm", encoding="ascii") as sizes:
        taken = int(sizes.read().split()[0]) * resource.getpagesize()
    for kind, most in (
        (resource.RLIMIT_CPU, limits.seconds),  # soft and hard are equal, so the kernel kills at once
        (resource.RLIMIT_AS, taken + limits.memory),
        (resource.RLIMIT_FSIZE, MOST_OF_A_FILE),
        (resource.RLIMIT_NOFILE, MOST_OPEN),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_MEMLOCK, 0),
    ):
        resource.setrlimit(kind, (most, most))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # too long a file makes the write fail instead


def _drop_capabilities(libc: ctypes.CDLL) -> None:
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
    if libc.capset(header, (ctypes.c_uint32 * 6)()):
        raise OSError(ctypes.get_errno(), "the privileges could not be given up")


def _call(libc: ctypes.CDLL, option: int, value: int) -> None:
    if libc.prctl(option, value, 0, 0, 0):
        raise OSError(ctypes.get_errno(), f"prctl {option} was refused")
