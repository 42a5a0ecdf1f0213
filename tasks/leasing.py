"""Holding a campaign's lease: a heartbeat in the background, and what is known of other holders."""

import datetime as dt
import os
import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager

import psutil

from storage import leases
from storage.database import Database
from storage.errors import CampaignDeleted, LeaseLost, StorageUnavailable
from storage.records import Holder, LeaseRecord

LIFETIME = dt.timedelta(seconds=60)
"""Without a heartbeat for this long a lease is stale and may be taken over."""
HEARTBEAT = LIFETIME / 6


def now() -> dt.datetime:
    """The present moment, in UTC: the one clock of everything that is stored."""
    return dt.datetime.now(dt.UTC)


def this_process() -> Holder:
    """The running process, as a lease names it."""
    return Holder(
        host=socket.gethostname(), pid=os.getpid(), process_started_at=psutil.Process().create_time()
    )


def is_gone(holder: Holder) -> bool:
    """Whether a holder is known to be dead: a process of this machine that is no more.

    Of other machines nothing can be known from here; their leases run out.
    """
    if holder.host != socket.gethostname():
        return False
    try:
        process = psutil.Process(holder.pid)
        # A later process may have been given the same number; the clock's resolution is a tick.
        return abs(process.create_time() - holder.process_started_at) > 1.0 or (
            process.status() == psutil.STATUS_ZOMBIE
        )
    except psutil.NoSuchProcess:
        return True


@contextmanager
def holding(database: Database, campaign_id: int) -> Generator[LeaseRecord, None, None]:
    """Hold a campaign's lease, with a heartbeat, until the block ends.

    Raises:
        LeaseHeld: If another live process holds it.
    """
    lease = leases.acquire(
        database, campaign_id, this_process(), now=now(), lifetime=LIFETIME, is_gone=is_gone
    )
    done = threading.Event()
    heart = threading.Thread(target=_beat, args=(database, lease, done), name="lease-heartbeat", daemon=True)
    heart.start()
    try:
        yield lease
    finally:
        done.set()
        heart.join()
        leases.release(database, lease, now=now())


def _beat(database: Database, lease: LeaseRecord, done: threading.Event) -> None:
    while not done.wait(HEARTBEAT.total_seconds()):
        try:
            leases.renew(database, lease, now=now(), lifetime=LIFETIME)
        except (CampaignDeleted, LeaseLost):
            return  # the next transaction of the campaign finds out and ends it
        except StorageUnavailable:
            continue  # a busy or briefly absent database: the next beat may get through
