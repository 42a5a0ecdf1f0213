"""How far judges agree with one another, and an autoevaluator with humans. Rows as in `campaign_views`."""

from collections import Counter

from sqlalchemy import and_, case, func, select
from sqlalchemy.orm import Session, aliased

from winnow.storage.json_types import Row
from winnow.storage.models import Annotation, AnnotationTask, Candidate, Comparison, Judgment, Round

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
        .where(Round.campaign_id == campaign_id, Judgment.metric.is_(None), Judgment.verdict.is_not(None))
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


def shared_sides(session: Session, campaign_id: int, other_id: int) -> Counter[Sides]:
    """How often two campaigns took which sides of the same texts.

    A side of a duel is who is preferred, and of a single text whether its score is above or below 1/2. Texts
    of two campaigns are the same where one of them took them over; a duel may stand the other way round.
    """
    one, other = aliased(Comparison), aliased(Comparison)
    one_round, other_round = aliased(Round), aliased(Round)
    straight = and_(
        other.generation_a_id == one.generation_a_id,
        func.coalesce(other.generation_b_id, 0) == func.coalesce(one.generation_b_id, 0),
    )
    turned = and_(
        other.generation_a_id == one.generation_b_id,
        other.generation_b_id == one.generation_a_id,
        one.generation_a_id != one.generation_b_id,
    )
    found = Counter[Sides]()
    for same, sign in ((straight, 1), (turned, -1)):
        sides = [
            case((each.outcome > 0.5, 1), (each.outcome < 0.5, -1), else_=0).label(name)
            for each, name in ((one, "side"), (other, "other_side"))
        ]
        rows = session.execute(
            select(*sides, func.count())
            .select_from(one)
            .join(one_round, one_round.id == one.round_id)
            .join(other, and_(other.example_id == one.example_id, same))
            .join(other_round, other_round.id == other.round_id)
            .where(
                one_round.campaign_id == campaign_id,
                other_round.campaign_id == other_id,
                one.outcome.is_not(None),
                other.outcome.is_not(None),
            )
            .group_by(*sides)
        )
        for side, other_side, count in rows:
            found[side, sign * other_side] += count
    return found


def annotators(session: Session, campaign_id: int) -> list[Row]:
    """What each person said who judged texts of a campaign: one row per name.

    `unclear` counts what they said cannot be judged, `mean` is the mean of the rest: of ratings their score,
    of two texts how far the first candidate is preferred.
    """
    rows = session.execute(
        select(
            Annotation.annotator,
            func.count().label("labels"),
            func.sum(case((Annotation.verdict.is_(None), 1), else_=0)).label("unclear"),
            func.avg(Annotation.verdict).label("mean"),
        )
        .join(AnnotationTask, AnnotationTask.id == Annotation.task_id)
        .join(Round, Round.id == AnnotationTask.round_id)
        .where(Round.campaign_id == campaign_id)
        .group_by(Annotation.annotator)
    )
    return sorted((dict(row) for row in rows.mappings()), key=lambda row: str(row["annotator"]))


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
