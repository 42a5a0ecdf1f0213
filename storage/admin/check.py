"""Whether what a database holds agrees with itself: the first half of `winnow db check`."""

from sqlalchemy import and_, case, func, or_, select, text, union_all
from sqlalchemy.orm import Session

from winnow.storage.admin.recounting import wrong_tallies
from winnow.storage.admin.stored_values import changed_rows
from winnow.storage.models import Comparison, Decision, Round, Standing, table_of
from winnow.storage.records.candidates.standings import PARTS


def problems(session: Session) -> list[str]:
    """The problems of the database, one sentence each, rounds counted from 1; empty when it is sound."""
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
                f"round {number + 1} of campaign {campaign_id} was planned with {len(examples)} comparisons "
                f"and decided with {stored}"
            )
    return (
        found
        + _told_early(session)
        + _wrong_changes(session)
        + _unlike_their_best(session)
        + changed_rows(session)
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
        f"round {last + 1} of campaign {campaign_id} was told before round {first + 1}, which was planned "
        "before it"
        for campaign_id, first, last in session.execute(rounds)
        if first is not None and last is not None and first < last
    ]


def _wrong_changes(session: Session) -> list[str]:
    """A sentence for each round whose decision tells another number of changed rows than are stored."""
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
        f"round {number + 1} of campaign {campaign_id} changed {changes} rows of what is known of its "
        f"candidates, and {found or 0} are stored: what was decided then and later cannot be read back"
        for number, campaign_id, changes, found in rows
    ]


def _unlike_their_best(session: Session) -> list[str]:
    """A sentence for each decision whose numbers of its best candidate are not those of its standing."""
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
        f"the decision of round {number + 1} of campaign {campaign_id} says of its best candidate what the "
        "candidate's standing does not"
        for number, campaign_id in rows
    ]
