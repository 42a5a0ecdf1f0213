"""Size of a database, and release of its unused space."""

from sqlalchemy import func, select, text
from sqlalchemy.orm import Session

from winnow.storage.engine.database import Database
from winnow.storage.errors import NotPermitted
from winnow.storage.json_types import JsonObject
from winnow.storage.models import Base

TABLES = Base.metadata.sorted_tables
MAY_VACUUM = """\
SELECT CASE WHEN current_setting('server_version_num')::int >= 170000
THEN has_table_privilege(:name, 'MAINTAIN') ELSE pg_has_role(tableowner, 'MEMBER') END
FROM pg_tables WHERE tablename = :name AND schemaname = current_schema()"""
"""Owners can, and from PostgreSQL 17 on also roles with the privilege."""
OF_ITS_SCHEMA = """\
SELECT string_agg(format('%I.%I', schemaname, tablename), ', ')
FROM pg_tables WHERE schemaname = current_schema()"""
"""Tables of other schemas belong to other programs, which can be using them."""


def table_sizes(session: Session) -> list[JsonObject]:
    """Rows and bytes of each table, including its indexes, in the order of the data flow.

    The bytes are None if SQLite was built without `dbstat`.
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
        NotPermitted: If the role lacks the privilege: PostgreSQL would skip the tables silently.
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
