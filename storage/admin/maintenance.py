"""Size of a database, release of its unused space, and verified copies of it."""

import datetime as dt
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256

from sqlalchemy import String, Table, func, select, text
from sqlalchemy.orm import Session

from winnow.storage.admin.schema import ensure_schema, require_schema
from winnow.storage.columns import ByCodePoints
from winnow.storage.engine.database import Database
from winnow.storage.engine.raw_sql import insert_rows
from winnow.storage.errors import CopyRefused, NotPermitted
from winnow.storage.json_types import JsonObject
from winnow.storage.models import Base, Campaign, PrunedCampaign, ReuseStats, table_of
from winnow.storage.text import storable

TABLES = Base.metadata.sorted_tables
MAY_VACUUM = """\
SELECT CASE WHEN current_setting('server_version_num')::int >= 170000
THEN has_table_privilege(:name, 'MAINTAIN') ELSE pg_has_role(tableowner, 'MEMBER') END
FROM pg_tables WHERE tablename = :name AND schemaname = current_schema()"""
"""Query: owners can vacuum a table.
From PostgreSQL 17 on, roles with the MAINTAIN privilege too."""
OF_ITS_SCHEMA = """\
SELECT string_agg(format('%I.%I', schemaname, tablename), ', ')
FROM pg_tables WHERE schemaname = current_schema()"""
"""Query for the tables of this schema.
Those of other schemas belong to other programs."""


def table_sizes(session: Session) -> list[JsonObject]:
    """Rows and bytes of each table, in the order of the data flow.

    The bytes include the table's indexes. They are None if SQLite was built without `dbstat`.
    """
    sizes = _bytes_by_table(session)
    return [
        {
            "table": table.name,
            "rows": session.scalar(select(func.count()).select_from(table)),
            "bytes": sizes.get(table.name),
        }
        for table in TABLES
    ]


def size_in_bytes(session: Session) -> int:
    """Size of the database in bytes."""
    if session.get_bind().dialect.name == "sqlite":
        pages = session.scalar(text("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"))
    else:
        pages = session.scalar(text("SELECT pg_database_size(current_database())"))
    return int(pages)


def vacuum(database: Database) -> tuple[int, int]:
    """Release the space of deleted rows; return the bytes before and after.

    Raises:
        StorageUnavailable: If the database cannot be written, or another process reads or writes it for too
            long.
        NotPermitted: If the role lacks the privilege; PostgreSQL would skip the tables without an error.
    """
    with database.reading() as session:
        before = size_in_bytes(session)
        if database.is_postgresql:
            if not session.scalar(text(MAY_VACUUM), {"name": TABLES[0].name}):
                raise NotPermitted(database.url, "no table would release its space")
            tables = session.scalar(text(OF_ITS_SCHEMA))
    with database.outside_transactions() as run:
        run(f"VACUUM (FULL, ANALYZE) {tables}" if database.is_postgresql else "VACUUM")
    with database.reading() as session:
        return before, size_in_bytes(session)


def _bytes_by_table(session: Session) -> dict[str, int]:
    if session.get_bind().dialect.name == "postgresql":
        query = "SELECT relname, pg_total_relation_size(oid) FROM pg_class "
        # excludes tables of the same name of other programs
        query += "WHERE relkind = 'r' AND pg_table_is_visible(oid)"
    else:
        if not session.scalar(text("SELECT sqlite_compileoption_used('ENABLE_DBSTAT_VTAB')")):
            return {}
        query = (
            "SELECT m.tbl_name, sum(s.pgsize) FROM dbstat s JOIN sqlite_master m ON m.name = s.name "
            "GROUP BY m.tbl_name"
        )
    return {name: int(size) for name, size in session.execute(text(query))}


ROWS_AT_ONCE = 5_000
"""Number of rows fetched together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """Content of a table, comparable between databases of any kind.

    Two contents are equal if and only if the rows are equal.
    """

    rows: int
    digest: str
    """SHA-256 over all values of all rows in key order, hexadecimal."""


def copy_database(
    source: Database, target: Database, *, report: Callable[[str, Content], None] = lambda *_: None
) -> None:
    """Copy every row, with its id, into an empty database.

    The copy is verified row by row. The source is read in one snapshot, so campaigns can run meanwhile. The
    target is written in one transaction: an interrupted copy leaves it empty, and can be repeated.

    Args:
        source: A database of this release's schema.
        target: A database without rows; its tables are created if it has no tables.
        report: Called with each table after it is copied and verified.

    Raises:
        CopyRefused: If the target has rows, or differs when read back; nothing is then stored.
        SchemaOutdated, SchemaMissing, SchemaTooNew: If one of the databases is of another release.
        StorageUnavailable: If one of the databases cannot be read or written.
    """
    require_schema(source)
    ensure_schema(target)
    with source.reading() as reader, target.writing() as writer:
        for table in Base.metadata.sorted_tables:
            if writer.execute(select(table).limit(1)).first() is not None:
                raise CopyRefused(f"{target.url} already holds rows of {table.name}; name an empty database")
        for table in Base.metadata.sorted_tables:
            wanted = _copy_table(source, reader, writer, table)
            found = content(writer, table)
            if found != wanted:
                raise CopyRefused(
                    f"{table.name} read back from {target.url} differs from that of {source.url} "
                    f"({found.rows} rows of {wanted.rows}); nothing was stored"
                )
            report(table.name, wanted)
        set_sequences(writer)


def content(session: Session, table: Table) -> Content:
    """Content of a table, computed in bounded memory."""
    digest = _Digest()
    for row in _rows(session, table):
        digest.add(row)
    return digest.content()


class _Digest:
    def __init__(self) -> None:
        self._hash, self._rows = sha256(), 0

    def add(self, row: Sequence[object]) -> None:
        self._hash.update(json.dumps([_canonical(value) for value in row]).encode())
        self._rows += 1

    def content(self) -> Content:
        return Content(rows=self._rows, digest=self._hash.hexdigest())


def _copy_table(source: Database, reader: Session, writer: Session, table: Table) -> Content:
    digest = _Digest()

    def passing() -> Iterator[Sequence[object]]:
        # Errors must name the source: the rows are read inside the target's transaction, whose errors name
        # the target.
        with source.named_errors():
            for row in _rows(reader, table):
                digest.add(row)
                yield row

    insert_rows(writer.connection(), table, [column.name for column in table.columns], passing())
    return digest.content()


def _rows(session: Session, table: Table) -> Iterator[Sequence[object]]:
    key = table.primary_key.columns
    query = select(table).order_by(*(ByCodePoints(e) if isinstance(e.type, String) else e for e in key))
    with session.execute(query.execution_options(yield_per=ROWS_AT_ONCE)) as rows:
        yield from rows


def _canonical(value: object) -> object:
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, dt.datetime):
        return value.astimezone(dt.UTC).isoformat()
    # 1.0 and 1 are equal in a float column, and databases differ in which form they return.
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def set_sequences(session: Session) -> None:
    """Set each table's next id after the last id ever used, also by deleted campaigns."""
    # SQLite has no sequence for a table that never had a row, such as campaigns in a copy after all were
    # deleted.
    statements = (
        ["SELECT setval(pg_get_serial_sequence(:name, 'id'), :last)"]
        if session.get_bind().dialect.name == "postgresql"
        else [
            "DELETE FROM sqlite_sequence WHERE name = :name",
            "INSERT INTO sqlite_sequence (name, seq) VALUES (:name, :last)",
        ]
    )
    for table in Base.metadata.sorted_tables:
        if "id" not in table.columns:
            continue
        ids = [table.c.id, *(_CAMPAIGN_IDS if table is table_of(Campaign) else ())]
        lasts = [session.scalar(select(func.max(each))) for each in ids]
        last = max((each for each in lasts if each is not None), default=0)
        if last:
            for statement in statements:
                session.execute(text(statement), {"name": table.name, "last": last})


_CAMPAIGN_IDS = (PrunedCampaign.campaign_id, ReuseStats.taken_from_id)
"""Columns that hold ids of deleted campaigns."""
