"""What a campaign was spared by others. Rows as in `storage.queries.campaign_views`."""

from sqlalchemy import (
    CompoundSelect,
    Integer,
    Select,
    String,
    and_,
    case,
    cast,
    func,
    null,
    select,
    union_all,
)
from sqlalchemy.orm import InstrumentedAttribute, Session, aliased

from winnow.storage.json_types import Row
from winnow.storage.models import Campaign, Candidate, Comparison, Generation, Judgment, Round

CANDIDATE, JUDGE = "candidate", "judge"


def reuse(session: Session, campaign_id: int) -> list[Row]:
    """Texts that other campaigns had made: one row per candidate or judge and campaign they were taken from.

    `taken_from` is None where that campaign was deleted. `generations`, tokens and `seconds` are what making
    them again would have cost. A text that several candidates share is counted for the first of them.
    Candidates come in order, then judges by name. Only texts behind stored comparisons and judgments are
    known; answers of an autoevaluator are not among them.
    """
    taken = _taken(campaign_id).subquery()
    owned = (
        select(
            taken.c.generation_id,
            func.min(taken.c.position).label("position"),
            # Of a text that a candidate was shown with, the candidate alone is told.
            case((func.min(taken.c.position).is_(None), func.min(taken.c.judge))).label("judge"),
        )
        .group_by(taken.c.generation_id)
        .subquery()
    )
    rows = session.execute(
        select(
            case((owned.c.position.is_(None), JUDGE), else_=CANDIDATE).label("role"),
            func.coalesce(Candidate.name, owned.c.judge).label("name"),
            Campaign.name.label("taken_from"),
            func.count(Generation.id).label("generations"),
            func.sum(Generation.input_tokens).label("input_tokens"),
            func.sum(Generation.output_tokens).label("output_tokens"),
            func.sum(Generation.seconds).label("seconds"),
        )
        .select_from(owned)
        .join(Generation, Generation.id == owned.c.generation_id)
        .outerjoin(Round, Round.id == Generation.round_id)
        .outerjoin(Campaign, Campaign.id == Round.campaign_id)
        .outerjoin(
            Candidate, and_(Candidate.campaign_id == campaign_id, Candidate.position == owned.c.position)
        )
        .group_by(owned.c.position, Candidate.name, owned.c.judge, Campaign.id, Campaign.name)
        .order_by(owned.c.position.nulls_last(), owned.c.judge, Campaign.id.nulls_last())
    )
    return [dict(row) for row in rows.mappings()]


def _taken(campaign_id: int) -> CompoundSelect[tuple[int, int, str]]:
    """Every use of a text that another campaign paid for, with the candidate's position or the judge."""
    return union_all(
        _shown(campaign_id, Comparison.generation_a_id, Comparison.candidate_a_id),
        _shown(campaign_id, Comparison.generation_b_id, Comparison.candidate_b_id),
        _replied(campaign_id),
    )


def _shown(
    campaign_id: int,
    generation_id: InstrumentedAttribute[int | None],
    candidate_id: InstrumentedAttribute[int] | InstrumentedAttribute[int | None],
) -> Select[tuple[int, int, str]]:
    paid = aliased(Round)
    return (
        select(Generation.id.label("generation_id"), Candidate.position, cast(null(), String).label("judge"))
        .select_from(Comparison)
        .join(Round, Round.id == Comparison.round_id)
        .join(Candidate, Candidate.id == candidate_id)
        .join(Generation, Generation.id == generation_id)
        .outerjoin(paid, paid.id == Generation.round_id)
        .where(Round.campaign_id == campaign_id, paid.campaign_id.is_distinct_from(campaign_id))
    )


def _replied(campaign_id: int) -> Select[tuple[int, int, str]]:
    paid = aliased(Round)
    return (
        select(Generation.id.label("generation_id"), cast(null(), Integer).label("position"), Judgment.judge)
        .select_from(Judgment)
        .join(Comparison, Comparison.id == Judgment.comparison_id)
        .join(Round, Round.id == Comparison.round_id)
        .join(Generation, Generation.id == Judgment.generation_id)
        .outerjoin(paid, paid.id == Generation.round_id)
        .where(Round.campaign_id == campaign_id, paid.campaign_id.is_distinct_from(campaign_id))
    )
