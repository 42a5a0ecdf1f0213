"""What is said once a served model was exchanged behind its name: it is another one than before."""

from contextlib import closing
from dataclasses import replace

import pytest
from stored_campaigns import NOW, canary, new_database
from test_asked_before import answered

from winnow.storage.records import canaries as canary_records
from winnow.tasks.answer.earlier_campaigns import changed_since, earlier_on_same_question
from winnow.tasks.answer.sentences.answer_lines import answer_lines
from winnow.tasks.campaign.look import Look
from winnow.tasks.queries.schedule_history import differs_in
from winnow.tasks.queries.status import campaign_status


@pytest.fixture
def database(tmp_path):
    with closing(new_database(tmp_path / "winnow.db")) as database:
        yield database


def met(campaign, verdict, epoch):
    """What its served model answered when the campaign met it."""
    with campaign.database.writing() as session:
        canary_records.add_canary(session, campaign.record.id, canary(verdict, epoch=epoch), NOW)


def said(campaign, **changes):
    with campaign.database.reading() as session:
        return campaign_status(Look(session, replace(campaign.record, **changes))).answer


ASSUMED = "if the served models were not changed after seeing the examples that an earlier campaign drew"


def test_by_the_same_draws_a_claim_takes_for_granted_that_nobody_changed_it_in_sight_of_them(database):
    first, second = answered(database, "first"), answered(database, "second")
    met(first, "first", 0)
    met(second, "changed", 1)
    assert said(first).claim.assumptions == ()
    answer = said(second)
    assert (answer.claim.kind, answer.claim.assumptions) == ("proven", ("unseen-draws",))
    lines = dict(answer_lines(answer))
    assert lines["confidence"].endswith(ASSUMED)
    assert ASSUMED in lines["mean"]


@pytest.mark.parametrize("verdict", ["same", "first"])
def test_another_seed_draws_others_and_an_unchanged_model_is_the_same(database, verdict):
    first, second = answered(database, "first"), answered(database, "second")
    met(first, "first", 0)
    met(second, verdict, 0)
    assert said(second).claim.assumptions == ()
    met(second, "changed", 1)
    assert said(second, seed=8).claim.assumptions == ()
    assert said(second).claim.assumptions == ("unseen-draws",)


def test_who_only_met_it_since_then_has_seen_nothing_else(database):
    first, second, third = (answered(database, name) for name in ("first", "second", "third"))
    met(first, "first", 0)
    met(second, "changed", 1)
    met(third, "same", 1)
    with database.reading() as session:
        assert changed_since(Look(session, third.record)).campaign == "first"
        assert earlier_on_same_question(Look(session, replace(third.record, seed=8))) == ("second",)
        assert differs_in(session, first.record, third.record) == ["what a server serves"]
        assert differs_in(session, second.record, third.record) == []
