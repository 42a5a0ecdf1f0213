"""Trigram index for word searches in comparisons, by blocks of comparisons.

The index is not part of the schema: `build` creates it and adds new comparisons. Rounds do not write to it,
so they are not slower; comparisons that are not indexed yet are searched without it. A block that has all
trigrams of a word need not contain the word, so the caller must check the block. Blocks keep the index small,
because neighbouring comparisons are similar.
"""

from collections.abc import Callable, Iterator, Sequence
from zlib import crc32

from sqlalchemy import Connection, inspect, text
from sqlalchemy.orm import Session

from winnow.storage.engine.database import Database
from winnow.storage.engine.raw_sql import driver_of, errors_of, run

BLOCK = 64
"""Number of comparisons, with consecutive ids, per block."""
BLOCKS_AT_ONCE = 512
"""Number of blocks indexed per transaction.
With this limit, a running campaign waits for less than a second."""
SEQUENCE = 3
"""Number of characters of a sequence; the index cannot find shorter words."""
MOST_SEQUENCES = 12
"""Maximum number of sequences that are looked up for a word.
More would hardly exclude more blocks."""

NEWEST = 256
"""Number of newest blocks of PostgreSQL's index.
They are searched before all older blocks."""

TABLE, STATE = "search_blocks", "search_state"
INDEX_TABLES = "search_"
"""Prefix of the names of the index's tables.
The prefix also covers tables that SQLite creates itself."""

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
    """Index the comparisons that are not indexed yet, in whole blocks.

    Return the number indexed. An interrupted call can be repeated and continues; campaigns can run meanwhile.
    `report` is called with the number of indexed comparisons and the final number.

    Raises:
        StorageUnavailable: If the database cannot be written, or its SQLite does not support such an index.
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
    """Number of indexed blocks, counted from the first block.

    None if the database has no text index.
    """
    if not inspect(session.connection()).has_table(STATE):
        return None
    blocks: int = session.scalar(text(f"SELECT blocks FROM {STATE}")) or 0
    return blocks


def candidate_blocks(session: Session, words: str, *, first: int, last: int) -> Iterator[int]:
    """Yield indexed blocks that can contain the words, newest first.

    `words` are in stored form, with at least `SEQUENCE` characters.
    """
    connection = session.connection()
    if connection.dialect.name == "postgresql":
        among = ",".join(str(_number(each)) for each in _sequences(folded(words)))
        asked = f"""SELECT block FROM {TABLE} WHERE sequences @> string_to_array(?, ',')::integer[]
            AND block BETWEEN ? AND ? ORDER BY block DESC"""
        # The newest blocks are searched separately: finding a block takes time, a common word is in all
        # blocks, and the first few are enough.
        older = max(first - 1, last - NEWEST)
        for begin, end in ((older + 1, last), (first, older)):
            yield from (block for (block,) in run(connection, asked, (among, begin, end)))
    else:
        # The words are passed unchanged, because FTS5 folds them like the texts.
        quoted = ('"{}"'.format(each.replace('"', '""')) for each in _sequences(words))
        asked = (
            f"SELECT rowid FROM {TABLE} WHERE {TABLE} MATCH ? AND rowid BETWEEN ? AND ? ORDER BY rowid DESC"
        )
        # Rows are read one by one, because the first few blocks of a common word are enough.
        with errors_of(connection, asked):
            rows = driver_of(connection).execute(asked, (" AND ".join(quoted), first, last))
            yield from (block for (block,) in rows)


def _sequences(words: str) -> Sequence[str]:
    """Sequences of the words, at most `MOST_SEQUENCES`, spread evenly."""
    found = _all_sequences(words)
    step = max(1, -(-len(found) // MOST_SEQUENCES))
    return found[::step]


def _all_sequences(words: str) -> list[str]:
    return list(dict.fromkeys(words[i : i + SEQUENCE] for i in range(len(words) - SEQUENCE + 1)))


def folded(words: str) -> str:
    """Fold words so that variants equal in lower case become equal.

    The lower case is that of any server. Each character is folded independently, so a part of a text is also
    a part of the folded text. `lower`, in contrast, writes a sigma at the end of a word differently. The
    dotted and the dotless i are one letter or two, depending on the language of a database, and the
    decomposition of the dotted i differs as well.
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
    """Index the comparisons with ids from `begin` up to, but not including, `end`."""
    if connection.dialect.name == "sqlite":
        rows = _WORDS.format(together="group_concat")
        run(connection, f"INSERT INTO {TABLE} (rowid, words) {rows}", (begin, end))
        return
    for block, words in run(connection, _WORDS.format(together="string_agg"), (begin, end)):
        numbers = ",".join(str(_number(each)) for each in _all_sequences(folded(words)))
        values = (block, numbers)
        run(connection, f"INSERT INTO {TABLE} VALUES (?, string_to_array(?, ',')::integer[])", values)
