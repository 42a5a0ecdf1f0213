"""Stored campaigns, their candidates, and their waits for models.

A campaign waits while a model is loaded or wakes from sleep.
"""

import datetime as dt
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from operator import attrgetter

from sqlalchemy import func, select
from sqlalchemy.exc import DBAPIError, InvalidRequestError
from sqlalchemy.orm import Session

from winnow.storage.columns import ByCodePoints
from winnow.storage.engine.raw_sql import insert_row, insert_rows
from winnow.storage.errors import CampaignNotFound, CampaignUnreadable
from winnow.storage.json_types import Row
from winnow.storage.models import Campaign, Candidate, ModelLoad, table_of
from winnow.storage.objectives import OBJECTIVES
from winnow.storage.records.record_types import CampaignRecord, NewCandidate, NewModelLoad
from winnow.storage.records.rounds import next_round_number
from winnow.storage.records.row_counts import add_to_count

CANDIDATE_FIELDS = tuple(field.name for field in fields(NewCandidate))
_candidate_fields = attrgetter(*CANDIDATE_FIELDS)


UNREADABLE = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    CampaignUnreadable,
    InvalidRequestError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)
"""Errors raised by code that reads stored values in an unexpected format."""


def campaigns(session: Session) -> list[CampaignRecord]:
    """All campaigns, oldest first.

    Raises:
        CampaignUnreadable: If a campaign cannot be read. For lists, use `readable_campaigns`.
    """
    found, wrong = readable_campaigns(session)
    if wrong:
        raise wrong[0]
    return found


def readable_campaigns(session: Session) -> tuple[list[CampaignRecord], list[CampaignUnreadable]]:
    """Campaigns that can be read, oldest first, and errors for the others.

    Each unreadable campaign has one error. For lists only; compute answers from `campaigns`, which raises the
    error.
    """
    try:
        return [_found(session, row) for row in session.scalars(select(Campaign).order_by(Campaign.id))], []
    except (*UNREADABLE, DBAPIError):
        session.expunge_all()
    found: list[CampaignRecord] = []
    wrong: list[CampaignUnreadable] = []
    for id_ in session.scalars(select(Campaign.id).order_by(Campaign.id)).all():
        try:
            found.append(_found(session, session.scalars(select(Campaign).where(Campaign.id == id_)).one()))
        except CampaignUnreadable as error:
            wrong.append(error)
        except (*UNREADABLE, DBAPIError) as error:
            wrong.append(
                CampaignUnreadable(id_, f"has values of an unexpected format ({type(error).__name__})")
            )
    return found, wrong


def find_campaign(session: Session, name: str) -> CampaignRecord | None:
    """The campaign of this name; None if it does not exist."""
    row = session.scalar(select(Campaign).where(Campaign.name == name))
    return None if row is None else _found(session, row)


def get_campaign(session: Session, name: str) -> CampaignRecord:
    """The campaign of this name.

    Raises:
        CampaignNotFound: If no campaign has this name; the error lists the existing names.
    """
    return _required(session, name, find_campaign(session, name))


def read_again(session: Session, campaign: CampaignRecord) -> CampaignRecord:
    """Reload a campaign's stored row.

    Raises:
        CampaignNotFound: If the campaign was deleted since; the error lists the existing names.
    """
    row = session.get(Campaign, campaign.id)
    return _required(session, campaign.name, None if row is None else _campaign(row))


def _required(session: Session, name: str, found: CampaignRecord | None) -> CampaignRecord:
    if found is None:
        raise CampaignNotFound(name, sorted(session.scalars(select(Campaign.name))))
    return found


def add_campaign(
    session: Session,
    *,
    name: str,
    objective: str,
    dataset_id: int,
    seed: int,
    spec: Mapping[str, object],
    execution: Mapping[str, object],
    versions: Mapping[str, object],
    candidates: Sequence[NewCandidate],
    now: dt.datetime,
    series: str | None = None,
) -> CampaignRecord:
    """Store a campaign with its candidates, in the order of their arms."""
    row = Campaign(
        name=name,
        objective=objective,
        dataset_id=dataset_id,
        seed=seed,
        spec=dict(spec),
        execution=dict(execution),
        versions=dict(versions),
        series=series,
        created_at=now,
    )
    session.add(row)
    session.flush()
    add_to_count(session.connection(), "datasets", dataset_id, "campaigns", [row.id])
    _add_candidates(session, row.id, candidates, start=0, first_round=0)
    return _campaign(row)


def grow_campaign(
    session: Session, campaign_id: int, *, spec: Mapping[str, object], candidates: Sequence[NewCandidate]
) -> CampaignRecord:
    """Add candidates from the next round on.

    This is the only possible change of a campaign's definition.
    """
    row = session.get_one(Campaign, campaign_id)
    row.spec = dict(spec)
    _add_candidates(
        session,
        campaign_id,
        candidates,
        start=len(candidate_ids(session, campaign_id)),
        first_round=next_round_number(session, campaign_id),
    )
    return _campaign(row)


def set_execution(session: Session, campaign_id: int, execution: Mapping[str, object]) -> CampaignRecord:
    """Replace the settings that can change between runs of a campaign."""
    row = session.get_one(Campaign, campaign_id)
    row.execution = dict(execution)
    return _campaign(row)


def candidate_ids(session: Session, campaign_id: int) -> list[int]:
    """Ids of a campaign's candidates, by arm."""
    return list(
        session.scalars(
            select(Candidate.id).where(Candidate.campaign_id == campaign_id).order_by(Candidate.position)
        )
    )


def candidate_names(session: Session, campaign_id: int) -> list[str]:
    """Names of a campaign's candidates, by arm."""
    return list(
        session.scalars(
            select(Candidate.name).where(Candidate.campaign_id == campaign_id).order_by(Candidate.position)
        )
    )


def candidates(session: Session, campaign_id: int) -> list[NewCandidate]:
    """A campaign's stored candidates, by arm."""
    rows = session.scalars(
        select(Candidate).where(Candidate.campaign_id == campaign_id).order_by(Candidate.position)
    )
    return [
        NewCandidate(name=row.name, model=row.model, prompt=row.prompt, sampling=row.sampling) for row in rows
    ]


def grown(session: Session) -> set[int]:
    """Ids of the campaigns to which candidates were added after they began."""
    return set(session.scalars(select(Candidate.campaign_id).where(Candidate.first_round > 0)))


def first_rounds(session: Session, campaign_id: int) -> list[int]:
    """First round of each candidate, by arm."""
    return list(
        session.scalars(
            select(Candidate.first_round)
            .where(Candidate.campaign_id == campaign_id)
            .order_by(Candidate.position)
        )
    )


def _add_candidates(
    session: Session, campaign_id: int, candidates: Sequence[NewCandidate], *, start: int, first_round: int
) -> None:
    rows = (
        (campaign_id, start + number, first_round, *_candidate_fields(candidate))
        for number, candidate in enumerate(candidates)
    )
    columns = ("campaign_id", "position", "first_round", *CANDIDATE_FIELDS)
    insert_rows(session.connection(), table_of(Candidate), columns, rows)
    ids = candidate_ids(session, campaign_id)[start:]
    add_to_count(session.connection(), "campaigns", campaign_id, "candidates", ids)


NOT_IN_NAMES = re.compile(r"[^\w./@:+=,%~ -]")
"""Matches a character that no name of a campaign, a model or a prompt can contain.
Names are shown unescaped in terminals, and in commands that users copy."""


def _require_own(row: Campaign) -> None:
    """Refuse a campaign that Winnow cannot have stored.

    The database may come from a third party.

    Raises:
        CampaignUnreadable: If a value is invalid; the message names it.
    """
    if not all(isinstance(each, dict) for each in (row.spec, row.execution, row.versions)):
        raise CampaignUnreadable(row.id, "has a definition that is not an object")
    if row.objective not in OBJECTIVES:
        raise CampaignUnreadable(row.id, f"has an unknown objective, {row.objective!a}")
    parts = (*row.spec.get("models", ()), *row.spec.get("prompts", ()))
    for name in (row.name, row.series or "", *(str(each["name"]) for each in parts)):
        if NOT_IN_NAMES.search(name):
            raise CampaignUnreadable(row.id, f"has a name that is not allowed in a file, {name!a}")


def _found(session: Session, row: Campaign) -> CampaignRecord:
    record = _campaign(row)
    for name in candidate_names(session, row.id):
        if not name.isprintable():
            raise CampaignUnreadable(row.id, f"has a candidate whose name cannot be printed, {name!a}")
    return record


def _campaign(row: Campaign) -> CampaignRecord:
    _require_own(row)
    return CampaignRecord(
        id=row.id,
        name=row.name,
        objective=row.objective,
        dataset_id=row.dataset_id,
        seed=row.seed,
        spec=row.spec,
        execution=row.execution,
        versions=row.versions,
        series=row.series,
        created_at=row.created_at,
    )


_FIELDS = tuple(field.name for field in fields(NewModelLoad))
_fields = attrgetter(*_FIELDS)


def add_loads(session: Session, campaign_id: int, loads: Sequence[NewModelLoad]) -> None:
    """Store the model loads of a campaign."""
    connection, columns = session.connection(), ("campaign_id", *_FIELDS)
    rows = ((campaign_id, *_fields(load)) for load in loads)
    ids = [insert_row(connection, table_of(ModelLoad), columns, row) for row in rows]
    add_to_count(connection, "campaigns", campaign_id, "model_loads", ids)


def list_loads(session: Session, campaign_id: int, *, skip: int = 0) -> list[Row]:
    """Loads of a campaign in stored order, without the first `skip`."""
    rows = session.execute(
        select(ModelLoad.model, ModelLoad.devices, ModelLoad.kind, ModelLoad.seconds, ModelLoad.ended_at)
        .where(ModelLoad.campaign_id == campaign_id)
        .order_by(ModelLoad.id)
        .offset(skip)
    )
    return [dict(row) for row in rows.mappings()]


def loads_by_model(session: Session, campaign_id: int) -> dict[str, Row]:
    """Number and total seconds of loads and wakes of each model, by name.

    The models are those of one campaign.
    """
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
