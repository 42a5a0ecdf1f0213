"""The harness that injects faults: a few of them, and that it notices what it is there to notice."""

import errno
import multiprocessing
import os
import random
import signal
import sqlite3
from contextlib import closing
from unittest.mock import patch

import pytest

from tests.faults import ROOT, child, histories
from tests.faults.calls import Passage
from tests.faults.counts import EVERY_CALL, RANDOM, Counts, code_state, total
from tests.faults.every_call import Aside
from tests.faults.killed import Killed
from tests.faults.kills import Killing
from tests.faults.ledger import Ledger
from tests.faults.outcomes import Outcome, Stage
from tests.faults.pages import write_page
from tests.faults.registry import all_faults
from tests.faults.staging import fork_server
from tests.faults.strikes import CALL, MOMENT, Length, struck
from tests.faults.system_calls import KILL, Overseer, begin_counting, end_counting, goes_on
from winnow.tasks.engines.known_providers import PROVIDERS

CHEAP = {
    "SIGTERM within a batch / best-mean / sqlite",
    "killed within a batch, and resumed with other group sizes / best-mean / sqlite",
    "its texts' campaign is pruned within a round / best-mean / sqlite",
    "the file system becomes read-only in the middle / best-mean / sqlite",
    "the database is on a network file system / best-mean / sqlite",
}


@pytest.fixture(scope="module")
def stage(prefect_api, tmp_path_factory):
    with patch.dict(PROVIDERS):
        child.provide()
        yield Stage(fork_server(), tmp_path_factory.mktemp("faults"), None)


@pytest.mark.parametrize("fault", [each for each in all_faults() if each.key in CHEAP], ids=lambda f: f.key)
def test_a_campaign_that_met_a_fault_ends_as_one_that_did_not(stage, fault):
    row = stage.outcome(fault)
    assert row.wrong == []
    assert row.same_decision
    assert (row.lost, row.doubled) == (0, 0)


def test_the_names_of_faults_tell_them_apart_and_there_are_enough():
    faults = all_faults()
    assert len({each.key for each in faults}) == len(faults)
    assert len({each.name for each in faults}) >= 150
    assert {each.kind for each in faults} >= {"best-mean", "best-duel", "certify", "route"}


def test_rows_that_are_lost_or_doubled_are_noticed(stage):
    reference = stage.reference("best-mean")
    found = {table: rows.copy() for table, rows in reference.items()}
    (lost,) = list(found["comparisons"])[:1]
    del found["comparisons"][lost]
    assert (histories.lost(found, reference), histories.doubled(found, reference)) == (1, 0)
    (twice,) = list(found["generations"])[:1]
    found["generations"][twice] += 1
    assert (histories.lost(found, reference), histories.doubled(found, reference)) == (1, 1)


def change_a_database(tampering, folder):
    """Write to a database and to a file; for a process of its own."""
    os.chdir(folder)
    tampering()
    with closing(sqlite3.connect("a.db", isolation_level=None)) as database:
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("CREATE TABLE t(a)")
        begin_counting()
        try:
            database.execute("INSERT INTO t VALUES (1)")
        except sqlite3.OperationalError as error:
            os._exit(error.sqlite_errorcode & 0xFF)
        with open("b", "w") as file:
            file.write("b")
        os.rename("b", "c")
        os.unlink("c")
        end_counting()
    os._exit(0)


def overseen(folder, answer):
    """The exit code of `change_a_database`, and the calls that it made."""
    overseer = Overseer(folder, answer)
    # A fork and not a new interpreter: nothing is to be imported under oversight.
    process = multiprocessing.get_context("fork").Process(
        target=change_a_database, args=(overseer.tampering, folder)
    )
    process.start()
    process.join()
    overseer.close()
    return process.exitcode, [f"{call.name} {call.target}" for call in overseer.calls]


def test_every_call_of_a_process_is_seen_between_the_marks(tmp_path):
    code, calls = overseen(tmp_path, goes_on)
    assert code == 0
    assert calls[0] == "pwrite64 a.db-wal"
    assert calls[-4:] == ["openat b", "write b", "rename b", "unlink c"]
    assert (tmp_path / "a.db").exists()


@pytest.mark.parametrize("number", [1, 2, 4, 5])
def test_a_process_dies_at_any_of_its_calls_and_does_not_make_it(tmp_path, number):
    code, calls = overseen(tmp_path, lambda call: KILL if call.number == number else None)
    assert (code, len(calls)) == (-signal.SIGKILL, number)
    with closing(sqlite3.connect(tmp_path / "a.db")) as database:
        # The row takes two writes: of a frame's head, and of its page.
        assert database.execute("SELECT count(*) FROM t").fetchall() == [(int(number > 2),)]
    assert (tmp_path / "c").exists() is False


def test_a_call_can_be_made_to_fail(tmp_path):
    answer = Passage(r"pwrite64 a\.db-wal", 1, errno.ENOSPC, times=9)
    code, _ = overseen(tmp_path, answer)
    assert code == sqlite3.SQLITE_FULL
    assert answer.passed >= 1


def test_random_kills_go_on_where_they_were_stopped(stage, tmp_path):
    tables, shares = tmp_path / "tables", {"scripted": 2}
    Killing(stage, Counts(tables), tmp_path / "left", databases=("sqlite",)).kill(shares)
    rows = Counts(tables).kills(RANDOM, engine="scripted")
    assert total(rows, "kills") == 2
    assert [row["wrong"] for row in rows] == [""] * len(rows)
    assert total(rows, "same decision") == total(rows, "campaigns")
    before = {path: path.read_bytes() for path in tables.iterdir()}
    Killing(stage, Counts(tables), tmp_path / "left", databases=("sqlite",)).kill(shares)
    assert {path: path.read_bytes() for path in tables.iterdir()} == before, "what was done is done again"


@pytest.mark.parametrize("how", [MOMENT, CALL])
def test_a_campaign_is_killed_both_ways_and_ends_as_if_it_had_not_been(stage, how):
    scene = stage.scene("scripted best-mean", "sqlite")
    length = Length(cpu_s=0.02, wall_s=1.0, batches=1, calls=20)
    with struck(scene, how, length, random.Random(1)) as strike:
        run = scene.run(*strike.tamperings).ended()
    assert run.code == -signal.SIGKILL
    assert bool(strike.where) == (how == CALL)
    scene.finish()
    assert scene.history() == stage.reference("scripted best-mean")
    assert scene.problems() == []


def test_what_was_put_aside_is_had_again(stage):
    aside = Aside(stage.scene("scripted best-mean", "sqlite"))
    before = aside.scene.stored("SELECT count(*) FROM decisions")
    assert before == [(1,)]
    calls = aside.calls_of_one_round()
    assert {call.target for call in calls} >= {"winnow.db-wal"}
    assert aside.have_again().stored("SELECT count(*) FROM decisions") == before
    aside.clear()


def test_rows_of_a_ledger_are_put_or_added_by_any_process_and_go_on_from_the_file(tmp_path):
    def opened():
        return Ledger(tmp_path / "new" / "a.csv", ("name",), ("kills", "most", "wrong"), largest=("most",))

    row = {"name": "7", "kills": 2, "most": 2, "wrong": 'this, and "that"'}
    one, other = opened(), opened()
    one.add(row)
    other.add(row | {"kills": 3, "most": 3, "wrong": ""})
    one.add(row | {"name": "8"})
    both = opened().rows
    assert both["7",] == {"name": "7", "kills": "5", "most": "3", "wrong": 'this, and "that"'}
    assert both["8",]["kills"] == "2"
    other.put(row | {"wrong": ""})
    assert opened().rows["7",] == {"name": "7", "kills": "2", "most": "2", "wrong": ""}
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["a.csv"]


def killed(database, wheres, **found):
    kills = [{"how": CALL, "where": where, "phase": "planned"} for where in wheres]
    names = {"engine": "scripted", "objective": "route", "database": database}
    return Killed(**names, kills=kills, **({"same_decision": True} | found))


def test_the_page_counts_what_its_tables_hold(tmp_path):
    page = tmp_path / "docs" / "faults.md"
    counts = Counts(tmp_path)
    first, *_ = all_faults()
    good = Outcome(
        fault=first.name, campaign=first.kind, database=first.database, code=-9, same_decision=True
    )
    counts.add_fault(good)
    counts.add_kills(RANDOM, killed("sqlite", ["pwrite64 out-12.txt"] * 2))
    spoilt = {"lost": 3, "wrong": ["3 rows lost"], "same_decision": False}
    counts.add_kills(RANDOM, killed("sqlite", ["pwrite64 out-3.txt"], **spoilt))
    counts.add_kills(EVERY_CALL, killed("sqlite", ["pwrite64 out-3.txt"]))
    counts.add_kills(EVERY_CALL, killed("postgresql", ["sendto PostgreSQL"]), is_whole=True)
    told = write_page(Counts(tmp_path), page).read_text()
    assert "3 kills of 2 campaigns: 3 rows lost, 0 doubled, 0 wrong links, 0 committed texts" in told
    assert "| scripted | route | sqlite | 3 | 2 | 2 | 0 | 3 | 0 | 3 | 0 | 0 | 0 | 1 of 2 |" in told
    assert "| pwrite64 out-n.txt | 3 |" in told
    assert "| planned | 3 |" in told
    assert "- random / scripted / route / sqlite: 3 rows lost" in told
    assert Counts(tmp_path).wrong == [f"random / scripted / route / sqlite / {code_state()}: 3 rows lost"]
    assert f"| {first.name} | {first.kind} | {first.database} | SIGKILL | 0 | 0 | 1 of 1 |" in told
    assert "1 different faults, met 1 times in all: 1 of 1 campaigns ended" in told
    assert f"{len(all_faults()) - 1} cases are still to be met." in told
    assert "| route | sqlite | 1 | its beginning | 0 | 0 | 0 | 0 | 1 of 1 |" in told
    assert "| route | postgresql | 1 | all | 0 | 0 | 0 | 0 | 1 of 1 |" in told
    assert f"| {code_state()} | 1 | 3 | 2 |" in told


def test_a_fault_that_is_met_again_counts_as_it_ended_last(tmp_path):
    counts = Counts(tmp_path)
    row = Outcome(fault="it rains", campaign="route", database="sqlite", code=1)
    row.wrong = ["another decision"]
    counts.add_fault(row)
    assert counts.wrong == ["it rains / route / sqlite: another decision"]
    row.wrong = []
    counts.add_fault(row)
    assert Counts(tmp_path).wrong == []


def test_the_page_of_the_documentation_is_that_of_its_tables(tmp_path):
    kept = Counts(ROOT / "tests" / "benchmarks" / "results")
    assert (ROOT / "docs" / "faults.md").read_text() == write_page(kept, tmp_path / "faults.md").read_text()
