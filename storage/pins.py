"""Pins: texts of other campaigns that a round uses which is not recorded yet.

Who deletes campaigns leaves pinned texts alone. They are pinned in the very transaction that finds them, so
that nobody can delete one between the two, and the pins go when the round is recorded: from then on its
comparisons and games hold the texts. Texts that the campaign itself paid for go with it alone and need none.
"""

import json
from collections.abc import Iterable

from sqlalchemy import Connection

from storage.driving import run


def pin(connection: Connection, round_id: int, generation_ids: Iterable[int]) -> None:
    """Pin those of some texts that no round of the same campaign paid for, until the round is recorded."""
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


def unpin(connection: Connection, round_id: int) -> None:
    """Let go of all that a round has pinned."""
    run(connection, "DELETE FROM pins WHERE round_id = ?", (round_id,))


_PIN = """
    INSERT INTO pins (round_id, generation_id)
    SELECT ?, g.id FROM generations g LEFT JOIN rounds paid ON paid.id = g.round_id
    WHERE g.id {among} AND (
        paid.id IS NULL OR paid.campaign_id <> (SELECT campaign_id FROM rounds WHERE id = ?)
    )
    ON CONFLICT DO NOTHING
"""
