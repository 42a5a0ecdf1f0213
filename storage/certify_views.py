"""What users ask of certificates: risks instead of scores. Rows as in `storage.views`."""

from collections.abc import Iterator

from sqlalchemy import select
from sqlalchemy.orm import Session

from storage import views
from storage.models import Candidate, Comparison, Example, Generation, Round
from storage.views import Row, stream


def leaderboard(session: Session, campaign_id: int) -> list[Row]:
    """One row per candidate, the least risk first; `best` is the cheapest that is certified.

    `estimate`, `lower` and `upper` are of the risk, the mean loss, in the latest decision.
    """
    rows = views.leaderboard(session, campaign_id)
    return sorted(rows, key=lambda row: (row["estimate"] is None, row["estimate"] or 0.0))


def comparisons(
    session: Session, campaign_id: int, *, candidate: str | None = None, limit: int | None = None
) -> Iterator[Row]:
    """Every pair of a candidate and a labelled example with its score and three losses, as planned."""
    rows = (
        select(
            Round.number.label("round"),
            Comparison.position,
            Candidate.name.label("candidate"),
            Example.key.label("example"),
            Comparison.outcome,
            Comparison.reason,
            Comparison.human_loss,
            Comparison.auto_loss,
            Comparison.unlabelled_loss,
            Comparison.detail,
            Comparison.answer,
            Comparison.judge,
            Generation.prompt,
            Generation.text,
        )
        .join(Round, Round.id == Comparison.round_id)
        .join(Candidate, Candidate.id == Comparison.candidate_a_id)
        .join(Example, Example.id == Comparison.example_id)
        .outerjoin(Generation, Generation.id == Comparison.generation_a_id)
        .where(Round.campaign_id == campaign_id)
        .order_by(Round.number, Comparison.position)
        .limit(limit)
    )
    return stream(session, rows if candidate is None else rows.where(Candidate.name == candidate))
