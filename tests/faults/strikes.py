"""How a process is killed: at a random moment, at one of its system calls, or only its engine is.

All of it is done from outside of Python's own course of things: a timer of the kernel's sends SIGKILL, or the
process is killed from outside while it waits to make a system call.
"""

import ctypes
import json
import os
import random
import signal
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tests.faults.scenes import Scene
from tests.faults.shared_imports import kill_forked
from tests.faults.system_calls import KILL, Answer, Call, Overseer, begin_counting, goes_on
from tests.faults.tampering import At, Tampering

MOMENT, CALL, ENGINE = "moment", "system call", "engine"
AT_LEASE = "the lease is taken"
LENGTH = Path("length.json")
"""File in a campaign's folder that says how long its work took."""
EARLY = 0.5
"""Kills fall into the first half of what is left of the work, so that a campaign is killed several times."""


@dataclass(frozen=True, kw_only=True)
class Length:
    """How much work a campaign is that nobody kills."""

    cpu_s: float
    """Processor time from the lease to the last commit."""
    wall_s: float
    """Seconds from the first batch to the last commit."""
    batches: int
    calls: int
    """System calls on its files and connections, counted from the lease."""


@dataclass(kw_only=True)
class Strike:
    """One way to kill a process, prepared."""

    how: str
    where: str = ""
    """The system call that it did not get to make, and on what."""
    tamperings: tuple[Tampering, ...] = ()


@contextmanager
def struck(scene: Scene, how: str, length: Length, chance: random.Random) -> Generator[Strike, None, None]:
    """Prepare to kill the process that is started within the block; it may end before."""
    if how == CALL:
        number = chance.randint(1, max(1, round(EARLY * length.calls)))
        with overseen(scene, lambda call: KILL if call.number == number else None) as overseer:
            strike = Strike(how=how, tamperings=(overseer.tampering, At(AT_LEASE, 1, begin_counting)))
            yield strike
        if len(overseer.calls) >= number:
            strike.where = _where(overseer.calls[number - 1])
    elif how == ENGINE:
        batch = chance.randint(1, max(1, round(EARLY * length.batches)))
        strike_engines = partial(kill_engines_after, chance.uniform(0.0, 0.05))
        yield Strike(how=how, tamperings=(At("before a batch", batch, strike_engines),))
    else:
        yield Strike(how=how, tamperings=(_at_a_moment(scene, length, chance),))


@contextmanager
def overseen(scene: Scene, answer: Answer = goes_on) -> Generator[Overseer, None, None]:
    """An overseer of one process of a campaign."""
    port = None if scene.server is None else scene.server.port
    overseer = Overseer(scene.folder, answer, port)
    try:
        yield overseer
    finally:
        overseer.close()


def length_of(scene: Scene) -> Length:
    """Run a campaign to its end and see how much work it is."""
    with overseen(scene) as overseer:
        start = (overseer.tampering, At(AT_LEASE, 1, begin_counting), note_length)
        run = scene.run(*start).ended()
    assert "Traceback" not in run.said, run.said
    noted = json.loads((scene.folder / LENGTH).read_text())
    return Length(calls=len(overseer.calls), **noted)


def note_length() -> None:
    """Have this process leave `LENGTH`."""
    began: dict[str, Any] = {"cpu": 0.0, "wall": None, "batches": 0}

    def lease() -> None:
        began["cpu"] = time.process_time()

    def batch() -> None:
        began["batches"] += 1
        began["wall"] = began["wall"] or time.monotonic()

    def commit() -> None:
        if began["wall"] is not None:
            cpu_s, wall_s = time.process_time() - began["cpu"], time.monotonic() - began["wall"]
            found = {"cpu_s": cpu_s, "wall_s": wall_s, "batches": began["batches"]}
            LENGTH.write_text(json.dumps(found))

    for point, action in ((AT_LEASE, lease), ("before a batch", batch), ("after a commit", commit)):
        At(point, 1, action, times=1_000_000)()


def kill_after(seconds: float, clock: int) -> None:
    """Have the kernel send this process SIGKILL when a clock has gone on by so much."""
    library = ctypes.CDLL(None, use_errno=True)
    timer = ctypes.c_void_p()
    event = (ctypes.c_int * 16)(0, 0, signal.SIGKILL, 0)  # sigevent: a value, the signal, SIGEV_SIGNAL
    whole, rest = divmod(max(seconds, 1e-6), 1.0)
    when = (ctypes.c_long * 4)(0, 0, int(whole), int(rest * 1e9))
    if library.timer_create(clock, event, ctypes.byref(timer)) or library.timer_settime(timer, 0, when, None):
        raise OSError(ctypes.get_errno(), "the kernel sets no timer that kills")


def kill_engines_after(seconds: float) -> None:
    """Kill this process's engines a moment from now; leaves a file "killed" where there was one."""

    def kill() -> None:
        if kill_forked() + _kill_grandchildren():
            Path("killed").touch()

    threading.Timer(seconds, kill).start()


def _kill_grandchildren() -> bool:
    """Kill the engines that a fork server of this process's own has forked; return whether there was one."""
    import psutil

    engines = [engine for server in psutil.Process().children() for engine in server.children()]
    for engine in engines:
        os.kill(engine.pid, signal.SIGKILL)
    return bool(engines)


def _at_a_moment(scene: Scene, length: Length, chance: random.Random) -> Tampering:
    """By processor time where the work is this process's own; by the clock where engines do it elsewhere."""
    if "vllm" in scene.kind:
        moment = partial(kill_after, chance.uniform(0.0, EARLY * length.wall_s), time.CLOCK_MONOTONIC)
        return At("before a batch", 1, moment)
    moment = partial(kill_after, chance.uniform(0.0, EARLY * length.cpu_s), time.CLOCK_PROCESS_CPUTIME_ID)
    return At(AT_LEASE, 1, moment)


def _where(call: Call) -> str:
    return f"{call.name} {call.target}"
