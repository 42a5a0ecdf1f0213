"""Rounds: their plans, and all observations of a campaign in order."""

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence, Set
from functools import cache, lru_cache
from types import MappingProxyType

from sqlalchemy import ColumnElement, Connection, ScalarSelect, Select, Table, and_, case, func, select
from sqlalchemy.orm import Session, aliased

from winnow.storage.engine.raw_sql import insert_row, run
from winnow.storage.engine.row_digests import COLUMN, digest, values_of
from winnow.storage.json_types import Arms
from winnow.storage.models import Base, Comparison, Decision, Metric, Round, table_of
from winnow.storage.records.record_types import EQUAL_OUTPUTS, RoundRecord, ToldRound

ROUND_COLUMNS = ("campaign_id", "number", "planned_after", "arms", "examples", "propensities", "planned_at")

ROWS_AT_ONCE = 10_000
"""Number of rows fetched together when a whole campaign is read."""

ROUNDS_AT_ONCE = 100
"""Number of rounds fetched together; each holds as many pairs as a batch."""


def add_round(
    session: Session,
    campaign_id: int,
    *,
    number: int,
    planned_after: int | None = None,
    arms: Arms,
    examples: Sequence[int],
    propensities: Sequence[float] | None = None,
    now: dt.datetime,
) -> RoundRecord:
    """Store the plan of a round.

    Args:
        session: Writes.
        campaign_id: The campaign.
        number: Number of the round, from 0.
        planned_after: Number of rounds observed before the plan was made; None for all earlier rounds.
        arms: Candidate position of each planned comparison, or a pair of positions for duels.
        examples: Example position of each planned comparison.
        propensities: Probability with which each arm was drawn; None if arms were not drawn at random.
        now: The current time.
    """
    drawn = None if propensities is None else list(propensities)
    planned_after = number if planned_after is None else planned_after
    values = (campaign_id, number, planned_after, list(arms), list(examples), drawn, now)
    id_ = insert_row(session.connection(), table_of(Round), ROUND_COLUMNS, values)
    return RoundRecord(
        id=id_,
        number=number,
        planned_after=planned_after,
        arms=list(arms),
        examples=list(examples),
        planned_at=now,
        propensities=drawn,
    )


@lru_cache  # used several times per round, and building the query is slower than running it
def last_told(campaign_id: int) -> ScalarSelect[int]:
    """Query for the number of the last round with a decision; NULL without a decision.

    All earlier rounds have a decision too.
    """
    told = _told()
    return (
        select(told.number)
        .join(Decision, Decision.round_id == told.id)
        .where(told.campaign_id == campaign_id)
        .order_by(told.number.desc())
        .limit(1)
        .scalar_subquery()
    )


@cache  # creating the alias takes longer than using it
def _told() -> type[Round]:
    return aliased(Round)


def told_at(session: Session, campaign_id: int, number: int | None = None) -> tuple[int, dt.datetime] | None:
    """Number and time of an observed round, by default the last.

    None if that round was not observed.
    """
    asked = last_told(campaign_id) if number is None else number
    row = session.execute(
        select(Round.number, Decision.decided_at)
        .join(Decision, Decision.round_id == Round.id)
        .where(Round.campaign_id == campaign_id, Round.number == asked)
    ).first()
    return None if row is None else (row.number, row.decided_at)


def is_untold(campaign_id: int) -> ColumnElement[bool]:
    """Condition that a round of a campaign was planned and has no decision yet."""
    return and_(Round.campaign_id == campaign_id, Round.number > func.coalesce(last_told(campaign_id), -1))


def unfinished_rounds(session: Session, campaign_id: int) -> list[RoundRecord]:
    """Planned rounds without a decision, in order; no later round has a decision."""
    return [_round(row) for row in session.scalars(_unfinished(campaign_id))]


@lru_cache  # for the same reason as `last_told`
def _unfinished(campaign_id: int) -> Select[tuple[Round]]:
    return select(Round).where(is_untold(campaign_id)).order_by(Round.number)


def unfinished_round(session: Session, campaign_id: int) -> RoundRecord | None:
    """First unfinished round; without lookahead it is the only one.

    None if all rounds are finished.
    """
    return next(iter(unfinished_rounds(session, campaign_id)), None)


def next_round_number(session: Session, campaign_id: int) -> int:
    """Number of the next round to plan; the first is 0."""
    last = session.scalar(select(func.max(Round.number)).where(Round.campaign_id == campaign_id))
    return 0 if last is None else last + 1


def told_rounds(
    session: Session, campaign_id: int, metrics: Sequence[str] = (), *, spared: float | None = None
) -> Iterator[ToldRound]:
    """Yield all finished rounds with their outcomes, in order and in bounded memory.

    Args:
        session: Reads the results.
        campaign_id: The campaign.
        metrics: Names of the metrics whose values are included.
        spared: Outcome of comparisons that needed no verdict; None if the campaign has no such comparisons.
    """
    further = [aliased(Metric, name=f"metric_{place}") for place in range(len(metrics))]
    finished = (
        select(Round.number, Round.arms, Round.examples, Round.propensities)
        .join(Decision, Decision.round_id == Round.id)
        .where(Round.campaign_id == campaign_id)
        .order_by(Round.number)
    )
    outcome: ColumnElement[float | None] = Comparison.outcome.expression
    if spared is not None:
        outcome = case((Comparison.reason == EQUAL_OUTPUTS, spared), else_=Comparison.outcome)
    scores = (
        select(
            outcome,
            Comparison.human_loss,
            Comparison.auto_loss,
            Comparison.unlabelled_loss,
            Comparison.unlabelled_missing,
            *(each.score for each in further),
        )
        .join(Round, Round.id == Comparison.round_id)
        .where(Round.campaign_id == campaign_id)
        .order_by(Round.number, Comparison.position)
    )
    for each, name in zip(further, metrics, strict=True):
        is_of = and_(each.comparison_id == Comparison.id, each.name == name)
        scores = scores.outerjoin(each, is_of)
    connection = session.connection()  # without the ORM, which took most of the time for millions of rows
    with (
        connection.execute(finished.execution_options(yield_per=ROUNDS_AT_ONCE)) as rounds,
        connection.execute(scores.execution_options(yield_per=ROWS_AT_ONCE)) as told,
    ):
        for number, arms, examples, propensities in rounds:
            rows = told.fetchmany(len(examples))
            yield ToldRound(
                number=number,
                arms=arms,
                examples=examples,
                outcomes=[row[0] for row in rows],
                losses=[(row[1], row[2], row[3], row[4]) for row in rows],
                metrics=[tuple(row[5:]) for row in rows],
                propensities=propensities,
            )


def rounds_on(session: Session, campaign_id: int, examples: Set[int]) -> list[RoundRecord]:
    """Rounds that begin with one of these example positions, in order."""
    rounds = session.scalars(
        select(Round).where(Round.campaign_id == campaign_id).order_by(Round.number),
        execution_options={"yield_per": ROUNDS_AT_ONCE},
    )
    with rounds:
        return [_round(each) for each in rounds if each.examples[0] in examples]


def answered_by_round(session: Session, campaign_id: int) -> Iterator[tuple[int, int]]:
    """Yield two counts of each finished round, in order.

    Its comparisons, and those with all their outputs.
    """
    rows = session.execute(
        select(Decision.comparisons, Decision.answered)
        .join(Round, Round.id == Decision.round_id)
        .where(Round.campaign_id == campaign_id)
        .order_by(Round.number),
        execution_options={"yield_per": ROWS_AT_ONCE},
    )
    yield from ((comparisons, answered) for comparisons, answered in rows)


def _round(row: Round) -> RoundRecord:
    return RoundRecord(
        id=row.id,
        number=row.number,
        planned_after=row.planned_after,
        arms=row.arms,
        examples=row.examples,
        planned_at=row.planned_at,
        propensities=row.propensities,
    )


_TABLES = Base.metadata.tables

OF_COMPARISONS = {"outputs": "number", "metrics": "name", "judgments": "number"}
"""Tables whose rows belong to a comparison.
The values are the columns that order the rows within the comparison."""

OF_CANDIDATES = ("standings", "rankings", "differences", "bets")
"""Tables of the changed values of candidates after a round."""


Rows = Sequence[Sequence[object]]
NOTHING: Mapping[str, Rows] = MappingProxyType({})


def round_digest(
    connection: Connection,
    round_id: int,
    decision: Mapping[str, object],
    written: Mapping[str, Rows] = NOTHING,
) -> str:
    """Digest of a round whose rows are stored, possibly except its decision.

    The digest covers the round's plan, outcomes, decision and candidates' values, and the digest of the
    previous round. It is stored with the decision, in the round's transaction. So changed, lost or reordered
    rounds are detected. Rounds stored before digests were introduced have no digest; the digest of the first
    round after them covers no previous digest.

    Args:
        connection: Reads the rows.
        round_id: The round.
        decision: The values of its row of `decisions`.
        written: Rows of some tables in key order, just written, with the values of all columns. Reading them
            back would take longer than the digest. The rows of other tables are read.
    """
    content: list[object] = [_before(connection, round_id)]
    for table, condition, order in _READ:
        columns = _COLUMNS[table.name]
        rows = written.get(table.name)
        if rows is None:
            names = ", ".join(f't."{each}"' for each in columns)
            query = f"SELECT {names} FROM {table.name} t WHERE {condition} ORDER BY {order}"
            rows = run(connection, query, (round_id,))
        content.append(values_of(table, columns, rows))
    table = _TABLES["decisions"]
    columns = decision_columns(table)
    content.append(values_of(table, columns, [[decision[name] for name in columns]]))
    return digest(content)


def decision_columns(table: Table) -> list[str]:
    """Names of the columns of `decisions` that the digest of a round covers."""
    return [each.name for each in table.columns if each.name not in ("id", "digest")]


def _before(connection: Connection, round_id: int) -> str | None:
    """Digest of the previously observed round.

    None if that round has no digest or does not exist.
    """
    rows = run(connection, _DIGEST_BEFORE, (round_id,))
    found: str | None = rows[0][0] if rows else None
    return found


_DIGEST_BEFORE = """
    SELECT d.digest FROM decisions d JOIN rounds r ON r.id = d.round_id
    JOIN rounds this ON this.campaign_id = r.campaign_id
    WHERE this.id = ? AND r.number < this.number ORDER BY r.number DESC LIMIT 1
"""

_OF_ROUND = "t.comparison_id IN (SELECT id FROM comparisons WHERE round_id = ?)"
_READ = (
    (_TABLES["rounds"], "t.id = ?", "t.id"),
    (_TABLES["comparisons"], "t.round_id = ?", "t.position"),
    *((_TABLES[name], _OF_ROUND, f"t.comparison_id, t.{within}") for name, within in OF_COMPARISONS.items()),
    *((_TABLES[name], "t.round_id = ?", "t.candidate_id") for name in OF_CANDIDATES),
)
"""Tables with rows of a round.
The values are the condition that selects these rows, and their order."""

_COLUMNS = {table.name: [each.name for each in table.columns if each.name != COLUMN] for table, _, _ in _READ}
