"""Views of certificates: risks instead of scores. Rows as in `storage.queries.campaign_views`."""

from collections.abc import Iterator

from sqlalchemy.orm import Session

from winnow.storage.json_types import Row
from winnow.storage.models import Comparison, Generation, Prompt
from winnow.storage.queries import campaign_views


def leaderboard(session: Session, campaign_id: int) -> list[Row]:
    """One row per candidate, lowest risk first; `best` is the cheapest certified one.

    `estimate`, `lower` and `upper` are those of the risk, the mean loss, in the latest decision.
    """
    rows = campaign_views.leaderboard(session, campaign_id)
    return sorted(rows, key=lambda row: (row["estimate"] is None, row["estimate"] or 0.0))


def comparisons(
    session: Session, campaign_id: int, *, candidate: str | None = None, limit: int | None = None
) -> Iterator[Row]:
    """Yield all pairs of a candidate and a labelled example with score and losses, in planned order."""
    columns = (
        Comparison.outcome,
        Comparison.reason,
        Comparison.human_loss,
        Comparison.auto_loss,
        Comparison.unlabelled_loss,
        Comparison.unlabelled_missing,
        Comparison.detail,
        Comparison.answer,
        Comparison.no_answer,
        campaign_views.TRUNCATED,
        Comparison.judge,
        Prompt.text.label("prompt"),
        Generation.text,
    )
    return campaign_views.scored_pairs(session, campaign_id, columns, candidate=candidate, limit=limit)
