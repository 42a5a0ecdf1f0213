"""How far judges agree with one another, and an autoevaluator with humans. Rows as in `campaign_views`."""

from collections import Counter

from sqlalchemy import and_, case, func, select
from sqlalchemy.orm import Session

from winnow.storage.json_types import Row
from winnow.storage.models import Candidate, Comparison, Judgment, Round

Sides = tuple[int, int]
"""Whom each of two judges prefers: 1 the first candidate, -1 the second, 0 neither."""


def judge_sides(session: Session, campaign_id: int) -> dict[tuple[str, str], Counter[Sides]]:
    """By two judges, in order of their names: how often they took which sides of the same duel.

    A judge's side of a duel is that of the mean of its verdicts on it, whatever the order of the answers.
    """
    opinions = (
        select(Judgment.comparison_id, Judgment.judge, func.avg(Judgment.verdict).label("verdict"))
        .join(Comparison, Comparison.id == Judgment.comparison_id)
        .join(Round, Round.id == Comparison.round_id)
        .where(Round.campaign_id == campaign_id, Judgment.verdict.is_not(None))
        .group_by(Judgment.comparison_id, Judgment.judge)
        .cte("opinions")
    )
    one, other = opinions.alias("one"), opinions.alias("other")
    sides = [
        case((each.c.verdict > 0.5, 1), (each.c.verdict < 0.5, -1), else_=0).label(name)
        for each, name in ((one, "side"), (other, "other_side"))
    ]
    rows = session.execute(
        select(one.c.judge, other.c.judge, *sides, func.count())
        .join(other, and_(one.c.comparison_id == other.c.comparison_id, one.c.judge < other.c.judge))
        .group_by(one.c.judge, other.c.judge, *sides)
    )
    found: dict[tuple[str, str], Counter[Sides]] = {}
    for a, b, side_a, side_b, count in rows:
        # Databases order texts in different ways; Python's is the same everywhere.
        (first, side), (second, other_side) = sorted([(a, side_a), (b, side_b)])
        found.setdefault((first, second), Counter())[side, other_side] += count
    return dict(sorted(found.items()))


def human_agreement(session: Session, campaign_id: int) -> list[Row]:
    """How far the autoevaluator agrees with the humans' labels: one row per candidate, in testing order.

    `labels` counts the examples with a loss from both, `same` those where the two are equal; `human_loss` and
    `auto_loss` are the means over them.
    """
    equal = case((Comparison.human_loss == Comparison.auto_loss, 1), else_=0)
    rows = session.execute(
        select(
            Candidate.name.label("candidate"),
            func.count(Comparison.id).label("labels"),
            func.sum(equal).label("same"),
            func.avg(Comparison.human_loss).label("human_loss"),
            func.avg(Comparison.auto_loss).label("auto_loss"),
        )
        .join(Comparison, Comparison.candidate_a_id == Candidate.id)
        .where(
            Candidate.campaign_id == campaign_id,
            Comparison.candidate_b_id.is_(None),
            Comparison.human_loss.is_not(None),
            Comparison.auto_loss.is_not(None),
        )
        .group_by(Candidate.id, Candidate.name, Candidate.position)
        .order_by(Candidate.position)
    )
    return [{**row, "agreement": row["same"] / row["labels"]} for row in rows.mappings()]
