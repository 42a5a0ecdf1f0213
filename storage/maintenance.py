"""Whether a database is sound, and how large it is."""

from typing import Any

from sqlalchemy import func, select, text
from sqlalchemy.orm import Session

from storage.models import Base, Comparison, Decision, Round


def problems(session: Session) -> list[str]:
    """What is wrong with the database, one sentence each; empty when it is sound."""
    found: list[str] = []
    if session.get_bind().dialect.name == "sqlite":
        found += [
            f"SQLite: {line}" for line in session.scalars(text("PRAGMA integrity_check")) if line != "ok"
        ]
        found += [
            f"a row of {table} refers to a row of {parent} that is not there"
            for table, _, parent, _ in session.execute(text("PRAGMA foreign_key_check"))
        ]
    counted = (
        select(Round.id, Round.number, Round.campaign_id, Round.examples, func.count(Comparison.id))
        .join(Decision, Decision.round_id == Round.id)
        .outerjoin(Comparison, Comparison.round_id == Round.id)
        .group_by(Round.id)
    )
    for _, number, campaign_id, examples, stored in session.execute(counted):
        if stored != len(examples):
            found.append(
                f"round {number} of campaign {campaign_id} was planned with {len(examples)} comparisons "
                f"and decided with {stored}"
            )
    return found


def table_sizes(session: Session) -> list[dict[str, Any]]:
    """Rows of each table, in the order the data flows."""
    return [
        {"table": table.name, "rows": session.scalar(select(func.count()).select_from(table))}
        for table in Base.metadata.sorted_tables
    ]


def size_in_bytes(session: Session) -> int:
    """Bytes the database takes."""
    if session.get_bind().dialect.name == "sqlite":
        pages = session.scalar(text("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"))
    else:
        pages = session.scalar(text("SELECT pg_database_size(current_database())"))
    return int(pages)
