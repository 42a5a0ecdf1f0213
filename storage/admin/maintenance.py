"""Whether a database is sound, and how large it is."""

from sqlalchemy import and_, case, func, or_, select, text, union_all
from sqlalchemy.orm import Session

from winnow.storage.engine.database import Database
from winnow.storage.json_types import JsonObject
from winnow.storage.models import Base, Comparison, Decision, Round, Standing, table_of
from winnow.storage.records.candidates.standings import PARTS
from winnow.storage.tallies.recounting import wrong_tallies


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
    return (
        found
        + _told_early(session)
        + _wrong_changes(session)
        + _unlike_their_best(session)
        + wrong_tallies(session)
    )


def _told_early(session: Session) -> list[str]:
    """Rounds that were told before one that was planned before them."""
    is_told = Decision.id.is_not(None)
    rounds = (
        select(
            Round.campaign_id,
            func.min(case((~is_told, Round.number))),
            func.max(case((is_told, Round.number))),
        )
        .outerjoin(Decision, Decision.round_id == Round.id)
        .group_by(Round.campaign_id)
    )
    return [
        f"round {last} of campaign {campaign_id} was told before round {first}, which was planned before it"
        for campaign_id, first, last in session.execute(rounds)
        if first is not None and last is not None and first < last
    ]


def _wrong_changes(session: Session) -> list[str]:
    """Rounds that stored another number of changes of what is known of candidates than there is of them."""
    changed = union_all(*(select(table_of(part.model).c.round_id) for part in PARTS)).subquery()
    stored = select(changed.c.round_id, func.count().label("rows")).group_by(changed.c.round_id).subquery()
    rows = session.execute(
        select(Round.number, Round.campaign_id, func.coalesce(Decision.changes, 0), stored.c.rows)
        .outerjoin(Decision, Decision.round_id == Round.id)
        .outerjoin(stored, stored.c.round_id == Round.id)
        .where(func.coalesce(Decision.changes, 0) != func.coalesce(stored.c.rows, 0))
        .order_by(Round.campaign_id, Round.number)
    )
    return [
        f"round {number} of campaign {campaign_id} changed {changes} rows of what is known of its "
        f"candidates, and {found or 0} are stored: what was decided then and later cannot be read back"
        for number, campaign_id, changes, found in rows
    ]


def _unlike_their_best(session: Session) -> list[str]:
    """Decisions whose best candidate stood otherwise after their round than they say."""
    last = select(func.max(Standing.round_id)).where(
        Standing.candidate_id == Decision.best_candidate_id, Standing.round_id <= Decision.round_id
    )
    rows = session.execute(
        select(Round.number, Round.campaign_id)
        .join(Decision, Decision.round_id == Round.id)
        .outerjoin(
            Standing,
            and_(
                Standing.candidate_id == Decision.best_candidate_id,
                Standing.round_id == last.correlate(Decision).scalar_subquery(),
            ),
        )
        .where(
            or_(
                Decision.best_estimate.is_distinct_from(Standing.estimate),
                Decision.best_lower.is_distinct_from(Standing.lower),
                Decision.best_upper.is_distinct_from(Standing.upper),
            )
        )
        .order_by(Round.campaign_id, Round.number)
    )
    return [
        f"the decision of round {number} of campaign {campaign_id} says of its best candidate what the "
        "candidate's standing does not"
        for number, campaign_id in rows
    ]


def table_sizes(session: Session) -> list[JsonObject]:
    """Rows and bytes of each table, its indexes included, in the order the data flows.

    The bytes are None where SQLite was built without the means to tell them.
    """
    sizes = _bytes_by_table(session)
    return [
        {
            "table": table.name,
            "rows": session.scalar(select(func.count()).select_from(table)),
            "bytes": sizes.get(table.name),
        }
        for table in Base.metadata.sorted_tables
    ]


def size_in_bytes(session: Session) -> int:
    """Bytes the database takes."""
    if session.get_bind().dialect.name == "sqlite":
        pages = session.scalar(text("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"))
    else:
        pages = session.scalar(text("SELECT pg_database_size(current_database())"))
    return int(pages)


def vacuum(database: Database) -> tuple[int, int]:
    """Give back the room that deleted rows took; return the bytes before and after.

    Raises:
        StorageUnavailable: If the database cannot be written, or another process reads or writes it for too
            long.
    """
    with database.reading() as session:
        before = size_in_bytes(session)
    with database.outside_transactions() as run:
        run("VACUUM FULL ANALYZE" if database.is_postgresql else "VACUUM")
    with database.reading() as session:
        return before, size_in_bytes(session)


def _bytes_by_table(session: Session) -> dict[str, int]:
    if session.get_bind().dialect.name == "postgresql":
        query = "SELECT relname, pg_total_relation_size(oid) FROM pg_class WHERE relkind = 'r'"
    else:
        if not session.scalar(text("SELECT sqlite_compileoption_used('ENABLE_DBSTAT_VTAB')")):
            return {}
        query = (
            "SELECT m.tbl_name, sum(s.pgsize) FROM dbstat s JOIN sqlite_master m ON m.name = s.name "
            "GROUP BY m.tbl_name"
        )
    return {name: int(size) for name, size in session.execute(text(query))}
