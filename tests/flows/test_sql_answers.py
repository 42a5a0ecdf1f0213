"""Statements of the user's in a process of their own: what they answer, and what becomes of greedy ones."""

import datetime as dt
import json
import os
import signal
import subprocess
import sys
from decimal import Decimal

import psutil
import pytest
from campaigns import one_message, winnow
from stored_campaigns import new_database, store_campaign
from waiting import PATIENCE_S

from winnow.flows.reports import sql_answers
from winnow.flows.reports.sql_answers import MIB, Bounds, answered, unpack
from winnow.flows.reports.sql_child import pack
from winnow.storage.errors import QueryRefused, StorageError

NUMBERS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
BOUNDS = Bounds(seconds=20, bytes=4 * MIB, memory=128 * MIB)


@pytest.fixture(scope="module")
def storage(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sql")
    database = new_database(folder / "winnow.db")
    store_campaign(database)
    database.close()
    return f"sqlite:///{folder}/winnow.db"


def answer(storage, statement, bounds=BOUNDS):
    with answered(storage, statement, bounds) as (columns, rows):
        return columns, list(rows)


def test_values_arrive_as_they_are(storage):
    statement = "SELECT 1 AS a, -9223372036854775808, 0.1, 1e999, NULL, 'é\x1b\u202e', x'00ff', '' AS a"
    columns, rows = answer(storage, statement)
    assert columns[0] == columns[-1] == "a"
    assert rows == [(1, -(2**63), 0.1, float("inf"), None, "é\x1b\u202e", b"\x00\xff", "")]
    assert answer(storage, f"{NUMBERS} SELECT i FROM n LIMIT 20000")[1] == [(i,) for i in range(1, 20001)]


def test_every_kind_of_value_is_unpacked_as_it_was_packed():
    when = dt.datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=dt.UTC)
    kinds = [None, True, 1, 0.5, "x", b"\xff", Decimal("1.10"), when, when.date(), [1, [b"a"]], {"k": [when]}]
    assert [unpack(json.loads(json.dumps(pack(value)))) for value in kinds] == kinds


@pytest.mark.parametrize(
    ("statement", "sentence"),
    [
        ("SELECT hex(zeroblob(900000000))", "string or blob too big"),
        (f"{NUMBERS} SELECT hex(zeroblob(5000)) FROM n", "the answer has more than 4 MiB"),
        (f"SELECT {', '.join(['zeroblob(4000000)'] * 60)}", "needs more than 128 MiB of memory"),
        ("SELECT zeroblob(4000000)", "the answer has more than 4 MiB"),
        ("DELETE FROM comparisons", "the statement was refused"),
        ("PRAGMA query_only = OFF", "the statement was refused"),
        ("ATTACH '/tmp/other.db' AS other", "the statement was refused"),
        ("SELECT fts3_tokenizer('simple')", "not authorized to use function: fts3_tokenizer"),
        (
            "SELECT FTS3_Tokenizer('simple', x'4141414141414141') || rtreecheck('main', 'fts3tokenize')",
            "not authorized to use function",
        ),
        ("SELECT load_extension('/tmp/other.so')", "the statement was refused: not authorized"),
        ("SELECT 1 FROM nowhere", "no such table"),
        ("SELECT '\ud800'", "half a surrogate pair"),
        ("", "returns no rows"),
    ],
)
def test_every_greedy_or_wrong_statement_ends_in_a_sentence(storage, statement, sentence, capfd):
    with pytest.raises(StorageError, match=sentence) as refused:
        answer(storage, statement)
    assert "\n" not in str(refused.value)
    assert capfd.readouterr() == ("", "")


def test_what_looks_at_no_clock_is_stopped_when_its_time_is_up(storage):
    others = set(psutil.Process().children())
    slow = f"{NUMBERS} SELECT sum(length(replace(hex(zeroblob(500000)), '0', 'ab'))) FROM n"
    with pytest.raises(QueryRefused, match=r"took longer than 0\.5 s and was stopped"):
        answer(storage, slow, Bounds(seconds=0.5, bytes=4 * MIB))
    assert set(psutil.Process().children()) <= others


def test_a_reader_who_takes_their_time_is_not_late(storage, monkeypatch):
    """What is spent between two rows is the reader's own: a clock that leaps there breaks nothing off."""
    leaps = iter(range(0, 10**9, 10**6))
    with answered(storage, f"{NUMBERS} SELECT i FROM n LIMIT 50000", BOUNDS) as (_, rows):
        now, offset = sql_answers.time.monotonic, [0]
        monkeypatch.setattr(sql_answers.time, "monotonic", lambda: now() + offset[0])
        for count, _ in enumerate(rows, 1):
            if count % 10_000 == 0:
                offset[0] = next(leaps)
    assert count == 50_000


def test_a_process_that_ends_by_itself_is_a_sentence(storage):
    others = set(psutil.Process().children())
    rows = answered(storage, f"{NUMBERS} SELECT i FROM n", BOUNDS)
    with rows as (_, found), pytest.raises(QueryRefused, match=r"ended unexpectedly \(exit code -9\)"):  # noqa: PT012
        next(found)
        (child,) = set(psutil.Process().children()) - others
        os.kill(child.pid, signal.SIGKILL)
        list(found)


def test_a_database_that_is_not_there_is_the_same_sentence_as_elsewhere(tmp_path):
    with pytest.raises(StorageError, match="is unavailable") as failed:
        answer(f"sqlite:///{tmp_path}/nowhere.db", "SELECT 1")
    assert not isinstance(failed.value, QueryRefused)


def test_the_process_loads_nothing_that_is_slow_to_load():
    code = "import sys; import winnow.flows.reports.sql_child; print(*sorted(sys.modules))"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    heavy = {
        "torch",
        "prefect",
        "streamlit",
        "numpy",
        "pandas",
        "scipy",
        "alembic",
        "pydantic",
        "winnow.tasks.errors",
        "winnow.algorithms",
    }
    assert "sqlalchemy" in loaded
    assert not heavy & set(loaded)


def test_a_process_whose_asker_is_killed_ends_too(storage):
    code = (
        "import sys, time\n"
        "from winnow.flows.reports.sql_answers import Bounds, answered\n"
        f"slow = {NUMBERS + ' SELECT max(i) FROM n'!r}\n"
        f"with answered({storage!r}, slow, Bounds(seconds=600, bytes=1)) as (_, rows): pass\n"
    )
    asker = subprocess.Popen([sys.executable, "-c", code])
    try:
        process = psutil.Process(asker.pid)
        while not (children := process.children()):
            assert asker.poll() is None
    finally:
        asker.kill()
        asker.wait()
    assert psutil.wait_procs(children, timeout=PATIENCE_S)[1] == []


def test_the_command_answers_within_its_bounds(storage, tmp_path):
    def asked(statement, *options):
        return winnow(tmp_path, "query", "--storage", storage, "--sql", statement, *options)

    assert asked("SELECT 1 AS a, x'00ff' AS b", "--json").stdout == '[\n  {"a": 1, "b": "00ff"}\n]\n'
    late = asked(f"{NUMBERS} SELECT max(i) FROM n", "--seconds", "0.3")
    assert (late.returncode, "took longer than 0.3 s" in one_message(late)) == (1, True)
    large = asked(
        f"{NUMBERS} SELECT i FROM n", "--mebibytes", "1", "--format", "jsonl", "--output", "x.jsonl"
    )
    assert (large.returncode, "more than 1 MiB" in one_message(large)) == (1, True)
