"""A database moves to the other kind and back without a difference."""

import datetime as dt
from contextlib import nullcontext
from types import SimpleNamespace

import pytest
from hostile_texts import HOSTILE_TEXTS
from sqlalchemy import Table, select, text
from sqlalchemy.dialects import postgresql
from stored_campaigns import NOW, all_parts, canary, generation, judgment, store_campaign

from winnow.storage.admin import maintenance as copying
from winnow.storage.admin import prune as pruning
from winnow.storage.admin.maintenance import content, copy_database
from winnow.storage.admin.schema import ensure_schema
from winnow.storage.engine.database import open_database
from winnow.storage.errors import CopyRefused, StorageUnavailable
from winnow.storage.models import Base, Campaign, Comparison, ReuseStats
from winnow.storage.queries import campaign_views
from winnow.storage.queries.objective.earlier_campaigns import campaigns_before, scored_positions
from winnow.storage.records import canaries as canary_records
from winnow.storage.records import generations as generation_records
from winnow.storage.text import storable


@pytest.fixture
def elsewhere(backend, tmp_path, request):
    """An empty database of the other kind."""
    if backend == "postgresql":
        database = open_database(f"sqlite:///{tmp_path / 'elsewhere.db'}")
        yield database
        database.close()
        return
    server = request.getfixturevalue("postgresql")
    url = server.new_database()
    database = open_database(url)
    yield database
    database.close()
    server.drop_database(url)


@pytest.fixture
def full(campaign):
    """A database with rows in nearly every table."""
    campaign.finish(
        campaign.plan(0, [0, 1, 2], [0, 0, 0]),
        [1.0, 1 / 3, None],
        best=0,
        estimates=[1, 0.5, None],
        **all_parts([1, None, 2]),
    )
    duels = store_campaign(campaign.database, "duels", objective="best-duel")
    duels.finish_duels(
        duels.plan(0, [[0, 1]], [2]), [(0.5, [judgment("original", 1.0), judgment("swapped", "lost")])]
    )
    with campaign.database.writing() as session:
        hostile = [generation(f"h{i}", text=each, prompt=each) for i, each in enumerate(HOSTILE_TEXTS)]
        generation_records.add_generations(session, 1, hostile, NOW)
        texts = [storable(each) for each in HOSTILE_TEXTS]
        canary_records.add_canary(session, duels.record.id, canary("first", texts=texts), NOW)
    return campaign.database


def contents(database):
    with database.reading() as session:
        return {table.name: content(session, table) for table in Base.metadata.sorted_tables}


def test_a_copy_holds_what_the_original_holds_and_can_be_written_to(full, elsewhere):
    reported = {}
    copy_database(full, elsewhere, report=reported.__setitem__)
    assert contents(elsewhere) == contents(full) == reported
    assert reported["comparisons"].rows == 4
    known = [reported[table].rows for table in ("standings", "rankings", "differences", "bets")]
    assert known == [6, 2, 2, 2]
    later = store_campaign(elsewhere, "later")
    later.finish(later.plan(0, [0], [0]), [1.0])
    with elsewhere.reading() as session:
        assert campaign_views.totals(session, later.record.id)["comparisons"] == 1


def test_a_campaign_in_the_copy_does_not_get_the_id_of_a_deleted_one(full, elsewhere):
    with full.writing() as session:
        last = max(session.scalars(select(Campaign.id)))
        found = pruning.prunable(session, before=NOW + dt.timedelta(days=1), name="duels")
        assert [each.id for each in found] == [last]
        pruning.prune(session, found, is_gone=lambda _: True, seen_by=scored_positions)
    copy_database(full, elsewhere)
    assert store_campaign(elsewhere, "later").record.id == last + 1


def test_the_copy_of_a_database_without_campaigns_knows_those_that_were_deleted(full, elsewhere):
    with full.writing() as session:
        ids = sorted(session.scalars(select(Campaign.id)))
        found = pruning.prunable(session, before=NOW + dt.timedelta(days=1))
        assert sorted(each.id for each in found) == ids
        pruning.prune(session, found, is_gone=lambda _: True, seen_by=scored_positions)
    copy_database(full, elsewhere)
    later = store_campaign(elsewhere, "later")
    assert later.record.id == ids[-1] + 1
    with elsewhere.writing() as session:
        earlier = campaigns_before(session, later.record, with_duels=True)
        assert [each.id for each in earlier] == ids[::-1]
        found = pruning.prunable(session, before=NOW + dt.timedelta(days=1))
        pruning.prune(session, found, is_gone=lambda _: True, seen_by=lambda *_: {0})


def test_a_campaign_in_the_copy_does_not_get_the_id_of_one_that_texts_were_taken_from(full, elsewhere):
    """A deleted campaign that had no outcome is remembered nowhere else."""
    with full.writing() as session:
        last = max(session.scalars(select(Campaign.id)))
        counts = {"generations": 1, "input_tokens": 1, "output_tokens": 1, "seconds": 0.5}
        key = {"campaign_id": last, "role": "candidate", "name": "a", "taken_from_id": last + 1}
        session.add(ReuseStats(**key, **counts))
    copy_database(full, elsewhere)
    assert store_campaign(elsewhere, "later").record.id == last + 2


def test_rows_are_compared_in_an_order_that_no_language_of_a_database_changes():
    """PostgreSQL would put B behind a: texts of a key are ordered by their code points everywhere."""
    asked = []
    session = SimpleNamespace(execute=lambda query: asked.append(query) or nullcontext([]))
    keys_of_text = 0
    for table in Base.metadata.sorted_tables:
        list(copying._rows(session, table))
        order = str(asked[-1].compile(dialect=postgresql.dialect())).partition("ORDER BY ")[2].split(", ")
        for column, ordered in zip(table.primary_key.columns, order, strict=True):
            by_language = column.type.python_type is str
            keys_of_text += by_language
            assert ordered.endswith(' COLLATE "C"') == by_language
    assert keys_of_text > 3


def test_a_database_that_holds_rows_is_not_copied_into(full, elsewhere):
    ensure_schema(elsewhere)
    store_campaign(elsewhere, "mine")
    before = contents(elsewhere)
    with pytest.raises(CopyRefused, match=r"already holds rows of datasets; name an empty database"):
        copy_database(full, elsewhere)
    assert contents(elsewhere) == before


def test_a_copy_that_arrives_changed_is_refused_and_leaves_nothing(full, elsewhere, monkeypatch):
    insert_rows = copying.insert_rows

    def drops_a_row(session, table, columns, rows):
        kept = list(rows)
        insert_rows(session, table, columns, kept[:-1] if table.name == "candidate_stats" else kept)

    monkeypatch.setattr(copying, "insert_rows", drops_a_row)
    with pytest.raises(CopyRefused, match=r"stats read back from .* differs"):
        copy_database(full, elsewhere)
    assert {each.rows for each in contents(elsewhere).values()} == {0}
    monkeypatch.undo()
    copy_database(full, elsewhere)


@pytest.mark.parametrize("change", ["outcome = 0.9999999999999999 WHERE outcome = 1.0", "answer = ''"])
def test_the_digest_of_a_table_sees_the_smallest_change(full, change):
    comparisons = Comparison.__table__
    assert isinstance(comparisons, Table)
    with full.reading() as session:
        before = content(session, comparisons)
    with full.writing() as session:
        session.execute(text(f"UPDATE comparisons SET {change}"))
        assert content(session, comparisons) != before


@pytest.mark.parametrize("backend", ["postgresql"], indirect=True)
def test_a_source_that_breaks_in_the_middle_is_not_told_to_be_the_target(
    full, elsewhere, postgresql, monkeypatch
):
    name, insert_rows = full.url.rpartition("/")[2], copying.insert_rows
    ending = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"

    def insert_after_a_cut(connection, table, columns, rows):
        if table.name == "examples":
            next(rows)
            postgresql.execute(ending)
        insert_rows(connection, table, columns, rows)

    monkeypatch.setattr(copying, "ROWS_AT_ONCE", 1)
    monkeypatch.setattr(copying, "insert_rows", insert_after_a_cut)
    with pytest.raises(StorageUnavailable) as refused:
        copy_database(full, elsewhere)
    assert str(refused.value).startswith(f"the results database {full.url} is unavailable: ")
    assert {each.rows for each in contents(elsewhere).values()} == {0}
