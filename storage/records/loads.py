"""Waits of a campaign for models to load, or to wake from sleep. Rows as in `campaign_views`."""

from collections.abc import Sequence
from dataclasses import fields
from operator import attrgetter

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from winnow.storage.columns import ByCodePoints
from winnow.storage.engine.raw_sql import insert_row
from winnow.storage.json_types import Row
from winnow.storage.models import ModelLoad, table_of
from winnow.storage.records.record_types import NewModelLoad
from winnow.storage.records.row_counts import add_to_count

_FIELDS = tuple(field.name for field in fields(NewModelLoad))
_fields = attrgetter(*_FIELDS)


def add_loads(session: Session, campaign_id: int, loads: Sequence[NewModelLoad]) -> None:
    """Store the model loads of a campaign."""
    connection, columns = session.connection(), ("campaign_id", *_FIELDS)
    rows = ((campaign_id, *_fields(load)) for load in loads)
    ids = [insert_row(connection, table_of(ModelLoad), columns, row) for row in rows]
    add_to_count(connection, "campaigns", campaign_id, "model_loads", ids)


def list_loads(session: Session, campaign_id: int, *, skip: int = 0) -> list[Row]:
    """Loads of a campaign except the first `skip`, in stored order."""
    rows = session.execute(
        select(ModelLoad.model, ModelLoad.devices, ModelLoad.kind, ModelLoad.seconds, ModelLoad.ended_at)
        .where(ModelLoad.campaign_id == campaign_id)
        .order_by(ModelLoad.id)
        .offset(skip)
    )
    return [dict(row) for row in rows.mappings()]


def loads_by_model(session: Session, campaign_id: int) -> dict[str, Row]:
    """Number and total seconds of loads and wakes of each model of a campaign, by name."""
    rows = session.execute(
        select(
            ModelLoad.model,
            func.count(ModelLoad.id).label("loads"),
            func.sum(ModelLoad.seconds).label("load_seconds"),
        )
        .where(ModelLoad.campaign_id == campaign_id)
        .group_by(ModelLoad.model)
        .order_by(ByCodePoints(ModelLoad.model))
    )
    return {model: {"loads": loads, "load_seconds": seconds} for model, loads, seconds in rows}


def load_totals(session: Session, campaign_id: int) -> Row:
    """Number and total seconds of the loads that a campaign has waited for."""
    loads, seconds = session.execute(
        select(func.count(ModelLoad.id), func.coalesce(func.sum(ModelLoad.seconds), 0.0)).where(
            ModelLoad.campaign_id == campaign_id
        )
    ).one()
    return {"loads": loads, "load_seconds": float(seconds)}
