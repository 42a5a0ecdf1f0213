"""Bits of the database's file that flip: `winnow db check` notices each, or nothing that is read has changed.

The others lie in what nobody reads: in what is left of rows that moved to another page, in names within the
schema, where only a letter's case changes, in leases, and in the last digits of sums of fractions.
"""

import json
import random
import re
import sqlite3
from collections.abc import Generator
from contextlib import closing, suppress
from pathlib import Path

from tests.faults.kinds import OBJECTIVES
from tests.faults.registry import DONE, fault
from tests.faults.runs import Run
from tests.faults.scenes import Scene

Meeting = Generator[Run, None, None]
SETTLED = ("ended",)

FLIPS = 50
"""Of each campaign."""

Rows = dict[str, list[tuple[object, ...]] | str]
"""What each table holds and each view shows, or the error that it ends in, by its name in lower case."""

HEADER = 100
"""Bytes of the file's header. Some of them are notes that SQLite itself does not read."""

LEASES = "leases"
"""The table of who may write: it changes as long as somebody does, and a lost lease only ends its holder."""

SUMS = re.compile(r"v_|\w+_stats$", re.IGNORECASE)
"""Names of tables and views with sums of fractions, whose last digits hang on the order of adding."""

DIGITS = 8
"""Of fractions there; `winnow db check` allows them a billionth."""


@fault(f"{FLIPS} bits of the database flip, one at a time", *OBJECTIVES, codes=DONE, states=SETTLED)
def flipped(scene: Scene) -> Meeting:
    scene.run().ended()
    with closing(sqlite3.connect(scene.database)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    whole, before = scene.database.read_bytes(), _content(scene.database)
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
            _require_same(before, _content(scene.database), where)
    _put(scene.database, whole)
    yield scene.resume().ended()


def _require_same(before: Rows, now: Rows, where: str) -> None:
    for name in sorted(before.keys() | now.keys()):
        rows, changed = before.get(name, []), now.get(name, [])
        assert rows == changed, f"{where} was not noticed in {name}: {_unlike(rows, changed)}"


def _unlike(rows: object, changed: object) -> object:
    if not isinstance(rows, list) or not isinstance(changed, list):
        return changed
    return [row for row in changed if row not in rows]


def _put(database: Path, content: bytes) -> None:
    for part in ("-wal", "-shm"):
        database.with_name(f"{database.name}{part}").unlink(missing_ok=True)
    database.write_bytes(content)


def _content(database: Path) -> Rows:
    """All that Winnow reads, decoded: SQL does not tell A from a in names, nor JSON 1E0 from 1e0."""
    query = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite%'"
    try:
        with closing(sqlite3.connect(database)) as connection:
            names = [name for (name,) in connection.execute(query) if name.lower() != LEASES]
            connection.text_factory = bytes
            return {name.lower(): _rows(connection, name) for name in names}
    except (sqlite3.Error, UnicodeError, TypeError) as error:  # of a name or statement that is no text
        return {"the schema": str(error)}


def _rows(connection: sqlite3.Connection, name: str) -> list[tuple[object, ...]] | str:
    decoded = _rounded if SUMS.match(name) else _decoded
    try:
        return [tuple(map(decoded, row)) for row in connection.execute(f'SELECT * FROM "{name}"')]
    except sqlite3.Error as error:
        return str(error)


def _rounded(value: object) -> object:
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else _decoded(value)


def _decoded(value: object) -> object:
    if isinstance(value, bytes) and value[:1] in (b"{", b"["):
        with suppress(ValueError):
            return json.loads(value)
    return value
