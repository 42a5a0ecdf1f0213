"""Views of certificates: risks instead of scores.

Rows are as in `storage.queries.campaign_views`.
"""

from collections.abc import Iterator

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from winnow.storage.json_types import Row
from winnow.storage.models import Comparison, Generation, Label, Prompt
from winnow.storage.queries import campaign_views
from winnow.storage.queries.costs import used_examples


def leaderboard(session: Session, campaign_id: int) -> list[Row]:
    """One row per candidate, lowest risk first.

    `best` marks the cheapest certified candidate. `estimate`, `lower` and `upper` are those of the risk, the
    mean loss, in the latest decision.
    """
    rows = campaign_views.leaderboard(session, campaign_id)
    return sorted(rows, key=lambda row: (row["estimate"] is None, row["estimate"] or 0.0))


def comparisons(
    session: Session, campaign_id: int, *, candidate: str | None = None, limit: int | None = None
) -> Iterator[Row]:
    """Yield all pairs of a candidate and a labelled example.

    Each has its score and losses. The order is that of the plan.
    """
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


def unanswerable(session: Session, campaign_id: int) -> int:
    """Number of used labels of a campaign that mark an example as unanswerable."""
    found = select(Label.targets).where(Label.example_id.in_(used_examples(campaign_id)))
    return sum(not targets for targets in session.scalars(found))


def with_reason(session: Session, campaign_id: int, reason: str) -> tuple[int, int]:
    """Number of a campaign's comparisons unscored for this reason.

    The second number is that of their examples.
    """
    found = used_examples(campaign_id).where(Comparison.reason == reason).subquery()
    counts = select(func.count(), func.count(found.c.example_id.distinct())).select_from(found)
    comparisons, examples = session.execute(counts).one()
    return comparisons, examples
