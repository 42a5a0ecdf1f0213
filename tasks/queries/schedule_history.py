"""The campaigns that one schedule begins: did the winner change, and how much was made anew each time."""

from sqlalchemy.orm import Session

from winnow.storage.queries import history as history_views
from winnow.storage.records import campaigns as campaign_records
from winnow.tasks.queries.status import campaign_status

COLUMNS = (
    "campaign",
    "created_at",
    "state",
    "outcome",
    "claim",
    "best",
    "estimate",
    "lower",
    "upper",
    "changed",
    "comparisons",
    "generated",
    "reused",
)


def family_rows(session: Session, family: str) -> list[dict[str, object]]:
    """One row per campaign of a family, oldest first.

    `changed` says whether the winner is another one than in the last campaign before it that had a winner,
    and is null where there is nothing to compare. `generated` counts the texts that were made anew, `reused`
    those that were taken from earlier campaigns.

    Raises:
        FamilyNotFound: If there is no such family; the error lists those there are.
    """
    rows = []
    for row in history_views.family(session, family):
        record = campaign_records.get_campaign(session, row["campaign"])
        generated, reused = history_views.texts(session, record.id)
        status = campaign_status(session, record)
        ended = {
            "state": status.state,
            "outcome": status.answer.outcome,
            "claim": status.answer.claim.kind,
        }
        standing = {**row, **ended, "generated": generated, "reused": reused}
        rows.append({name: standing[name] for name in COLUMNS})
    return rows
