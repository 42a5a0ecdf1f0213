"""Model outputs by key, their prompts, and the pins of rounds on them.

The module also stores embeddings, once for all campaigns with the same embedder.
"""

import datetime as dt
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from hashlib import sha256
from operator import attrgetter
from typing import Any

from sqlalchemy import Connection, or_, select, update
from sqlalchemy.orm import Session

from winnow.storage.engine.database import once_a_look
from winnow.storage.engine.raw_sql import (
    PARAMETERS_AT_ONCE,
    ids_with,
    in_portions,
    insert_rows,
    rows_with,
    run,
)
from winnow.storage.errors import TextsLost
from winnow.storage.models import Embedding, Generation, Prompt, Round, table_of
from winnow.storage.records.record_types import NewGeneration, StoredText
from winnow.storage.records.row_counts import add_to_count
from winnow.storage.text import storable


def digest_of(text: str) -> str:
    """SHA-256 of a text in its stored form, hexadecimal."""
    return sha256(storable(text).encode()).hexdigest()


def ensure_prompts(connection: Connection, digests: Iterable[str], texts: Iterable[str]) -> dict[str, int]:
    """Ids of prompts by digest; stores new prompts.

    The connection has the write lock, so no other process can store one of them meanwhile.
    """
    wanted = dict(zip(digests, texts, strict=True))
    found, new = ids_with(connection, "prompts", "digest", wanted)
    if new:
        rows = ((id_, digest, wanted[digest]) for digest, id_ in new.items())
        insert_rows(connection, table_of(Prompt), ("id", "digest", "text"), rows)
    return found | new


GENERATION_FIELDS = tuple(field.name for field in fields(NewGeneration) if field.name != "prompt")

_generation_fields = attrgetter(*GENERATION_FIELDS)


def texts_by_key(session: Session, keys: Sequence[str]) -> dict[str, StoredText]:
    """The stored generations among `keys`."""
    columns = "key, id, text, finish_reason, input_tokens, output_tokens, choice_logprobs, token_logprobs"
    rows = rows_with(session.connection(), f"{columns}, reasoning", "generations", "key", keys)
    return {
        key: StoredText(
            id=id_,
            text=text,
            finish_reason=finish_reason,
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            choice_logprobs=_read(odds),
            token_logprobs=_read(each),
            reasoning=reasoning,
        )
        for key, id_, text, finish_reason, input_tokens, output_tokens, odds, each, reasoning in rows
    }


def _read(value: Any) -> Any:  # noqa: ANN401 -- a JSON value
    """Parse JSON if the driver has not.

    PostgreSQL's driver parses JSON; SQLite's does not.
    """
    return json.loads(value) if isinstance(value, str) else value


def own_or_since(
    session: Session, keys: Sequence[str], *, campaign_id: int, since: dt.datetime | None
) -> set[str]:
    """Stored keys, among `keys`, that a campaign paid for or that are recent.

    Recent means stored since `since`; if `since` is None, no key is recent.
    """
    counts = Round.campaign_id == campaign_id
    if since is not None:
        counts = or_(counts, Generation.created_at >= since)
    query = select(Generation.key).outerjoin(Round, Round.id == Generation.round_id).where(counts)
    return {
        key
        for some in in_portions(keys, PARAMETERS_AT_ONCE)
        for key in session.scalars(query.where(Generation.key.in_(some)))
    }


def rounds_since(session: Session, keys: Sequence[str], *, campaign_id: int, number: int) -> dict[str, int]:
    """Round number by key, for keys that a campaign paid for recently.

    The keys are those paid for in round `number` or later.
    """
    query = (
        select(Generation.key, Round.number)
        .join(Round, Round.id == Generation.round_id)
        .where(Round.campaign_id == campaign_id, Round.number >= number)
    )
    return {
        key: made_in
        for some in in_portions(keys, PARAMETERS_AT_ONCE)
        for key, made_in in session.execute(query.where(Generation.key.in_(some)))
    }


def has_texts(session: Session, campaign_id: int, model: str) -> bool:
    """Whether a campaign paid for an output of the model of this name."""
    query = (
        select(Generation.id)
        .join(Round, Round.id == Generation.round_id)
        .where(Round.campaign_id == campaign_id, Generation.model == model)
    )
    return session.scalar(query.limit(1)) is not None


def charge(session: Session, round_id: int, ids: Sequence[int]) -> None:
    """Charge a round for those of its outputs that later rounds have paid for.

    If rounds in flight use the same output, the one with the faster engine stores it. The output counts for
    the first of these rounds that is observed, so that the spending up to then is the same in every process.
    """
    own = select(Round.campaign_id, Round.number).where(Round.id == round_id).subquery()
    later = select(Round.id).where(Round.campaign_id == own.c.campaign_id, Round.number > own.c.number)
    connection = session.connection()
    for some in in_portions(ids, PARAMETERS_AT_ONCE):
        paid = Generation.id.in_(some) & Generation.round_id.in_(later)
        moved = session.execute(select(Generation.round_id, Generation.id).where(paid)).tuples().all()
        if not moved:
            continue
        session.execute(update(Generation).where(paid).values(round_id=round_id))
        for payer, id_ in moved:
            assert payer is not None
            add_to_count(connection, "rounds", payer, "generations", [id_], gone=True)
        add_to_count(connection, "rounds", round_id, "generations", [id_ for _, id_ in moved])


@once_a_look
def engines_of(session: Session, campaign_id: int, models: tuple[str, ...]) -> dict[str, list[str]]:
    """Engines of a campaign's first and last paid output, by model.

    The last engine is given only if it differs. Models without outputs are omitted.
    """
    query = (
        select(Generation.engine)
        .join(Round, Round.id == Generation.round_id)
        .where(Round.campaign_id == campaign_id)
        .limit(1)
    )
    ends = (query.order_by(Round.number), query.order_by(Round.number.desc()))
    found = {
        model: dict.fromkeys(session.scalar(each.where(Generation.model == model)) for each in ends)
        for model in models
    }
    return {model: told for model, engines in found.items() if (told := [each for each in engines if each])}


def take_texts(session: Session, round_id: int, keys: Sequence[str]) -> dict[str, StoredText]:
    """Read the stored generations among `keys`.

    The function protects them from deletion while the round exists.
    """
    found = texts_by_key(session, keys)
    pin(session.connection(), round_id, (text.id for text in found.values()))
    return found


def require_texts(session: Session, keys: Mapping[int, str]) -> None:
    """Raise unless the outputs that were read are still stored under their ids.

    `session` writes rows that refer to these ids; `keys` has the key that each id had when it was read.

    Raises:
        TextsLost: If an id has another key now, or no longer exists.
    """
    rows = rows_with(session.connection(), "id, key", "generations", "key", list(keys.values()))
    if lost := len(keys.items() - set(rows)):
        raise TextsLost(lost)


def add_generations(
    session: Session, round_id: int, generations: Sequence[NewGeneration], now: dt.datetime
) -> dict[str, StoredText]:
    """Store outputs; return the stored outputs by key.

    An output that another campaign stored meanwhile is kept, because its key determines it. As with
    `take_texts`, no returned output is deleted while the round exists.
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
    add_to_count(connection, "rounds", round_id, "generations", list(new_ids.values()))
    stored = {
        row.key: StoredText(
            id=id_,
            text=storable(row.text),
            finish_reason=row.finish_reason,
            input_tokens=row.input_tokens,
            output_tokens=row.output_tokens,
            choice_logprobs=row.choice_logprobs,
            token_logprobs=row.token_logprobs,
            reasoning=None if row.reasoning is None else storable(row.reasoning),
        )
        for id_, row in new
    }
    return stored | take_texts(session, round_id, list(known))


def pin(connection: Connection, round_id: int, generation_ids: Iterable[int]) -> None:
    """Pin those of these outputs that no round of the same campaign paid for."""
    ids = list(generation_ids)
    if not ids:
        return
    if connection.dialect.name == "postgresql":
        among, value = "ANY(string_to_array(?, ',')::integer[])", ",".join(map(str, ids))
        run(connection, _PIN.format(among=f"= {among}"), (round_id, value, round_id))
        return
    run(
        connection,
        _PIN.format(among="IN (SELECT value FROM json_each(?))"),
        (round_id, json.dumps(ids), round_id),
    )


def unpin_recorded(connection: Connection, round_id: int) -> None:
    """Remove a round's pins of outputs that its comparisons now refer to.

    The comparisons were just stored with their judgments and outputs.
    """
    run(connection, _UNPIN, (round_id,) * 5)


_PIN = """
    INSERT INTO pins (round_id, generation_id)
    SELECT ?, g.id FROM generations g LEFT JOIN rounds paid ON paid.id = g.round_id
    WHERE g.id {among} AND (
        paid.id IS NULL OR paid.campaign_id <> (SELECT campaign_id FROM rounds WHERE id = ?)
    )
    ON CONFLICT DO NOTHING
"""

_UNPIN = """
    DELETE FROM pins WHERE round_id = ? AND generation_id IN (
        SELECT generation_a_id FROM comparisons WHERE round_id = ?
        UNION ALL SELECT generation_b_id FROM comparisons WHERE round_id = ?
        UNION ALL SELECT m.generation_id FROM judgments m JOIN comparisons x ON x.id = m.comparison_id
        WHERE x.round_id = ?
        UNION ALL SELECT o.generation_id FROM outputs o JOIN comparisons x ON x.id = o.comparison_id
        WHERE x.round_id = ?
    )
"""


def vectors(session: Session, embedder: str, digests: Sequence[str]) -> dict[str, bytes]:
    """Stored embedding vectors, by digest of the text."""
    found: dict[str, bytes] = {}
    for some in in_portions(digests, PARAMETERS_AT_ONCE):
        rows = session.execute(
            select(Embedding.digest, Embedding.vector).where(
                Embedding.embedder == embedder, Embedding.digest.in_(some)
            )
        )
        found.update(dict(rows.tuples().all()))
    return found


def add_vectors(session: Session, embedder: str, new: Mapping[str, bytes]) -> None:
    """Store vectors by digest; keep a vector that another process stored meanwhile."""
    known = vectors(session, embedder, list(new))
    rows = ((embedder, digest, vector) for digest, vector in new.items() if digest not in known)
    insert_rows(session.connection(), table_of(Embedding), ("embedder", "digest", "vector"), rows)
