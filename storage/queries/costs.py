"""What a campaign paid for. Rows as in `storage.queries.campaign_views`."""

from sqlalchemy import func, select, union_all
from sqlalchemy.orm import Session

from winnow.storage.json_types import Row
from winnow.storage.models import Candidate, Comparison, Generation, Round
from winnow.storage.records.loads import loads_by_model

NO_TEXTS = {"generations": 0, "input_tokens": 0, "output_tokens": 0, "seconds": 0.0}
NO_LOADS = {"loads": 0, "load_seconds": 0.0}


def costs(session: Session, campaign_id: int) -> list[Row]:
    """Texts that were made for this campaign, their tokens and the engines' seconds: candidates in order.

    A text that an earlier campaign had made cost nothing and is not counted; one that several candidates
    share is counted for the first of them, and so are the loads of a model. Rows without a candidate come
    last, one per model: replies of judges, answers of the autoevaluator and to unlabelled examples, and texts
    of a round not yet finished. All rows add up to the totals of the campaign.
    """
    sides = (
        select(side.label("generation_id"), candidate.label("candidate_id"))
        .join(Round, Round.id == Comparison.round_id)
        .where(Round.campaign_id == campaign_id)
        for side, candidate in (
            (Comparison.generation_a_id, Comparison.candidate_a_id),
            (Comparison.generation_b_id, Comparison.candidate_b_id),
        )
    )
    shown = union_all(*sides).subquery()
    owners = (
        select(shown.c.generation_id, func.min(shown.c.candidate_id).label("candidate_id"))
        .where(shown.c.generation_id.is_not(None))
        .group_by(shown.c.generation_id)
        .subquery()
    )
    rows = session.execute(
        select(
            Candidate.name.label("candidate"),
            Generation.model,
            func.count(Generation.id).label("generations"),
            func.sum(Generation.input_tokens).label("input_tokens"),
            func.sum(Generation.output_tokens).label("output_tokens"),
            func.sum(Generation.seconds).label("seconds"),
        )
        .join(Round, Round.id == Generation.round_id)
        .outerjoin(owners, owners.c.generation_id == Generation.id)
        .outerjoin(Candidate, Candidate.id == owners.c.candidate_id)
        .where(Round.campaign_id == campaign_id)
        .group_by(Candidate.id, Generation.model)
        .order_by(Candidate.position.is_(None), Candidate.position, Generation.model)
    )
    return _with_loads([dict(row) for row in rows.mappings()], loads_by_model(session, campaign_id))


def _with_loads(rows: list[Row], loads: dict[str, Row]) -> list[Row]:
    """The rows with the loads of each model in its first one, and a row for each model that has none."""
    asked = {row["model"] for row in rows}
    idle = [{"candidate": None, "model": model, **NO_TEXTS} for model in loads if model not in asked]
    left = dict(loads)
    return [{**row, **left.pop(row["model"], NO_LOADS)} for row in [*rows, *idle]]
