"""What can be done to a campaign from inside its process; all of it can be pickled, to be sent there.

A tampering is called once before the command begins. Most are an `At`: an action at the nth passage of a
point of the campaign.
"""

import datetime as dt
import os
import resource
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

Tampering = Callable[[], None]


@dataclass(frozen=True)
class At:
    """An action at some passages of a point, counted from 1."""

    point: str
    """A key of `POINTS`."""
    number: int
    action: Callable[[], None]
    times: int = 1

    def __call__(self) -> None:
        passages = 0

        def count() -> None:
            nonlocal passages
            passages += 1
            if self.number <= passages < self.number + self.times:
                self.action()

        POINTS[self.point](count)


def hold() -> None:
    """Wait until the test lets this process go on, ends it, or interrupts it."""
    Path(f"held-{os.getpid()}").touch()
    while not Path(f"go-{os.getpid()}").exists():
        time.sleep(0.005)


def die(number: signal.Signals = signal.SIGKILL) -> None:
    """End as if the kernel had decided so."""
    os.kill(os.getpid(), number)


def fail(error: BaseException) -> None:
    """Raise, as a library would that has met the fault."""
    raise error


def clock_off_by(seconds: float) -> None:
    """Have Winnow's clock wrong by so much from now on."""
    from winnow.tasks.campaign import lease

    class Clock(dt.datetime):
        @classmethod
        def now(cls, tz: dt.tzinfo | None = None) -> dt.datetime:
            return dt.datetime.now(tz) + dt.timedelta(seconds=seconds)

    lease.dt = SimpleNamespace(datetime=Clock, UTC=dt.UTC)


def clock_that_jumps(seconds: float) -> None:
    """Have Winnow's clock ahead by so much every other time it is asked."""
    from winnow.tasks.campaign import lease

    asked = 0

    class Clock(dt.datetime):
        @classmethod
        def now(cls, tz: dt.tzinfo | None = None) -> dt.datetime:
            nonlocal asked
            asked += 1
            return dt.datetime.now(tz) + dt.timedelta(seconds=seconds * (asked % 2))

    lease.dt = SimpleNamespace(datetime=Clock, UTC=dt.UTC)


def boot_time_off_by(seconds: float) -> None:
    """What a stepped system clock does to the times at which processes are said to have started."""
    import psutil

    create_time = psutil.Process.create_time
    psutil.Process.create_time = lambda self: create_time(self) + seconds


def short_lease(lifetime: float, heartbeat: float) -> None:
    """Let nobody wait a minute for a lease to run out."""
    from winnow.tasks.campaign import lease

    lease.LIFETIME = dt.timedelta(seconds=lifetime)
    lease.HEARTBEAT = dt.timedelta(seconds=heartbeat)


def within(container: str) -> None:
    """Be a process of a container with its host's name, where no process of another container is seen."""
    from winnow.tasks.campaign import lease

    own, look_up = os.getpid(), lease.look_up
    lease._whereabouts = lambda: ("a start of the system", container)
    lease.look_up = lambda pid: look_up(pid) if pid == own else None
    lease._exists = lambda pid: pid == own


def with_environment(values: dict[str, str]) -> None:
    """Have these variables in the environment."""
    os.environ.update(values)


def soon_again(seconds: float) -> None:
    """Send a server what it did not answer again this soon, and not after half a second."""
    from winnow.tasks.engines.openai import server_calls

    server_calls.FIRST_DELAY = seconds


def impatient(milliseconds: int) -> None:
    """Wait for another writer as long as told, and no longer."""
    from winnow.storage.engine import database

    database.BUSY_TIMEOUT_MS = milliseconds


def disk_of(size: int) -> None:
    """Let no file grow beyond so many bytes; a write beyond them fails as on a full disk."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def unpublished() -> None:
    """Show nothing on Prefect's pages.

    What fills them reads the database in a thread of its own. Where it was the first to meet a connection
    that was cut off, all others were opened anew, and the campaign went on to its end all the same.
    """
    from winnow.flows.run.artifacts import Artifacts

    Artifacts._publish = lambda self: None


def mounted_as(kind: str, folder: str) -> None:
    """Have the system say that a folder is a file system of another machine."""
    from winnow.storage.engine import sqlite_files

    read = sqlite_files.read_mounts
    sqlite_files.read_mounts = lambda: f"{read()}\n9 0 0:9 / {folder} rw - {kind} server:/share rw\n"


def closed(*descriptors: int) -> None:
    """Begin with standard streams closed, as some service managers do."""
    import sys

    for number in descriptors:
        os.close(number)
        name = ("stdin", "stdout", "stderr")[number]
        setattr(sys, name, None)


def without_reader(*descriptors: int) -> None:
    """Have streams end in a pipe that nobody reads any more."""
    for number in descriptors:
        read, write = os.pipe()
        os.dup2(write, number)
        os.close(read)
        os.close(write)


def onto(path: str, *descriptors: int) -> None:
    """Have streams go to a file."""
    opened = os.open(path, os.O_WRONLY)
    for number in descriptors:
        os.dup2(opened, number)
    os.close(opened)


def _before(owner: Any, name: str) -> Callable[[Callable[[], None]], None]:
    def install(count: Callable[[], None]) -> None:
        place = owner()
        known = getattr(place, name)

        def counted(*args: Any, **kwargs: Any) -> Any:
            count()
            return known(*args, **kwargs)

        setattr(place, name, counted)

    return install


def _after(owner: Any, name: str) -> Callable[[Callable[[], None]], None]:
    def install(count: Callable[[], None]) -> None:
        place = owner()
        known = getattr(place, name)

        def counted(*args: Any, **kwargs: Any) -> Any:
            result = known(*args, **kwargs)
            count()
            return result

        setattr(place, name, counted)

    return install


def _pool() -> Any:
    from winnow.tasks.engines.pool.pool import EnginePool

    return EnginePool


def _transformers() -> Any:
    from winnow.tasks.engines.transformers.engine import TransformersEngine

    return TransformersEngine


def _auto_model() -> Any:
    import transformers

    return transformers.AutoModelForCausalLM


def _llama() -> Any:
    from transformers.models.llama.modeling_llama import LlamaForCausalLM

    return LlamaForCausalLM


def _server_calls() -> Any:
    from winnow.tasks.engines.openai.server_calls import ServerCalls

    return ServerCalls


def _leases() -> Any:
    from winnow.storage.records import leases

    return leases


def _progress() -> Any:
    from winnow.flows.run.progress import PlainProgress

    return PlainProgress


def _embedder() -> Any:
    from winnow.tasks.embedding.sentence_model import SentenceModel

    return SentenceModel


def _announcing() -> Any:
    from winnow.flows.notify import announce

    return announce


def _texts() -> Any:
    from winnow.tasks.campaign.planned_outputs import GenerationBatch

    return GenerationBatch


def _commits(moment: str) -> Callable[[Callable[[], None]], None]:
    def install(count: Callable[[], None]) -> None:
        from sqlalchemy import event
        from sqlalchemy.orm import Session

        def note(session: Session) -> None:
            if session.get_bind().get_execution_options().get("winnow_writes"):
                count()

        event.listen(Session, moment, note)

    return install


POINTS: dict[str, Callable[[Callable[[], None]], None]] = {
    "a round is done": _after(_progress, "round_done"),
    "the lease is taken": _after(_leases, "acquire"),
    "before a batch": _before(_pool, "generate"),
    "after a batch": _after(_pool, "generate"),
    "an engine has failed": _after(_pool, "_record"),
    "a server is to be asked again": _before(_server_calls, "_wait"),
    "a model loads": _before(_transformers, "_load"),
    "a model decodes": _before(_llama, "forward"),
    "the end is told": _before(_announcing, "_announce"),
    "texts are at hand": _after(_texts, "__init__"),
    "before embedding": _before(_embedder, "embed"),
    "before a commit": _commits("before_commit"),
    "after a commit": _commits("after_commit"),
}
"""Where something may be done; a function that has a function called at each passage."""

held_in_a_batch = partial(At, "before a batch", action=hold)
