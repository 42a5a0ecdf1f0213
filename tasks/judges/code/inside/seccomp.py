"""A seccomp filter of system calls, without the library libseccomp.

A filter is a program for the kernel's packet filter (see seccomp(2)). It reads the number of a call and its
numeric arguments, but no memory that an argument points to. It cannot be removed.

**Allowed calls.** The tables list the allowed calls with their numbers. All other calls fail with EPERM,
including those of future kernels. Excluded on purpose:

* processes: fork, vfork, execve, clone except for threads
* signals: kill, tgkill, rt_sigqueueinfo, pidfd_send_signal
* memory and limits of other processes: ptrace, process_vm_readv, setrlimit
* the network: socket, connect, bind, sendmsg
* changes to files other than by Landlock's rights: chmod, chown, utimensat, setxattr, truncate, link,
  symlink, mount, chroot
* disk space beyond the limit of a file's size: fallocate (which may reserve blocks past a file's end),
  copy_file_range, memfd_create
* shared memory and queues, keys, bpf, io_uring, userfaultfd, perf_event_open, namespaces, further filters
"""

import ctypes
import errno
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Numbers = Mapping[str, tuple[int, int | None]]
"""Numbers of calls by name: on x86_64, and on aarch64 or None if aarch64 lacks the call."""

ALLOWED: Numbers = {
    "access": (21, None),
    "alarm": (37, None),
    "arch_prctl": (158, None),
    "brk": (12, 214),
    "chdir": (80, 49),
    "clock_getres": (229, 114),
    "clock_gettime": (228, 113),
    "clock_nanosleep": (230, 115),
    "close": (3, 57),
    "close_range": (436, 436),
    "dup": (32, 23),
    "dup2": (33, None),
    "dup3": (292, 24),
    "epoll_create": (213, None),
    "epoll_create1": (291, 20),
    "epoll_ctl": (233, 21),
    "epoll_pwait": (281, 22),
    "epoll_pwait2": (441, 441),
    "epoll_wait": (232, None),
    "eventfd2": (290, 19),
    "exit": (60, 93),
    "exit_group": (231, 94),
    "faccessat": (269, 48),
    "faccessat2": (439, 439),
    "fadvise64": (221, 223),
    "fchdir": (81, 50),
    "fdatasync": (75, 83),
    "flock": (73, 32),
    "fstat": (5, 80),
    "fstatfs": (138, 44),
    "fsync": (74, 82),
    "ftruncate": (77, 46),
    "futex": (202, 98),
    "getcwd": (79, 17),
    "getdents64": (217, 61),
    "getegid": (108, 177),
    "geteuid": (107, 175),
    "getgid": (104, 176),
    "getgroups": (115, 158),
    "getitimer": (36, 102),
    "getpgid": (121, 155),
    "getpgrp": (111, None),
    "getpid": (39, 172),
    "getppid": (110, 173),
    "getpriority": (140, 141),
    "getrandom": (318, 278),
    "getresgid": (120, 150),
    "getresuid": (118, 148),
    "getrlimit": (97, 163),
    "getrusage": (98, 165),
    "getsid": (124, 156),
    "getsockopt": (55, 209),
    "gettid": (186, 178),
    "gettimeofday": (96, 169),
    "getuid": (102, 174),
    "lseek": (8, 62),
    "lstat": (6, None),
    "madvise": (28, 233),
    "membarrier": (324, 283),
    "mincore": (27, 232),
    "mmap": (9, 222),
    "mprotect": (10, 226),
    "mremap": (25, 216),
    "munmap": (11, 215),
    "nanosleep": (35, 101),
    "newfstatat": (262, 79),
    "pause": (34, None),
    "pipe": (22, None),
    "pipe2": (293, 59),
    "poll": (7, None),
    "ppoll": (271, 73),
    "pread64": (17, 67),
    "preadv": (295, 69),
    "pselect6": (270, 72),
    "pwrite64": (18, 68),
    "pwritev": (296, 70),
    "read": (0, 63),
    "readlink": (89, None),
    "readlinkat": (267, 78),
    "readv": (19, 65),
    "recvfrom": (45, 207),
    "rename": (82, None),
    "renameat": (264, 38),
    "renameat2": (316, 276),
    "restart_syscall": (219, 128),
    "rseq": (334, 293),
    "rt_sigaction": (13, 134),
    "rt_sigpending": (127, 136),
    "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139),
    "rt_sigsuspend": (130, 133),
    "rt_sigtimedwait": (128, 137),
    "sched_get_priority_max": (146, 125),
    "sched_get_priority_min": (147, 126),
    "sched_getaffinity": (204, 123),
    "sched_yield": (24, 124),
    "select": (23, None),
    "sendfile": (40, 71),
    "sendto": (44, 206),
    "set_robust_list": (273, 99),
    "set_tid_address": (218, 96),
    "setitimer": (38, 103),
    "shutdown": (48, 210),
    "sigaltstack": (131, 132),
    "stat": (4, None),
    "statx": (332, 291),
    "sysinfo": (99, 179),
    "time": (201, None),
    "timerfd_create": (283, 85),
    "timerfd_gettime": (287, 87),
    "timerfd_settime": (286, 86),
    "times": (100, 153),
    "umask": (95, 166),
    "uname": (63, 160),
    "unlink": (87, None),
    "unlinkat": (263, 35),
    "wait4": (61, 260),
    "waitid": (247, 95),
    "write": (1, 64),
    "writev": (20, 66),
}
"""Calls that are allowed with any arguments."""

LIMITED: Numbers = {
    "clone": (56, 220),
    "fcntl": (72, 25),
    "ioctl": (16, 29),
    "open": (2, None),
    "openat": (257, 56),
    "prctl": (157, 167),
    "prlimit64": (302, 261),
    "socketpair": (53, 199),
}
"""Calls that are allowed with some arguments only; see `CONDITIONS`."""

ABSENT: Numbers = {
    "clone3": (435, 435),
    "openat2": (437, 437),
}
"""Calls reported as unknown (ENOSYS), so that the C library uses the older call, whose arguments a filter can
read."""


ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
"""Column in the tables of calls and the kernel's AUDIT_ARCH number, by machine name."""

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
"""Code, offset if true, offset if false, constant."""


@dataclass(frozen=True, slots=True)
class Condition:
    """Condition on an argument: after masking, it equals one of some values."""

    argument: int
    values: Sequence[int]
    mask: int = 0xFFFFFFFF
    is_excluded: bool = False
    """Whether the argument must equal none of the values instead."""
    upper: bool = False
    """Whether to test the upper half of the 64-bit argument."""


CONDITIONS = {
    "clone": [Condition(0, [_CLONE_THREAD], _CLONE_THREAD | _NEW_NAMESPACES)],
    "fcntl": [Condition(1, _FCNTL)],
    "ioctl": [Condition(1, _IOCTL)],
    # For Landlock, O_RDONLY only reads; with O_TRUNC, older versions would let it truncate the file.
    "open": [Condition(1, [_O_TRUNC], _O_TRUNC | _O_ACCMODE, is_excluded=True)],
    "openat": [Condition(2, [_O_TRUNC], _O_TRUNC | _O_ACCMODE, is_excluded=True)],
    "prctl": [Condition(0, _PRCTL)],
    # Only reading this process's limits; root could also raise them.
    "prlimit64": [Condition(0, [0]), Condition(2, [0]), Condition(2, [0], upper=True)],
    # A pair of sockets connected to each other, which asyncio needs.
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
    """Instructions of the filter for a machine, a key of `ARCHITECTURES`."""
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
    """Instructions that continue if the condition holds, and else return EPERM."""
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
