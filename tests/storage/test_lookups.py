"""Ids are known before their rows are stored, and nobody else ever gets them."""

from sqlalchemy import delete
from stored_campaigns import NOW, generation

from winnow.storage.engine.raw_sql import ids_with
from winnow.storage.models import Generation
from winnow.storage.records import generations as generation_records


def stored(campaign, *keys):
    round_ = campaign.plan(0, [0], [0])
    with campaign.database.writing() as session:
        made = generation_records.add_generations(session, round_.id, [generation(key) for key in keys], NOW)
    return {key: text.id for key, text in made.items()}


def ids(campaign, *keys):
    with campaign.database.writing() as session:
        return ids_with(session.connection(), "generations", "key", keys)


def test_what_is_stored_keeps_its_id_and_each_other_digest_gets_one_of_its_own(campaign):
    there = stored(campaign, "a", "b")
    found, new = ids(campaign, "b", "c", "c", "d")
    assert found == {"b": there["b"]}
    assert list(new) == ["c", "d"]
    assert len({*there.values(), *new.values()}) == 4


def test_the_id_of_a_deleted_row_is_given_to_no_other(campaign):
    there = stored(campaign, "a", "b")
    with campaign.database.writing() as session:
        session.execute(delete(Generation))
    assert min(ids(campaign, "c")[1].values()) > max(there.values())


def test_no_digest_needs_no_id(campaign):
    assert ids(campaign) == ({}, {})


def test_what_is_stored_uses_up_no_id(campaign):
    there = stored(campaign, "a", "b")
    for _ in range(3):
        assert ids(campaign, "a", "b") == (there, {})
    assert ids(campaign, "c")[1] == {"c": max(there.values()) + 1}
