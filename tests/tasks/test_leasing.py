"""A campaign is held while its process lives, and no longer."""

import datetime as dt
import subprocess
import sys
import threading
import time
from dataclasses import replace

import psutil
import pytest
from both_databases import BOTH, fresh_database

from storage import leases, round_records
from storage.errors import LeaseHeld, LeaseLost, StorageUnavailable
from storage.records import Holder
from tasks import leasing
from tasks.leasing import LIFETIME, holding, is_gone, now, this_process

ELSEWHERE = Holder(host="another-machine", pid=1, process_started_at=1.0)


@pytest.fixture(params=BOTH)
def database(request, tmp_path):
    with fresh_database(request.param, tmp_path, request) as database:
        yield database


@pytest.fixture
def other_process():
    """A process of this machine that waits to be ended, as a lease would name it."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        started_at = psutil.Process(process.pid).create_time()
        yield process, replace(this_process(), pid=process.pid, process_started_at=started_at)
        process.kill()


@pytest.fixture
def fast_heart(monkeypatch):
    monkeypatch.setattr(leasing, "HEARTBEAT", dt.timedelta(seconds=0.01))


def stored(campaign):
    with campaign.database.reading() as session:
        return leases.find(session, campaign.record.id)


def take_over(campaign):
    """As another machine would once the lease has run out."""
    return leases.acquire(
        campaign.database,
        campaign.record.id,
        ELSEWHERE,
        now=now() + 2 * LIFETIME,
        lifetime=LIFETIME,
        is_gone=is_gone,
    )


def eventually(holds, seconds=10):
    deadline = time.monotonic() + seconds
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.005)
    return holds()


def test_a_live_process_is_not_gone(other_process):
    process, holder = other_process
    assert not is_gone(this_process())
    assert not is_gone(holder)
    process.kill()
    process.wait()
    assert is_gone(holder)


def test_a_process_that_died_and_was_not_waited_for_is_gone(other_process):
    process, holder = other_process
    process.kill()
    assert eventually(lambda: is_gone(holder))


def test_a_later_process_of_the_same_number_is_not_the_holder(other_process):
    _, holder = other_process
    assert is_gone(replace(holder, process_started_at=holder.process_started_at - 60))


def test_of_another_machine_nothing_is_known(other_process):
    process, holder = other_process
    process.kill()
    process.wait()
    assert not is_gone(replace(holder, host="another-machine"))


def test_the_clock_tells_utc():
    assert now().tzinfo is dt.UTC


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


def test_the_lease_of_a_dead_process_is_taken_over_at_once(campaign, other_process):
    process, holder = other_process
    leases.acquire(
        campaign.database, campaign.record.id, holder, now=now(), lifetime=LIFETIME, is_gone=is_gone
    )
    with pytest.raises(LeaseHeld), holding(campaign.database, campaign.record.id):
        pass
    process.kill()
    process.wait()
    with holding(campaign.database, campaign.record.id) as lease:
        assert lease.token == 2


def test_the_heartbeat_renews_the_lease_and_ends_with_the_run(campaign, fast_heart):
    with holding(campaign.database, campaign.record.id) as lease:
        assert eventually(lambda: stored(campaign).heartbeat_at > lease.heartbeat_at)
        renewed = stored(campaign)
        assert renewed.expires_at == renewed.heartbeat_at + LIFETIME
        assert renewed.token == lease.token
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
    with holding(campaign.database, campaign.record.id) as lease:
        assert eventually(lambda: stored(campaign).heartbeat_at > lease.heartbeat_at)


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
