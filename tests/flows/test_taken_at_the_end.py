"""A campaign that is decided ends well, whoever holds its lease by then."""

from contextlib import nullcontext

import pytest
from stored_campaigns import new_database, store_campaign

from winnow.flows import exit_codes
from winnow.flows.prefect_support import client
from winnow.flows.run import head_start, launch, resume
from winnow.flows.run.launch import run_stored_campaign
from winnow.storage.errors import LeaseLost, StorageUnavailable
from winnow.storage.records import leases
from winnow.storage.records.record_types import Holder
from winnow.tasks.campaign.campaign import Campaign, opened_campaign
from winnow.tasks.campaign.lease import LIFETIME, now

ANOTHER = Holder(host="another-machine", pid=1, boot_id="b", pid_namespace="1", started_ticks=1)


@pytest.fixture
def campaign(tmp_path, monkeypatch):
    """A stored campaign whose flow is replaced in each test."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(launch, "prefect_server", nullcontext)
    monkeypatch.setattr(launch, "_imports", lambda spec: nullcontext())
    monkeypatch.setattr(Campaign, "spec", None)
    monkeypatch.setattr(head_start, "head_start", lambda campaign: nullcontext())
    monkeypatch.setattr(client, "mark_crashed_runs", lambda storage: [])
    database = new_database(tmp_path / "results.db")
    yield store_campaign(database)
    database.close()


def decide(campaign):
    round_ = campaign.plan(0, [0, 1, 2], [0, 0, 0])
    statuses = ["eliminated", "best", "eliminated"]
    claim = {"kind": "proven", "delta": 0.05, "raised_by": [], "assumptions": [], "refuted": []}
    campaign.finish(
        round_, [1.0, 0.0, None], best=1, stop=True, reason="confident", claim=claim, status=statuses
    )


def taken_by_another(campaign):
    database, id_ = campaign.database, campaign.record.id
    leases.acquire(database, id_, ANOTHER, now=now(), lifetime=LIFETIME, is_gone=lambda _: False)


def run(campaign, monkeypatch, flow):
    monkeypatch.setattr(resume, "run_flow", lambda found, interrupts, shown: flow(campaign))
    with opened_campaign(campaign.database.url, campaign.record.name) as found:
        return run_stored_campaign(found)


def test_another_process_that_takes_the_lease_of_a_decided_campaign_changes_no_exit_code(
    campaign, monkeypatch, capsys
):
    """The reproduction: the campaign was decided, and `winnow run` ended with 1 and no answer."""

    def flow(campaign):
        decide(campaign)
        taken_by_another(campaign)

    assert run(campaign, monkeypatch, flow) == exit_codes.DECIDED
    said = capsys.readouterr()
    assert "stopped" not in said.err
    assert "winner, proven" in said.out


def test_who_loses_the_lease_to_a_process_that_decides_shows_its_answer(campaign, monkeypatch, capsys):
    def flow(campaign):
        decide(campaign)
        raise LeaseLost(campaign.record.name)

    assert run(campaign, monkeypatch, flow) == exit_codes.DECIDED
    assert "stopped" not in capsys.readouterr().err


def test_who_loses_the_lease_before_anything_is_decided_says_so(campaign, monkeypatch, capsys):
    def flow(campaign):
        raise LeaseLost(campaign.record.name)

    with pytest.raises(LeaseLost):
        run(campaign, monkeypatch, flow)
    assert "stopped early; continue with: winnow resume" in capsys.readouterr().err


def test_a_database_that_breaks_after_the_last_decision_and_is_back_takes_no_answer_away(
    campaign, monkeypatch, capsys
):
    def flow(campaign):
        decide(campaign)
        raise StorageUnavailable(campaign.database.url, "the server was restarted")

    assert run(campaign, monkeypatch, flow) == exit_codes.DECIDED
    said = capsys.readouterr()
    assert (said.err, "winner, proven" in said.out) == ("", True)


def test_where_the_database_is_gone_nobody_claims_to_know_whether_the_campaign_has_ended(
    campaign, monkeypatch, capsys, tmp_path
):
    def flow(campaign):
        decide(campaign)
        campaign.database.close()
        (tmp_path / "results.db").rename(tmp_path / "away.db")
        raise StorageUnavailable(campaign.database.url, "the disk is gone")

    with pytest.raises(StorageUnavailable):
        run(campaign, monkeypatch, flow)
    said = capsys.readouterr().err
    assert "interrupted; check its status, and continue with: winnow resume" in said
    assert "early" not in said


def test_a_decided_campaign_that_another_process_holds_is_answered_at_once(campaign, monkeypatch):
    decide(campaign)
    taken_by_another(campaign)
    assert run(campaign, monkeypatch, lambda campaign: pytest.fail("it was run")) == exit_codes.DECIDED
