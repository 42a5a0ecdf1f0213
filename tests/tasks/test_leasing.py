"""A campaign is held while its process lives, and no longer."""

import datetime as dt
import threading

import pytest
from both_databases import BOTH, fresh_database
from waiting import eventually

from winnow.storage.errors import LeaseHeld, LeaseLost, StorageUnavailable
from winnow.storage.records import leases
from winnow.storage.records import rounds as round_records
from winnow.storage.records.record_types import Holder
from winnow.tasks.campaign import lease as lease_module
from winnow.tasks.campaign.lease import LIFETIME, holding, is_gone, now, this_process

ELSEWHERE = Holder(host="another-machine", pid=1, boot_id="b", pid_namespace="1", started_ticks=1)


@pytest.fixture(params=BOTH)
def database(request, tmp_path):
    with fresh_database(request.param, tmp_path, request) as database:
        yield database


@pytest.fixture
def fast_heart(monkeypatch):
    monkeypatch.setattr(lease_module, "HEARTBEAT", dt.timedelta(seconds=0.01))


def stored(campaign):
    with campaign.database.reading() as session:
        return leases.find(session, campaign.record.id)


def take_over(campaign):
    """As another machine would once it has heard no heartbeat for long."""
    return leases.acquire(
        campaign.database,
        campaign.record.id,
        ELSEWHERE,
        now=now(),
        lifetime=LIFETIME,
        is_gone=lambda _: True,
    )


def test_the_clock_tells_utc():
    assert now().tzinfo is dt.UTC


@pytest.mark.parametrize("is_done", [False, True])
def test_who_stops_at_once_while_a_lease_is_given_back_has_it_given_back_all_the_same(
    campaign, monkeypatch, is_done
):
    release, interrupts = leases.release, [KeyboardInterrupt]

    def interrupted(*args, **kwargs):
        if is_done or not interrupts:
            release(*args, **kwargs)
        if interrupts:
            raise interrupts.pop()

    monkeypatch.setattr(leases, "release", interrupted)
    with pytest.raises(KeyboardInterrupt), holding(campaign.database, campaign.record.id):
        pass
    assert stored(campaign).released_at is not None


def test_a_held_campaign_is_refused_to_others_until_it_is_released(campaign):
    with holding(campaign.database, campaign.record.id) as lease:
        assert stored(campaign) == lease
        assert lease.holder == this_process()
        with pytest.raises(LeaseHeld):
            leases.acquire(
                campaign.database,
                campaign.record.id,
                ELSEWHERE,
                now=now(),
                lifetime=LIFETIME,
                is_gone=is_gone,
            )
    assert stored(campaign).released_at is not None


def test_a_campaign_is_released_when_its_run_fails(campaign):
    with pytest.raises(ZeroDivisionError), holding(campaign.database, campaign.record.id):
        _ = 1 / 0
    assert stored(campaign).released_at is not None


def test_the_heartbeat_renews_the_lease_and_ends_with_the_run(campaign, fast_heart):
    with holding(campaign.database, campaign.record.id) as lease:
        assert eventually(lambda: stored(campaign).beats > 1)
        renewed = stored(campaign)
        assert renewed.heartbeat_at > lease.heartbeat_at
        assert (renewed.token, renewed.lifetime) == (lease.token, LIFETIME)
    assert "lease-heartbeat" not in {thread.name for thread in threading.enumerate()}


def test_the_heartbeat_goes_on_after_a_beat_that_did_not_get_through(campaign, fast_heart, monkeypatch):
    beats = []
    renew = leases.renew

    def fails_once(database, lease, **times):
        beats.append(lease)
        if len(beats) == 1:
            raise StorageUnavailable(database.url, "database is locked")
        renew(database, lease, **times)

    monkeypatch.setattr(leases, "renew", fails_once)
    with holding(campaign.database, campaign.record.id):
        assert eventually(lambda: stored(campaign).beats > 0)


def test_a_thawed_process_that_lost_its_lease_writes_nothing_and_leaves_it_to_the_new_holder(campaign):
    with holding(campaign.database, campaign.record.id) as lost:
        taken = take_over(campaign)
        with pytest.raises(LeaseLost), leases.writing_under(campaign.database, lost) as session:
            round_records.add_round(session, campaign.record.id, number=0, arms=[0], examples=[0], now=now())
    assert stored(campaign) == taken
    with campaign.database.reading() as session:
        assert round_records.unfinished_round(session, campaign.record.id) is None


def test_the_heartbeat_stops_once_the_lease_is_lost(campaign, fast_heart):
    with holding(campaign.database, campaign.record.id):
        taken = take_over(campaign)
        names = lambda: {thread.name for thread in threading.enumerate()}  # noqa: E731
        assert eventually(lambda: "lease-heartbeat" not in names())
    assert stored(campaign) == taken
