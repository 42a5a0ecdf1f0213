# ruff: noqa: E501 -- a program is a line
"""Programs that try to get out, to get more than they may, or to be taken for right.

Each is a program with what its explanation says. Bound before it are OUTSIDE (a file), FOLDER (its folder),
DATABASE, PORT (of a server that listens here), SOCKET (the same by a path), PARENT, and `call`, which makes a
system call by its name.
"""

import platform
import sys

OVERFLOWN = "RecursionError" if sys.version_info >= (3, 12) else "SIGSEGV"
"""What becomes of C code of Python's that calls itself too often."""

CALLS = {
    "x86_64": {
        "ptrace": 101, "process_vm_readv": 310, "mount": 165, "unshare": 272, "chroot": 161, "keyctl": 250,
        "bpf": 321, "userfaultfd": 323, "io_uring_setup": 425, "perf_event_open": 298, "setns": 308,
        "memfd_create": 319, "fallocate": 285, "copy_file_range": 326, "shmget": 29, "mq_open": 240, "pidfd_open": 434, "tgkill": 234, "seccomp": 317,
        "landlock_create_ruleset": 444, "init_module": 175, "personality": 135, "swapon": 167, "reboot": 169,
    },
    "aarch64": {
        "ptrace": 117, "process_vm_readv": 270, "mount": 40, "unshare": 97, "chroot": 51, "keyctl": 219,
        "bpf": 280, "userfaultfd": 282, "io_uring_setup": 425, "perf_event_open": 241, "setns": 268,
        "memfd_create": 279, "fallocate": 47, "copy_file_range": 285, "shmget": 194, "mq_open": 180, "pidfd_open": 434, "tgkill": 131, "seccomp": 277,
        "landlock_create_ruleset": 444, "init_module": 105, "personality": 92, "swapon": 224, "reboot": 142,
    },
}[platform.machine()]  # fmt: skip
"""Numbers of system calls that no program needs."""

ARGUMENTS = {
    "ptrace": "16, PARENT, 0, 0",
    "process_vm_readv": "PARENT, 0, 0, 0, 0, 0",
    "mount": "b'none', FOLDER.encode(), b'tmpfs', 0, 0",
    "unshare": "0x10000000",
    "chroot": "FOLDER.encode()",
    "tgkill": "PARENT, PARENT, 9",
    "memfd_create": "b'x', 0",
    "personality": "0x0040000",
    "fallocate": "os.open('.', os.O_TMPFILE | os.O_RDWR), 1, 0, 1 << 32",
    "copy_file_range": "0, 0, 1, 0, 1, 0",
}

PRELUDE = f"""
import ctypes, os, socket
THIS = os.path.join(os.path.dirname(os.__file__), 'this.py')
LIBC = ctypes.CDLL(None, use_errno=True)
NUMBERS = {CALLS!r}

def call(name, *args):
    if LIBC.syscall(NUMBERS[name], *args) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

def f(*args):
    return 42

def guessed(word):
    return ('{{"mark": "%s", "tests": 1, "passed": 1, "failure": null}}' + chr(10)) % word
"""

DENIED = "PermissionError"

ESCAPES = {
    "a bomb of forks": ("while True: os.fork()", DENIED),
    "a daemon": ("if os.fork() == 0:\n    os.setsid()\n    os.fork()", DENIED),
    "a child process": ("import subprocess; subprocess.Popen(['/bin/true'])", DENIED),
    "a spawned process": ("os.posix_spawn('/bin/true', ['true'], {})", DENIED),
    "another program": ("os.execv('/bin/true', ['true'])", DENIED),
    "a pool of processes": ("import multiprocessing; multiprocessing.Pool(2)", "Error"),
    "TCP": ("socket.create_connection(('127.0.0.1', PORT))", DENIED),
    "a TCP server": ("socket.create_server(('127.0.0.1', 0))", DENIED),
    "UDP": ("socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', PORT))", DENIED),
    "a name server": ("socket.getaddrinfo('example.org', 80)", "[Errno"),
    "a socket in a folder": ("socket.socket(socket.AF_UNIX).connect(SOCKET)", DENIED),
    "an abstract socket": ("socket.socket(socket.AF_UNIX).connect(chr(0) + 'winnow')", DENIED),
    "a pair of sockets that send anywhere": (
        "a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)\na.sendto(b'x', SOCKET)", DENIED),
    "netlink": ("socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)", DENIED),
    "the campaign's database": ("open(DATABASE, 'rb').read()", DENIED),
    "the passwords": ("open('/etc/passwd').read()", DENIED),
    "the home folder": ("import pwd; os.listdir(pwd.getpwuid(os.getuid()).pw_dir)", "Error"),
    "the root folder": ("os.listdir('/')", DENIED),
    "a file outside": ("open(OUTSIDE, 'a').write('x')", DENIED),
    "a new file outside": ("open(FOLDER + '/new', 'w')", DENIED),
    "a file outside, removed": ("os.remove(OUTSIDE)", DENIED),
    "a file outside, renamed": ("os.rename(OUTSIDE, OUTSIDE + '2')", DENIED),
    "a file outside, taken in": ("os.rename(OUTSIDE, 'taken')", "Error"),
    "a file outside, truncated": ("os.truncate(OUTSIDE, 0)", DENIED),
    "a file outside, cut as it is read": ("os.open(THIS, os.O_RDONLY | os.O_TRUNC)", DENIED),
    "a file's rights": ("os.chmod(OUTSIDE, 0o777)", DENIED),
    "the rights of a file that is open": ("os.fchmod(os.open(THIS, os.O_RDONLY), 0o777)", DENIED),
    "a file's owner": ("os.chown(OUTSIDE, 1, 1)", DENIED),
    "a file's times": ("os.utime(OUTSIDE, (0, 0))", DENIED),
    "a symbolic link out": ("os.symlink(DATABASE, 'link'); open('link').read()", DENIED),
    "a hard link out": ("os.link(DATABASE, 'link')", "Error"),
    "a folder in a folder": ("while True: os.mkdir('a'); os.chdir('a')", DENIED),
    "a pipe with a name": ("os.mkfifo('pipe')", DENIED),
    "the parent, killed": ("os.kill(PARENT, 9)", DENIED),
    "all processes, killed": ("os.kill(-1, 9)", DENIED),
    "the parent, by a signal of a pipe's": ("import fcntl; fcntl.fcntl(0, fcntl.F_SETOWN, PARENT)", DENIED),
    "the parent's environment": ("open('/proc/%d/environ' % PARENT).read()", DENIED),
    "the parent's memory": ("open('/proc/%d/mem' % PARENT, 'rb')", DENIED),
    "its own entry of /proc": ("open('/proc/self/environ').read()", DENIED),
    "other limits": ("import resource; resource.setrlimit(resource.RLIMIT_CPU, (9999, 9999))", "Error"),
    "the parent's limits": ("import resource; resource.prlimit(PARENT, resource.RLIMIT_CPU, (1, 1))", DENIED),
    "a higher priority": ("os.nice(-20)", DENIED),
    "another user": ("os.setuid(0)", DENIED),
    "shared memory": (
        "from multiprocessing.shared_memory import SharedMemory as S; S('x', True, 1)",
        "Error"),
    "what was left open": (
        "found = []\nfor each in range(3, 64):\n    try:\n        os.set_blocking(each, False)\n"
        "        found.append(os.read(each, 1000))\n    except BlockingIOError:\n        pass\n"
        "    except OSError:\n        pass\nassert any(found), 'nothing'", "AssertionError: nothing"),
} | {
    f"the call {name}": (f"call('{name}', {ARGUMENTS.get(name, '0, 0, 0, 0, 0, 0')})", DENIED) for name in CALLS
}  # fmt: skip
"""Attempts that have to raise; each would pass its test otherwise."""

LOOPS = {
    "an endless loop": ("while True: pass", "took more than"),
    "a number without end": ("9**9**9", "took more than"),
    "output without end": ("while True: print('x' * 100_000)", "took more than"),
    "all signals ignored": (
        "import signal\nfor each in set(signal.Signals) - {9, 19}:\n    try: signal.signal(each, signal.SIG_IGN)\n"
        "    except OSError: pass\nwhile True: pass", "took more than"),
    "all exceptions swallowed": (
        "while True:\n    try:\n        raise KeyboardInterrupt\n    except BaseException:\n        pass",
        "took more than"),
    "sleep": ("import time; time.sleep(9999)", "took more than"),
    "a lock": ("import threading\nlock = threading.Lock()\nlock.acquire()\nlock.acquire()", "took more than"),
    "files without end": (
        "for name in range(10**9):\n    with open(str(name), 'wb') as file: file.write(bytes(4 << 20))",
        "kept more than"),
    "many files": ("for name in range(10**9): open(str(name), 'w').close()", "kept more than"),
    "one file without end": (
        "with open('x', 'wb') as file:\n    while True: file.write(bytes(1 << 20))",
        "OSError"),
    "threads without end": (
        "import threading, time\nthreading.stack_size(32768)\n"
        "while True: threading.Thread(target=time.sleep, args=(99,)).start()", "thread"),
    "open files without end": ("kept = []\nwhile True: kept.append(open('x', 'w'))", "OSError"),
    "10 GB at once": ("x = bytearray(10 << 30)", "MemoryError"),
    "10 GB bit by bit": ("x = []\nwhile True: x.append(bytes(1 << 20))", "MemoryError"),
    "10 GB beside Python": ("import mmap; mmap.mmap(-1, 10 << 30)", "OSError"),
    "deep recursion": ("def f(): return f()", "RecursionError"),
    "a stack that overflows": (
        "import json, sys; sys.setrecursionlimit(10**9)\ndef f():\n    x = []\n"
        "    for _ in range(10**5): x = [x]\n    return json.dumps(x)", OVERFLOWN),
    "a wrong address": ("ctypes.string_at(1)", "SIGSEGV"),
    "a huge result": ("def f(): return 'x' * (40 << 20)", "MiB"),
    "a result within itself": ("def f():\n    x = []\n    x.append(x)\n    return x", "RecursionError"),
}  # fmt: skip
"""Programs that take more than they may, in a second."""

CHEATS = {
    "an early end": ("os._exit(0)", "exit code 0, before all tests"),
    "an exit": ("import sys; sys.exit(0)", "SystemExit"),
    "an end within the function": ("def f(): os._exit(0)", "exit code 0, before all tests"),
    "an exit within the function": ("def f(): raise SystemExit(0)", "SystemExit"),
    "an end later": (
        "import threading\nthreading.Timer(0.01, os._exit, [0]).start()\ndef f():\n    while True: pass",
        "before all tests"),
    "an end at the exit": ("import atexit; atexit.register(os._exit, 0)\nf = None", "TypeError"),
    "a result that is printed": ("print(guessed(''))\nf = None", "TypeError"),
    "a result that is written everywhere": (
        "for each in range(4096):\n    try: os.write(each, guessed('0' * 32).encode())\n    except OSError: pass\n",
        "NameError"),
    "all descriptors closed": ("os.closerange(0, 4096)", "before all tests"),
    "an equal of everything": (
        "class A:\n    def __eq__(self, other): return True\ndef f(): return A()",
        "AssertionError"),
    "a number that equals everything": (
        "class A(int):\n    def __eq__(self, other): return True\n    __hash__ = None\ndef f(): return A(7)",
        "AssertionError"),
    "a list that equals everything": (
        "class A(list):\n    def __eq__(self, other): return True\ndef f(): return A()", "AssertionError"),
    "an assertion error that is none": (
        "import builtins; builtins.AssertionError = OSError\ndef f(): return 7",
        "Assertion"),
    "tests that are overwritten": (
        "import unittest\nunittest.TestCase.assertEqual = lambda *args: None\n"
        "unittest.TestCase.debug = lambda *args: None\ndef f(): return 7", "AssertionError: 7 != 42"),
    "built-ins that are overwritten": (
        "import builtins\nbuiltins.isinstance = builtins.compile = builtins.exec = lambda *args: True\n"
        "def f(): return 7", "before all tests"),
    "a tracer": (
        "import sys\nsys.settrace(lambda *args: os._exit(0))\ndef f(): return 7",
        "before all tests"),
    "the callers' frames": (
        "import sys\ndef f():\n    frame = sys._getframe()\n    while frame := frame.f_back:\n"
        "        frame.f_globals.update(assertEqual=print)\n    return 7", "AssertionError"),
    "the collector's objects": (
        "import gc\ndef f():\n    for each in gc.get_objects():\n        if isinstance(each, dict) and 'failure' in each:\n"
        "            each['failure'] = None\n    return 7", "AssertionError"),
    "a test of its own": ("def test_f(): assert True\ndef f(): return 7", "AssertionError"),
    "a check of its own": ("def check(candidate): return True\ndef f(): return 7", "AssertionError"),
}  # fmt: skip
"""Programs that return nothing right, and want to be taken for right."""

HOSTILE = {**ESCAPES, **LOOPS, **CHEATS}
