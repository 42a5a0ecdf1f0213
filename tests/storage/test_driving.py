"""Statements that go to the driver directly fail as all others do."""

import pytest
from stored_campaigns import NOW, decision

from winnow.storage.engine.raw_sql import run
from winnow.storage.errors import ConflictingRecord, StorageUnavailable
from winnow.storage.records import outcomes as outcome_records
from winnow.storage.records import rounds as round_records


def test_a_row_that_breaks_a_constraint_is_named(campaign):
    campaign.plan(0, [0], [0])
    with pytest.raises(ConflictingRecord, match=r"(?i)unique"), campaign.database.writing() as session:
        round_records.add_round(session, campaign.record.id, number=0, arms=[1], examples=[1], now=NOW)


def test_a_best_candidate_of_no_campaign_is_refused(campaign):
    round_ = campaign.plan(0, [0], [0])
    with (
        pytest.raises(ConflictingRecord, match="99 does not belong to any"),
        campaign.database.writing() as session,
    ):
        outcome_records.add_outcomes(session, round_.id, [], decision(best_candidate_id=99), NOW)


def cut_off(session, other):
    """End the session's connection from another one, and use it."""
    ((pid,),) = run(session.connection(), "SELECT pg_backend_pid()", ())
    other.exec_driver_sql(f"SELECT pg_terminate_backend({pid})")
    run(session.connection(), "SELECT 1", ())


@pytest.mark.parametrize("backend", ["postgresql"])
def test_a_connection_that_is_cut_is_used_no_more(campaign, caplog):
    other = campaign.database.engine.connect()
    with pytest.raises(StorageUnavailable, match="terminat"), campaign.database.writing() as session:
        cut_off(session, other)
    other.close()
    assert caplog.messages == []
    assert campaign.plan(0, [0], [0]).number == 0
