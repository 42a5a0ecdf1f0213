"""What a campaign was spared by others. Rows as in `storage.queries.campaign_views`."""

from sqlalchemy import and_, func, select
from sqlalchemy.orm import Session

from winnow.storage.json_types import Row
from winnow.storage.models import Campaign, Candidate, ReuseStats

SUMS = ("generations", "input_tokens", "output_tokens", "seconds")


def reuse(session: Session, campaign_id: int) -> list[Row]:
    """Texts that other campaigns had made: one row per candidate or judge and campaign they were taken from.

    `taken_from` is None where that campaign was deleted. `generations`, tokens and `seconds` are what making
    them again would have cost. A text that several candidates share is counted for the first of them in the
    first round that used it. Candidates come in order, then judges by name. Only texts behind stored
    comparisons and judgments are known; answers of an autoevaluator are not among them.
    """
    is_owner = and_(
        Candidate.campaign_id == ReuseStats.campaign_id,
        Candidate.name == ReuseStats.name,
        ReuseStats.role == "candidate",
    )
    rows = session.execute(
        select(
            ReuseStats.role,
            ReuseStats.name,
            Campaign.name.label("taken_from"),
            *(func.sum(getattr(ReuseStats, name)).label(name) for name in SUMS),
        )
        .outerjoin(Candidate, is_owner)
        .outerjoin(Campaign, Campaign.id == ReuseStats.taken_from_id)
        .where(ReuseStats.campaign_id == campaign_id)
        .group_by(ReuseStats.role, ReuseStats.name, Candidate.position, Campaign.id, Campaign.name)
        .order_by(Candidate.position.nulls_last(), ReuseStats.name, Campaign.id.nulls_last())
    )
    # PostgreSQL's sums of whole numbers are of type Decimal.
    return [row | {name: int(row[name]) for name in SUMS[:3]} for row in map(dict, rows.mappings())]
