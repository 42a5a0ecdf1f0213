"""Holding a campaign's lease, with a heartbeat in the background."""

import datetime as dt
import threading
from collections.abc import Generator
from contextlib import contextmanager

from winnow.storage import leases
from winnow.storage.engine.database import Database
from winnow.storage.errors import CampaignDeleted, LeaseLost, StorageUnavailable
from winnow.storage.records.values import LeaseRecord
from winnow.tasks.campaign.liveness import is_gone, this_process, watch

LIFETIME = dt.timedelta(seconds=60)
"""Without a heartbeat for this long a lease may be taken over."""
HEARTBEAT = LIFETIME / 6


def now() -> dt.datetime:
    """The present moment, in UTC: by this clock all is stored but the leases of PostgreSQL, which has one."""
    return dt.datetime.now(dt.UTC)


@contextmanager
def holding(database: Database, campaign_id: int) -> Generator[LeaseRecord, None, None]:
    """Hold a campaign's lease, with a heartbeat, until the block ends.

    Where only watching can tell whether its last holder lives, that takes the lease's lifetime.

    Raises:
        LeaseHeld: If another live process holds it.
    """
    watch(database, campaign_id, now=now())
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
            leases.renew(database, lease, now=now())
        except (CampaignDeleted, LeaseLost):
            return  # the next transaction of the campaign finds out and ends it
        except StorageUnavailable:
            continue  # a busy or briefly absent database: the next beat may get through
