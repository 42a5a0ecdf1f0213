"""Whose chances of being wrong add up: earlier campaigns that asked the same by another seed or selector."""

from contextlib import closing
from dataclasses import replace

import pytest
from sqlalchemy import text
from stored_campaigns import new_database, store_campaign

from winnow.storage.models import Campaign
from winnow.tasks.answer.earlier_campaigns import Earlier, changed_since, earlier_on_same_question
from winnow.tasks.answer.status_lines import status_lines
from winnow.tasks.campaign.look import Look
from winnow.tasks.queries.status import campaign_status

PROVEN = {"kind": "proven", "delta": 0.05, "raised_by": [], "assumptions": [], "refuted": []}
TOTALS = {"answered": 3, "rounds": 1, "grid": 15}


@pytest.fixture
def database(tmp_path):
    with closing(new_database(tmp_path / "winnow.db")) as database:
        yield database


def answered(database, name):
    """A campaign that named a winner after one round."""
    campaign = store_campaign(database, name)
    campaign.finish(
        campaign.plan(0, [0, 1, 2], [0, 1, 2]),
        [1.0, 0.0, 0.0],
        best=0,
        stop=True,
        reason="confident",
        claim=PROVEN,
        estimates=[1.0, 0.0, 0.0],
        lower=[0.5, 0.0, 0.0],
        upper=[1.0, 0.4, 0.4],
        status=["best", "eliminated", "eliminated"],
    )
    return campaign


def before(campaign, *, seed=7, **spec):
    """Who asked the same before it, if it had this seed, and this in its file."""
    record = replace(campaign.record, seed=seed, spec={**campaign.record.spec, **spec})
    with campaign.database.reading() as session:
        return earlier_on_same_question(Look(session, record))


def test_another_seed_selector_or_delta_asks_the_same_question_by_other_chances(database):
    for name in ("first", "second"):
        answered(database, name)
    store_campaign(database, "begun", budget=7)  # of which no round is finished
    last = answered(database, "last")
    assert before(last, seed=8) == ("first", "second")
    assert before(last, selector={"name": "race", "params": {}}) == ("first", "second")
    assert before(last, stopping={"delta": 0.1, "epsilon": 0.0}) == ("first", "second")
    assert before(last, history_fingerprint="h") == ("first", "second")
    assert before(last, batch_size=7) == ("first", "second")
    only = replace(last, record=replace(last.record, execution={"reuse": "only"}))
    assert before(only) == ("first", "second")


def test_a_campaign_that_candidates_joined_began_as_one_of_others(database):
    first = answered(database, "first")
    last = answered(database, "last")
    with database.writing() as session:
        assert changed_since(Look(session, last.record)) is None
        session.execute(text(f"UPDATE candidates SET first_round = 1 WHERE id = {first.candidate_ids[2]}"))
    assert before(last) == ("first",)
    with database.reading() as session:
        assert changed_since(Look(session, last.record)) == Earlier(campaign="first", examples=3, of=3)


def test_one_that_has_grown_draws_others_than_it_did_as_what_it_is_now(database):
    answered(database, "first")
    last = answered(database, "last")
    assert before(last) == ()
    with database.writing() as session:
        session.execute(text(f"UPDATE candidates SET first_round = 1 WHERE id = {last.candidate_ids[2]}"))
    assert before(last) == ("first",)


def test_another_budget_cuts_other_rounds_but_for_a_gate(database):
    answered(database, "first")
    last = answered(database, "last")
    more = replace(last, record=replace(last.record, execution={**last.record.execution, "budget": 999}))
    assert before(more) == ("first",)
    with database.writing() as session:
        gate = {**last.record.spec, "selector": {"name": "gate", "params": {}}}
        session.get_one(Campaign, 1).spec = gate
    assert before(replace(more, record=replace(more.record, spec=gate))) == ()


def test_the_same_again_adds_nothing_and_another_question_is_another(database):
    answered(database, "first")
    last = answered(database, "last")
    assert before(last) == ()
    assert before(last, seed=8, prompts=["another"]) == ()
    assert before(last, seed=8, stopping={"delta": 0.05, "epsilon": 0.1}) == ()
    assert before(last, seed=8, selector={"name": "race", "params": {"top_m": 2}}) == ()


def test_a_certificate_is_about_more_than_its_examples(database):
    answered(database, "first")
    last = answered(database, "last")
    assert before(last, dataset_fingerprint="grown", seed=8) == ()
    with database.writing() as session:
        session.execute(text("UPDATE campaigns SET objective = 'certify'"))
    last = replace(last, record=replace(last.record, objective="certify"))
    assert before(last, dataset_fingerprint="grown") == ("first",)
    assert before(last) == before(last, certify={"risk": 0.2}, seed=8) == ()


def test_the_answer_says_that_the_chances_add_up_and_one_without_a_claim_does_not(database):
    for name in ("first", "second"):
        answered(database, name)
    with database.writing() as session:
        session.execute(text("UPDATE campaigns SET seed = id"))
    third = store_campaign(database, "third")
    record = replace(answered(database, "last").record, seed=9)
    with database.reading() as session:
        assert campaign_status(Look(session, third.record), in_full=True).answer.asked_before == ()
        answer = campaign_status(Look(session, record), in_full=True).answer
        listed = campaign_status(Look(session, record)).answer
    assert listed.asked_before is None
    assert dict(status_lines(answer, TOTALS))["asked"] == (
        "the same question before, with other draws or another test: first, second. The "
        "error probabilities of these answers add up: an answer that is picked among them can be wrong with "
        "a probability of up to their sum"
    )
    assert "asked" not in dict(status_lines(listed, TOTALS))
