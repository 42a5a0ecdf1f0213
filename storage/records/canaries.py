"""Canaries: outputs of served models for the same prompts, contact by contact."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import asdict, fields

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from winnow.storage.engine.raw_sql import insert_row
from winnow.storage.models import Canary, table_of
from winnow.storage.records.record_types import CanaryRecord, NewCanary
from winnow.storage.records.row_counts import add_to_count

REFERENCES = ("first", "changed")
"""Verdicts of the canaries that later ones are compared with."""

_FIELDS = tuple(field.name for field in fields(NewCanary))


def last_reference(session: Session, model: str, *, before: int | None = None) -> CanaryRecord | None:
    """Reference for a model's next canary, or for the one with the id `before`.

    None if there is no earlier one.
    """
    query = select(Canary).where(Canary.model == model, Canary.verdict.in_(REFERENCES))
    if before is not None:
        query = query.where(Canary.id < before)
    row = session.scalar(query.order_by(Canary.id.desc()).limit(1))
    return None if row is None else canary_record(row)


def add_canary(session: Session, campaign_id: int, canary: NewCanary, now: dt.datetime) -> int:
    """Store a campaign's canary; return its id."""
    connection, columns = session.connection(), ("campaign_id", "created_at", *_FIELDS)
    id_ = insert_row(connection, table_of(Canary), columns, (campaign_id, now, *asdict(canary).values()))
    add_to_count(connection, "campaigns", campaign_id, "canaries", [id_])
    return id_


def repeat_canary(
    session: Session,
    canary_id: int,
    texts: Sequence[str | None],
    *,
    input_tokens: int,
    output_tokens: int,
) -> None:
    """Add the outputs of the second time to a canary; for a first canary, also count differences."""
    row = session.get_one(Canary, canary_id)
    row.repeated = list(texts)
    if row.verdict == "first":
        row.changed = sum(one != other for one, other in zip(row.texts, texts, strict=True))
    row.input_tokens += input_tokens
    row.output_tokens += output_tokens


def canaries(session: Session, campaign_id: int) -> list[CanaryRecord]:
    """Canaries of a campaign, in the order of their contacts."""
    rows = session.scalars(select(Canary).where(Canary.campaign_id == campaign_id).order_by(Canary.id))
    return [canary_record(row) for row in rows]


def spent(session: Session, campaign_id: int) -> dict[str, int]:
    """Numbers of canary `prompts` that a campaign has sent, of `different` ones, and of their `tokens`.

    If models were sent different numbers, `different` is the largest.
    """
    asked = canaries(session, campaign_id)
    return {
        "prompts": sum(len(each.texts) + len(each.repeated) for each in asked),
        "different": max((len(each.texts) for each in asked), default=0),
        "tokens": sum(each.input_tokens + each.output_tokens for each in asked),
    }


def tokens_by_model(session: Session, campaign_id: int) -> dict[str, tuple[int, int]]:
    """Canary tokens of each model of a campaign, input and output, by the model's name."""
    rows = session.execute(
        select(Canary.name, func.sum(Canary.input_tokens), func.sum(Canary.output_tokens))
        .where(Canary.campaign_id == campaign_id)
        .group_by(Canary.name)
    )
    return {name: (int(read), int(written)) for name, read, written in rows}


def epochs(session: Session, campaign_id: int) -> dict[str, tuple[int, int]]:
    """First and last epoch in which a campaign contacted each served model, including its judges."""
    rows = session.execute(
        select(Canary.model, func.min(Canary.epoch), func.max(Canary.epoch))
        .where(Canary.campaign_id == campaign_id)
        .group_by(Canary.model)
    )
    return {model: (first, last) for model, first, last in rows}


def changes(session: Session, models: Sequence[str], *, since: int) -> list[CanaryRecord]:
    """Canaries of models with changed outputs, from the id `since` on."""
    rows = session.scalars(
        select(Canary)
        .where(Canary.model.in_(models), Canary.verdict == "changed", Canary.id >= since)
        .order_by(Canary.id)
    )
    return [canary_record(row) for row in rows]


def canary_record(row: Canary) -> CanaryRecord:
    """Create the record of a row."""
    return CanaryRecord(**{field.name: getattr(row, field.name) for field in fields(CanaryRecord)})
