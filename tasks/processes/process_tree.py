"""End a program with all processes that it started, including those with their own session.

The guard of `orphans` runs this file without the rest of Winnow, so the file imports nothing from Winnow.
"""

import os
import signal
from contextlib import suppress

import psutil

_MOST_ROUNDS = 20


def end_tree(leader: int) -> None:
    """Kill a process with its group and all its descendants.

    The caller must then wait for the leader. A process is not found if it has left the group and its parent
    has already ended, because nothing links it to the program then.

    Args:
        leader: Id of a process that leads its group and has not been waited for.
    """
    _signal(leader, signal.SIGSTOP)  # a stopped process starts no other during the search
    found: set[psutil.Process] = set()
    with suppress(psutil.Error):
        program = psutil.Process(leader)
        for _ in range(_MOST_ROUNDS):
            if not (new := {*program.children(recursive=True)} - found):
                break
            found |= new
            for each in new:
                with suppress(psutil.Error):
                    each.suspend()
    _signal(leader, signal.SIGKILL)
    for each in found:
        with suppress(psutil.Error):
            each.kill()


def _signal(group: int, number: signal.Signals) -> None:
    with suppress(OSError):
        os.killpg(group, number)
