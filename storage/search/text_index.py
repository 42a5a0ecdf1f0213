"""An index for finding comparisons that may hold a word: three-letter sequences by blocks of comparisons.

It is no part of the schema: `build` makes it, and adds to it what came since. Rounds do not write to it, so
that they take no longer; what is not in it yet is looked through as if there were none. A block that has all
sequences of a word need not have the word: whoever asks looks into the block. Blocks keep it small, since
comparisons that stand together are alike.
"""

from collections.abc import Callable, Iterator, Sequence
from zlib import crc32

from sqlalchemy import Connection, inspect, text
from sqlalchemy.orm import Session

from winnow.storage.engine.database import Database
from winnow.storage.engine.raw_sql import driver_of, errors_of, run

BLOCK = 64
"""Comparisons of consecutive ids."""
BLOCKS_AT_ONCE = 512
"""In one transaction, so that a campaign that runs meanwhile waits for less than a second."""
SEQUENCE = 3
"""Characters; a word with fewer is in no index."""
MOST_SEQUENCES = 12
"""Of a word that are looked up: more would hardly rule out more."""

NEWEST = 256
"""Blocks of PostgreSQL's index that are looked into before it is asked for all older ones."""

TABLE, STATE = "search_blocks", "search_state"
INDEX_TABLES = "search_"
"""The beginning of the names of its tables, those that SQLite makes for itself included."""

_CREATE = {
    "sqlite": (
        f"CREATE VIRTUAL TABLE {TABLE} USING fts5(words, content='', columnsize=0, detail=none, "
        "tokenize='trigram')",
    ),
    "postgresql": (
        f"CREATE TABLE {TABLE} (block INTEGER PRIMARY KEY, sequences INTEGER[] NOT NULL)",
        f"CREATE INDEX ix_{TABLE}_sequences ON {TABLE} USING gin (sequences)",
    ),
}

_WORDS = f"""
    SELECT x.id / {BLOCK}, {{together}}(x.words, ' ')
    FROM (
        SELECT x.id, e.key || ' ' || coalesce(p.text, '') || ' ' || coalesce(g.text, '') || ' '
            || coalesce(q.text, '') || ' ' || coalesce(h.text, '') AS words
        FROM comparisons x
        JOIN examples e ON e.id = x.example_id
        LEFT JOIN generations g ON g.id = x.generation_a_id
        LEFT JOIN prompts p ON p.id = g.prompt_id
        LEFT JOIN generations h ON h.id = x.generation_b_id
        LEFT JOIN prompts q ON q.id = h.prompt_id
        WHERE x.id >= ? AND x.id < ?
    ) x
    GROUP BY x.id / {BLOCK}
"""


def build(database: Database, report: Callable[[int, int], None] = lambda *_: None) -> int:
    """Index the comparisons that are not yet, whole blocks only; how many are indexed then.

    Interrupted, it goes on where it was; campaigns may run meanwhile.

    Args:
        database: Is written to.
        report: Told how many are indexed, and how many will be.

    Raises:
        StorageUnavailable: If the database cannot be written, or its SQLite has no such index.
    """
    with database.writing() as session:
        _ensure_tables(session.connection())
    while True:
        with database.writing() as session:
            connection = session.connection()
            ((last,),) = run(connection, "SELECT coalesce(max(id), 0) FROM comparisons")
            begin, end = indexed_blocks(session) or 0, (last + 1) // BLOCK
            if begin >= end:
                return begin * BLOCK
            until = min(end, begin + BLOCKS_AT_ONCE)
            _add(connection, begin * BLOCK, until * BLOCK)
            run(connection, f"UPDATE {STATE} SET blocks = ?", (until,))
        report(until * BLOCK, end * BLOCK)


def indexed_blocks(session: Session) -> int | None:
    """The number of blocks that are indexed, from the first one on; None where there is no index."""
    if not inspect(session.connection()).has_table(STATE):
        return None
    blocks: int = session.scalar(text(f"SELECT blocks FROM {STATE}")) or 0
    return blocks


def candidate_blocks(session: Session, words: str, *, first: int, last: int) -> Iterator[int]:
    """Indexed blocks that may hold the words, the newest first.

    Args:
        session: Reads.
        words: The words, of at least `SEQUENCE` characters, as a text is stored.
        first: The least block that is asked for.
        last: The greatest.
    """
    connection = session.connection()
    if connection.dialect.name == "postgresql":
        among = ",".join(str(_number(each)) for each in _sequences(folded(words)))
        asked = f"""SELECT block FROM {TABLE} WHERE sequences @> string_to_array(?, ',')::integer[]
            AND block BETWEEN ? AND ? ORDER BY block DESC"""
        # The newest ones by themselves: all blocks of a common word are found at the cost of each, and its
        # first few are enough.
        older = max(first - 1, last - NEWEST)
        for begin, end in ((older + 1, last), (first, older)):
            yield from (block for (block,) in run(connection, asked, (among, begin, end)))
    else:
        # As they are: FTS5 folds them as it folded those of the texts.
        quoted = ('"{}"'.format(each.replace('"', '""')) for each in _sequences(words))
        asked = (
            f"SELECT rowid FROM {TABLE} WHERE {TABLE} MATCH ? AND rowid BETWEEN ? AND ? ORDER BY rowid DESC"
        )
        # One by one: of a common word the first few are enough.
        with errors_of(connection, asked):
            rows = driver_of(connection).execute(asked, (" AND ".join(quoted), first, last))
            yield from (block for (block,) in rows)


def _sequences(words: str) -> Sequence[str]:
    """Some of the sequences of the words, from all over them."""
    found = _all_sequences(words)
    step = max(1, -(-len(found) // MOST_SEQUENCES))
    return found[::step]


def _all_sequences(words: str) -> list[str]:
    return list(dict.fromkeys(words[i : i + SEQUENCE] for i in range(len(words) - SEQUENCE + 1)))


def folded(words: str) -> str:
    """The words, such that all that a server may take for equal to them in lower case are the same.

    What becomes of a character hangs on no other one, so that a part of a text is a part of it folded, too:
    `lower` writes a sigma at the end of a word otherwise. The dotted and the dotless i are one letter or two
    by the language of a database, and what the dotted one is made of differs as well.
    """
    return (
        words.casefold()
        .replace("\N{COMBINING DOT ABOVE}", "")
        .replace("\N{LATIN SMALL LETTER DOTLESS I}", "i")
    )


def _number(sequence: str) -> int:
    return crc32(sequence.encode("utf-8", "surrogatepass")) & 0x7FFFFFFF


def _ensure_tables(connection: Connection) -> None:
    if inspect(connection).has_table(STATE):
        return
    for statement in _CREATE[connection.dialect.name]:
        run(connection, statement)
    run(connection, f"CREATE TABLE {STATE} (blocks INTEGER NOT NULL)")
    run(connection, f"INSERT INTO {STATE} (blocks) VALUES (0)")


def _add(connection: Connection, begin: int, end: int) -> None:
    """Index the comparisons with these ids."""
    if connection.dialect.name == "sqlite":
        rows = _WORDS.format(together="group_concat")
        run(connection, f"INSERT INTO {TABLE} (rowid, words) {rows}", (begin, end))
        return
    for block, words in run(connection, _WORDS.format(together="string_agg"), (begin, end)):
        numbers = ",".join(str(_number(each)) for each in _all_sequences(folded(words)))
        values = (block, numbers)
        run(connection, f"INSERT INTO {TABLE} VALUES (?, string_to_array(?, ',')::integer[])", values)
