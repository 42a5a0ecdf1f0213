"""How long a campaign waited for models to load, or to wake where they slept. Rows as in `campaign_views`."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import func, insert, select
from sqlalchemy.orm import Session

from winnow.storage.models import Load
from winnow.storage.records.values import NewLoad

Row = dict[str, Any]


def add_loads(session: Session, campaign_id: int, loads: Sequence[NewLoad]) -> None:
    """Store what was loaded for a campaign."""
    if loads:
        rows = [{"campaign_id": campaign_id, **asdict(load), "devices": list(load.devices)} for load in loads]
        session.execute(insert(Load), rows)


def list_loads(session: Session, campaign_id: int, *, skip: int = 0) -> list[Row]:
    """The loads of a campaign but for the first `skip`, in the order in which they were stored."""
    rows = session.execute(
        select(Load.model, Load.devices, Load.kind, Load.seconds, Load.ended_at)
        .where(Load.campaign_id == campaign_id)
        .order_by(Load.id)
        .offset(skip)
    )
    return [dict(row) for row in rows.mappings()]


def loads_by_model(session: Session, campaign_id: int) -> dict[str, Row]:
    """How often each model of a campaign was loaded or woken, and the seconds that took in all, by name."""
    rows = session.execute(
        select(Load.model, func.count(Load.id).label("loads"), func.sum(Load.seconds).label("load_seconds"))
        .where(Load.campaign_id == campaign_id)
        .group_by(Load.model)
        .order_by(Load.model)
    )
    return {model: {"loads": loads, "load_seconds": seconds} for model, loads, seconds in rows}


def load_totals(session: Session, campaign_id: int) -> Row:
    """How many loads a campaign has waited for, and the seconds that took in all."""
    loads, seconds = session.execute(
        select(func.count(Load.id), func.coalesce(func.sum(Load.seconds), 0.0)).where(
            Load.campaign_id == campaign_id
        )
    ).one()
    return {"loads": loads, "load_seconds": float(seconds)}
