"""Prompts that arrive have the positions after all that came before, in their campaign alone."""

from dataclasses import replace

from stored_campaigns import NOW, store_campaign

from winnow.storage.records import campaigns as campaign_records
from winnow.storage.records import outcomes as outcome_records
from winnow.storage.records import stream_batches
from winnow.storage.records.record_types import NewCandidate, NewExample

N_EXAMPLES = 5
"""Of a stored campaign, before any arrive."""


def arrive(campaign, *keys, fingerprint):
    """Store one arrival; return the position of its first prompt."""
    examples = [NewExample(key=key, fields={"input": key}, targets=["x"]) for key in keys]
    with campaign.database.writing() as session:
        return stream_batches.add_stream_batch(
            session, campaign.record.id, examples, fingerprint=fingerprint, now=NOW
        )


def keys(campaign):
    """Of all its examples, by position."""
    with campaign.database.reading() as session:
        return [example.key for example in stream_batches.each_example(session, campaign.record.id)]


def test_prompts_stand_after_those_before_them_and_are_told_their_position(campaign):
    assert arrive(campaign, "p", "q", fingerprint="1" * 64) == N_EXAMPLES
    assert arrive(campaign, "r", fingerprint="2" * 64) == N_EXAMPLES + 2
    assert keys(campaign) == ["e0", "e1", "e2", "e3", "e4", "p", "q", "r"]
    with campaign.database.reading() as session:
        assert stream_batches.next_number(session, campaign.record.id) == 2


def test_another_campaign_on_the_same_dataset_sees_none_of_them(campaign):
    other = store_campaign(campaign.database, "other")
    arrive(campaign, "p", fingerprint="1" * 64)
    assert keys(other) == [f"e{number}" for number in range(N_EXAMPLES)]
    assert arrive(other, "s", fingerprint="2" * 64) == N_EXAMPLES


def unanswered(campaign):
    with campaign.database.reading() as session:
        return stream_batches.unanswered(session, campaign.record.id)


def test_prompts_are_unanswered_until_their_round_is_finished(campaign):
    assert unanswered(campaign) == []
    arrive(campaign, "p", "q", fingerprint="1" * 64)
    arrive(store_campaign(campaign.database, "other"), "s", fingerprint="2" * 64)
    arrive(campaign, "r", fingerprint="3" * 64)
    assert unanswered(campaign) == [N_EXAMPLES, N_EXAMPLES + 1, N_EXAMPLES + 2]
    round_ = campaign.plan(0, [0, 1], [0, N_EXAMPLES + 1])
    with campaign.database.reading() as session:
        ids = stream_batches.example_ids(session, campaign.record.id)
    campaign = replace(campaign, example_ids=ids)
    assert unanswered(campaign) == [N_EXAMPLES, N_EXAMPLES + 1, N_EXAMPLES + 2]
    campaign.finish(round_, [1.0, None], best=0, estimates=[1.0, None, None])
    assert unanswered(campaign) == [N_EXAMPLES, N_EXAMPLES + 2]


def test_candidates_that_join_stand_last_and_take_part_from_the_next_round_on(campaign):
    campaign.finish(campaign.plan(0, [0, 1], [0, 1]), [1.0, 0.0], best=0, estimates=[1.0, 0.0, None])
    campaign.plan(1, [2], [2])
    joining = [NewCandidate(name="d", model={}, prompt={}, sampling={})]
    with campaign.database.writing() as session:
        campaign_records.grow_campaign(session, campaign.record.id, spec={"grown": True}, candidates=joining)
    with campaign.database.reading() as session:
        assert campaign_records.candidate_names(session, campaign.record.id) == ["a", "b", "c", "d"]
        # Round 1 is planned already.
        assert campaign_records.first_rounds(session, campaign.record.id) == [0, 0, 0, 2]
        assert campaign_records.get_campaign(session, "letters").spec == {"grown": True}
        latest = outcome_records.latest_decision(session, campaign.record.id)
        assert latest.estimates == [1.0, 0.0, None, None]
        assert latest.status == ["active"] * 4
