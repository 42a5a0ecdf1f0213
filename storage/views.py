"""Answers to what users ask of a campaign, running or finished: rows as dictionaries, in a stated order."""

from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import Result, Select, Subquery, case, func, select, text
from sqlalchemy.exc import DBAPIError, ResourceClosedError
from sqlalchemy.orm import Session

from storage.database import cause
from storage.errors import QueryRefused
from storage.models import (
    Campaign,
    Candidate,
    Comparison,
    Dataset,
    Decision,
    Example,
    Generation,
    Round,
)
from storage.repository import latest_decision

Row = dict[str, Any]

ROWS_AT_ONCE = 1_000


def leaderboard(session: Session, campaign_id: int) -> list[Row]:
    """One row per candidate, best estimate first; candidates nothing is known of come last.

    `estimate`, `lower` and `upper` are those of the latest decision.
    """
    decision = latest_decision(session, campaign_id)
    rows = []
    for candidate, counts in _counts_by_candidate(session, campaign_id):
        position = candidate.position
        rows.append(
            {
                "candidate": candidate.name,
                "estimate": decision.estimates[position] if decision else None,
                "lower": decision.lower[position] if decision else None,
                "upper": decision.upper[position] if decision else None,
                "best": bool(decision and decision.best == candidate.name),
                **counts,
            }
        )
    return sorted(rows, key=lambda row: (row["estimate"] is None, -(row["estimate"] or 0.0)))


def comparisons(
    session: Session, campaign_id: int, *, candidate: str | None = None, limit: int | None = None
) -> Iterator[Row]:
    """Every comparison with its prompt, text and verdict, in the order they were planned."""
    columns = (
        Comparison.outcome,
        Comparison.reason,
        Comparison.detail,
        Comparison.answer,
        Comparison.judge,
        Generation.prompt,
        Generation.text,
        Generation.finish_reason,
        Generation.input_tokens,
        Generation.output_tokens,
        Generation.seconds,
        Generation.engine,
    )
    return scored_pairs(session, campaign_id, columns, candidate=candidate, limit=limit)


def scored_pairs(
    session: Session, campaign_id: int, columns: Sequence[Any], *, candidate: str | None, limit: int | None
) -> Iterator[Row]:
    """Round, position, candidate, example and these columns of each pair of a candidate and an example."""
    rows = (
        select(
            Round.number.label("round"),
            Comparison.position,
            Candidate.name.label("candidate"),
            Example.key.label("example"),
            *columns,
        )
        .join(Round, Round.id == Comparison.round_id)
        .join(Candidate, Candidate.id == Comparison.candidate_a_id)
        .join(Example, Example.id == Comparison.example_id)
        .outerjoin(Generation, Generation.id == Comparison.generation_a_id)
        .where(Round.campaign_id == campaign_id)
        .order_by(Round.number, Comparison.position)
        .limit(limit)
    )
    if candidate is not None:
        rows = rows.where(Candidate.name == candidate)
    return stream(session, rows)


def rounds(session: Session, campaign_id: int) -> Iterator[Row]:
    """One row per planned round, in order; the decision's columns are null while it is unfinished."""
    scored = func.count(Comparison.outcome).label("scored")
    rows = (
        select(
            Round.number.label("round"),
            func.count(Comparison.id).label("comparisons"),
            scored,
            Round.arms.label("candidates"),
            Candidate.name.label("best"),
            Decision.stop,
            Decision.reason,
            Round.planned_at,
            Decision.decided_at,
        )
        .outerjoin(Comparison, Comparison.round_id == Round.id)
        .outerjoin(Decision, Decision.round_id == Round.id)
        .outerjoin(Candidate, Candidate.id == Decision.best_candidate_id)
        .where(Round.campaign_id == campaign_id)
        .group_by(Round.id, Decision.id, Candidate.id)
        .order_by(Round.number)
    )
    for row in stream(session, rows):
        yield {**row, "candidates": _count_arms(row["candidates"]) if row["comparisons"] else 0}


def curve(session: Session, campaign_id: int) -> Iterator[Row]:
    """The best candidate and its interval against comparisons spent, one row per finished round."""
    counted = (
        select(Comparison.round_id, func.count().label("spent"))
        .join(Round, Round.id == Comparison.round_id)
        .where(Round.campaign_id == campaign_id)
        .group_by(Comparison.round_id)
        .subquery()
    )
    rows = session.execute(
        select(Round.number, counted.c.spent, Candidate.name, Candidate.position, Decision)
        .join(Decision, Decision.round_id == Round.id)
        .join(counted, counted.c.round_id == Round.id)
        .outerjoin(Candidate, Candidate.id == Decision.best_candidate_id)
        .where(Round.campaign_id == campaign_id)
        .order_by(Round.number)
        .execution_options(yield_per=ROWS_AT_ONCE)
    )
    total = 0
    for number, spent, best, position, decision in rows:
        total += spent
        yield {
            "round": number,
            "comparisons": total,
            "best": best,
            "estimate": None if position is None else decision.estimates[position],
            "lower": None if position is None else decision.lower[position],
            "upper": None if position is None else decision.upper[position],
        }


def coverage(session: Session, campaign_id: int) -> list[Row]:
    """How much of what was asked got an outcome: one row per candidate and reason, by candidate.

    The row with reason None counts the scored comparisons.
    """
    sides = _sides(campaign_id)
    rows = session.execute(
        select(
            Candidate.name.label("candidate"),
            sides.c.reason,
            func.count().label("comparisons"),
            func.min(sides.c.detail).label("detail"),
        )
        .join(sides, sides.c.candidate_id == Candidate.id)
        .group_by(Candidate.id, sides.c.reason)
        .order_by(Candidate.position, case((sides.c.reason.is_(None), 0), else_=1), sides.c.reason)
    )
    return [dict(row) for row in rows.mappings()]


def totals(session: Session, campaign_id: int) -> Row:
    """What a campaign has spent so far, and the size of its full grid."""
    spent = (
        session.execute(
            select(
                func.count(Comparison.id).label("comparisons"),
                func.count(Comparison.outcome).label("scored"),
                func.count(func.distinct(Round.id)).label("rounds"),
            )
            .join(Round, Round.id == Comparison.round_id)
            .where(Round.campaign_id == campaign_id)
        )
        .mappings()
        .one()
    )
    generated = (
        session.execute(
            select(
                func.count(Generation.id).label("generations"),
                func.coalesce(func.sum(Generation.input_tokens), 0).label("input_tokens"),
                func.coalesce(func.sum(Generation.output_tokens), 0).label("output_tokens"),
                func.coalesce(func.sum(Generation.seconds), 0.0).label("engine_seconds"),
            )
            .join(Round, Round.id == Generation.round_id)
            .where(Round.campaign_id == campaign_id)
        )
        .mappings()
        .one()
    )
    candidates = session.scalars(
        select(func.count()).select_from(Candidate).where(Candidate.campaign_id == campaign_id)
    ).one()
    objective, n_examples = session.execute(
        select(Campaign.objective, Dataset.n_examples)
        .join(Dataset, Dataset.id == Campaign.dataset_id)
        .where(Campaign.id == campaign_id)
    ).one()
    sides = candidates * (candidates - 1) // 2 if objective == "best-duel" else candidates
    return {
        "candidates": candidates,
        "examples": n_examples,
        "grid": sides * n_examples,
        **spent,
        **generated,
    }


def run_sql(session: Session, statement: str) -> tuple[list[str], Iterator[tuple[Any, ...]]]:
    """Run a statement of the user's; the session's connection must be read-only, the text is not looked at.

    Raises:
        QueryRefused: If the database refuses the statement, writing ones included; also while the rows
            are read, since some of them may not have been computed before.
    """
    try:
        # On PostgreSQL a streamed statement becomes the query of a cursor, so it can be one SELECT only.
        streamed = {"yield_per": ROWS_AT_ONCE}
        result = session.execute(text(statement.replace(":", r"\:")), execution_options=streamed)
        return list(result.keys()), _rows(result)
    except DBAPIError as error:
        raise _refusal(error) from error
    except ResourceClosedError:
        raise QueryRefused("the statement returns no rows; only SELECT statements answer questions") from None


def _rows(result: Result[Any]) -> Iterator[tuple[Any, ...]]:
    try:
        with result:
            for row in result:
                yield tuple(row)
    except DBAPIError as error:
        raise _refusal(error) from error


def _refusal(error: DBAPIError) -> QueryRefused:
    return QueryRefused(f"the statement was refused: {cause(error)} (statements may only read)")


def _counts_by_candidate(session: Session, campaign_id: int) -> Iterator[tuple[Candidate, Row]]:
    sides = _sides(campaign_id)
    rows = session.execute(
        select(
            Candidate,
            func.count(sides.c.outcome),
            func.count(sides.c.candidate_id),
            func.coalesce(func.sum(Generation.output_tokens), 0),
            func.coalesce(func.sum(Generation.seconds), 0.0),
        )
        .outerjoin(sides, sides.c.candidate_id == Candidate.id)
        .outerjoin(Generation, Generation.id == sides.c.generation_id)
        .where(Candidate.campaign_id == campaign_id)
        .group_by(Candidate.id)
        .order_by(Candidate.position)
    )
    for candidate, scored, asked, tokens, seconds in rows:
        yield (
            candidate,
            {"scored": scored, "unscored": asked - scored, "output_tokens": tokens, "seconds": seconds},
        )


def _count_arms(planned: list[Any]) -> int:
    """How many different arms a round has; a duel is a list of two."""
    return len({arm for arms in planned for arm in (arms if isinstance(arms, list) else [arms])})


def _sides(campaign_id: int) -> Subquery:
    """A campaign's comparisons as seen by each candidate in them: one row for a score, two for a duel."""
    first, second = (
        select(
            candidate.label("candidate_id"),
            generation.label("generation_id"),
            Comparison.outcome,
            Comparison.reason,
            Comparison.detail,
        )
        .join(Round, Round.id == Comparison.round_id)
        .where(Round.campaign_id == campaign_id)
        for candidate, generation in (
            (Comparison.candidate_a_id, Comparison.generation_a_id),
            (Comparison.candidate_b_id, Comparison.generation_b_id),
        )
    )
    return first.union_all(second.where(Comparison.candidate_b_id.is_not(None))).subquery()


def stream(session: Session, statement: Select[Any]) -> Iterator[Row]:
    """The rows of a statement, fetched some at a time."""
    return _dictionaries(session.execute(statement.execution_options(yield_per=ROWS_AT_ONCE)))


def _dictionaries(result: Result[Any]) -> Iterator[Row]:
    # Closed even where the asker has seen enough: PostgreSQL keeps a cursor open behind it.
    with result:
        for row in result.mappings():
            yield dict(row)
