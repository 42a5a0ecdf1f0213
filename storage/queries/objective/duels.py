"""Views of duels: win rates, and behaviour of the judges.

Rows are as in `campaign_views`.
"""

from collections import Counter
from collections.abc import Iterator

from sqlalchemy import ColumnElement, and_, case, func, or_, select
from sqlalchemy.orm import Session, aliased

from winnow.storage.columns import ByCodePoints
from winnow.storage.json_types import Row
from winnow.storage.models import Comparison, DuelStats, Example, Generation, Judgment, Prompt, Round
from winnow.storage.queries.campaign_views import stream
from winnow.storage.queries.comparison_joins import (
    EXAMPLE_TEXTS,
    PLACE,
    PROMPT_A,
    PROMPT_B,
    TEXT_A,
    TEXT_B,
    A,
    B,
    joined,
    side,
)
from winnow.storage.records.campaigns import candidate_names


def comparisons(
    session: Session, campaign_id: int, *, candidate: str | None = None, limit: int | None = None
) -> Iterator[Row]:
    """Yield all duels with outputs and outcome, in planned order.

    Outcome 1 means that the first candidate is preferred.
    """
    rows = (
        joined(
            select(
                *PLACE,
                Example.key.label("example"),
                *EXAMPLE_TEXTS,
                Comparison.outcome,
                Comparison.reason,
                Comparison.detail,
                Comparison.answer,
                Comparison.judge,
                PROMPT_A.text.label("prompt"),
                TEXT_A.text,
                TEXT_A.reasoning,
                PROMPT_B.text.label("prompt_b"),
                TEXT_B.text.label("text_b"),
                TEXT_B.reasoning.label("reasoning_b"),
                (TEXT_A.finish_reason == "length").label("truncated"),
                (TEXT_B.finish_reason == "length").label("truncated_b"),
            )
        )
        .where(Round.campaign_id == campaign_id)
        .order_by(Round.number, Comparison.position)
        .limit(limit)
    )
    if candidate is not None:
        rows = rows.where(or_(A.name == candidate, B.name == candidate))
    return stream(session, rows)


def head_to_head(session: Session, campaign_id: int) -> list[Row]:
    """One row per candidate and opponent with duels, by position.

    In `win_rate` a tie is half a win.
    """
    found: dict[tuple[int, int], dict[str, float]] = {}
    rows = session.execute(
        select(
            A.position,
            B.position,
            DuelStats.scored,
            DuelStats.outcome_sum,
            DuelStats.wins,
            DuelStats.losses,
            DuelStats.duels,
        )
        .join(A, A.id == DuelStats.candidate_a_id)
        .join(B, B.id == DuelStats.candidate_b_id)
        .where(A.campaign_id == campaign_id)
    )
    for a, b, scored, outcome_sum, wins, losses, duels in rows:
        forth, back = ((a, b), wins, losses, outcome_sum), ((b, a), losses, wins, scored - outcome_sum)
        for pair, won, lost, share in (forth, back):
            counts = found.setdefault(
                pair, dict.fromkeys(("duels", "scored", "wins", "losses", "outcome_sum"), 0)
            )
            for key, value in zip(counts, (duels, scored, won, lost, share), strict=True):
                counts[key] += value
    names = candidate_names(session, campaign_id)
    return [
        {
            "candidate": names[a],
            "opponent": names[b],
            "duels": counts["duels"],
            "wins": counts["wins"],
            "ties": counts["scored"] - counts["wins"] - counts["losses"],
            "losses": counts["losses"],
            "unscored": counts["duels"] - counts["scored"],
            "win_rate": counts["outcome_sum"] / counts["scored"] if counts["scored"] else None,
        }
        for (a, b), counts in sorted(found.items())
    ]


def shares_of(session: Session, campaign_id: int, candidate: str) -> dict[str, tuple[float, int]]:
    """Share of wins and number of scored duels of a candidate with each opponent."""
    rows = session.execute(
        select(A.name, B.name, DuelStats.outcome_sum, DuelStats.scored)
        .join(A, A.id == DuelStats.candidate_a_id)
        .join(B, B.id == DuelStats.candidate_b_id)
        .where(A.campaign_id == campaign_id, or_(A.name == candidate, B.name == candidate))
    )
    won: Counter[str] = Counter()
    scored: Counter[str] = Counter()
    for a, b, outcome_sum, n in rows:
        opponent = b if a == candidate else a
        won[opponent] += outcome_sum if a == candidate else n - outcome_sum
        scored[opponent] += n
    return {name: (won[name] / n, n) for name, n in scored.items() if n}


def judgments(session: Session, campaign_id: int) -> Iterator[Row]:
    """Yield all judge calls with replies, in order.

    `candidate_b` is None for single outputs. `metric` is the metric for which the call was made, None for the
    outcome.
    """
    reply = aliased(Generation)
    rows = (
        select(
            Round.number.label("round"),
            Comparison.position,
            A.name.label("candidate"),
            B.name.label("candidate_b"),
            Judgment.metric,
            Judgment.judge,
            Judgment.presentation_order,
            Judgment.repeat,
            Judgment.attempt,
            Judgment.verdict,
            Judgment.reason,
            reply.text.label("reply"),
            Prompt.text.label("prompt"),
        )
        .join(Comparison, Comparison.id == Judgment.comparison_id)
        .join(Round, Round.id == Comparison.round_id)
        .join(A, A.id == Comparison.candidate_a_id)
        .outerjoin(B, B.id == Comparison.candidate_b_id)
        .outerjoin(reply, reply.id == Judgment.generation_id)
        .outerjoin(Prompt, Prompt.id == reply.prompt_id)
        .where(Round.campaign_id == campaign_id)
        .order_by(Round.number, Comparison.position, Judgment.number)
    )
    return stream(session, rows)


def judges(session: Session, campaign_id: int) -> list[Row]:
    """Behaviour of each judge model: one row per judge, by name.

    `first_wins` is the mean preference for the output that was shown first, 1/2 without position bias.
    `flip_rate` is the share of questions answered in both orders whose two verdicts take different sides; a
    tie and a preference count as different. Both are null if the judge has no such verdicts.
    """
    found: dict[str, Row] = {}
    for row in verdicts(session, campaign_id):
        judge = found.setdefault(
            row["judge"], {"judge": row["judge"], "judgments": 0, "unread": 0, "first_wins": 0.0}
        )
        judge["judgments"] += row["judgments"]
        if row["verdict"] is None:
            judge["unread"] += row["judgments"]
        else:
            first = row["verdict"] if row["presentation_order"] == "original" else 1.0 - row["verdict"]
            judge["first_wins"] += row["judgments"] * first
    flips = _flips(session, campaign_id)
    for name, row in found.items():
        read = row["judgments"] - row["unread"]
        both, flipped = flips.get(name, (0, 0))
        row |= {
            "first_wins": row["first_wins"] / read if read else None,
            "both_orders": both,
            "flip_rate": flipped / both if both else None,
        }
    return list(found.values())


def verdicts(session: Session, campaign_id: int) -> list[Row]:
    """Counts of each verdict, by judge and presentation order.

    Missing verdicts are counted by reason.
    """
    rows = session.execute(
        select(
            Judgment.judge,
            Judgment.presentation_order,
            Judgment.verdict,
            Judgment.reason,
            func.count().label("judgments"),
        )
        .join(Comparison, Comparison.id == Judgment.comparison_id)
        .join(Round, Round.id == Comparison.round_id)
        .where(Round.campaign_id == campaign_id, Judgment.metric.is_(None))
        .group_by(Judgment.judge, Judgment.presentation_order, Judgment.verdict, Judgment.reason)
        .order_by(
            ByCodePoints(Judgment.judge),
            ByCodePoints(Judgment.presentation_order),
            ByCodePoints(Judgment.reason).nulls_first(),
            Judgment.verdict.desc().nulls_last(),
        )
    )
    return [dict(row) for row in rows.mappings()]


def unread(session: Session, campaign_id: int) -> list[Row]:
    """Reasons for unparsed verdicts, most frequent first.

    One row per judge and reason. A judge is counted separately for each metric, and for the outcome (`metric`
    is None). `judgments` counts calls, each attempt separately, and `share` is their share of the judge's
    calls.
    """
    rows = session.execute(
        select(Judgment.metric, Judgment.judge, Judgment.reason, func.count())
        .join(Comparison, Comparison.id == Judgment.comparison_id)
        .join(Round, Round.id == Comparison.round_id)
        .where(Round.campaign_id == campaign_id)
        .group_by(Judgment.metric, Judgment.judge, Judgment.reason)
    ).all()
    calls = Counter[tuple[str | None, str]]()
    for metric, judge, _, count in rows:
        calls[metric, judge] += count
    found = [
        {
            "metric": metric,
            "judge": judge,
            "reason": reason,
            "judgments": count,
            "share": count / calls[metric, judge],
        }
        for metric, judge, reason, count in rows
        if reason is not None
    ]
    return sorted(
        found, key=lambda row: (-row["judgments"], row["metric"] or "", row["judge"], row["reason"])
    )


def _flips(session: Session, campaign_id: int) -> dict[str, tuple[int, int]]:
    """Number of questions with verdicts in both orders, by judge.

    The second number is that of the questions with different sides. A tie in one order and a preference in
    the other count as different sides.
    """
    original, swapped = aliased(Judgment), aliased(Judgment)
    same_question = and_(
        swapped.comparison_id == original.comparison_id,
        swapped.judge == original.judge,
        swapped.repeat == original.repeat,
    )
    rows = session.execute(
        select(original.judge, func.count(), _count(side(original.verdict) != side(swapped.verdict)))
        .join(swapped, same_question)
        .join(Comparison, Comparison.id == original.comparison_id)
        .join(Round, Round.id == Comparison.round_id)
        .where(
            Round.campaign_id == campaign_id,
            original.metric.is_(None),
            swapped.metric.is_(None),
            original.presentation_order == "original",
            swapped.presentation_order == "swapped",
            original.verdict.is_not(None),
            swapped.verdict.is_not(None),
        )
        .group_by(original.judge)
    )
    return {judge: (both, flipped) for judge, both, flipped in rows}


def _count(condition: ColumnElement[bool]) -> ColumnElement[int]:
    return func.coalesce(func.sum(case((condition, 1), else_=0)), 0)
