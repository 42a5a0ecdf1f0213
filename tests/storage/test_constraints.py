"""What the schema itself refuses, whoever writes."""

import datetime as dt
from dataclasses import replace

import pytest
from sqlalchemy import insert, select
from sqlalchemy.dialects import postgresql
from sqlalchemy.exc import StatementError
from stored_campaigns import NOW, judgment, store_campaign

from winnow.storage.engine.row_digests import COLUMN
from winnow.storage.errors import ConflictingRecord
from winnow.storage.models import (
    Base,
    Campaign,
    Comparison,
    Decision,
    Generation,
    Judgment,
    Metric,
    Prompt,
    Round,
)
from winnow.storage.records import outcomes
from winnow.storage.records.record_types import NewMetric


@pytest.fixture
def round_(campaign):
    return campaign.plan(0, [0, 1], [0, 0])


def store(campaign, table, **values):
    """Insert a row past all Python checks; return its id."""
    with campaign.database.writing() as session:
        return session.execute(insert(table).values(**values).returning(table.id)).scalar_one()


def comparison(campaign, round_, **fields):
    first = {
        "round_id": round_.id,
        "position": 0,
        "candidate_a_id": campaign.candidate_ids[0],
        "example_id": campaign.example_ids[0],
        "judge": "exact",
        "no_answer": False,
    }
    return first | fields


def rows(campaign, model):
    with campaign.database.reading() as session:
        return len(session.scalars(select(model)).all())


@pytest.mark.parametrize(
    ("verdict", "broken"),
    [
        ({}, "outcome_or_reason"),
        ({"outcome": 1.0, "reason": "no_answer"}, "outcome_or_reason"),
        ({"outcome": 1.0001}, "outcome_range"),
        ({"outcome": -1.0001}, "outcome_range"),
    ],
)
def test_a_comparison_has_an_outcome_in_range_or_a_reason_and_never_both(campaign, round_, verdict, broken):
    with pytest.raises(ConflictingRecord, match=broken):
        store(campaign, Comparison, **comparison(campaign, round_, **verdict))
    assert rows(campaign, Comparison) == 0


@pytest.mark.parametrize("verdict", [{"outcome": -1.0}, {"outcome": 1.0}, {"reason": "no_answer"}])
def test_outcomes_at_the_ends_of_the_range_and_reasons_are_stored(campaign, round_, verdict):
    store(campaign, Comparison, **comparison(campaign, round_, **verdict))
    assert rows(campaign, Comparison) == 1


def test_a_benchmark_pair_is_scored_once_per_campaign_even_across_rounds(campaign, round_):
    later = campaign.plan(1, [0], [0])
    store(campaign, Comparison, **comparison(campaign, round_, outcome=0.0))
    with pytest.raises(
        ConflictingRecord, match=r"candidate_a_id, comparisons.example_id|uq_comparisons_candidate_example"
    ):
        store(campaign, Comparison, **comparison(campaign, later, outcome=1.0))


def test_another_campaign_may_score_the_same_example(campaign, round_):
    other = store_campaign(campaign.database, "other")
    assert other.example_ids == campaign.example_ids
    store(campaign, Comparison, **comparison(campaign, round_, outcome=0.0))
    store(other, Comparison, **comparison(other, other.plan(0, [0], [0]), outcome=0.0))


def test_a_duel_may_meet_the_same_example_again(campaign, round_):
    duel = {"candidate_b_id": campaign.candidate_ids[1], "outcome": 1.0}
    store(campaign, Comparison, **comparison(campaign, round_, **duel))
    store(campaign, Comparison, **comparison(campaign, round_, position=1, **duel))
    assert rows(campaign, Comparison) == 2


def test_a_position_of_a_round_is_taken_once(campaign, round_):
    store(campaign, Comparison, **comparison(campaign, round_, outcome=1.0))
    elsewhere = comparison(campaign, round_, outcome=1.0, example_id=campaign.example_ids[1])
    with pytest.raises(ConflictingRecord, match=r"round_id.*position"):
        store(campaign, Comparison, **elsewhere)


def test_a_round_number_is_unique_in_its_campaign_only(campaign, round_):
    with pytest.raises(ConflictingRecord, match=r"rounds.*number"):
        campaign.plan(round_.number, [1], [1])
    store_campaign(campaign.database, "other").plan(round_.number, [1], [1])
    assert rows(campaign, Round) == 2


def test_a_round_is_decided_once(campaign, round_):
    campaign.finish(round_, [1.0, 0.0])
    again = {"claim": {}, "stop": False, "reason": "running", "has_ranking": False, "has_bets": False}
    counts = ("changes", "comparisons", "answered", "scored", "candidates", "generations")
    again |= dict.fromkeys((*counts, "input_tokens", "output_tokens", "seconds"), 0)
    with pytest.raises(ConflictingRecord, match=r"decisions.*round_id"):
        store(campaign, Decision, round_id=round_.id, decided_at=NOW, **again)


@pytest.fixture
def prompt(campaign):
    return store(campaign, Prompt, id=1, digest="d", text="p")


def generation(round_, **fields):
    made_up = {
        "key": "k",
        "round_id": round_.id,
        "model": "m",
        "prompt_id": 1,
        "seed": 0,
        "replicate": 0,
        "text": "t",
        "finish_reason": "stop",
        "input_tokens": 0,
        "output_tokens": 0,
        "seconds": 0.0,
        "engine": "none",
        "created_at": NOW,
    }
    return made_up | fields


def test_a_generation_key_is_unique_in_the_whole_database(campaign, round_, prompt):
    store(campaign, Generation, **generation(round_))
    other_round = store_campaign(campaign.database, "other").plan(0, [0], [0])
    with pytest.raises(ConflictingRecord, match=r"generations.*key"):
        store(campaign, Generation, **generation(other_round))


@pytest.mark.parametrize("count", ["input_tokens", "output_tokens", "seconds"])
def test_no_count_of_a_generation_is_negative(campaign, round_, prompt, count):
    with pytest.raises(ConflictingRecord, match="counts_not_negative"):
        store(campaign, Generation, **generation(round_, **{count: -1}))


@pytest.mark.parametrize(
    "column", ["round_id", "candidate_a_id", "candidate_b_id", "example_id", "generation_a_id"]
)
def test_a_comparison_refers_to_rows_that_are_there(campaign, round_, column):
    with pytest.raises(ConflictingRecord, match=r"(?i)foreign key"):
        store(campaign, Comparison, **comparison(campaign, round_, outcome=1.0, **{column: 999}))


@pytest.mark.parametrize(
    ("judgment", "broken"),
    [
        ({"presentation_order": "sideways", "verdict": 1.0}, "presentation_order_known"),
        ({"presentation_order": "swapped"}, "verdict_or_reason"),
        ({"presentation_order": "swapped", "verdict": 1.0, "reason": "no_verdict"}, "verdict_or_reason"),
        ({"presentation_order": "swapped", "verdict": 1.0, "comparison_id": 999}, "(?i)foreign key"),
        ({"presentation_order": "swapped", "verdict": 1.0, "number": 0}, "judgments.*comparison_id.*number"),
    ],
)
def test_a_judgment_that_contradicts_itself_is_refused(campaign, round_, judgment, broken):
    comparison_id = store(campaign, Comparison, **comparison(campaign, round_, outcome=1.0))
    played = {"comparison_id": comparison_id, "number": 0, "judge": "m", "repeat": 0, "attempt": 0}
    store(campaign, Judgment, **played, presentation_order="original", reason="no_verdict")
    with pytest.raises(ConflictingRecord, match=broken):
        store(campaign, Judgment, **(played | {"number": 1} | judgment))
    assert rows(campaign, Judgment) == 1


def test_a_campaign_name_is_taken_once(campaign):
    with pytest.raises(ConflictingRecord, match=r"campaigns.*name"):
        store_campaign(campaign.database, campaign.record.name)


def test_a_time_without_a_zone_is_refused(campaign):
    naive = dt.datetime(2026, 1, 1)  # noqa: DTZ001 -- the point of the test
    with pytest.raises(StatementError, match="a time without a time zone cannot be stored"):
        store(
            campaign, Round, campaign_id=1, number=0, planned_after=0, arms=[], examples=[], planned_at=naive
        )


def test_times_come_back_aware_and_in_utc_whatever_zone_they_were_given_in(campaign):
    india = NOW.astimezone(dt.timezone(dt.timedelta(hours=5, minutes=30)))
    store(campaign, Round, campaign_id=1, number=0, planned_after=0, arms=[], examples=[], planned_at=india)
    with campaign.database.reading() as session:
        planned_at = session.scalar(select(Round.planned_at))
        created_at = session.scalar(select(Campaign.created_at))
    assert planned_at == created_at == NOW
    assert planned_at.tzinfo is dt.UTC


NEVER_A_USERS_WORDS = {
    # Digests, and a number of 64 bits.
    *("datasets.fingerprint", "examples.input_digest", "prompts.digest", "generations.key"),
    *("generations.request_key", "embeddings.embedder", "embeddings.digest", "annotation_tasks.key"),
    *(
        "canaries.model",
        "canaries.prompts",
        "file_digests.place",
        "file_digests.sha256",
        "file_digests.inode",
    ),
    # Words that Winnow chooses, plug-ins' among them, which it refuses where they are longer.
    *("campaigns.objective", "pruned_campaigns.objective", "model_loads.kind", "canaries.verdict"),
    *("generations.finish_reason", "standings.status", "decisions.reason", "candidate_stats.reason"),
    *("cost_stats.role", "reuse_stats.role", "judgments.presentation_order"),
    *("annotation_tasks.presentation_order", "comparisons.reason", "outputs.reason", "metrics.reason"),
    *("judgments.reason", "annotations.reason", "decisions.digest"),
}
"""The columns that hold texts of a length that is known."""


def test_no_column_holds_what_users_call_something_to_a_length():
    """PostgreSQL refuses what is longer, once all texts of a round are paid for."""
    found = {
        f"{table.name}.{column.name}"
        for table in Base.metadata.sorted_tables
        for column in table.columns
        if column.name != COLUMN
        and getattr(column.type.dialect_impl(postgresql.dialect()), "length", None) is not None
    }
    assert found == NEVER_A_USERS_WORDS


def test_names_are_stored_however_long_they_are(database):
    long = "n" * 300
    campaign = store_campaign(database, objective="best-duel", names=[f"{long}{i}" for i in range(3)])
    round_ = campaign.plan(0, [[0, 1]], [0])
    [duel] = campaign.duels(round_, [(1.0, [judgment("original", 1.0, judge=long)])])
    judged = [replace(each, metric=long) for each in duel.judgments]
    duel = replace(
        duel, judge=long, judgments=[*duel.judgments, *judged], metrics=[NewMetric(name=long, score=1.0)]
    )
    with database.writing() as session:
        outcomes.add_outcomes(session, round_.id, [duel], campaign.decision(), NOW)
        for column in (Comparison.judge, Judgment.judge, Metric.name):
            assert set(session.scalars(select(column))) == {long}
        assert set(session.scalars(select(Judgment.metric))) == {None, long}
