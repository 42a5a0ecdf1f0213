"""Pins: texts of other campaigns that a round uses, and that no comparison or judgment of it refers to.

Who deletes campaigns leaves pinned texts alone. They are pinned in the very transaction that finds them, so
that nobody can delete one between the two. When the round is recorded, its comparisons and judgments hold
most of them, whose pins go; those stay of what it used beside, such as the answers of an autoevaluator. Texts
that the campaign itself paid for go with it alone and need none.
"""

import json
from collections.abc import Iterable

from sqlalchemy import Connection

from winnow.storage.engine.raw_sql import run


def pin(connection: Connection, round_id: int, generation_ids: Iterable[int]) -> None:
    """Pin those of some texts that no round of the same campaign paid for."""
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
    """Let go of what the comparisons of a round, just stored, hold by now with their parts."""
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
