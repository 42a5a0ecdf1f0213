"""Bits of the database's file that flip: `winnow db check` notices each, or no row has changed."""

import random
import sqlite3
from collections.abc import Generator
from contextlib import closing
from pathlib import Path

from tests.faults.kinds import OBJECTIVES
from tests.faults.registry import DONE, fault
from tests.faults.runs import Run
from tests.faults.scenes import Scene

Meeting = Generator[Run, None, None]
SETTLED = ("ended",)

FLIPS = 50
"""Of each campaign."""

Rows = dict[str, list[tuple]]

HEADER = 100
"""Bytes of the file's header. Some of them are notes that SQLite itself does not read."""

HARMLESS = ("leases", "pins", "file_digests", "model_loads")
"""Tables that no answer rests on."""


@fault(f"{FLIPS} bits of the database flip, one at a time", *OBJECTIVES, codes=DONE, states=SETTLED)
def flipped(scene: Scene) -> Meeting:
    scene.run().ended()
    with closing(sqlite3.connect(scene.database)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    whole, before = scene.database.read_bytes(), _rows(scene.database)
    used = [at for at in range(HEADER, len(whole)) if whole[at]]
    draws = random.Random(f"bits of {scene.kind}")
    for _ in range(FLIPS):
        at, bit = draws.choice(used), draws.randrange(8)
        flipped = bytearray(whole)
        flipped[at] ^= 1 << bit
        _put(scene.database, bytes(flipped))
        check = scene.command("db", "check", "--storage", scene.storage).ended()
        where = f"bit {bit} of byte {at}"
        assert "Traceback" not in check.out + check.said, f"{where}: {check.said}"
        assert check.code in (0, 1), f"{where}: {check.code}"
        if check.code == 0:
            _require_same(before, _rows(scene.database), where)
    _put(scene.database, whole)
    yield scene.resume().ended()


def _require_same(before: Rows | None, now: Rows | None, where: str) -> None:
    assert before is not None
    assert now is not None, f"{where}: rows cannot be read, and that was not noticed"
    for table, rows in before.items():
        changed = [row for row in now.get(table, ()) if row not in rows]
        assert rows == now.get(table), f"{where} was not noticed in {table}: {changed}"


def _put(database: Path, content: bytes) -> None:
    for part in ("-wal", "-shm"):
        database.with_name(f"{database.name}{part}").unlink(missing_ok=True)
    database.write_bytes(content)


def _rows(database: Path) -> Rows | None:
    """All rows that matter, as bytes; None where they cannot be read."""
    tables = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
    try:
        with closing(sqlite3.connect(database)) as connection:
            names = [name for (name,) in connection.execute(tables) if name not in HARMLESS]
            connection.text_factory = bytes
            return {name: connection.execute(f"SELECT * FROM {name}").fetchall() for name in sorted(names)}
    except sqlite3.Error:
        return None
