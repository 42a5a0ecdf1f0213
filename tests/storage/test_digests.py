"""Digests: every change of what is stored is noticed, in whatever database it is; older rows have none."""

import random
import re
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from sqlalchemy import select, text
from stored_campaigns import NOW, all_parts, canary, empty_database, generation, judgment, store_campaign

from winnow.storage.admin.check import _is_alike, problems
from winnow.storage.admin.integrity import uncovered_rounds, unreadable_values
from winnow.storage.admin.maintenance import copy_database
from winnow.storage.admin.schema import reading
from winnow.storage.engine.database import open_database
from winnow.storage.engine.row_digests import COLUMN, digests_of_rows, row_digest
from winnow.storage.errors import StorageError
from winnow.storage.models import Base, Decision, Lease, table_of
from winnow.storage.records import annotations, campaigns, labels, pruned
from winnow.storage.records import canaries as canary_records
from winnow.storage.records import generations as generation_records
from winnow.storage.records import outcomes as outcome_records
from winnow.storage.records.campaigns import set_execution
from winnow.storage.records.datasets import FileState, store_digests
from winnow.storage.records.record_types import (
    AnnotationRecord,
    NewAnnotationTask,
    NewComparison,
    NewExample,
    NewMetric,
    NewModelLoad,
    NewOutput,
)
from winnow.storage.records.rounds import decision_columns, round_digest
from winnow.storage.records.stream_batches import add_stream_batch

SQLITE = pytest.mark.parametrize("backend", ["sqlite"], indirect=True)


def fill(database):
    """A campaign of two rounds that has rows of every table with digests."""
    campaign = store_campaign(database)
    for number in range(2):
        round_ = campaign.plan(number, [0, 1], [number, number])
        comparisons = campaign.comparisons(round_, [1.0, None])
        whole = replace(
            comparisons[0],
            answer="é\0",
            detail="a detail",
            judgments=[judgment("original", 1.0), judgment("swapped", "lost")],
            outputs=[NewOutput(number=0, generation_id=comparisons[0].generation_a_id, score=1 / 3)],
            metrics=[NewMetric(name="short", score=0.1 + 0.2)],
        )
        known = {"estimates": [1 / 3, 0.0, None], "lower": [0.1, 0.0, None], "upper": [1, 0.5, None]}
        decided = campaign.decision(0, **known, **all_parts([number + 1, 2, None]))
        odds = {"token_logprobs": [-0.5], "choice_logprobs": {"a": -1.5}}
        more = generation(f"late {number}", latency=0.1, reasoning="r", **odds)
        with database.writing() as session:
            generation_records.add_generations(session, round_.id, [more], NOW)
            outcome_records.add_outcomes(session, round_.id, [whole, comparisons[1]], decided, NOW)
    with database.writing() as session:
        set_execution(session, campaign.record.id, {"budget": 200})
        generation_records.add_vectors(session, "e" * 64, {"d" * 64: b"\x00\x01\x02\x03"})
        canary_records.add_canary(session, campaign.record.id, canary("first"), NOW)
        labels.set_label(session, campaign.record.dataset_id, 1, ["x", "y"], "labels.csv", NOW)
        wanted = NewAnnotationTask(key="a" * 64, example_id=1, generation_a_id=1, generation_b_id=2)
        annotations.add_tasks(session, round_.id, [wanted])
        said = AnnotationRecord(
            verdict=0.25, reason=None, annotator="Ann", source="terminal", annotated_at=NOW
        )
        annotations.set_annotation(session, 1, said)
        waited = NewModelLoad(model="m", devices=[0, 1], kind="load", seconds=1 / 3, ended_at=NOW)
        campaigns.add_loads(session, campaign.record.id, [waited])
        pruned.remember(session, replace(campaign.record, id=77), {0, 1, 4})
        come = [NewExample(key="late", fields={"input": "late"}, targets=[])]
        add_stream_batch(session, campaign.record.id, come, fingerprint="0" * 64, now=NOW)
        for size in (10, 11):  # a file that was read, changed, and read again
            state = FileState(path="/weights", size=size, modified_ns=1, changed_ns=2, inode=2**63)
            store_digests(session, {state: "9" * 64})
    return campaign


def fill_all(database):
    """Such a campaign, one that takes its texts, and one of duels with a round in flight."""
    fill(database)
    other = store_campaign(database, "other")
    round_ = other.plan(0, [0], [0])
    with database.writing() as session:
        generation_records.take_texts(session, round_.id, ["letters-0-0", "late 0"])
        taken = NewComparison(
            position=0,
            candidate_a_id=other.candidate_ids[0],
            example_id=other.example_ids[0],
            generation_a_id=1,
            judge="exact",
            outcome=None,
            reason="no_answer",
            detail='it says "none"',
        )
        outcome_records.add_outcomes(session, round_.id, [taken], other.decision(0), NOW)
    duels = store_campaign(database, "duels", objective="best-duel")
    duels.finish_duels(duels.plan(0, [(0, 1)], [0]), [(0.5, [])], best=0)
    duels.plan(1, [(0, 2)], [0], [0.25])


def found(database):
    with database.reading() as session:
        return unreadable_values(session) or problems(session)


def test_what_is_stored_has_digests_that_fit_it(database):
    fill_all(database)
    assert found(database) == []
    with database.reading() as session:
        assert uncovered_rounds(session) == 0
        for table in Base.metadata.tables.values():
            if COLUMN in table.c:
                lacking = session.execute(text(f"SELECT 1 FROM {table.name} WHERE {COLUMN} IS NULL")).all()
                assert lacking == [], table.name


def test_a_copy_in_the_other_kind_of_database_has_the_same(
    database, tmp_path, postgresql, postgresql_template
):
    fill_all(database)
    if database.is_postgresql:
        with closing(open_database(f"sqlite:///{tmp_path / 'copy.db'}")) as copy:
            copy_database(database, copy, report=lambda *_: None)
            assert found(copy) == []
        return
    url = postgresql.new_database(postgresql_template)
    with closing(open_database(url)) as copy:
        copy_database(database, copy, report=lambda *_: None)
        assert found(copy) == []
    postgresql.drop_database(url)


TRICKY = [
    {"outcome": 0.1 + 0.2, "human_loss": 1 / 3, "auto_loss": 5e-324, "unlabelled_loss": -0.0},
    {"outcome": 1, "human_loss": 1, "unlabelled_missing": 1 - 2**-53, "answer": "é\0\ud800 NULL"},
    {"outcome": None, "reason": "no_answer", "detail": '\0 {"a": 1} \u2028', "no_answer": True},
    {"outcome": -0.0, "answer": "", "judge": "exact:é"},
]


def test_what_is_written_and_what_is_read_back_have_one_digest(database):
    campaign = store_campaign(database)
    values = [-0.0, 1 / 3, 5e-324]
    for number, part in enumerate(({}, all_parts([2, None, 1]))):
        round_ = campaign.plan(
            number, [0, 1, 2, 0], [number, number, number, number + 2], [1 / 3, 1, 0.1, 5e-324]
        )
        made = campaign.comparisons(round_, [0.0] * len(TRICKY))
        made = [replace(each, **tricky) for each, tricky in zip(made, TRICKY, strict=True)]
        decided = campaign.decision(0, estimates=values, lower=values, upper=values, **part)
        with database.writing() as session:
            outcome_records.add_outcomes(session, round_.id, made[::-1], decided, NOW)
        with database.reading() as session:
            decision = session.scalars(select(Decision).where(Decision.round_id == round_.id)).one()
            columns = decision_columns(table_of(Decision))
            read_back = {name: getattr(decision, name) for name in columns}
            assert round_digest(session.connection(), round_.id, read_back) == decision.digest
    assert found(database) == []


def other(value, column):
    if isinstance(value, float):
        return value / 2 + 0.001
    if isinstance(value, int):
        return 1 - value if value in (0, 1) else value + 1
    if isinstance(value, bytes):
        return value + b"x"
    if value is None:
        return "7"
    if column.endswith("_at"):
        return value.replace("2026", "2025")
    return value.replace("1", "2") if value[:1] in "[{" and "1" in value else f"{value[:-1]}~{value[-1:]}"


MUTABLE = {
    "leases": {each.name for each in table_of(Lease).columns},
    "annotation_tasks": {"held_by", "held_at"},
}
"""Columns that change as long as somebody works: no answer rests on them, and no digest is over them."""

INDEXED = {"generations": {"round_id"}, "canaries": {"campaign_id"}, "pins": {"round_id", "generation_id"}}
"""Columns that may change, and that SQLite compares with an index: an UPDATE changes both."""


@SQLITE
def test_a_change_of_any_value_is_noticed(database, tmp_path):
    fill_all(database)
    path = database.url.removeprefix("sqlite:///")
    database.close()
    unnoticed = []
    for table in Base.metadata.tables.values():
        left_out = MUTABLE.get(table.name, set()) | INDEXED.get(table.name, set()) | {"id"}
        for column in [each.name for each in table.columns if each.name not in left_out]:
            copy = tmp_path / "changed.db"
            shutil.copy(path, copy)
            with closing(sqlite3.connect(copy, isolation_level=None)) as driver:
                driver.execute("PRAGMA ignore_check_constraints=ON")
                key = next(iter(table.primary_key)).name
                row = driver.execute(f'SELECT "{key}", "{column}" FROM {table.name} LIMIT 1').fetchone()
                assert row is not None, table.name
                change = f'UPDATE {table.name} SET "{column}" = ? WHERE "{key}" = ?'
                try:
                    driver.execute(change, (other(row[1], column), row[0]))
                except sqlite3.IntegrityError:
                    continue
            with closing(open_database(f"sqlite:///{copy}", read_only=True)) as changed:
                if not found(changed):
                    unnoticed.append(f"{table.name}.{column}: {row[1]!r}")
    assert unnoticed == []


FLIPS = 200


def content(path):
    """All rows but leases, and what views show; None where they cannot be read."""
    query = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite%'"
    try:
        with closing(sqlite3.connect(path)) as driver:
            names = [name for (name,) in driver.execute(query) if name.lower() != "leases"]
            driver.text_factory = bytes
            rows = {name.lower(): driver.execute(f'SELECT * FROM "{name}"').fetchall() for name in names}
            # The last digits of sums hang on the order of adding.
            return {
                name: [[round(each, 9) if isinstance(each, float) else each for each in row] for row in found]
                for name, found in rows.items()
            }
    except (sqlite3.Error, UnicodeError, TypeError):
        return None


@SQLITE
def test_of_bits_that_flip_each_is_noticed_or_changes_nothing(database, tmp_path):
    fill_all(database)
    path = database.url.removeprefix("sqlite:///")
    with database.outside_transactions() as run:
        run("PRAGMA wal_checkpoint(TRUNCATE)")
        run("PRAGMA journal_mode=DELETE")
    database.close()
    before, whole, draws = content(path), Path(path).read_bytes(), random.Random(7)
    assert before is not None
    changing, unnoticed = 0, []
    empty = empty_database().read_bytes().ljust(len(whole), b"\0")
    anywhere = [at for at in range(100, len(whole)) if whole[at]]
    in_rows = [at for at in anywhere if whole[at] != empty[at]]
    for number in range(FLIPS):
        at, bit = draws.choice(in_rows if number % 4 else anywhere), draws.randrange(8)
        flipped = bytearray(whole)
        flipped[at] ^= 1 << bit
        copy = tmp_path / "flipped.db"
        copy.write_bytes(flipped)
        if content(copy) == before:
            continue
        changing += 1
        try:
            with closing(open_database(f"sqlite:///{copy}", read_only=True)) as opened:
                if not found(opened):
                    unnoticed.append((at, bit))
        except StorageError:  # it cannot be opened
            continue
    assert changing > FLIPS / 10
    assert unnoticed == []


@pytest.mark.parametrize(
    ("table", "key"),
    [
        ("comparisons", "id"),
        ("judgments", "id"),
        ("metrics", "comparison_id"),
        ("outputs", "comparison_id"),
        ("standings", "candidate_id"),
    ],
)
def test_a_lost_row_is_noticed(database, table, key):
    fill(database)
    with database.writing() as session:
        session.execute(text(f"DELETE FROM {table} WHERE {key} = (SELECT max({key}) FROM {table})"))
    assert any("is not as it was stored" in each for each in found(database))


def test_a_digest_that_is_gone_is_noticed_and_older_rounds_are_counted(database):
    fill(database)
    with database.writing() as session:
        session.execute(text("UPDATE decisions SET digest = NULL WHERE round_id = 2"))
    assert any("the digest of round 2 of campaign 1 is missing" in each for each in found(database))
    with database.writing() as session:
        session.execute(text("UPDATE decisions SET digest = NULL"))
        session.execute(text("UPDATE generations SET row_digest = NULL"))
    assert found(database) == []
    with database.reading() as session:
        assert uncovered_rounds(session) == 2


def test_rounds_in_another_order_are_noticed(database):
    fill(database)
    with database.writing() as session:
        first, second = session.scalars(text("SELECT digest FROM decisions ORDER BY id"))
        change = text("UPDATE decisions SET digest = :digest WHERE id = :id")
        session.execute(change, [{"digest": second, "id": 1}, {"digest": first, "id": 2}])
    assert len([each for each in found(database) if "is not as it was stored" in each]) == 2


@SQLITE
def test_a_schema_that_is_no_text_is_refused_in_a_sentence(database, tmp_path):
    fill(database)
    with database.outside_transactions() as run:
        run("PRAGMA journal_mode=DELETE")
    path = Path(database.url.removeprefix("sqlite:///"))
    database.close()
    whole = path.read_bytes()
    names = [match.start() + len("CREATE ") for match in re.finditer(rb"CREATE (TABLE|INDEX|VIEW)", whole)]
    assert len(names) > 50
    for at in names:
        (copy := tmp_path / "flipped.db").write_bytes(whole[:at] + b"\xd4" + whole[at + 1 :])
        with pytest.raises(StorageError, match="database"), reading(f"sqlite:///{copy}") as session:
            assert unreadable_values(session) == []


@SQLITE
@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("UPDATE campaigns SET spec = '{'", "row 1 of campaigns: its spec cannot be read"),
        ("UPDATE campaigns SET created_at = 'noon'", "row 1 of campaigns: its created_at cannot be read"),
        ("UPDATE generations SET text = CAST(x'ff' AS TEXT) WHERE id = 2", "row 2 of generations: its text"),
        ("UPDATE generations SET text = CAST(text AS BLOB) WHERE id = 2", "row 2 of generations: its text"),
        ("UPDATE decisions SET reason = CAST(reason AS BLOB)", "row 1 of decisions: its reason cannot be"),
        ("UPDATE embeddings SET vector = 'text'", "of embeddings: its vector cannot be read"),
        ("UPDATE generations SET seconds = 'long' WHERE id = 1", "row 1 of generations: its seconds"),
        ("UPDATE rounds SET number = 'two' WHERE id = 2", "row 2 of rounds: its number cannot be read"),
        ("UPDATE examples SET targets = x'00'", "row 1 of examples: its targets cannot be read"),
        ("UPDATE examples SET row_digest = x'00'", "row 1 of examples: its row_digest cannot be read"),
        ("UPDATE decisions SET stop = 3", "row 1 of decisions: its stop cannot be read"),
        (
            "UPDATE campaigns SET created_at = replace(created_at, '.', ',')",
            "row 1 of campaigns: its created_at cannot be read",
        ),
    ],
)
def test_values_that_cannot_be_read_are_named_before_anything_else(database, change, told):
    fill(database)
    with database.writing() as session:
        session.execute(text(change))
    assert any(told in each for each in found(database))


@SQLITE
def test_a_view_that_shows_something_else_is_named(database):
    fill(database)
    with database.writing() as session:
        shown = session.scalar(text("SELECT sql FROM sqlite_master WHERE name = 'v_costs'"))
        session.execute(text("DROP VIEW v_costs"))
        session.connection().exec_driver_sql(shown.replace("input_tokens", "output_tokens", 1))
        session.execute(text("DROP VIEW v_reuse"))
    assert found(database) == [
        "the view v_costs is not as it was stored",
        "the view v_reuse is not as it was stored",
    ]


def test_whole_numbers_are_counted_again_exactly_and_fractions_as_their_order_allows():
    assert _is_alike(4_000_000_000, Decimal(4_000_000_000))
    assert not _is_alike(4_000_000_000, 4_000_000_001)
    assert _is_alike(0.1 + 0.2, 0.3)
    assert not _is_alike(0.3, 0.300001)
    assert not _is_alike(None, 0)
    assert not _is_alike(0, None)
    assert _is_alike(None, None)


def test_digests_of_many_rows_are_those_of_each():
    table = Base.metadata.tables["candidates"]
    columns = ("campaign_id", "name", "sampling", "first_round")
    rows = [(1, "a", {"temperature": 0}, 0), (1, "b", {"temperature": 0.0}, 0), (1, "b", None, False)]
    assert digests_of_rows(table, columns, rows) == [row_digest(table, columns, each) for each in rows]
    assert row_digest(table, columns, rows[0]) == "8c4ea236b24178c5d287baceb3afaee2"
