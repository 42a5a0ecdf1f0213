"""Rows that are stored outside rounds are counted, so that `winnow db check` notices if one is gone."""

import shutil
import sqlite3
import threading
from contextlib import closing

import pytest
from sqlalchemy import inspect, text
from stored_campaigns import NOW, canary, generation, store_campaign
from test_digests import fill_all, found

from winnow.storage.admin import prune
from winnow.storage.engine.database import open_database
from winnow.storage.engine.row_digests import COLUMN, OWN
from winnow.storage.models import Base
from winnow.storage.records import annotations, campaigns, labels
from winnow.storage.records import canaries as canary_records
from winnow.storage.records import generations as generation_records
from winnow.storage.records.campaigns import set_execution
from winnow.storage.records.record_types import AnnotationRecord, NewAnnotationTask, NewModelLoad
from winnow.storage.records.row_counts import uncounted

NOT_COUNTED = {
    "leases",  # they change as long as somebody works
    "pins",  # they only keep outputs from being deleted meanwhile
    "embeddings",  # made again from the texts
    "file_digests",  # read again from the file
    "alembic_version",
}
LOAD = NewModelLoad(model="m", devices=[], kind="load", seconds=1.0, ended_at=NOW)
SAID = AnnotationRecord(verdict=0.5, reason=None, annotator="Ann", source="page", annotated_at=NOW)


def close_and_find(database):
    path = database.url.removeprefix("sqlite:///")
    with database.outside_transactions() as run:
        run("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()
    return path


def found_without(path, copy, *statements):
    shutil.copy(path, copy)
    with closing(sqlite3.connect(copy, isolation_level=None)) as driver:
        for statement in statements:
            driver.execute(statement)
    with closing(open_database(f"sqlite:///{copy}", read_only=True)) as changed:
        return found(changed)


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_of_every_table_a_row_that_is_gone_is_noticed(database, tmp_path):
    fill_all(database)
    path = close_and_find(database)
    unnoticed = []
    for table in Base.metadata.tables.values():
        keys = [f'"{each.name}"' for each in table.primary_key]
        with closing(sqlite3.connect(path)) as driver:
            rows = driver.execute(f"SELECT {', '.join(keys)} FROM {table.name}").fetchall()
        assert rows or table.name in NOT_COUNTED, table.name
        for row in rows if table.name not in NOT_COUNTED else ():
            which = " AND ".join(f"{key} = {value!r}" for key, value in zip(keys, row, strict=True))
            if not found_without(path, tmp_path / "less.db", f"DELETE FROM {table.name} WHERE {which}"):
                unnoticed.append(f"{table.name} {row}")
    # Of the round that is planned, nothing is there but the plan, which is made again.
    assert unnoticed == ["rounds (5,)"]


@pytest.mark.parametrize(
    ("lost", "told"),
    [
        (["labels"], "for row 1 of datasets: 5 were stored, and 4 exist"),
        (["pruned_campaigns"], "for row 1 of datasets: 5 were stored, and 4 exist"),
        (["model_loads"], "for row 1 of campaigns: 6 were stored, and 5 exist"),
        (["canaries"], "for row 1 of campaigns: 6 were stored, and 5 exist"),
        (["annotations"], "for row 2 of rounds: 5 were stored, and 4 exist"),
        (["annotations", "annotation_tasks"], "for row 2 of rounds: 5 were stored, and 3 exist"),
        (["stream_batches"], "for row 1 of campaigns: 6 were stored, and 5 exist"),
    ],
)
def test_a_table_without_its_rows_is_noticed_and_what_is_lost_is_said(database, lost, told):
    fill_all(database)
    with database.writing() as session:
        for table in lost:
            session.execute(text(f"DELETE FROM {table}"))
    assert [each for each in found(database) if told in each]


def test_examples_that_no_comparison_uses_are_missed(database):
    fill_all(database)
    with database.writing() as session:
        session.execute(text("DELETE FROM examples WHERE key = 'e4'"))
    assert "dataset 1 was stored with 5 examples, and 4 exist" in found(database)


@pytest.mark.parametrize("backend", ["postgresql"], indirect=True)
def test_references_to_nothing_are_noticed_where_constraints_were_not_loaded(database):
    fill_all(database)
    with database.writing() as session:
        for table, parent in (("outputs", "generations"), ("comparisons", "examples")):
            keys = inspect(session.connection()).get_foreign_keys(table)
            [name] = [each["name"] for each in keys if each["referred_table"] == parent]
            session.execute(text(f"ALTER TABLE {table} DROP CONSTRAINT {name}"))
        session.execute(text("UPDATE outputs SET generation_id = 77777"))
        session.execute(text("UPDATE comparisons SET example_id = 77777 WHERE id = 1"))
    said = found(database)
    assert "2 rows of outputs refer to missing rows of generations" in said
    assert "1 rows of comparisons refer to missing rows of examples" in said


def as_before_counts(database):
    """Take the counts away; the whole digests of their owners are lost as well, which NULL says."""
    with database.writing() as session:
        for table in ("datasets", "campaigns", "rounds"):
            session.execute(text(f"UPDATE {table} SET {COLUMN} = NULL"))


def test_what_was_stored_before_is_not_covered_until_a_row_is_added(database):
    campaign = store_campaign(database)
    give(database, campaign, 0)
    as_before_counts(database)
    with database.writing() as session:
        session.execute(text("DELETE FROM labels"))
    assert found(database) == []
    with database.reading() as session:
        assert uncounted(session) == 2  # a dataset with its campaign, and a campaign with its candidates
    give(database, campaign, 1)
    give(database, campaign, 2)
    assert found(database) == []
    with database.writing() as session:
        set_execution(session, campaign.record.id, {"budget": 7})
        campaigns.add_loads(session, campaign.record.id, [LOAD])
    assert found(database) == []
    with database.reading() as session:
        assert uncounted(session) == 0
    with database.writing() as session:
        session.execute(text("DELETE FROM labels WHERE id = (SELECT max(id) FROM labels)"))
    assert found(database) == [
        "rows of labels, campaigns or pruned_campaigns were lost, or added, for row 1 of datasets: "
        "3 were stored, and 2 exist"
    ]


def test_rows_that_are_counted_leave_the_own_digest_of_their_owner(database):
    campaign = store_campaign(database)
    give(database, campaign, 0)
    with database.writing() as session:
        campaigns.add_loads(session, campaign.record.id, [LOAD])
    for _ in range(2):
        assert found(database) == []
        with database.writing() as session:  # which makes a new digest of the campaign, beside the count
            set_execution(session, campaign.record.id, {"budget": 8})
            campaigns.add_loads(session, campaign.record.id, [LOAD])
    for table, column in (("datasets", "path"), ("campaigns", "series")):
        with database.writing() as session:
            session.execute(text(f"UPDATE {table} SET {column} = 'other'"))
        assert any(f"row 1 of {table} is not as it was stored" in each for each in found(database))


def test_a_count_that_cannot_be_read_is_a_problem_and_no_error(database):
    campaign = store_campaign(database)
    give(database, campaign, 0)
    with database.writing() as session:
        session.execute(
            text(f"UPDATE datasets SET {COLUMN} = substr({COLUMN}, 1, {OWN + 1}) || 'xyzxyzxyz' WHERE id = 1")
        )
    assert any("an unreadable number were stored, and 2 exist" in each for each in found(database))


def test_a_label_or_annotation_that_is_given_again_counts_once(database):
    campaign = store_campaign(database)
    round_ = campaign.plan(0, [0], [0])
    campaign.texts(round_)
    with database.writing() as session:
        task = NewAnnotationTask(key="a" * 64, example_id=1, generation_a_id=1)
        annotations.add_tasks(session, round_.id, [task])
    for _ in range(3):
        give(database, campaign, 0)
        with database.writing() as session:
            annotations.add_tasks(session, round_.id, [task])
            annotations.set_annotation(session, 1, SAID)
    assert found(database) == []


def test_an_output_that_an_earlier_round_pays_for_is_counted_there(database):
    campaign = store_campaign(database)
    first, second = campaign.plan(0, [0], [0]), campaign.plan(1, [1], [1])
    texts = campaign.texts(second)
    with database.writing() as session:
        generation_records.charge(session, first.id, texts)
    assert found(database) == []


def test_campaigns_that_are_pruned_or_forgotten_are_not_missed(database):
    kept, leaving = store_campaign(database), store_campaign(database, "leaving")
    leaving.finish(leaving.plan(0, [0], [0]), [1.0])
    forgotten = store_campaign(database, "forgotten")
    with database.writing() as session:
        prunable = prune.prunable(session, before=NOW.replace(year=2027), name="leaving")
        prune.prune(session, prunable, is_gone=lambda _: True, seen_by=lambda *_: {0})
        prune.forget(session, forgotten.record, {1, 2})
    assert found(database) == []
    with database.writing() as session:
        session.execute(text("DELETE FROM pruned_campaigns WHERE name = 'leaving'"))
    assert found(database) != []
    assert kept.record.dataset_id == 1


def give(database, campaign, position):
    with database.writing() as session:
        labels.set_label(session, campaign.record.dataset_id, position, ["x"], "terminal", NOW)


def test_people_and_runs_that_write_at_once_give_no_false_alarm(database):
    """Two who label, one who annotates, a run with its rounds, loads and canaries, a resume with settings."""
    campaign = store_campaign(database, n_examples=60)
    rounds = [campaign.plan(number, [0], [number]) for number in range(20)]
    campaign_id, failed = campaign.record.id, []

    def label(opened, turn, half):
        labels.set_label(opened, campaign.record.dataset_id, 2 * turn + half, ["x"], "terminal", NOW)

    def annotate(opened, turn):
        [shown] = generation_records.add_generations(
            opened, rounds[turn].id, [generation(f"shown {turn}")], NOW
        ).values()
        task = NewAnnotationTask(
            key=f"{turn:064d}", example_id=campaign.example_ids[turn], generation_a_id=shown.id
        )
        annotations.add_tasks(opened, rounds[turn].id, [task])
        [(key,)] = opened.execute(
            text("SELECT id FROM annotation_tasks WHERE key = :key"), {"key": f"{turn:064d}"}
        ).all()
        annotations.set_annotation(opened, key, SAID)

    def run(opened, turn):
        generation_records.add_generations(opened, rounds[turn].id, [generation(f"run {turn}")], NOW)
        campaigns.add_loads(opened, campaign_id, [LOAD, LOAD])
        canary_records.add_canary(opened, campaign_id, canary("same"), NOW)

    def resume(opened, turn):
        set_execution(opened, campaign_id, {"budget": turn})

    def work(step):
        try:
            with closing(open_database(database.url)) as own:
                for turn in range(20):
                    with own.writing() as session:
                        step(session, turn)
        except BaseException as error:
            failed.append(error)

    steps = [
        lambda opened, turn: label(opened, turn, 0),
        lambda opened, turn: label(opened, turn, 1),
        annotate,
        run,
        resume,
    ]
    workers = [threading.Thread(target=work, args=(step,)) for step in steps]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert failed == []
    assert found(database) == []
    with database.writing() as session:
        for table in ("labels", "annotations", "model_loads", "canaries"):
            session.execute(
                text(f"DELETE FROM {table} WHERE {'task_id' if table == 'annotations' else 'id'} = 3")
            )
    assert len([each for each in found(database) if "were lost, or added" in each]) == 3
