"""A deleted campaign goes on to count: what was chosen in sight of its examples was chosen all the same."""

import datetime as dt
from contextlib import closing
from dataclasses import replace
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import text
from stored_campaigns import NOW, canary, new_database, store_campaign
from test_asked_before import answered, before
from test_exchanged_models import met, said

from winnow.storage.admin import check
from winnow.storage.admin import prune as pruning
from winnow.storage.models import Campaign
from winnow.storage.records import canaries as canary_records
from winnow.storage.records import pruned as pruned_records
from winnow.storage.records.record_types import PrunedRecord
from winnow.tasks.answer.earlier_campaigns import (
    Earlier,
    changed_since,
    earlier_of,
    earlier_on_same_question,
    seen_by,
)
from winnow.tasks.campaign.look import Look


@pytest.fixture
def database(tmp_path):
    with closing(new_database(tmp_path / "winnow.db")) as database:
        yield database


def prune(database, name):
    with database.writing() as session:
        found = pruning.prunable(session, before=NOW + dt.timedelta(days=999), name=name)
        pruning.prune(session, found, is_gone=lambda _: True, seen_by=seen_by)
        assert check.problems(session) == []


def test_it_goes_on_to_have_asked_the_same(database):
    for name in ("first", "second"):
        answered(database, name)
    last = answered(database, "last")
    prune(database, "first")
    assert before(last, seed=8) == ("first (pruned)", "second")
    assert before(last) == before(last, seed=8, prompts=["another"]) == ()
    answered(database, "first")  # a new one of that name, begun after the last
    assert before(last, seed=8) == ("first (pruned)", "second")


def test_it_goes_on_to_have_seen_the_examples(database):
    answered(database, "first")
    last = answered(database, "last")
    changed = replace(last, record=replace(last.record, spec={**last.record.spec, "prompts": ["another"]}))
    with database.reading() as session:
        assert changed_since(Look(session, changed.record)) == Earlier(campaign="first", examples=3, of=3)
    prune(database, "first")
    with database.reading() as session:
        assert changed_since(Look(session, changed.record)) == Earlier(
            campaign="first (pruned)", examples=3, of=3
        )
        assert changed_since(Look(session, last.record)) is None


def test_it_goes_on_to_have_been_joined(database):
    first, last = answered(database, "first"), answered(database, "last")
    with database.writing() as session:
        session.execute(text(f"UPDATE candidates SET first_round = 1 WHERE id = {first.candidate_ids[2]}"))
    prune(database, "first")
    assert before(last) == ("first (pruned)",)


def test_it_goes_on_to_have_met_a_model_before_it_changed(database):
    first, second = answered(database, "first"), answered(database, "second")
    met(first, "first", 0)
    prune(database, "first")
    with database.writing() as session:
        canary_records.add_canary(session, second.record.id, canary("changed", epoch=1), NOW)
    assert said(second).claim.assumptions == ("unseen-draws",)
    with database.reading() as session:
        assert changed_since(Look(session, second.record)).campaign == "first (pruned)"
        assert earlier_on_same_question(Look(session, replace(second.record, seed=8))) == ()


@pytest.mark.parametrize("pruned", [False, True])
def test_a_certificate_goes_on_to_name_the_one_that_saw_its_labels(database, pruned):
    first, last = answered(database, "first"), answered(database, "last")
    tested = {"selector": {"name": "eval"}}
    with database.writing() as session:
        stored = session.get_one(Campaign, first.record.id)
        stored.objective, stored.spec = "certify", {**stored.spec, **tested}
    if pruned:
        prune(database, "first")
    spec = {**last.record.spec, **tested, "prompts": ["mended"]}
    with database.reading() as session:
        found = earlier_of(Look(session, replace(last.record, objective="certify", spec=spec)))
    assert found == Earlier(campaign="first (pruned)" if pruned else "first", examples=3, of=3)


def test_one_that_saw_nothing_leaves_nothing(database):
    store_campaign(database, "begun")
    prune(database, "begun")
    with database.reading() as session:
        assert pruned_records.pruned(session) == []


@given(st.sets(st.integers(0, 40)))
def test_positions_are_kept_as_runs(positions):
    runs = pruned_records._runs(positions)
    assert len(runs) == 2 * sum(each - 1 not in positions for each in positions)
    assert runs == sorted(set(runs))
    kept = SimpleNamespace(seen=runs)
    assert {each for each in range(50) if PrunedRecord.has_seen(kept, each)} == positions
