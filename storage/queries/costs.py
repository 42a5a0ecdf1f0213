"""What a campaign paid for, and what others spared it. Rows as in `storage.queries.campaign_views`."""

from sqlalchemy import and_, func, select
from sqlalchemy.orm import Session

from winnow.storage.engine.database import once_a_look
from winnow.storage.json_types import Row
from winnow.storage.models import Campaign, Candidate, CostStats, Generation, ReuseStats, Round
from winnow.storage.records.loads import loads_by_model
from winnow.storage.records.rounds import is_untold

NO_TEXTS = {"generations": 0, "input_tokens": 0, "output_tokens": 0, "seconds": 0.0}
NO_LOADS = {"loads": 0, "load_seconds": 0.0}


@once_a_look
def costs(session: Session, campaign_id: int) -> list[Row]:
    """Texts that were made for this campaign, their tokens and the engines' seconds: candidates in order.

    A text that an earlier campaign had made cost nothing and is not counted; one that several candidates
    share is counted for the first of them in the round that paid for it, and the loads of a model stand in
    its first row. Rows without a candidate come last, one per model: replies of judges, answers of the
    autoevaluator and to unlabelled examples, and texts of rounds not yet finished. All rows add up to the
    totals of the campaign.
    """
    counted = session.execute(
        select(
            Candidate.name.label("candidate"),
            CostStats.model,
            *(func.sum(getattr(CostStats, name)).label(name) for name in NO_TEXTS),
        )
        .outerjoin(
            Candidate,
            (Candidate.campaign_id == CostStats.campaign_id)
            & (Candidate.name == CostStats.name)
            & (CostStats.role == "candidate"),
        )
        .where(CostStats.campaign_id == campaign_id)
        .group_by(Candidate.id, CostStats.model)
        .order_by(Candidate.position.is_(None), Candidate.position, CostStats.model)
    )
    rows = [_whole(dict(row)) for row in counted.mappings()]
    owned = [row for row in rows if row["candidate"] is not None]
    nobodys = {row["model"]: row for row in rows if row["candidate"] is None}
    for row in _unfinished(session, campaign_id):
        before = nobodys.get(row["model"], NO_TEXTS)
        nobodys[row["model"]] = row | {name: before[name] + row[name] for name in NO_TEXTS}
    return _with_loads(
        [*owned, *(nobodys[model] for model in sorted(nobodys))], loads_by_model(session, campaign_id)
    )


def _unfinished(session: Session, campaign_id: int) -> list[Row]:
    """What rounds paid for that are not yet told, by model."""
    rounds = select(Round.id).where(is_untold(campaign_id))
    found = session.execute(
        select(
            Generation.model,
            func.count(Generation.id).label("generations"),
            func.sum(Generation.input_tokens).label("input_tokens"),
            func.sum(Generation.output_tokens).label("output_tokens"),
            func.sum(Generation.seconds).label("seconds"),
        )
        .where(Generation.round_id.in_(rounds))
        .group_by(Generation.model)
    )
    return [_whole({"candidate": None, **row}) for row in found.mappings()]


def _whole(row: Row) -> Row:
    """With whole numbers where PostgreSQL's sums are of type Decimal."""
    return row | {name: int(row[name]) for name in NO_TEXTS if name != "seconds"}


def _with_loads(rows: list[Row], loads: dict[str, Row]) -> list[Row]:
    """The rows with the loads of each model in its first one, and a row for each model that has none."""
    asked = {row["model"] for row in rows}
    idle = [{"candidate": None, "model": model, **NO_TEXTS} for model in loads if model not in asked]
    left = dict(loads)
    return [{**row, **left.pop(row["model"], NO_LOADS)} for row in [*rows, *idle]]


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
