"""Consistency checks of a database: the first half of `winnow db check`."""

from sqlalchemy import and_, case, func, or_, select, text, union_all
from sqlalchemy.orm import Session

from winnow.storage.admin.integrity import changed_rows
from winnow.storage.admin.recounting import wrong_tallies
from winnow.storage.errors import CampaignUnreadable
from winnow.storage.models import Base, Comparison, Dataset, Decision, Example, Round, Standing, table_of
from winnow.storage.records.campaigns import UNREADABLE
from winnow.storage.records.candidates.states import PARTS
from winnow.storage.records.row_counts import wrong_counts


def problems(session: Session) -> list[str]:
    """Find problems of the database, one sentence each, rounds counted from 1; empty if there are none."""
    found: list[str] = []
    for check in (
        _broken_file,
        _unlike_their_plans,
        _told_early,
        _wrong_changes,
        _unlike_their_best,
        _lacking_examples,
        changed_rows,
        wrong_counts,
        wrong_tallies,
    ):
        try:
            found += check(session)
        except UNREADABLE as error:
            found.append(unreadable(error))
    return found


def unreadable(error: Exception) -> str:
    """Sentence for stored values that made a check fail."""
    if isinstance(error, CampaignUnreadable):
        return str(error)
    return f"stored values have an unexpected format, which ends a check ({type(error).__name__}: {error})"


def _broken_file(session: Session) -> list[str]:
    if session.get_bind().dialect.name != "sqlite":
        return _broken_references(session)
    return [
        *(f"SQLite: {line}" for line in session.scalars(text("PRAGMA integrity_check")) if line != "ok"),
        *(
            f"a row of {table} refers to a missing row of {parent}"
            for table, _, parent, _ in session.execute(text("PRAGMA foreign_key_check"))
        ),
    ]


def _broken_references(session: Session) -> list[str]:
    """References to missing rows, as in a part of a dump that was loaded without constraints."""
    found = []
    for table in Base.metadata.sorted_tables:
        for key in table.foreign_keys:
            parent = key.column.table.alias("parent")
            column = parent.c[key.column.name]
            joined = table.outerjoin(parent, column == key.parent)
            lost = select(func.count()).select_from(joined).where(key.parent.is_not(None), column.is_(None))
            if count := session.scalars(lost).one():
                found.append(
                    f"{count:,} rows of {table.name} refer to missing rows of {key.column.table.name}"
                )
    return found


def _lacking_examples(session: Session) -> list[str]:
    """Datasets with another number of examples than was stored."""
    counted = (
        select(Dataset.id, Dataset.n_examples, func.count(Example.id))
        .outerjoin(Example, Example.dataset_id == Dataset.id)
        .group_by(Dataset.id, Dataset.n_examples)
        .order_by(Dataset.id)
    )
    return [
        f"dataset {id_} was stored with {n_examples:,} examples, and {found:,} are there"
        for id_, n_examples, found in session.execute(counted)
        if found != n_examples
    ]


def _unlike_their_plans(session: Session) -> list[str]:
    """Rounds decided with another number of comparisons than planned."""
    counted = (
        select(Round.id, Round.number, Round.campaign_id, Round.examples, func.count(Comparison.id))
        .join(Decision, Decision.round_id == Round.id)
        .outerjoin(Comparison, Comparison.round_id == Round.id)
        .group_by(Round.id)
    )
    return [
        f"round {number + 1} of campaign {campaign_id} was planned with {len(examples)} comparisons "
        f"and decided with {stored}"
        for _, number, campaign_id, examples, stored in session.execute(counted)
        if stored != len(examples)
    ]


def _told_early(session: Session) -> list[str]:
    """Rounds observed before a round that was planned before them."""
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
        f"round {last + 1} of campaign {campaign_id} was recorded before round {first + 1}, which was "
        "planned before it"
        for campaign_id, first, last in session.execute(rounds)
        if first is not None and last is not None and first < last
    ]


def _wrong_changes(session: Session) -> list[str]:
    """A sentence for each round whose decision states another number of changed rows than are stored."""
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
        f"round {number + 1} of campaign {campaign_id} changed {changes} rows of its "
        f"candidates, and {found or 0} are stored: this decision and later ones cannot be read back"
        for number, campaign_id, changes, found in rows
    ]


def _unlike_their_best(session: Session) -> list[str]:
    """A sentence for each decision whose best candidate's numbers differ from the stored status."""
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
        f"the decision of round {number + 1} of campaign {campaign_id} and the stored status of its best "
        "candidate have different values"
        for number, campaign_id in rows
    ]
