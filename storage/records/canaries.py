"""Canaries: outputs of served models for fixed prompts.

The module also finds a campaign's outputs between two canaries.
"""

import datetime as dt
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, fields
from functools import partial

from sqlalchemy import Select, Subquery, and_, distinct, func, or_, select, union
from sqlalchemy.orm import Session

from winnow.storage.engine.raw_sql import insert_row
from winnow.storage.models import (
    Campaign,
    Canary,
    Comparison,
    Generation,
    Judgment,
    Output,
    Pin,
    Round,
    table_of,
)
from winnow.storage.objectives import traits_of
from winnow.storage.records.record_types import CanaryRecord, NewCanary
from winnow.storage.records.row_counts import add_to_count

REFERENCES = ("first", "changed")
"""Verdicts of canaries that serve as references.
Later canaries are compared with them."""

_FIELDS = tuple(field.name for field in fields(NewCanary))


def last_reference(session: Session, model: str, *, before: int | None = None) -> CanaryRecord | None:
    """Reference for a model's next canary, or for the canary with the id `before`.

    None if no earlier reference exists.
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
    session: Session, canary_id: int, texts: Sequence[str | None], *, input_tokens: int, output_tokens: int
) -> None:
    """Add the outputs of the second sending to a canary.

    For a first canary, also count differences.
    """
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
    """Numbers of canary `prompts` that a campaign has sent.

    The result also has the numbers of `different` ones and of their `tokens`. If models were sent different
    numbers of prompts, `different` is the largest number.
    """
    asked = canaries(session, campaign_id)
    return {
        "prompts": sum(len(each.texts) + len(each.repeated) for each in asked),
        "different": max((len(each.texts) for each in asked), default=0),
        "tokens": sum(each.input_tokens + each.output_tokens for each in asked),
    }


def tokens_by_model(session: Session, campaign_id: int) -> dict[str, tuple[int, int]]:
    """Input and output canary tokens of each model of a campaign, by model name."""
    rows = session.execute(
        select(Canary.name, func.sum(Canary.input_tokens), func.sum(Canary.output_tokens))
        .where(Canary.campaign_id == campaign_id)
        .group_by(Canary.name)
    )
    return {name: (int(read), int(written)) for name, read, written in rows}


def epochs(session: Session, campaign_id: int) -> dict[str, tuple[int, int]]:
    """First and last epoch in which a campaign contacted each served model.

    Judges are included.
    """
    rows = session.execute(
        select(Canary.model, func.min(Canary.epoch), func.max(Canary.epoch))
        .where(Canary.campaign_id == campaign_id)
        .group_by(Canary.model)
    )
    return {model: (first, last) for model, first, last in rows}


def changes(session: Session, models: Sequence[str], *, since: int) -> list[CanaryRecord]:
    """Canaries of these models that found changed outputs, from the id `since` on."""
    rows = session.scalars(
        select(Canary)
        .where(Canary.model.in_(models), Canary.verdict == "changed", Canary.id >= since)
        .order_by(Canary.id)
    )
    return [canary_record(row) for row in rows]


def canary_record(row: Canary) -> CanaryRecord:
    """Convert a stored row to a record."""
    return CanaryRecord(**{field.name: getattr(row, field.name) for field in fields(CanaryRecord)})


def used_texts(session: Session, campaign_id: int) -> Subquery:
    """Query for the `id` of each output that a campaign used, each once.

    Used outputs are those of comparisons and judgments. For certify, they are all outputs that the campaign
    paid for or pinned.
    """
    objective = session.scalars(select(Campaign.objective).where(Campaign.id == campaign_id)).one()
    by_losses = traits_of(objective).measures_risk
    of_both = (
        (_paid_for, _taken_up)
        if by_losses
        else (_compared, partial(_behind, Output), partial(_behind, Judgment))
    )
    return union(*(texts(campaign_id) for texts in of_both)).subquery()


def canaries_behind(session: Session, campaign_id: int) -> list[CanaryRecord]:
    """Canary contacts during which a campaign's outputs were generated, in order.

    All outputs that the campaign used are covered.
    """
    used = used_texts(session, campaign_id)
    contacts = select(Generation.canary_id).join(used, used.c.id == Generation.id)
    rows = session.scalars(select(Canary).where(Canary.id.in_(contacts)).order_by(Canary.id))
    return [canary_record(row) for row in rows]


def texts_before(session: Session, campaign_id: int, name: str, change: CanaryRecord) -> int:
    """Number of outputs used by a campaign that a model generated before it changed.

    Outputs without a canary count too if a model of this name generated them before the change.
    """
    used = used_texts(session, campaign_id)
    query = (
        select(func.count(distinct(Generation.id)))
        .join(used, used.c.id == Generation.id)
        .outerjoin(Canary, Canary.id == Generation.canary_id)
        .where(
            or_(
                and_(Canary.model == change.model, Canary.epoch < change.epoch),
                and_(
                    Generation.canary_id.is_(None),
                    Generation.model == name,
                    Generation.created_at < change.created_at,
                ),
            )
        )
    )
    return session.scalar(query) or 0


def names_served(session: Session, campaign_id: int, model: str) -> dict[str, int]:
    """Number of used outputs of a served model by served name.

    Empty unless a server reported several names. Two servers can have different names for the same model:
    users declare that they serve the same one. Most models have one name in the whole database, which an
    index shows; the result is then empty without counting. `model` is a `Canary.model`: campaigns can use
    several names for it.
    """
    called = list(session.scalars(select(Canary.name).where(Canary.model == model).distinct()))
    if len({end for name in called for end in _ends(session, name)}) < 2:
        return {}
    used = used_texts(session, campaign_id)
    rows = session.execute(
        select(Canary.server, Generation.served_as, func.count(distinct(Generation.id)))
        .join(used, used.c.id == Generation.id)
        .outerjoin(Canary, Canary.id == Generation.canary_id)
        .where(
            Generation.served_as.is_not(None),
            or_(Canary.model == model, and_(Generation.canary_id.is_(None), Generation.model.in_(called))),
        )
        .group_by(Canary.server, Generation.served_as)
    )
    by_server: dict[str | None, dict[str, int]] = {}
    for server, name, n in rows:
        by_server.setdefault(server, {})[name] = n
    several = Counter[str]()
    for names in by_server.values():
        if len(names) > 1:
            several.update(names)
    return dict(sorted(several.items()))


def _ends(session: Session, name: str) -> set[str]:
    """First and last served name, alphabetically, of models with this name.

    The name is the one in campaigns.
    """
    told = Generation.model == name, Generation.served_as.is_not(None)
    # In separate queries, SQLite finds each end in the index; in one query it reads the whole index.
    ends = [select(end(Generation.served_as)).where(*told).scalar_subquery() for end in (func.min, func.max)]
    return {end for end in session.execute(select(*ends)).one() if end is not None}


def _paid_for(campaign_id: int) -> Select[tuple[int]]:
    return (
        select(Generation.id)
        .join(Round, Round.id == Generation.round_id)
        .where(Round.campaign_id == campaign_id)
    )


def _taken_up(campaign_id: int) -> Select[tuple[int]]:
    return (
        select(Pin.generation_id.label("id"))
        .join(Round, Round.id == Pin.round_id)
        .where(Round.campaign_id == campaign_id)
    )


def _compared(campaign_id: int) -> Select[tuple[int]]:
    return (
        select(Generation.id)
        .join(
            Comparison,
            or_(Comparison.generation_a_id == Generation.id, Comparison.generation_b_id == Generation.id),
        )
        .join(Round, Round.id == Comparison.round_id)
        .where(Round.campaign_id == campaign_id)
    )


def _behind(row: type[Output] | type[Judgment], campaign_id: int) -> Select[tuple[int]]:
    """Outputs that rows of a campaign's comparisons refer to.

    These rows are judgments and further outputs.
    """
    return (
        select(Generation.id)
        .join(row, row.generation_id == Generation.id)
        .join(Comparison, Comparison.id == row.comparison_id)
        .join(Round, Round.id == Comparison.round_id)
        .where(Round.campaign_id == campaign_id)
    )
