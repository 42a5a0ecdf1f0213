"""Old campaigns go, with what is theirs alone."""

import datetime as dt

import pytest
from sqlalchemy import func, select, text, update
from stored_campaigns import NOW, canary, decision, generation, store_campaign

from storage import (
    campaign_records,
    canary_records,
    generation_records,
    leases,
    maintenance,
    outcome_records,
    pruning,
    views,
)
from storage.errors import LeaseHeld
from storage.models import Campaign, Canary, Dataset, Example, Generation, Prompt
from storage.records import Holder, NewComparison

LATER = NOW + dt.timedelta(days=40)
HOLDER = Holder(host="here", pid=1, process_started_at=1.0)


@pytest.fixture
def old(campaign):
    campaign.finish(campaign.plan(0, [0, 1], [0, 0]), [1.0, None])
    return campaign


@pytest.fixture
def reusing(old):
    """A campaign that was active later, and uses the first text of the old one."""
    other = store_campaign(old.database, "other")
    round_ = other.plan(0, [2], [1])
    with old.database.writing() as session:
        [text_id] = [each.id for each in generation_records.texts_by_key(session, ["letters-0-0"]).values()]
        used = NewComparison(
            position=0,
            candidate_a_id=other.candidate_ids[2],
            example_id=other.example_ids[1],
            generation_a_id=text_id,
            judge="exact",
            outcome=1.0,
        )
        outcome_records.add_outcomes(session, round_.id, [used], decision(), LATER)
    return other


def prunable(database, **chosen):
    with database.reading() as session:
        return pruning.prunable(session, before=LATER - dt.timedelta(days=30), **chosen)


def prune(database, campaigns):
    with database.writing() as session:
        pruning.prune(session, campaigns, now=LATER, is_gone=lambda _: False)


def rows(database, model):
    with database.reading() as session:
        return session.scalar(select(func.count()).select_from(model))


def test_only_what_was_idle_for_long_is_offered_with_what_would_go(reusing):
    [offered] = prunable(reusing.database)
    assert (offered.name, offered.comparisons, offered.generations, offered.kept) == ("letters", 2, 1, 1)
    assert offered.last_active == NOW
    assert prunable(reusing.database, name="other") == []


def test_a_pruned_campaign_leaves_nothing_but_data_and_what_others_use(reusing):
    database = reusing.database
    prune(database, prunable(database))
    with database.reading() as session:
        assert [each.name for each in campaign_records.campaigns(session)] == ["other"]
        assert [row["text"] for row in views.comparisons(session, reusing.record.id)] == [
            "text of letters-0-0"
        ]
        assert maintenance.problems(session) == []
    assert (rows(database, Generation), rows(database, Prompt)) == (1, 1)
    assert (rows(database, Dataset), rows(database, Example)) == (1, 5)
    reusing.finish(reusing.plan(1, [0], [0]), [0.0])


def test_the_indexes_made_for_deleting_are_gone_afterwards(reusing):
    def indexes():
        with reusing.database.engine.connect() as connection:
            master = "pg_class" if reusing.database.is_postgresql else "sqlite_master"
            column = "relname" if reusing.database.is_postgresql else "name"
            return set(connection.scalars(text(f"SELECT {column} FROM {master}")))

    before = indexes()
    prune(reusing.database, prunable(reusing.database))
    assert indexes() == before


def test_a_campaign_that_runs_is_not_deleted_and_neither_are_those_beside_it(old):
    old_too = store_campaign(old.database, "idle")
    leases.acquire(
        old.database,
        old.record.id,
        HOLDER,
        now=LATER,
        lifetime=dt.timedelta(seconds=60),
        is_gone=lambda _: False,
    )
    assert {each.name for each in prunable(old.database)} == {"letters", old_too.record.name}
    with pytest.raises(LeaseHeld, match="'letters' is being run by process 1 on here"):
        prune(old.database, prunable(old.database))
    assert rows(old.database, Campaign) == 2


def test_vacuum_gives_back_the_room_of_deleted_rows(old):
    with old.database.writing() as session:
        made = [("k" * 60 + f"{i:04}", "text " * 200) for i in range(2000)]
        generation_records.add_generations(
            session, 1, [generation(key, text=each) for key, each in made], NOW
        )
    prune(old.database, prunable(old.database))
    before, after = maintenance.vacuum(old.database)
    assert after < before - 1_000_000
    with old.database.reading() as session:
        assert maintenance.problems(session) == []


def test_of_a_pruned_campaigns_canaries_those_stay_that_others_are_compared_with_or_texts_name(reusing):
    database, old = reusing.database, reusing.database
    with database.writing() as session:
        campaign_id = campaign_records.get_campaign(session, "letters").id
        ids = [
            canary_records.add_canary(session, campaign_id, canary(verdict), NOW)
            for verdict in ("first", "same", "changed", "same")
        ]
        session.execute(update(Generation).where(Generation.id == 1).values(canary_id=ids[1]))
        [taken] = generation_records.texts_by_key(session, ["letters-0-0"]).values()
        assert taken.id == 1
    prune(old, prunable(old))
    with database.reading() as session:
        left = session.execute(select(Canary.id, Canary.campaign_id).order_by(Canary.id)).tuples().all()
        assert left == [(id_, None) for id_ in ids[:3]]
        assert canary_records.last_reference(session, "f" * 64).id == ids[2]
        assert maintenance.problems(session) == []
