"""Hold a campaign's lease by heartbeats, and detect whether its holder is alive.

* A process of this machine, since its last boot and in the same process namespace, is looked up directly.
* For any other process, only heartbeats show whether it is alive. PostgreSQL has one clock for all processes,
  which measures their age.
* SQLite has no such clock, and machines' clocks differ. There a process has to watch a lease for its
  lifetime, by a monotonic clock, and see no heartbeat, before the lease counts as abandoned.
"""

import datetime as dt
import logging
import os
import socket
import threading
import time
import uuid
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from winnow.storage.engine.database import Database
from winnow.storage.engine.write_lock import DEAD, look_up
from winnow.storage.errors import CampaignDeleted, LeaseLost, StorageUnavailable
from winnow.storage.records import leases
from winnow.storage.records.record_types import Holder, LeaseRecord

LIFETIME = dt.timedelta(seconds=60)
"""Time without a heartbeat after which another process can take over a lease."""
HEARTBEAT = LIFETIME / 6


def now() -> dt.datetime:
    """The current time in UTC, for all stored times except PostgreSQL's leases."""
    return dt.datetime.now(dt.UTC)


@contextmanager
def holding(database: Database, campaign_id: int) -> Generator[LeaseRecord, None, None]:
    """Hold a campaign's lease, with heartbeats, until the block ends.

    If only watching shows whether the last holder is alive, this takes up to the lease's lifetime.

    Raises:
        LeaseHeld: Another live process holds the lease.
    """
    watch(database, campaign_id, now=now())
    lease = leases.acquire(
        database, campaign_id, this_process(), now=now(), lifetime=LIFETIME, is_gone=is_gone
    )
    done = threading.Event()
    heart = threading.Thread(target=_beat, args=(database, lease, done), name="lease-heartbeat", daemon=True)
    heart.start()

    def give_back() -> None:
        done.set()
        heart.join()
        leases.release(database, lease, now=now())

    try:
        yield lease
    finally:
        try:
            give_back()
        except KeyboardInterrupt:
            # An interrupt while the lease is being released must not leave it held.
            give_back()
            raise


def _beat(database: Database, lease: LeaseRecord, done: threading.Event) -> None:
    while not done.wait(HEARTBEAT.total_seconds()):
        try:
            leases.renew(database, lease, now=now())
        except (CampaignDeleted, LeaseLost):
            return  # the campaign's next transaction raises the error and ends the run
        except StorageUnavailable:
            continue  # the database is busy or briefly unreachable; the next heartbeat can succeed


LOGGER = logging.getLogger("winnow.leases")

LOOK_EVERY_S = 1.0
"""Seconds between two reads of a lease that is watched."""

_NAMELESS = f"unknown-{uuid.uuid4()}"

_silent: set[LeaseRecord] = set()
"""Leases that this process watched for their lifetime without a heartbeat."""


def this_process() -> Holder:
    """The running process, in the form that identifies a lease's holder."""
    boot_id, pid_namespace = _whereabouts()
    process = look_up(os.getpid())
    return Holder(
        host=socket.gethostname(),
        pid=os.getpid(),
        boot_id=boot_id,
        pid_namespace=pid_namespace,
        started_ticks=process.started_ticks if process else 0,
    )


def is_dead(holder: Holder) -> bool:
    """Whether a process is known to have ended; False if it cannot be looked up."""
    if not _is_near(holder):
        return False
    process = look_up(holder.pid)
    if process is None:
        return not _exists(holder.pid)
    return process.state in DEAD or process.started_ticks != holder.started_ticks


def is_gone(lease: LeaseRecord) -> bool:
    """Whether a lease's holder has certainly ended or is frozen.

    If so, the lease can be taken over.
    """
    if lease.is_expired is not None:
        return lease.is_expired or is_dead(lease.holder)
    return lease in _silent or is_dead(lease.holder)


def seems_gone(lease: LeaseRecord, *, now: dt.datetime) -> bool:
    """Whether a lease would count as gone if the clocks of all machines agreed.

    This is enough to report, but not to write.

    Args:
        lease: A lease that was not released.
        now: The time by this machine's clock.
    """
    return is_gone(lease) or (lease.is_expired is None and not _is_fresh(lease, now))


def how_left(lease: LeaseRecord) -> str:
    """How the last holder left a lease that is not live, or seems not to be, in words."""
    if lease.released_at is not None:
        return f"{lease.holder} stopped in order at {lease.released_at:%Y-%m-%d %H:%M:%S} UTC"
    last = f"its last heartbeat was at {lease.heartbeat_at:%Y-%m-%d %H:%M:%S} UTC"
    if is_dead(lease.holder):
        return f"{lease.holder} is gone; {last}"
    if is_gone(lease):
        return f"{lease.holder} sends no heartbeats; {last}"
    what = "exists, but seems to be frozen" if _is_near(lease.holder) else "seems to be gone"
    return (
        f"{lease.holder} {what}: {last} by its own clock; winnow resume first waits for "
        f"{lease.lifetime.total_seconds():g} s for another heartbeat"
    )


def watch(database: Database, campaign_id: int, *, now: dt.datetime) -> None:
    """Wait until it is known whether a campaign's lease is alive.

    This takes at most the lease's lifetime. It returns immediately if nothing has to be watched, or if the
    last heartbeat seems recent, so that a refusal comes without delay. The result is stored for `is_gone`.
    """
    watched = _find(database, campaign_id)
    if watched is None or not _is_unknown(watched) or _is_fresh(watched, now):
        return
    lifetime = watched.lifetime.total_seconds()
    LOGGER.warning(
        f"{watched.holder} may be running this campaign; waiting for {lifetime:g} s for its heartbeat",
        extra={"event": "lease_watched"},
    )
    silence, looked_at = 0.0, time.monotonic()
    while silence < lifetime:
        time.sleep(LOOK_EVERY_S)
        before, looked_at = looked_at, time.monotonic()
        # A freeze of this process may have frozen the other one, too, so its time does not count.
        silence += min(looked_at - before, 2 * LOOK_EVERY_S)
        if _find(database, campaign_id) != watched:
            return
    _silent.add(watched)


def _is_unknown(lease: LeaseRecord) -> bool:
    return (
        lease.released_at is None
        and lease.is_expired is None
        and lease.holder != this_process()
        and not is_gone(lease)
    )


def _is_fresh(lease: LeaseRecord, now: dt.datetime) -> bool:
    return abs(now - lease.heartbeat_at) < lease.lifetime


def _is_near(holder: Holder) -> bool:
    """Whether a process runs where this process can look it up."""
    return (holder.boot_id, holder.pid_namespace) == _whereabouts()


def _find(database: Database, campaign_id: int) -> LeaseRecord | None:
    with database.reading() as session:
        return leases.find(session, campaign_id)


def _whereabouts() -> tuple[str, str]:
    """Boot id of this system, and the process's PID and time namespaces.

    If these cannot be read, the result is unique to this process. Then other processes can detect its death
    only by missing heartbeats, and this process that of others.
    """
    try:
        if os.readlink("/proc/self") != str(os.getpid()):
            raise ProcessLookupError("/proc shows the processes of another namespace")
        boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        kinds = [Path("/proc/self/ns") / kind for kind in ("pid", "time")]
        return boot_id, "-".join(str(kind.stat().st_ino) for kind in kinds if kind.exists())
    except OSError:
        return f"{_NAMELESS}-{os.getpid()}", ""


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
