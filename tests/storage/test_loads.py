import datetime as dt

import pytest
from sqlalchemy.exc import IntegrityError
from stored_campaigns import NOW, generation, new_database, store_campaign

from winnow.storage.errors import ConflictingRecord
from winnow.storage.queries import campaign_views
from winnow.storage.queries import costs as cost_views
from winnow.storage.records import campaigns
from winnow.storage.records import generations as generation_records
from winnow.storage.records import rounds as round_records
from winnow.storage.records.record_types import NewModelLoad


def load(model, **fields):
    made_up = {"devices": (), "kind": "load", "seconds": 2.0, "ended_at": NOW}
    return NewModelLoad(model=model, **(made_up | fields))


@pytest.fixture
def database(tmp_path):
    database = new_database(tmp_path / "winnow.db")
    yield database
    database.close()


def test_loads_come_back_as_they_were_stored_and_in_that_order(database):
    campaign, other = store_campaign(database).record, store_campaign(database, "other").record
    stored = [load("m", devices=(0, 1)), load("n", kind="wake", ended_at=NOW - dt.timedelta(hours=1))]
    with database.writing() as session:
        campaigns.add_loads(session, campaign.id, stored)
        campaigns.add_loads(session, other.id, [])
    with database.reading() as session:
        assert campaigns.list_loads(session, campaign.id) == [
            {"model": "m", "devices": [0, 1], "kind": "load", "seconds": 2.0, "ended_at": NOW},
            {
                "model": "n",
                "devices": [],
                "kind": "wake",
                "seconds": 2.0,
                "ended_at": NOW - dt.timedelta(hours=1),
            },
        ]
        assert campaigns.list_loads(session, other.id) == []
        assert campaigns.load_totals(session, other.id) == {"loads": 0, "load_seconds": 0.0}


@pytest.mark.parametrize("wrong", [{"kind": "nap"}, {"seconds": -1.0}])
def test_what_cannot_be_is_refused_by_the_database(database, wrong):
    campaign = store_campaign(database).record
    with pytest.raises((IntegrityError, ConflictingRecord)), database.writing() as session:
        campaigns.add_loads(session, campaign.id, [load("m", **wrong)])


def test_costs_count_the_loads_of_a_model_once_and_add_up_to_the_totals(database):
    campaign = store_campaign(database)
    campaign.finish(campaign.plan(0, [0, 1], [0, 0]), [1.0, 0.0])
    with database.writing() as session:
        reply = generation("reply", model="judge", seconds=3.0)
        round_ = round_records.add_round(
            session, campaign.record.id, number=1, arms=[2], examples=[0], now=NOW
        )
        generation_records.add_generations(session, round_.id, [reply], NOW)
        waited = [load("m"), load("m", kind="wake", seconds=0.5), load("judge", seconds=4.0), load("mute")]
        campaigns.add_loads(session, campaign.record.id, waited)
    with database.reading() as session:
        rows = cost_views.costs(session, campaign.record.id)
        totals = campaign_views.totals(session, campaign.record.id)
    assert [(row["candidate"], row["model"], row["loads"], row["load_seconds"]) for row in rows] == [
        ("a", "m", 2, 2.5),
        ("b", "m", 0, 0.0),
        (None, "judge", 1, 4.0),
        (None, "mute", 1, 2.0),
    ]
    assert (totals["loads"], totals["load_seconds"]) == (4, 8.5)
    for key in ("generations", "input_tokens", "output_tokens", "loads", "load_seconds"):
        assert sum(row[key] for row in rows) == totals[key]
