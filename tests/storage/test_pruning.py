"""Old campaigns go, with what is theirs alone."""

import datetime as dt

import pytest
from sqlalchemy import func, select, text, update
from stored_campaigns import NOW, all_parts, canary, decision, generation, store_campaign

from winnow.storage.admin import check, maintenance
from winnow.storage.admin import prune as pruning
from winnow.storage.engine import statements
from winnow.storage.errors import LeaseHeld, TextsLost
from winnow.storage.models import (
    Bet,
    Campaign,
    Canary,
    Dataset,
    Difference,
    Example,
    Generation,
    Pin,
    Prompt,
    Ranking,
    Standing,
)
from winnow.storage.queries import campaign_views, costs
from winnow.storage.queries import costs as cost_views
from winnow.storage.queries import costs as reuse_views
from winnow.storage.queries.objective.earlier_campaigns import scored_positions
from winnow.storage.records import campaigns as campaign_records
from winnow.storage.records import canaries as canary_records
from winnow.storage.records import generations as generation_records
from winnow.storage.records import leases
from winnow.storage.records import outcomes as outcome_records
from winnow.storage.records.record_types import Holder, NewComparison

LATER = NOW + dt.timedelta(days=40)
HOLDER = Holder(host="here", pid=1, boot_id="a", pid_namespace="1", started_ticks=1)


@pytest.fixture
def old(campaign):
    campaign.finish(campaign.plan(0, [0, 1], [0, 0]), [1.0, None], **all_parts([1, None, None]))
    return campaign


@pytest.fixture
def reusing(old):
    """A campaign that was active later, and uses the first text of the old one."""
    other = store_campaign(old.database, "other")
    round_ = other.plan(0, [2], [1])
    with old.database.writing() as session:
        taken = generation_records.take_texts(session, round_.id, ["letters-0-0"])
        [text_id] = [each.id for each in taken.values()]
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
        pruning.prune(session, campaigns, is_gone=lambda _: False, seen_by=scored_positions)


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
        assert [row["text"] for row in campaign_views.comparisons(session, reusing.record.id)] == [
            "text of letters-0-0"
        ]
        assert check.problems(session) == []
    assert (rows(database, Generation), rows(database, Prompt)) == (1, 1)
    assert (rows(database, Dataset), rows(database, Example)) == (1, 5)
    assert [rows(database, each) for each in (Standing, Ranking, Difference, Bet)] == [3, 0, 0, 0]
    reusing.finish(reusing.plan(1, [0], [0]), [0.0])


def take(campaign, round_, *keys):
    """Take up stored texts for a round that is not recorded."""
    with campaign.database.writing() as session:
        return generation_records.take_texts(session, round_.id, keys)


def pins(database):
    with database.reading() as session:
        return set(session.execute(select(Pin.round_id, Pin.generation_id)).tuples())


def test_what_an_unfinished_round_has_taken_up_stays_as_nobodys(old):
    other = store_campaign(old.database, "other")
    round_ = other.plan(0, [2], [1])
    taken = take(other, round_, "letters-0-0", "unknown")
    assert list(taken) == ["letters-0-0"]
    assert pins(old.database) == {(round_.id, taken["letters-0-0"].id)}
    [offered] = prunable(old.database, name="letters")
    assert (offered.generations, offered.kept) == (1, 1)
    prune(old.database, [offered])
    with old.database.reading() as session:
        assert session.execute(select(Generation.key, Generation.round_id)).all() == [("letters-0-0", None)]
        assert campaign_views.totals(session, other.record.id)["generations"] == 0
    assert take(other, round_, "letters-0-0") == taken
    prune(old.database, prunable(old.database, name="other"))
    assert (rows(old.database, Generation), rows(old.database, Prompt)) == (0, 0)


def test_a_round_that_is_recorded_lets_go_of_what_its_comparisons_hold_and_of_nothing_else(reusing):
    database = reusing.database
    assert pins(database) == set()
    round_ = reusing.plan(1, [0], [0])
    taken = take(reusing, round_, "letters-0-0", "letters-0-1")
    beside = taken.pop("letters-0-1")
    used = NewComparison(
        position=0,
        candidate_a_id=reusing.candidate_ids[0],
        example_id=reusing.example_ids[0],
        generation_a_id=taken["letters-0-0"].id,
        judge="exact",
        outcome=1.0,
    )
    with database.writing() as session:
        outcome_records.add_outcomes(session, round_.id, [used], decision(), LATER)
    assert pins(database) == {(round_.id, beside.id)}
    for _ in range(2):
        prune(database, prunable(database))
        assert rows(database, Generation) == 2


def test_own_texts_need_no_pin(old):
    round_ = old.plan(1, [0], [1])
    assert set(take(old, round_, "letters-0-0", "letters-0-1")) == {"letters-0-0", "letters-0-1"}
    assert pins(old.database) == set()


def test_a_text_that_another_campaign_stored_meanwhile_is_pinned_where_it_is_found(old):
    other = store_campaign(old.database, "other")
    round_ = other.plan(0, [0, 1], [0, 0])
    with old.database.writing() as session:
        made = [generation("letters-0-0"), generation("new")]
        stored = generation_records.add_generations(session, round_.id, made, NOW)
    assert pins(old.database) == {(round_.id, stored["letters-0-0"].id)}


def test_campaigns_that_use_each_others_texts_go_together_with_all_of_them(reusing):
    with reusing.database.reading() as session:
        both = pruning.prunable(session, before=LATER + dt.timedelta(days=1))
    assert {each.name for each in both} == {"letters", "other"}
    # What only those use that go as well, goes.
    assert {each.name: (each.generations, each.kept) for each in both} == {
        "letters": (2, 0),
        "other": (0, 0),
    }
    for campaigns in (both, []):
        prune(reusing.database, campaigns)
    assert (rows(reusing.database, Generation), rows(reusing.database, Prompt)) == (0, 0)


def test_what_a_pruned_campaign_had_paid_for_is_reused_and_costs_nobody_anything(reusing):
    def spent():
        with reusing.database.reading() as session:
            return [
                spend(session, reusing.record.id)
                for spend in (costs.of_rounds, costs.of_models, cost_views.costs)
            ]

    before = spent()
    prune(reusing.database, prunable(reusing.database))
    assert spent() == before
    with reusing.database.reading() as session:
        [row] = reuse_views.reuse(session, reusing.record.id)
        _, rows = statements.run_sql(session, "SELECT campaign, taken_from, generations FROM v_reuse")
        assert [tuple(each) for each in rows] == [("other", None, 1)]
    assert (row["taken_from"], row["generations"]) == (None, 1)


@pytest.mark.parametrize("exchange", ["key = 'another'", "id = id + 1000"])
def test_an_id_that_is_not_of_the_text_any_more_is_refused(old, exchange):
    with old.database.writing() as session:
        found = generation_records.texts_by_key(session, ["letters-0-0", "letters-0-1"])
        keys = {text.id: key for key, text in found.items()}
        generation_records.require_texts(session, keys)
        generation_records.require_texts(session, {})
    with old.database.writing() as session:
        old_id = found["letters-0-0"].id
        session.execute(text("DELETE FROM comparisons"))
        session.execute(text(f"UPDATE generations SET {exchange} WHERE id = {old_id}"))
        with pytest.raises(TextsLost, match="1 of the outputs"):
            generation_records.require_texts(session, keys)


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
        assert check.problems(session) == []


def test_of_a_pruned_campaigns_canaries_those_stay_that_others_are_compared_with_or_texts_name(reusing):
    database, old = reusing.database, reusing.database
    with database.writing() as session:
        campaign_id = campaign_records.get_campaign(session, "letters").id
        ids = [
            canary_records.add_canary(session, campaign_id, canary(verdict), NOW)
            for verdict in ("first", "same", "changed", "same")
        ]
        change = {"canary_id": ids[1], "row_digest": None}
        session.execute(update(Generation).where(Generation.id == 1).values(change))
        [taken] = generation_records.texts_by_key(session, ["letters-0-0"]).values()
        assert taken.id == 1
    prune(old, prunable(old))
    with database.reading() as session:
        left = session.execute(select(Canary.id, Canary.campaign_id).order_by(Canary.id)).tuples().all()
        assert left == [(id_, None) for id_ in ids[:3]]
        assert canary_records.last_reference(session, "f" * 64).id == ids[2]
        assert check.problems(session) == []
