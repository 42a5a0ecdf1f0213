"""Every query of a running campaign. Frozen records come out, in a stated order."""

import datetime as dt
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from operator import attrgetter
from typing import Any

from sqlalchemy import Connection, func, insert, select
from sqlalchemy.orm import Session

from storage.bulk import insert_row, insert_rows
from storage.columns import storable
from storage.errors import CampaignNotFound
from storage.lookups import ids_with, rows_with
from storage.models import (
    Campaign,
    Candidate,
    Comparison,
    Dataset,
    Decision,
    Example,
    Game,
    Generation,
    Round,
    table_of,
)
from storage.prompts import digest_of, ensure_prompts
from storage.records import (
    CampaignRecord,
    DecisionRecord,
    NewCandidate,
    NewComparison,
    NewDecision,
    NewExample,
    NewGame,
    NewGeneration,
    RoundRecord,
    StoredText,
    ToldRound,
)
from storage.tallies import add_to_tallies, decide

ROWS_AT_ONCE = 10_000
"""Rows fetched together when a whole campaign is read."""

ROUNDS_AT_ONCE = 100
"""Rounds fetched together; each holds as many pairs as a batch."""

ROUND_COLUMNS = ("campaign_id", "number", "arms", "examples", "planned_at")
GENERATION_FIELDS = tuple(field.name for field in fields(NewGeneration) if field.name != "prompt")
COMPARISON_FIELDS = tuple(field.name for field in fields(NewComparison) if field.name != "games")
GAME_FIELDS = tuple(field.name for field in fields(NewGame))

_generation_fields = attrgetter(*GENERATION_FIELDS)
_comparison_fields = attrgetter(*COMPARISON_FIELDS)
_game_fields = attrgetter(*GAME_FIELDS)


def campaigns(session: Session) -> list[CampaignRecord]:
    """All campaigns, oldest first."""
    return [_campaign(row) for row in session.scalars(select(Campaign).order_by(Campaign.id))]


def find_campaign(session: Session, name: str) -> CampaignRecord | None:
    """The campaign of that name, if there is one."""
    row = session.scalar(select(Campaign).where(Campaign.name == name))
    return None if row is None else _campaign(row)


def get_campaign(session: Session, name: str) -> CampaignRecord:
    """The campaign of that name.

    Raises:
        CampaignNotFound: If there is none; the error lists those there are.
    """
    found = find_campaign(session, name)
    if found is None:
        raise CampaignNotFound(name, list(session.scalars(select(Campaign.name).order_by(Campaign.name))))
    return found


def ensure_dataset(
    session: Session,
    *,
    fingerprint: str,
    name: str,
    path: str,
    examples: Sequence[NewExample],
    now: dt.datetime,
) -> int:
    """The id of the dataset with this content, stored now unless it already was."""
    found = session.scalar(select(Dataset.id).where(Dataset.fingerprint == fingerprint))
    if found is not None:
        return found
    dataset = Dataset(fingerprint=fingerprint, name=name, path=path, n_examples=len(examples), created_at=now)
    session.add(dataset)
    session.flush()
    rows = [
        {
            "dataset_id": dataset.id,
            "position": position,
            "key": example.key,
            "fields": dict(example.fields),
            "targets": list(example.targets),
        }
        for position, example in enumerate(examples)
    ]
    session.execute(insert(Example), rows)
    return dataset.id


def add_campaign(
    session: Session,
    *,
    name: str,
    objective: str,
    dataset_id: int,
    seed: int,
    spec: Mapping[str, Any],
    execution: Mapping[str, Any],
    versions: Mapping[str, Any],
    candidates: Sequence[NewCandidate],
    now: dt.datetime,
    family: str | None = None,
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
        family=family,
        created_at=now,
    )
    session.add(row)
    session.flush()
    _add_candidates(session, row.id, candidates, start=0, first_round=0)
    return _campaign(row)


def grow_campaign(
    session: Session, campaign_id: int, *, spec: Mapping[str, Any], candidates: Sequence[NewCandidate]
) -> CampaignRecord:
    """Let more candidates take part from the next round on: the one way in which a definition changes."""
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


def set_execution(session: Session, campaign_id: int, execution: Mapping[str, Any]) -> CampaignRecord:
    """Replace what may change between runs of one campaign."""
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
    """A campaign's candidates as they were stored, by arm."""
    rows = session.scalars(
        select(Candidate).where(Candidate.campaign_id == campaign_id).order_by(Candidate.position)
    )
    return [
        NewCandidate(name=row.name, model=row.model, prompt=row.prompt, sampling=row.sampling) for row in rows
    ]


def first_rounds(session: Session, campaign_id: int) -> list[int]:
    """The round that each candidate first took part in, by arm."""
    return list(
        session.scalars(
            select(Candidate.first_round)
            .where(Candidate.campaign_id == campaign_id)
            .order_by(Candidate.position)
        )
    )


def example_ids(session: Session, dataset_id: int) -> list[int]:
    """Ids of a dataset's examples, by position."""
    return list(
        session.scalars(select(Example.id).where(Example.dataset_id == dataset_id).order_by(Example.position))
    )


def examples(session: Session, dataset_id: int) -> list[NewExample]:
    """The content of a dataset, by position."""
    rows = session.execute(
        select(Example.key, Example.fields, Example.targets)
        .where(Example.dataset_id == dataset_id)
        .order_by(Example.position)
    )
    return [NewExample(key=key, fields=fields, targets=targets) for key, fields, targets in rows]


def add_round(
    session: Session,
    campaign_id: int,
    *,
    number: int,
    arms: Sequence[Any],
    examples: Sequence[int],
    now: dt.datetime,
) -> RoundRecord:
    """Store the plan of a round."""
    values = (campaign_id, number, list(arms), list(examples), now)
    id_ = insert_row(session.connection(), table_of(Round), ROUND_COLUMNS, values)
    return RoundRecord(id=id_, number=number, arms=list(arms), examples=list(examples))


def unfinished_round(session: Session, campaign_id: int) -> RoundRecord | None:
    """The round that was planned and has no decision yet; there is at most one."""
    row = session.scalar(
        select(Round)
        .outerjoin(Decision, Decision.round_id == Round.id)
        .where(Round.campaign_id == campaign_id, Decision.id.is_(None))
        .order_by(Round.number)
    )
    return None if row is None else _round(row)


def next_round_number(session: Session, campaign_id: int) -> int:
    """The number of the round that comes after all planned ones; the first is 0."""
    last = session.scalar(select(func.max(Round.number)).where(Round.campaign_id == campaign_id))
    return 0 if last is None else last + 1


def told_rounds(session: Session, campaign_id: int) -> Iterator[ToldRound]:
    """All finished rounds with their outcomes, in order; a bounded number of rows in memory at a time."""
    finished = (
        select(Round.number, Round.arms, Round.examples)
        .join(Decision, Decision.round_id == Round.id)
        .where(Round.campaign_id == campaign_id)
        .order_by(Round.number)
    )
    scores = (
        select(Comparison.outcome, Comparison.human_loss, Comparison.auto_loss, Comparison.unlabelled_loss)
        .join(Round, Round.id == Comparison.round_id)
        .where(Round.campaign_id == campaign_id)
        .order_by(Round.number, Comparison.position)
    )
    connection = session.connection()  # beneath the ORM, which took most of the time of millions of rows
    with (
        connection.execute(finished.execution_options(yield_per=ROUNDS_AT_ONCE)) as rounds,
        connection.execute(scores.execution_options(yield_per=ROWS_AT_ONCE)) as told,
    ):
        for number, arms, examples in rounds:
            rows = told.fetchmany(len(examples))
            yield ToldRound(
                number=number,
                arms=arms,
                examples=examples,
                outcomes=[row[0] for row in rows],
                losses=[(row[1], row[2], row[3]) for row in rows],
            )


def texts_by_key(session: Session, keys: Sequence[str]) -> dict[str, StoredText]:
    """The stored generations among `keys`."""
    rows = rows_with(session.connection(), "key, id, text, choice_logprobs", "generations", "key", keys)
    return {
        # PostgreSQL's driver reads JSON, that of SQLite leaves it to us.
        key: StoredText(
            id=id_, text=text, choice_logprobs=json.loads(odds) if isinstance(odds, str) else odds
        )
        for key, id_, text, odds in rows
    }


def add_generations(
    session: Session, round_id: int, generations: Sequence[NewGeneration], now: dt.datetime
) -> dict[str, StoredText]:
    """Store texts; what is then stored under their keys.

    One that another campaign stored meanwhile stays as it is: its key determines it.
    """
    connection = session.connection()
    given = {generation.key: generation for generation in generations}
    known, new_ids = ids_with(connection, "generations", "key", given)
    new = [(id_, given[key]) for key, id_ in new_ids.items()]
    digests = [digest_of(row.prompt) for _, row in new]
    prompt_ids = ensure_prompts(connection, digests, (row.prompt for _, row in new))
    insert_rows(
        connection,
        table_of(Generation),
        ("id", "round_id", "created_at", "prompt_id", *GENERATION_FIELDS),
        (
            (id_, round_id, now, prompt_ids[digest], *_generation_fields(row))
            for digest, (id_, row) in zip(digests, new, strict=True)
        ),
    )
    stored = {
        row.key: StoredText(id=id_, text=storable(row.text), choice_logprobs=row.choice_logprobs)
        for id_, row in new
    }
    return stored | texts_by_key(session, list(known))


def add_outcomes(
    session: Session,
    round_id: int,
    comparisons: Sequence[NewComparison],
    decision: NewDecision,
    now: dt.datetime,
) -> None:
    """Store what a round found and what is decided from it; call it in one transaction."""
    connection = session.connection()
    rows = ((round_id, *_comparison_fields(row)) for row in comparisons)
    insert_rows(connection, table_of(Comparison), ("round_id", *COMPARISON_FIELDS), rows)
    _add_games(connection, round_id, comparisons)
    add_to_tallies(connection, round_id)
    decide(connection, round_id, comparisons, decision, now)


def latest_decision(session: Session, campaign_id: int) -> DecisionRecord | None:
    """What is believed now, or None before the first round is finished."""
    row = session.execute(
        select(Round.number, Candidate.name, Decision)
        .join(Decision, Decision.round_id == Round.id)
        .outerjoin(Candidate, Candidate.id == Decision.best_candidate_id)
        .where(Round.campaign_id == campaign_id)
        .order_by(Round.number.desc())
        .limit(1)
    ).first()
    if row is None:
        return None
    number, best, decision = row
    # Of candidates that joined after it, nothing was known.
    later = [None] * (len(candidate_ids(session, campaign_id)) - len(decision.estimates))
    return DecisionRecord(
        round_number=number,
        best=best,
        estimates=[*decision.estimates, *later],
        lower=[*decision.lower, *later],
        upper=[*decision.upper, *later],
        stop=decision.stop,
        reason=decision.reason,
        decided_at=decision.decided_at,
    )


def _add_candidates(
    session: Session, campaign_id: int, candidates: Sequence[NewCandidate], *, start: int, first_round: int
) -> None:
    rows = [
        {
            "campaign_id": campaign_id,
            "position": start + number,
            "first_round": first_round,
            **_columns(candidate),
        }
        for number, candidate in enumerate(candidates)
    ]
    session.execute(insert(Candidate), rows)


def _add_games(connection: Connection, round_id: int, comparisons: Sequence[NewComparison]) -> None:
    if not any(comparison.games for comparison in comparisons):
        return
    ids = {
        position: id_
        for position, id_ in connection.execute(
            select(Comparison.position, Comparison.id).where(Comparison.round_id == round_id)
        )
    }
    rows = (
        (ids[comparison.position], number, *_game_fields(game))
        for comparison in comparisons
        for number, game in enumerate(comparison.games)
    )
    insert_rows(connection, table_of(Game), ("comparison_id", "number", *GAME_FIELDS), rows)


def _columns(
    row: NewCandidate | NewDecision,
) -> dict[str, Any]:
    """The row's fields as they are; `dataclasses.asdict` would copy each, which took longer than SQL."""
    return {field.name: getattr(row, field.name) for field in fields(row)}


def _campaign(row: Campaign) -> CampaignRecord:
    return CampaignRecord(
        id=row.id,
        name=row.name,
        objective=row.objective,
        dataset_id=row.dataset_id,
        seed=row.seed,
        spec=row.spec,
        execution=row.execution,
        versions=row.versions,
        family=row.family,
        created_at=row.created_at,
    )


def _round(row: Round) -> RoundRecord:
    return RoundRecord(id=row.id, number=row.number, arms=row.arms, examples=row.examples)
