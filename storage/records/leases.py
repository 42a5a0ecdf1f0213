"""Single writer per campaign: a lease with a heartbeat and a token.

The token fences off former holders. Heartbeats are counted, and have timestamps. In PostgreSQL these are by
the server's clock, which all holders share. In SQLite they are by the clocks of the processes, which can
differ and be changed, so only the count is reliable there.

A process that was frozen and resumed cannot detect that it lost the lease, so the database does: every
takeover increases the token, and every writing transaction presents its own token.
"""

import datetime as dt
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import asdict

from sqlalchemy import select, text, update
from sqlalchemy.orm import Session

from winnow.storage.engine.database import Database
from winnow.storage.engine.raw_sql import run
from winnow.storage.errors import CampaignDeleted, LeaseHeld, LeaseLost
from winnow.storage.models import Campaign, Lease
from winnow.storage.records.record_types import Holder, LeaseRecord


def acquire(
    database: Database,
    campaign_id: int,
    holder: Holder,
    *,
    now: dt.datetime,
    lifetime: dt.timedelta,
    is_gone: Callable[[LeaseRecord], bool],
) -> LeaseRecord:
    """Take a campaign's lease, also from a holder that has ended.

    Args:
        database: The database of the campaign.
        campaign_id: The campaign to write to.
        holder: The requesting process.
        now: The current time, for databases without a clock.
        lifetime: How long the lease lasts without a heartbeat.
        is_gone: Whether the holder of a lease that was not released has ended.

    Raises:
        CampaignDeleted: If the campaign no longer exists.
        LeaseHeld: If another live process holds the lease.
    """
    with database.writing() as session:
        if session.get(Campaign, campaign_id) is None:
            raise CampaignDeleted(campaign_id)
        row = session.get(Lease, campaign_id, with_for_update=True)
        require_free(session, campaign_id, holder, is_gone=is_gone)
        moment = _moment(session, now)  # read first, because the query would flush a row with missing values
        if row is None:
            row = Lease(campaign_id=campaign_id, token=0)
            session.add(row)
        row.token += 1
        for name, value in asdict(holder).items():
            setattr(row, name, value)
        row.beats, row.heartbeat_at, row.released_at = 0, moment, None
        row.lifetime_s = lifetime.total_seconds()
        return _record(session, row)


def require_free(
    session: Session, campaign_id: int, asker: Holder, *, is_gone: Callable[[LeaseRecord], bool]
) -> None:
    """Raise if another process runs a campaign, or may be running it.

    Raises:
        LeaseHeld: If another process may hold the lease.
    """
    lease = find(session, campaign_id)
    if lease and lease.holder != asker and is_live(lease, is_gone=is_gone):
        name = _name_of(session, campaign_id)
        raise LeaseHeld(name, str(lease.holder), lease.heartbeat_at, lease.lifetime)


def renew(database: Database, lease: LeaseRecord, *, now: dt.datetime) -> None:
    """Store a heartbeat.

    Raises:
        LeaseLost: If another process took the campaign over.
    """
    with writing_under(database, lease) as session:
        session.execute(
            update(Lease)
            .where(Lease.campaign_id == lease.campaign_id)
            .values(heartbeat_at=_moment(session, now), beats=Lease.beats + 1)
        )


def release(database: Database, lease: LeaseRecord, *, now: dt.datetime) -> None:
    """Release the lease. If it was lost meanwhile, its new holder keeps it."""
    with database.writing() as session:
        session.execute(
            update(Lease)
            .where(Lease.campaign_id == lease.campaign_id, Lease.token == lease.token)
            .values(released_at=_moment(session, now))
        )


@contextmanager
def writing_under(database: Database, lease: LeaseRecord) -> Generator[Session, None, None]:
    """Open a unit of work that commits only if the lease is still held.

    Raises:
        CampaignDeleted: If the campaign was deleted, which is possible only after its lease expired.
        LeaseLost: If another process took the campaign over; nothing is written.
    """
    with database.writing() as session:
        connection = session.connection()
        lock = " FOR UPDATE" if connection.dialect.name == "postgresql" else ""
        found = run(connection, f"SELECT token FROM leases WHERE campaign_id = ?{lock}", [lease.campaign_id])
        if not found and session.get(Campaign, lease.campaign_id) is None:
            raise CampaignDeleted(lease.campaign_id)
        if found != [(lease.token,)]:
            raise LeaseLost(_name_of(session, lease.campaign_id))
        yield session


def find(session: Session, campaign_id: int) -> LeaseRecord | None:
    """Last lease of a campaign, live or not; None if no process ever ran the campaign."""
    row = session.get(Lease, campaign_id)
    return None if row is None else _record(session, row)


def unreleased(session: Session) -> list[LeaseRecord]:
    """All unreleased leases, whether or not their holders are alive."""
    rows = session.scalars(select(Lease).where(Lease.released_at.is_(None)).order_by(Lease.campaign_id))
    return [_record(session, row) for row in rows]


def is_live(lease: LeaseRecord, *, is_gone: Callable[[LeaseRecord], bool]) -> bool:
    """Whether a process may still write under this lease, according to `is_gone`."""
    return lease.released_at is None and not is_gone(lease)


def _name_of(session: Session, campaign_id: int) -> str:
    return str(session.scalar(select(Campaign.name).where(Campaign.id == campaign_id)))


def _moment(session: Session, now: dt.datetime) -> dt.datetime:
    """Current time by the database's clock, or `now` if the database has no clock."""
    if session.get_bind().dialect.name != "postgresql":
        return now
    moment: dt.datetime = session.execute(text("SELECT clock_timestamp()")).scalar_one()
    return moment


def _is_expired(session: Session, row: Lease) -> bool | None:
    if session.get_bind().dialect.name != "postgresql":
        return None
    # A reader sees heartbeats up to the start of its transaction, so compare them with that time.
    clock = "CASE WHEN current_setting('transaction_read_only') = 'on' THEN now() ELSE clock_timestamp() END"
    moment = session.execute(text(f"SELECT {clock}")).scalar_one()
    return bool(moment - row.heartbeat_at >= dt.timedelta(seconds=row.lifetime_s))


def _record(session: Session, row: Lease) -> LeaseRecord:
    return LeaseRecord(
        campaign_id=row.campaign_id,
        token=row.token,
        holder=Holder(
            host=row.host,
            pid=row.pid,
            boot_id=row.boot_id,
            pid_namespace=row.pid_namespace,
            started_ticks=row.started_ticks,
        ),
        beats=row.beats,
        heartbeat_at=row.heartbeat_at,
        lifetime=dt.timedelta(seconds=row.lifetime_s),
        released_at=row.released_at,
        is_expired=_is_expired(session, row),
    )
