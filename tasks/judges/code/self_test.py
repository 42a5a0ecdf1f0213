"""Test whether the sandbox works on this machine: a program tries to escape."""

import os
import tempfile
from functools import cache

from winnow.tasks.judges.code.inside.confinement import Limits
from winnow.tasks.judges.code.sandbox import Task, run_task

_LIMITS = Limits(seconds=20, memory=512 << 20)

_ATTEMPTS = """
import os, socket, threading
escaped = []

def attempt(name, act, *args):
    try:
        act(*args)
    except OSError:
        return
    escaped.append(name)

attempt("reads a file", open, OUTSIDE)
attempt("writes a file", open, OUTSIDE, "a")
attempt("cuts a file", os.truncate, OUTSIDE, 0)
attempt("changes a file's rights", os.chmod, OUTSIDE, 0o777)
attempt("lists a folder", os.listdir, os.path.dirname(OUTSIDE))
attempt("lists processes", os.listdir, "/proc")
attempt("opens a socket", socket.socket, socket.AF_INET)
attempt("opens a local socket", socket.socket, socket.AF_UNIX)
attempt("sends a signal", os.kill, PARENT, 0)
attempt("makes a process", os.fork)
attempt("runs a program", os.execv, "/bin/sh", ["sh", "-c", "exit"])
attempt("makes a folder", os.mkdir, "folder")

with open("own", "w") as file:
    file.write("kept")
thread = threading.Thread(target=escaped.extend, args=((),))
thread.start()
thread.join()
"""

_TESTS = """
assert not escaped, ', '.join(escaped)
assert open("own").read() == "kept"
"""


@cache
def escape() -> str | None:
    """A fault of the sandbox on this machine, tested once; None if there is none.

    A fault is a forbidden action that succeeds, or anything that prevents a program from running.
    """
    with tempfile.NamedTemporaryFile(prefix="winnow-outside-") as outside:
        values = f"OUTSIDE, PARENT = {outside.name!r}, {os.getpid()}\n"
        task = Task(
            output=values + _ATTEMPTS,
            prefix="",
            tests=_TESTS,
            entry_point=None,
            stops=True,
            same_process=True,
            limits=_LIMITS,
        )
        outcome = run_task(task)
    return outcome.broken or outcome.no_tests or outcome.failure
