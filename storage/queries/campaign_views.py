"""Views of a campaign, running or finished.

Rows are dictionaries in a defined order.
"""

from collections.abc import Generator, Iterator, Sequence
from decimal import Decimal
from itertools import compress
from typing import Any

from sqlalchemy import CursorResult, Select, case, func, or_, select
from sqlalchemy.orm import Session

from winnow.storage.columns import ByCodePoints
from winnow.storage.engine.database import once_a_look
from winnow.storage.json_types import Row
from winnow.storage.models import (
    Campaign,
    CampaignStats,
    Candidate,
    CandidateStats,
    Comparison,
    Dataset,
    Decision,
    Example,
    Generation,
    MetricStats,
    Output,
    Prompt,
    ReuseStats,
    Round,
)
from winnow.storage.objectives import traits_of
from winnow.storage.queries.comparison_joins import EXAMPLE_TEXTS
from winnow.storage.records.campaigns import candidate_names, load_totals
from winnow.storage.records.candidate_states import BET_LISTS
from winnow.storage.records.outcomes import latest_decision
from winnow.storage.records.record_types import EQUAL_OUTPUTS
from winnow.storage.records.rounds import is_untold
from winnow.storage.records.stream_batches import count_examples

ROWS_AT_ONCE = 1_000

ELIMINATIONS = ("candidate", "status", "wealth", "level", "out_in_round", "out_at")

TOLD = {
    **{name: name for name in ("comparisons", "answered", "scored", "rounds", "generations")},
    **{name: name for name in ("input_tokens", "output_tokens")},
    "engine_seconds": "seconds",
}
"""Totals of a campaign's observed rounds.
The values are the columns of `CampaignStats` that hold the totals."""

TRUNCATED = (Generation.finish_reason == "length").label("truncated")
"""Whether an output was cut off by max_tokens or the context window."""


@once_a_look
def leaderboard(session: Session, campaign_id: int) -> list[Row]:
    """One row per candidate, best estimate first.

    Candidates without an estimate come last. Among equal estimates, that of the recommended candidate comes
    first.

    `status`, `estimate`, `lower` and `upper` are those of the latest decision. `ranking` is the score that
    orders the candidates; it is null if the estimate orders them.
    """
    decision = latest_decision(session, campaign_id)
    rows = []
    for position, name, counts in _counts_by_candidate(session, campaign_id):
        rows.append(
            {
                "candidate": name,
                "status": decision.status[position] if decision else "active",
                "estimate": decision.estimates[position] if decision else None,
                "lower": decision.lower[position] if decision else None,
                "upper": decision.upper[position] if decision else None,
                "ranking": decision.ranking[position] if decision and decision.ranking else None,
                "best": bool(decision and decision.best == name),
                **counts,
            }
        )
    return sorted(rows, key=lambda row: (row["estimate"] is None, -(row["estimate"] or 0.0), not row["best"]))


def eliminations(session: Session, campaign_id: int) -> list[Row]:
    """One row per candidate, in order of elimination.

    Empty if the selector does not bet against candidates. `wealth` is the result of the bets for a stake of
    1; before any test, only the wealth that the race has won. `level` is the wealth that eliminates the
    candidate. A candidate that cannot be the best, or cannot meet a constraint (its `status` is then
    infeasible), is eliminated at any wealth. `out_at` is the number of comparisons after the round
    `out_in_round` (counted from 0) in which the candidate was eliminated. Both are null for a candidate that
    was not eliminated: it leads, can still be the best, or is part of the answer (tied, or the cheapest that
    is good enough). An eliminated candidate that can be the best by less than epsilon is active until a best
    one is known.
    """
    decision = latest_decision(session, campaign_id)
    if decision is None or decision.bets is None:
        return []
    names = candidate_names(session, campaign_id)
    columns = (names, decision.status, *(decision.bets[each] for each in BET_LISTS))
    rows = [dict(zip(ELIMINATIONS, row, strict=True)) for row in zip(*columns, strict=True)]
    return sorted(rows, key=lambda row: (row["out_at"] is None, row["out_at"] or 0))


def names_out(session: Session, campaign_id: int) -> frozenset[str]:
    """Names of the candidates that are out after the latest decision, see `record_types.is_out`."""
    decision = latest_decision(session, campaign_id)
    are_out = decision.are_out if decision else ()
    return frozenset(compress(candidate_names(session, campaign_id), are_out))


def comparisons(
    session: Session, campaign_id: int, *, candidate: str | None = None, limit: int | None = None
) -> Iterator[Row]:
    """Yield all comparisons with prompt, output and verdict, in planned order."""
    columns = (
        Comparison.outcome,
        Comparison.reason,
        Comparison.detail,
        Comparison.answer,
        Comparison.no_answer,
        TRUNCATED,
        Comparison.judge,
        Prompt.text.label("prompt"),
        Generation.text,
        Generation.reasoning,
        Generation.finish_reason,
        Generation.input_tokens,
        Generation.output_tokens,
        Generation.seconds,
        Generation.latency,
        Generation.engine,
        Generation.served_as,
    )
    return scored_pairs(session, campaign_id, columns, candidate=candidate, limit=limit)


def scored_pairs(
    session: Session, campaign_id: int, columns: Sequence[object], *, candidate: str | None, limit: int | None
) -> Iterator[Row]:
    """Yield the values of each pair of candidate and example.

    These are the place, the candidate, the example and the given columns.
    """
    rows = (
        select(
            Round.number.label("round"),
            Comparison.position,
            Candidate.name.label("candidate"),
            Example.key.label("example"),
            *EXAMPLE_TEXTS,
            *columns,
        )
        .join(Round, Round.id == Comparison.round_id)
        .join(Candidate, Candidate.id == Comparison.candidate_a_id)
        .join(Example, Example.id == Comparison.example_id)
        .outerjoin(Generation, Generation.id == Comparison.generation_a_id)
        .outerjoin(Prompt, Prompt.id == Generation.prompt_id)
        .where(Round.campaign_id == campaign_id)
        .order_by(Round.number, Comparison.position)
        .limit(limit)
    )
    if candidate is not None:
        rows = rows.where(Candidate.name == candidate)
    return stream(session, rows)


def metrics(session: Session, campaign_id: int) -> list[Row]:
    """Scores by metrics: one row per metric and candidate.

    Metrics by name, candidates in order.
    """
    rows = session.execute(
        select(
            MetricStats.name.label("metric"),
            Candidate.name.label("candidate"),
            MetricStats.scored,
            MetricStats.unscored,
            (MetricStats.score_sum / func.nullif(MetricStats.scored, 0)).label("mean"),
        )
        .join(Candidate, Candidate.id == MetricStats.candidate_id)
        .where(Candidate.campaign_id == campaign_id)
        .order_by(ByCodePoints(MetricStats.name), Candidate.position)
    )
    return [dict(row) for row in rows.mappings()]


def outputs(session: Session, campaign_id: int) -> Iterator[Row]:
    """Yield each output of comparisons with several outputs.

    Each output has its own score. The order is that of the plan.
    """
    rows = (
        select(
            Round.number.label("round"),
            Comparison.position,
            Candidate.name.label("candidate"),
            Example.key.label("example"),
            Output.number.label("output"),
            Output.score,
            Output.reason,
            Output.answer,
            Output.no_answer,
            Output.preference,
            Comparison.outcome,
            Prompt.text.label("prompt"),
            Generation.text,
            Generation.finish_reason,
            Generation.output_tokens,
            Generation.seconds,
            Generation.latency,
        )
        .join(Comparison, Comparison.id == Output.comparison_id)
        .join(Round, Round.id == Comparison.round_id)
        .join(Candidate, Candidate.id == Comparison.candidate_a_id)
        .join(Example, Example.id == Comparison.example_id)
        .join(Generation, Generation.id == Output.generation_id)
        .join(Prompt, Prompt.id == Generation.prompt_id)
        .where(Round.campaign_id == campaign_id)
        .order_by(Round.number, Comparison.position, Output.number)
    )
    return stream(session, rows)


def rounds(session: Session, campaign_id: int) -> Iterator[Row]:
    """Yield one row per planned round, in order.

    The decision's columns are null while the round is unfinished.
    """
    rows = (
        select(
            Round.number.label("round"),
            Decision.comparisons,
            Decision.scored,
            Decision.candidates,
            Candidate.name.label("best"),
            Decision.stop,
            Decision.reason,
            Round.planned_at,
            Decision.decided_at,
        )
        .outerjoin(Decision, Decision.round_id == Round.id)
        .outerjoin(Candidate, Candidate.id == Decision.best_candidate_id)
        .where(Round.campaign_id == campaign_id)
        .order_by(Round.number)
    )
    return stream(session, rows)


def curve(session: Session, campaign_id: int) -> Iterator[Row]:
    """Yield the best candidate and its interval, one row per finished round.

    Each row has the number of comparisons spent so far. A comparison whose outputs could not be generated
    does not count as spent.
    """
    rows = (
        select(
            Round.number.label("round"),
            func.sum(Decision.answered).over(order_by=Round.number).label("comparisons"),
            Candidate.name.label("best"),
            Decision.best_estimate.label("estimate"),
            Decision.best_lower.label("lower"),
            Decision.best_upper.label("upper"),
        )
        .join(Decision, Decision.round_id == Round.id)
        .outerjoin(Candidate, Candidate.id == Decision.best_candidate_id)
        .where(Round.campaign_id == campaign_id)
        .order_by(Round.number)
    )
    return stream(session, rows)


def excesses(session: Session, campaign_id: int) -> list[tuple[int, float]]:
    """Comparisons spent, and an upper bound on the gain from another candidate.

    The bound is on how much better another candidate can be. One pair per finished round whose decision has
    such a bound, in order; the bound is in units of scores.
    """
    most = Decision.claim["excess"]["most"].as_float()
    rows = (
        select(func.sum(Decision.answered).over(order_by=Round.number), most)
        .join(Decision, Decision.round_id == Round.id)
        .where(Round.campaign_id == campaign_id)
        .order_by(Round.number)
    )
    return [(spent, found) for spent, found in session.execute(rows) if found is not None]


def coverage(session: Session, campaign_id: int) -> list[Row]:
    """Comparisons with and without an outcome.

    One row per candidate and reason, by candidate. The row with reason None counts the scored comparisons.
    `detail` is that of one of the comparisons. `no_answer` and `truncated` count the candidate's outputs
    without an answer, and those that were cut off.
    """
    rows = session.execute(
        select(
            Candidate.name.label("candidate"),
            func.nullif(CandidateStats.reason, "").label("reason"),
            CandidateStats.comparisons,
            CandidateStats.no_answer,
            CandidateStats.truncated,
            CandidateStats.detail,
        )
        .join(CandidateStats, CandidateStats.candidate_id == Candidate.id)
        .where(Candidate.campaign_id == campaign_id)
        .order_by(Candidate.position, ByCodePoints(CandidateStats.reason))
    )
    return [dict(row) for row in rows.mappings()]


def all_scores_are_zero(session: Session, campaign_id: int) -> bool:
    """Whether a campaign has scores and all of them are 0.

    False if some outputs needed no verdict.
    """
    scored = (
        select(Comparison.id)
        .join(Round, Round.id == Comparison.round_id)
        .where(Round.campaign_id == campaign_id)
        .limit(1)
    )
    above = scored.where(or_(Comparison.outcome > 0.0, Comparison.reason == EQUAL_OUTPUTS))
    scored = scored.where(Comparison.outcome.is_not(None))
    return session.scalar(above) is None and session.scalar(scored) is not None


@once_a_look
def totals(session: Session, campaign_id: int) -> Row:
    """Amounts that a campaign has spent so far.

    The size of the full grid and the number of reused outputs are included. `reused` counts outputs of other
    campaigns, as far as stored comparisons and judgments show them.
    """
    unfinished = select(
        func.count(Generation.id).label("generations"),
        func.coalesce(func.sum(Generation.input_tokens), 0).label("input_tokens"),
        func.coalesce(func.sum(Generation.output_tokens), 0).label("output_tokens"),
        func.coalesce(func.sum(Generation.seconds), 0.0).label("engine_seconds"),
    ).where(Generation.round_id.in_(select(Round.id).where(is_untold(campaign_id))))
    more = session.execute(unfinished).mappings().one()
    columns = (getattr(CampaignStats, column).label(name) for name, column in TOLD.items())
    told = session.execute(select(*columns).where(CampaignStats.campaign_id == campaign_id)).mappings()
    spent = told.one_or_none() or dict.fromkeys(TOLD, 0)
    reused = session.scalars(
        select(func.sum(ReuseStats.generations)).where(ReuseStats.campaign_id == campaign_id)
    ).one()
    candidates = session.scalars(
        select(func.count()).select_from(Candidate).where(Candidate.campaign_id == campaign_id)
    ).one()
    objective, n_examples = session.execute(
        select(Campaign.objective, Dataset.n_examples)
        .join(Dataset, Dataset.id == Campaign.dataset_id)
        .where(Campaign.id == campaign_id)
    ).one()
    traits = traits_of(objective)
    sides = candidates * (candidates - 1) // 2 if traits.compares_pairs else candidates
    # In a stream, prompts that arrived later count too.
    wide = count_examples(session, campaign_id) if traits.is_stream else n_examples
    return {
        "candidates": candidates,
        "examples": n_examples,
        "grid": sides * wide,
        **{name: value + _number(more.get(name, 0)) for name, value in spent.items()},
        "reused": int(reused or 0),
        **load_totals(session, campaign_id),
    }


def _number(value: float | Decimal) -> float:
    return value if isinstance(value, float) else int(value)


def _counts_by_candidate(session: Session, campaign_id: int) -> Iterator[tuple[int, str, Row]]:
    scored = case((CandidateStats.reason == "", CandidateStats.comparisons), else_=0)
    rows = session.execute(
        select(
            Candidate.position,
            Candidate.name,
            func.coalesce(func.sum(scored), 0),
            func.coalesce(func.sum(CandidateStats.comparisons), 0),
            func.coalesce(func.sum(CandidateStats.output_tokens), 0),
            func.coalesce(func.sum(CandidateStats.seconds), 0.0),
        )
        .outerjoin(CandidateStats, CandidateStats.candidate_id == Candidate.id)
        .where(Candidate.campaign_id == campaign_id)
        .group_by(Candidate.id)
        .order_by(Candidate.position)
    )
    for position, name, scored_, asked, tokens, seconds in rows:
        yield (
            position,
            name,
            {
                "scored": scored_,
                "unscored": asked - scored_,
                "output_tokens": int(tokens),
                "seconds": seconds,
            },
        )


class Streamed(Iterator[Row]):
    """Rows of a statement, fetched in portions.

    `columns` are available even if there are no rows.
    """

    def __init__(self, result: CursorResult[Any]) -> None:
        self.columns = tuple(result.keys())
        self._rows = _dictionaries(result)

    def __next__(self) -> Row:
        return next(self._rows)

    def close(self) -> None:
        """Stop fetching."""
        self._rows.close()


def stream(session: Session, statement: Select[Any]) -> Streamed:
    """Run a statement and stream its rows."""
    streamed = statement.execution_options(yield_per=ROWS_AT_ONCE)
    return Streamed(session.connection().execute(streamed))


def _dictionaries(result: CursorResult[Any]) -> Generator[Row]:
    # Close the result even if the caller stops early; otherwise PostgreSQL keeps the cursor open.
    with result:
        for row in result.mappings():
            yield dict(row)
