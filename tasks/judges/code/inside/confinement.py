"""Confinement of a process, applied permanently by itself before it runs a model-written program.

Afterwards it can compute, within limits; read the standard library; write files into one folder; and use the
pipes that it was given. It has no privileges, cannot create a process, open a socket, send a signal or read
any other file, and it ends with its parent.
"""

import ctypes
import os
import resource
import signal
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from winnow.tasks.judges.code.inside.landlock import (
    READ,
    READ_DIR,
    WORK,
    WRITE_FILE,
    landlock_version,
    restrict_files,
)
from winnow.tasks.judges.code.inside.seccomp import ARCHITECTURES, install_filter

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
    """The sandbox feature that this machine lacks, in a few words; None if it has all."""
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
        limits: Limits on its time and memory.
        folder: Its only writable folder, which becomes its working directory; None for none.
        parent: The process with which it ends.
        reads: More files and folders that it may read.

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
    """Readable paths: the standard library without installed packages, and the libraries that it loads."""
    library = [path for path in sys.path if os.path.isdir(path)]
    for folder in library:
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
        (resource.RLIMIT_CPU, limits.seconds),  # soft and hard are equal: the kernel kills, nothing is asked
        (resource.RLIMIT_AS, taken + limits.memory),
        (resource.RLIMIT_FSIZE, MOST_OF_A_FILE),
        (resource.RLIMIT_NOFILE, MOST_OPEN),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_MEMLOCK, 0),
    ):
        resource.setrlimit(kind, (most, most))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # too long a file is an error of whoever writes it


def _drop_capabilities(libc: ctypes.CDLL) -> None:
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
    if libc.capset(header, (ctypes.c_uint32 * 6)()):
        raise OSError(ctypes.get_errno(), "the privileges could not be given up")


def _call(libc: ctypes.CDLL, option: int, value: int) -> None:
    if libc.prctl(option, value, 0, 0, 0):
        raise OSError(ctypes.get_errno(), f"prctl {option} was refused")
