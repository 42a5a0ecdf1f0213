"""Agreement among judges, and of an autoevaluator with annotators.

Rows are as in `campaign_views`.
"""

from collections import Counter
from collections.abc import Sequence

from sqlalchemy import CTE, ColumnElement, CompoundSelect, Select, and_, case, exists, func, select
from sqlalchemy.orm import Session

from winnow.storage.json_types import Row
from winnow.storage.models import Annotation, AnnotationTask, Candidate, Comparison, Judgment, Output, Round
from winnow.storage.queries.comparison_joins import side as side_of
from winnow.storage.records.notes import is_note

Sides = tuple[int, int]
"""Sides that two judges prefer.
1 for the first candidate, -1 for the second, 0 for neither."""


def judge_sides(session: Session, campaign_id: int) -> dict[tuple[str, str], Counter[Sides]]:
    """Counts of the sides that two judges took on the same duels.

    The keys are the judges' names in order. A judge's side of a duel is that of the mean of its verdicts on
    the duel, in both presentation orders.
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
    sides = [side_of(each.c.verdict).label(name) for each, name in ((one, "side"), (other, "other_side"))]
    rows = session.execute(
        select(one.c.judge, other.c.judge, *sides, func.count())
        .join(other, and_(one.c.comparison_id == other.c.comparison_id, one.c.judge < other.c.judge))
        .group_by(one.c.judge, other.c.judge, *sides)
    )
    found: dict[tuple[str, str], Counter[Sides]] = {}
    for a, b, side_a, side_b, count in rows:
        # Databases order text differently; Python's order is the same everywhere.
        (first, side), (second, other_side) = sorted([(a, side_a), (b, side_b)])
        found.setdefault((first, second), Counter())[side, other_side] += count
    return dict(sorted(found.items()))


def without_opinion(session: Session, campaign_id: int) -> dict[str, int]:
    """Number of scored comparisons without a judge's parsed verdict, by judge.

    A comparison counts for the judges that were called for it and gave no parsed verdict.
    """
    silent = (
        select(Judgment.judge)
        .join(Comparison, Comparison.id == Judgment.comparison_id)
        .join(Round, Round.id == Comparison.round_id)
        .where(Round.campaign_id == campaign_id, Judgment.metric.is_(None), Comparison.outcome.is_not(None))
        .group_by(Judgment.comparison_id, Judgment.judge)
        .having(func.max(Judgment.verdict).is_(None))
        .subquery()
    )
    counted = session.execute(select(silent.c.judge, func.count()).group_by(silent.c.judge))
    return dict(sorted((judge, count) for judge, count in counted))


def shared_sides(session: Session, campaign_id: int, other_id: int) -> Counter[Sides]:
    """Counts of the sides that two campaigns took on the same outputs.

    The side of a duel is the preferred candidate. The side of a single output is whether its own score is
    above or below 1/2, also if several outputs form the score of an example. Outputs of two campaigns are the
    same if one of them reused them; a duel can have the opposite order.
    """
    found = Counter[Sides]()
    one, other = (_duels(each).cte() for each in (campaign_id, other_id))
    straight = and_(other.c.first == one.c.first, other.c.second == one.c.second)
    turned = and_(other.c.first == one.c.second, other.c.second == one.c.first, one.c.first != one.c.second)
    for same, sign in ((straight, 1), (turned, -1)):
        for side, other_side, count in _counted(session, one, other, same):
            found[side, sign * other_side] += count
    one, other = (_single_texts(each).cte() for each in (campaign_id, other_id))
    for side, other_side, count in _counted(session, one, other, other.c.first == one.c.first):
        found[side, other_side] += count
    return found


def _duels(campaign_id: int) -> Select[tuple[int, int | None, int | None, float | None]]:
    """Example, outputs and outcome of the scored duels of a campaign."""
    return (
        select(
            Comparison.example_id,
            Comparison.generation_a_id.label("first"),
            Comparison.generation_b_id.label("second"),
            Comparison.outcome,
        )
        .join(Round, Round.id == Comparison.round_id)
        .where(
            Round.campaign_id == campaign_id,
            Comparison.outcome.is_not(None),
            Comparison.candidate_b_id.is_not(None),
        )
    )


def _single_texts(campaign_id: int) -> CompoundSelect[tuple[int, int | None, float | None]]:
    """Example, output and score of each individually scored output of a campaign."""
    is_single = and_(Round.campaign_id == campaign_id, Comparison.candidate_b_id.is_(None))
    alone = (
        select(Comparison.example_id, Comparison.generation_a_id.label("first"), Comparison.outcome)
        .join(Round, Round.id == Comparison.round_id)
        .where(
            is_single,
            Comparison.outcome.is_not(None),
            ~exists().where(Output.comparison_id == Comparison.id).correlate(Comparison),
        )
    )
    of_several = (
        select(Comparison.example_id, Output.generation_id, Output.score)
        .join(Round, Round.id == Comparison.round_id)
        .join(Output, Output.comparison_id == Comparison.id)
        .where(is_single, Output.score.is_not(None))
    )
    return alone.union_all(of_several)


def _counted(
    session: Session, one: CTE, other: CTE, same: ColumnElement[bool]
) -> Sequence[tuple[int, int, int]]:
    """Counts of the sides of two campaigns on the same outputs."""
    sides = [side_of(each.c.outcome).label(name) for each, name in ((one, "side"), (other, "other_side"))]
    joined = select(*sides, func.count()).join(other, and_(other.c.example_id == one.c.example_id, same))
    return session.execute(joined.select_from(one).group_by(*sides)).tuples().all()


def annotators(session: Session, campaign_id: int) -> list[Row]:
    """Annotators of a campaign's outputs, with counts and means: one row per name.

    `unclear` counts the tasks marked as impossible to judge. `mean` is the mean of the other answers: the
    score for ratings, the preference for the first candidate for pairs.
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
        .where(Round.campaign_id == campaign_id, ~is_note())
        .group_by(Annotation.annotator)
    )
    return sorted((dict(row) for row in rows.mappings()), key=lambda row: str(row["annotator"]))


def human_agreement(session: Session, campaign_id: int) -> list[Row]:
    """Agreement of the autoevaluator with the human labels.

    One row per candidate, in testing order. `labels` counts the examples with a loss from both, `same` those
    with equal losses. `human_loss` and `auto_loss` are the means over the examples with both losses.
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
