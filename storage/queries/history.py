"""Campaigns over time; rows are as in `storage.queries.campaign_views`."""

from sqlalchemy import Select, and_, func, select
from sqlalchemy.orm import Session

from winnow.storage.errors import SeriesNotFound
from winnow.storage.json_types import Row
from winnow.storage.models import Campaign, Candidate, Dataset, Decision, Round


def campaigns(session: Session) -> list[Row]:
    """All campaigns of the database with best candidate and progress, oldest first."""
    rows = session.execute(_standings())
    return [dict(row) for row in rows.mappings()]


def history(session: Session, campaign_id: int) -> list[Row]:
    """Campaigns with the dataset and objective of a given one, oldest first.

    The given campaign is included.
    """
    same = select(Campaign.dataset_id, Campaign.objective).where(Campaign.id == campaign_id).subquery()
    found = _standings().join(
        same, and_(Campaign.dataset_id == same.c.dataset_id, Campaign.objective == same.c.objective)
    )
    return [dict(row) for row in session.execute(found).mappings()]


def series(session: Session, name: str) -> list[Row]:
    """Campaigns of a schedule, oldest first.

    Raises:
        SeriesNotFound: If no series has this name; the error lists the existing names.
    """
    found = session.execute(_standings().where(Campaign.series == name))
    rows = [dict(row) for row in found.mappings()]
    if not rows:
        named = select(Campaign.series).where(Campaign.series.is_not(None)).distinct()
        raise SeriesNotFound(name, sorted(found for found in session.scalars(named) if found is not None))
    return rows


def _standings() -> Select[tuple[object, ...]]:
    finished = (
        select(
            Round.campaign_id,
            func.max(Round.number).label("last"),
            func.count(Decision.id).label("rounds"),
            func.sum(Decision.answered).label("comparisons"),
            func.sum(Decision.scored).label("scored"),
        )
        .join(Decision, Decision.round_id == Round.id)
        .group_by(Round.campaign_id)
        .subquery()
    )
    return (
        select(
            Campaign.name.label("campaign"),
            Campaign.objective,
            Dataset.name.label("dataset"),
            Campaign.created_at,
            Candidate.name.label("best"),
            Decision.best_estimate.label("estimate"),
            Decision.best_lower.label("lower"),
            Decision.best_upper.label("upper"),
            func.coalesce(finished.c.rounds, 0).label("rounds"),
            func.coalesce(finished.c.comparisons, 0).label("comparisons"),
            func.coalesce(finished.c.scored, 0).label("scored"),
            Decision.stop,
            Decision.reason,
        )
        .join(Dataset, Dataset.id == Campaign.dataset_id)
        .outerjoin(finished, finished.c.campaign_id == Campaign.id)
        .outerjoin(Round, and_(Round.campaign_id == Campaign.id, Round.number == finished.c.last))
        .outerjoin(Decision, Decision.round_id == Round.id)
        .outerjoin(Candidate, Candidate.id == Decision.best_candidate_id)
        .order_by(Campaign.created_at, Campaign.id)
    )
