"""Consistency checks of a database: the first half of `winnow db check`.

They include the stored sums.
"""

from math import isclose
from typing import Any

from sqlalchemy import and_, case, func, or_, select, text, union_all
from sqlalchemy.orm import Session

from winnow.storage.admin.integrity import changed_rows
from winnow.storage.errors import CampaignUnreadable
from winnow.storage.models import Base, Comparison, Dataset, Decision, Example, Round, Standing, table_of
from winnow.storage.records.campaigns import UNREADABLE
from winnow.storage.records.candidate_states import COUNTED, PARTS, SIDES, STATS
from winnow.storage.records.outcomes import (
    DUEL_SUMS,
    DUELS,
    KEYS,
    METRIC_SUMS,
    METRICS,
    PAID_SUMS,
    ROUND_SUMS,
    TEXT_SUMS,
    TOTALS,
    USED,
    owners,
    paid,
    taken,
)
from winnow.storage.records.row_counts import wrong_counts

Key = tuple[object, ...]
Values = tuple[Any, ...]

SAME = 1e-9
"""Relative tolerance for sums of fractions.
These sums depend on the order of addition."""

IS_TOLD = "EXISTS (SELECT 1 FROM decisions d WHERE d.round_id = r.id)"

_FIRST_USES = f"""
    SELECT round_id, generation_id, position, judge FROM (
        SELECT o.*, row_number() OVER (PARTITION BY r.campaign_id, o.generation_id ORDER BY r.number) AS use
        FROM ({owners(USED)}) o JOIN rounds r ON r.id = o.round_id
    ) uses WHERE use = 1
"""
_STORED_REUSE = f"""
    SELECT s.campaign_id, s.role, s.name, coalesce(c.id, 0), {", ".join(f"sum({each})" for each in TEXT_SUMS)}
    FROM reuse_stats s LEFT JOIN campaigns c ON c.id = s.taken_from_id
    GROUP BY s.campaign_id, s.role, s.name, coalesce(c.id, 0)
"""
_STRAY_DETAILS = f"""
    SELECT candidate_id, reason, detail FROM candidate_stats WHERE detail IS NOT NULL
    EXCEPT SELECT candidate_id, coalesce(reason, ''), detail FROM ({SIDES}) s
"""
_REMEMBERED = "SELECT campaign_id, count(*) FROM reused_texts GROUP BY campaign_id"
_REMEMBERED_IN_STATS = "SELECT campaign_id, sum(generations) FROM reuse_stats GROUP BY campaign_id"


def wrong_tallies(session: Session) -> list[str]:
    """Candidates, pairs and campaigns whose stored sums differ from their rows.

    One sentence for each.
    """
    stats = _differing(session, 2, _stored(STATS[:-1], "candidate_stats"), COUNTED.format(where="1 = 1"))
    stats |= set(_by_key(session, 2, _STRAY_DETAILS))
    duels = (*KEYS["duel_stats"], *DUEL_SUMS)
    costs = (*KEYS["cost_stats"], *PAID_SUMS)
    totals = (*KEYS["campaign_stats"], *ROUND_SUMS)
    metrics = (*KEYS["metric_stats"], *METRIC_SUMS)
    taken_from = taken(_FIRST_USES, "paid.campaign_id IS NULL OR paid.campaign_id <> r.campaign_id")
    told = (
        ("the stats of candidate {} differ from the sums of its comparisons", _first(stats)),
        (
            "the totals of campaign {} differ from the sums of its decisions",
            _differing(session, 1, _stored(totals, "campaign_stats"), TOTALS.format(where="1 = 1")),
        ),
        (
            "the tally of the metrics of candidate {} differs from the sums of its comparisons",
            _first(_differing(session, 2, _stored(metrics, "metric_stats"), METRICS.format(where="1 = 1"))),
        ),
        (
            "the tally of the duels of candidates {} and {} differs from their sums",
            _differing(session, 2, _stored(duels, "duel_stats"), DUELS.format(where="1 = 1")),
        ),
        (
            "the paid outputs of campaign {} differ from the sums of its rounds",
            _first(_differing(session, 4, _stored(costs, "cost_stats"), paid(USED, where=IS_TOLD))),
        ),
        (
            "the reused outputs of campaign {} differ from the sums of its rounds",
            _first(
                _differing(session, 4, _STORED_REUSE, taken_from)
                | _differing(session, 1, _REMEMBERED, _REMEMBERED_IN_STATS)
            ),
        ),
    )
    return [sentence.format(*key) for sentence, keys in told for key in sorted(keys, key=str)]


def _first(keys: set[Key]) -> set[Key]:
    return {key[:1] for key in keys}


def _stored(columns: tuple[str, ...], table: str) -> str:
    return f"SELECT {', '.join(columns)} FROM {table}"


def _differing(session: Session, n_keys: int, stored: str, counted: str) -> set[Key]:
    """Keys, of `n_keys` columns, for which two statements return different rows."""
    kept, found = (_by_key(session, n_keys, statement) for statement in (stored, counted))
    return {key for key in kept | found if not _alike(kept.get(key), found.get(key))}


def _by_key(session: Session, n_keys: int, statement: str) -> dict[Key, Values]:
    # SQLAlchemy would treat a colon as a parameter.
    return {tuple(row[:n_keys]): tuple(row[n_keys:]) for row in session.execute(text(statement))}


def _alike(stored: Values | None, counted: Values | None) -> bool:
    if stored is None or counted is None:
        return False
    return all(map(_is_alike, stored, counted))


def _is_alike(stored: Any, counted: Any) -> bool:  # noqa: ANN401 -- a number of either driver, or None
    if stored is None or counted is None or isinstance(stored, int):
        return bool(stored == counted)
    return isclose(float(stored), float(counted), rel_tol=SAME, abs_tol=SAME)


def problems(session: Session) -> list[str]:
    """One sentence per problem of the database, with rounds counted from 1.

    Empty if no problem is found.
    """
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
    """Sentence about stored values that made a check fail."""
    if isinstance(error, CampaignUnreadable):
        return str(error)
    return f"stored values have an unexpected format, so a check stopped ({type(error).__name__}: {error})"


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
    """Sentences about references to missing rows.

    Loading part of a dump without constraints leaves such references.
    """
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
    """Sentences about datasets with another number of examples than was stored."""
    counted = (
        select(Dataset.id, Dataset.n_examples, func.count(Example.id))
        .outerjoin(Example, Example.dataset_id == Dataset.id)
        .group_by(Dataset.id, Dataset.n_examples)
        .order_by(Dataset.id)
    )
    return [
        f"dataset {id_} was stored with {n_examples:,} examples, and {found:,} exist"
        for id_, n_examples, found in session.execute(counted)
        if found != n_examples
    ]


def _unlike_their_plans(session: Session) -> list[str]:
    """Sentences about rounds decided with another number of comparisons than planned."""
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
    """Sentences about rounds that were observed before an earlier planned round."""
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
    """Sentences about rounds whose decision has a wrong number of changed rows.

    The number of stored rows differs from the one in the decision.
    """
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
    """Sentences about decisions whose best candidate has other stored values.

    These are values for the best candidate that differ from its stored status.
    """
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
