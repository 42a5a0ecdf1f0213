"""The queries of a running campaign."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from sqlalchemy import func, select, text, update
from stored_campaigns import NOW, decision, generation, store_campaign

from winnow.storage.engine.database import open_database
from winnow.storage.errors import CampaignNotFound, ConflictingRecord, StorageLocked
from winnow.storage.models import Campaign, Comparison, Dataset, Decision, Example, Generation
from winnow.storage.records import campaigns as campaign_records
from winnow.storage.records import datasets as dataset_records
from winnow.storage.records import generations as generation_records
from winnow.storage.records import outcomes as outcome_records
from winnow.storage.records import rounds as round_records
from winnow.storage.records.record_types import NewComparison, NewExample, ToldRound


def count(database, model):
    with database.reading() as session:
        return session.scalar(select(func.count()).select_from(model))


@pytest.mark.parametrize("at_once", [1, 3, 7, 8, 100])
def test_examples_come_back_in_order_however_many_are_read_at_once(database, monkeypatch, at_once):
    given = [
        NewExample(key=f"e{i}", fields={"input": f'"é\n{i}', "of": [1.5, None]}, targets=["x"] * (i % 3))
        for i in range(7)
    ]
    with database.writing() as session:
        dataset = dataset_records.ensure_dataset(
            session, fingerprint="7" * 64, name="seven", path="seven", examples=given, now=NOW
        )
    monkeypatch.setattr(dataset_records, "ROWS_AT_ONCE", at_once)
    with database.reading() as session:
        assert dataset_records.examples(session, dataset) == given


def test_a_dataset_of_the_same_content_is_stored_once_whatever_its_name(database):
    def ensure(session, name):
        examples = [NewExample(key="e", fields={"input": "1"}, targets=["x"])]
        return dataset_records.ensure_dataset(
            session, fingerprint="same", name=name, path=f"{name}.csv", examples=examples, now=NOW
        )

    with database.writing() as session:
        first = ensure(session, "one")
    with database.writing() as session:
        assert ensure(session, "two") == first
    assert (count(database, Dataset), count(database, Example)) == (1, 1)


def test_examples_and_candidates_come_back_in_the_order_they_were_given(campaign):
    with campaign.database.reading() as session:
        examples = dataset_records.examples(session, campaign.record.dataset_id)
        names = campaign_records.candidate_names(session, campaign.record.id)
    assert examples[3] == NewExample(key="e3", fields={"input": "3"}, targets=["x"])
    assert [example.key for example in examples] == ["e0", "e1", "e2", "e3", "e4"]
    assert names == ["a", "b", "c"]


def test_told_rounds_come_in_order_even_when_rows_were_inserted_in_another(campaign):
    later, earlier = campaign.plan(1, [2, 0], [1, 1], [0.1, 1 / 3]), campaign.plan(0, [0, 1, 2], [4, 0, 3])
    campaign.finish(later, [0.5, None])
    backwards = campaign.comparisons(earlier, [0.0, 1.0, 0.25])[::-1]
    with campaign.database.writing() as session:
        outcome_records.add_outcomes(session, earlier.id, backwards, decision(), NOW)
    with campaign.database.reading() as session:
        assert list(round_records.told_rounds(session, campaign.record.id)) == [
            ToldRound(
                number=0,
                arms=[0, 1, 2],
                examples=[4, 0, 3],
                outcomes=[0.0, 1.0, 0.25],
                losses=[(None, None, None, None)] * 3,
                metrics=[()] * 3,
            ),
            ToldRound(
                number=1,
                arms=[2, 0],
                examples=[1, 1],
                outcomes=[0.5, None],
                losses=[(None, None, None, None)] * 2,
                metrics=[()] * 2,
                propensities=[0.1, 1 / 3],
            ),
        ]


def test_told_rounds_leave_out_the_unfinished_one_and_other_campaigns(campaign):
    other = store_campaign(campaign.database, "other")
    other.finish(other.plan(0, [1], [1]), [1.0])
    campaign.finish(campaign.plan(0, [0], [0]), [0.5])
    campaign.texts(campaign.plan(1, [1], [1]))
    with campaign.database.reading() as session:
        told = list(round_records.told_rounds(session, campaign.record.id))
    assert [(each.number, each.outcomes) for each in told] == [(0, [0.5])]


def test_told_rounds_are_complete_when_they_do_not_fit_into_one_fetch(campaign, monkeypatch):
    monkeypatch.setattr(round_records, "ROWS_AT_ONCE", 2)
    for number in range(5):
        campaign.finish(campaign.plan(number, [0, 1, 2], [number] * 3), [0.0, 0.5, number / 4])
    with campaign.database.reading() as session:
        told = list(round_records.told_rounds(session, campaign.record.id))
    assert [each.outcomes for each in told] == [[0.0, 0.5, number / 4] for number in range(5)]


def test_the_unfinished_round_is_the_one_without_a_decision(campaign):
    def unfinished():
        with campaign.database.reading() as session:
            return round_records.unfinished_round(session, campaign.record.id)

    assert unfinished() is None
    planned = campaign.plan(0, [0, 2], [3, 3])
    assert unfinished() == planned
    campaign.finish(planned, [1.0, None])
    assert unfinished() is None


def test_the_next_round_comes_after_all_planned_ones_of_its_campaign(campaign):
    def next_number():
        with campaign.database.reading() as session:
            return round_records.next_round_number(session, campaign.record.id)

    store_campaign(campaign.database, "other").plan(7, [0], [0])
    assert next_number() == 0
    campaign.plan(0, [0], [0])
    campaign.plan(1, [1], [0])
    assert next_number() == 2


def test_the_latest_decision_is_that_of_the_highest_round(campaign):
    known = {
        "status": ["out", "dropped", "active"],
        "claim": {"kind": "proven", "delta": 0.05, "assumptions": ["independent"]},
        "differences": {
            "against": 1,
            "delta": 0.05,
            "estimates": [0.1, None, None],
            "lower": [0.0, None, None],
            "upper": [0.25, None, None],
        },
    }
    first, second = campaign.plan(0, [1], [1]), campaign.plan(1, [0], [0])
    campaign.finish(first, [1.0], best=0)
    campaign.finish(second, [1.0], best=2, stop=True, reason="budget", estimates=[0.1, None, 0.3], **known)
    with campaign.database.reading() as session:
        latest = outcome_records.latest_decision(session, campaign.record.id)
    assert (latest.round_number, latest.best, latest.stop, latest.reason) == (1, "c", True, "budget")
    assert latest.estimates == [0.1, None, 0.3]
    found = {"status": latest.status, "claim": latest.claim, "differences": latest.differences}
    assert found == known
    assert latest.decided_at == NOW


def test_texts_are_found_by_more_keys_than_a_statement_takes_parameters(campaign):
    keys = [f"k{number}" for number in range(70_000)]
    round_ = campaign.plan(0, [0], [0])
    with campaign.database.writing() as session:
        generation_records.add_generations(session, round_.id, [generation(key) for key in keys], NOW)
        found = generation_records.texts_by_key(session, [*keys, "unknown"])
    assert {key: stored.text for key, stored in found.items()} == {key: f"text of {key}" for key in keys}


def test_a_text_whose_key_is_stored_already_stays_as_it_is(campaign):
    round_ = campaign.plan(0, [0], [0])
    with campaign.database.writing() as session:
        generation_records.add_generations(session, round_.id, [generation("k", text="first")], NOW)
        both = [generation("k", text="second"), generation("new")]
        told = generation_records.add_generations(session, round_.id, both, NOW)
        assert generation_records.add_generations(session, round_.id, [], NOW) == {}
        found = generation_records.texts_by_key(session, ["k", "new"])
    assert told == found
    assert (found["k"].text, found["new"].text) == ("first", "text of new")
    assert count(campaign.database, Generation) == 2


@pytest.mark.parametrize("broken", ["comparison", "decision"])
def test_outcomes_and_their_decision_are_stored_together_or_not_at_all(campaign, broken):
    round_ = campaign.plan(0, [0, 1], [0, 0])
    comparisons = campaign.comparisons(round_, [1.0, 0.0])
    if broken == "comparison":
        comparisons[1] = NewComparison(
            position=1, candidate_a_id=999, example_id=campaign.example_ids[0], judge="exact", outcome=1.0
        )
    believed = decision(best_candidate_id=999 if broken == "decision" else None)
    with pytest.raises(ConflictingRecord), campaign.database.writing() as session:
        outcome_records.add_outcomes(session, round_.id, comparisons, believed, NOW)
    assert (count(campaign.database, Comparison), count(campaign.database, Decision)) == (0, 0)


def test_a_campaign_that_is_not_there_is_refused_with_those_that_are(database):
    with database.reading() as session, pytest.raises(CampaignNotFound, match="database has none"):
        campaign_records.get_campaign(session, "lettres")
    store_campaign(database, "sums")
    store_campaign(database, "letters")
    with database.reading() as session, pytest.raises(CampaignNotFound, match=r"'lettres'.*letters, sums"):
        campaign_records.get_campaign(session, "lettres")


def test_execution_fields_are_replaced_and_nothing_else_is(campaign):
    with campaign.database.writing() as session:
        campaign_records.set_execution(session, campaign.record.id, {"budget": 7})
    with campaign.database.reading() as session:
        found = campaign_records.get_campaign(session, "letters")
    assert found.execution == {"budget": 7}
    assert (found.spec, found.versions, found.created_at) == (
        campaign.record.spec,
        campaign.record.versions,
        campaign.record.created_at,
    )


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_a_sqlite_database_is_in_wal_mode(database):
    with database.reading() as session:
        assert session.scalar(text("PRAGMA journal_mode")) == "wal"


def rename(session, name):
    session.execute(update(Campaign).values(name=name))


def test_a_reader_sees_one_state_while_a_writer_commits(campaign):
    url = f"{campaign.database.url}"
    reader = open_database(url, read_only=True)
    with reader.reading() as session:
        before = campaign_records.campaigns(session)[0].name
        with campaign.database.writing() as writing:
            rename(writing, "new")
        session.expire_all()
        assert campaign_records.campaigns(session)[0].name == before
    with reader.reading() as session:
        assert campaign_records.campaigns(session)[0].name == "new"
    reader.close()


def test_an_error_in_a_unit_of_work_takes_all_of_it_back(campaign):
    with pytest.raises(CampaignNotFound), campaign.database.writing() as session:  # noqa: PT012
        rename(session, "new")
        campaign_records.get_campaign(session, "gone")
    with campaign.database.reading() as session:
        assert campaign_records.campaigns(session)[0].name == "letters"


def test_two_writers_wait_for_each_other(campaign):
    """Each reads, then writes what it read plus one: with no lock taken first, one would fail or be lost."""

    def add_rounds():
        for _ in range(20):
            with campaign.database.writing() as session:
                [record] = campaign_records.campaigns(session)
                campaign_records.set_execution(session, record.id, {"budget": record.execution["budget"] + 1})

    threads = [threading.Thread(target=add_rounds) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with campaign.database.reading() as session:
        assert campaign_records.campaigns(session)[0].execution["budget"] == 100 + 40


def test_many_threads_read_at_once_without_closing_each_others_connections(campaign):
    everyone_reads = threading.Barrier(8)

    def read_twice(_):
        with campaign.database.reading() as session:
            first = campaign_records.candidate_names(session, campaign.record.id)
            everyone_reads.wait()
            return first == campaign_records.candidate_names(session, campaign.record.id)

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(read_twice, range(8)))


@contextmanager
def holding_the_lock(database):
    with database.writing() as session:
        rename(session, "old")
        yield


def test_a_writer_that_waited_too_long_says_so(campaign, monkeypatch):
    monkeypatch.setattr("winnow.storage.engine.database.BUSY_TIMEOUT_MS", 50)
    impatient = open_database(campaign.database.url)
    with (
        holding_the_lock(campaign.database),
        pytest.raises(StorageLocked, match=r"is locked: in 0\.05 s .* was not released"),
        impatient.writing() as session,
    ):
        rename(session, "new")
    impatient.close()
