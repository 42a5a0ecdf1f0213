"""One writer per campaign: a lease with a heartbeat, and a token that fences off whoever lost it.

A process that was frozen and thawed still believes it holds the lease. It cannot know better, so the
database does: every takeover raises the token, and every writing transaction shows the token it was given.
"""

import datetime as dt
from collections.abc import Callable, Generator
from contextlib import contextmanager

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from storage.database import Database
from storage.errors import CampaignDeleted, LeaseHeld, LeaseLost
from storage.models import Campaign, Lease
from storage.records import Holder, LeaseRecord


def acquire(
    database: Database,
    campaign_id: int,
    holder: Holder,
    *,
    now: dt.datetime,
    lifetime: dt.timedelta,
    is_gone: Callable[[Holder], bool],
) -> LeaseRecord:
    """Take the lease, or take over a stale one.

    Args:
        database: Where the campaign lives.
        campaign_id: The campaign to write to.
        holder: The process that asks.
        now: The present moment.
        lifetime: How long the lease lasts without a heartbeat.
        is_gone: Whether a holder is known to be dead, so that nobody waits for its lease to run out.

    Raises:
        CampaignDeleted: If there is no such campaign any more.
        LeaseHeld: If another live process holds it.
    """
    with database.writing() as session:
        if session.get(Campaign, campaign_id) is None:
            raise CampaignDeleted(campaign_id)
        row = session.get(Lease, campaign_id, with_for_update=True)
        require_free(session, campaign_id, holder, now=now, is_gone=is_gone)
        if row is None:
            row = Lease(campaign_id=campaign_id, token=0)
            session.add(row)
        row.token += 1
        row.host, row.pid, row.process_started_at = holder.host, holder.pid, holder.process_started_at
        row.heartbeat_at, row.expires_at, row.released_at = now, now + lifetime, None
        return _record(row)


def require_free(
    session: Session, campaign_id: int, asker: Holder, *, now: dt.datetime, is_gone: Callable[[Holder], bool]
) -> None:
    """Refuse a campaign that another live process runs.

    Raises:
        LeaseHeld: If there is one.
    """
    lease = find(session, campaign_id)
    if lease and lease.holder != asker and is_live(lease, now=now, is_gone=is_gone):
        name = session.scalar(select(Campaign.name).where(Campaign.id == campaign_id))
        raise LeaseHeld(str(name), str(lease.holder), lease.heartbeat_at, lease.expires_at)


def renew(database: Database, lease: LeaseRecord, *, now: dt.datetime, lifetime: dt.timedelta) -> None:
    """Send a heartbeat.

    Raises:
        LeaseLost: If another process took the campaign over.
    """
    with writing_under(database, lease) as session:
        session.execute(
            update(Lease)
            .where(Lease.campaign_id == lease.campaign_id)
            .values(heartbeat_at=now, expires_at=now + lifetime)
        )


def release(database: Database, lease: LeaseRecord, *, now: dt.datetime) -> None:
    """Give the lease back; a lease that was lost meanwhile is left to its new holder."""
    with database.writing() as session:
        session.execute(
            update(Lease)
            .where(Lease.campaign_id == lease.campaign_id, Lease.token == lease.token)
            .values(released_at=now)
        )


@contextmanager
def writing_under(database: Database, lease: LeaseRecord) -> Generator[Session, None, None]:
    """A unit of work that commits only while the lease is still ours.

    Raises:
        CampaignDeleted: If the campaign was deleted, which only one whose lease has run out can be.
        LeaseLost: If another process took the campaign over; nothing is written.
    """
    with database.writing() as session:
        token = session.scalar(
            select(Lease.token).where(Lease.campaign_id == lease.campaign_id).with_for_update()
        )
        if token is None and session.get(Campaign, lease.campaign_id) is None:
            raise CampaignDeleted(lease.campaign_id)
        if token != lease.token:
            raise LeaseLost(lease.campaign_id)
        yield session


def find(session: Session, campaign_id: int) -> LeaseRecord | None:
    """The last lease of a campaign, live or not."""
    row = session.get(Lease, campaign_id)
    return None if row is None else _record(row)


def left_behind(session: Session, *, now: dt.datetime) -> set[Holder]:
    """Holders that neither gave their leases back nor renewed them in time."""
    rows = session.scalars(select(Lease).where(Lease.released_at.is_(None), Lease.expires_at <= now))
    return {_record(row).holder for row in rows}


def is_live(lease: LeaseRecord, *, now: dt.datetime, is_gone: Callable[[Holder], bool]) -> bool:
    """Whether somebody is writing under this lease, as far as can be known from here."""
    return lease.released_at is None and lease.expires_at > now and not is_gone(lease.holder)


def _record(row: Lease) -> LeaseRecord:
    return LeaseRecord(
        campaign_id=row.campaign_id,
        token=row.token,
        holder=Holder(host=row.host, pid=row.pid, process_started_at=row.process_started_at),
        heartbeat_at=row.heartbeat_at,
        expires_at=row.expires_at,
        released_at=row.released_at,
    )
