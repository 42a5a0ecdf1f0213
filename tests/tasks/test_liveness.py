"""Who is taken for dead, and on what evidence: a wrong clock or a like name must never be enough."""

import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from datetime import timedelta

import pytest
from both_databases import fresh_database
from stored_campaigns import store_campaign
from waiting import eventually

from winnow.storage.engine.write_lock import look_up
from winnow.storage.errors import LeaseHeld
from winnow.storage.models import Lease
from winnow.storage.records import leases
from winnow.storage.records.record_types import Holder
from winnow.tasks.campaign import lease
from winnow.tasks.campaign.lease import (
    LIFETIME,
    holding,
    how_left,
    is_dead,
    is_gone,
    now,
    seems_gone,
    this_process,
    watch,
)

AWAY = Holder(host="another-machine", pid=1, boot_id="b", pid_namespace="1", started_ticks=1)
SHORT = timedelta(seconds=0.3)


@pytest.fixture
def other():
    """A process of this machine that waits to be ended, and how a lease would name it."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        started_ticks = look_up(process.pid).started_ticks
        yield process, replace(this_process(), pid=process.pid, started_ticks=started_ticks)
        process.kill()


@pytest.fixture(autouse=True)
def quick_look(monkeypatch):
    monkeypatch.setattr(lease, "LOOK_EVERY_S", 0.02)


def held_by(campaign, holder, *, age=timedelta(0), lifetime=LIFETIME):
    """A campaign's lease, taken by a process whose clock differs by `age` from ours."""
    return leases.acquire(
        campaign.database,
        campaign.record.id,
        holder,
        now=now() - age,
        lifetime=lifetime,
        is_gone=lambda _: True,
    )


def stored(campaign):
    with campaign.database.reading() as session:
        return leases.find(session, campaign.record.id)


def take(campaign):
    with holding(campaign.database, campaign.record.id) as lease:
        return lease.token


def test_a_process_is_alive_until_it_ends_whether_or_not_it_is_waited_for(other):
    process, holder = other
    assert not is_dead(this_process())
    assert not is_dead(holder)
    process.kill()
    assert eventually(lambda: is_dead(holder))
    assert look_up(process.pid).state == "Z"
    process.wait()
    assert look_up(process.pid) is None
    assert is_dead(holder)


def test_a_process_that_is_stopped_is_not_dead(other):
    process, holder = other
    process.send_signal(signal.SIGSTOP)
    assert eventually(lambda: look_up(process.pid).state == "T")
    assert not is_dead(holder)


def test_a_later_process_of_the_same_number_is_not_the_holder(other):
    _, holder = other
    assert is_dead(replace(holder, started_ticks=holder.started_ticks - 1))


@pytest.mark.parametrize("elsewhere", [{"boot_id": "of another start"}, {"pid_namespace": "4026539999"}])
def test_a_process_of_another_machine_or_container_is_not_looked_up_here(elsewhere):
    """Two containers with the network of their host have its name, and each has processes 1, 2, 3."""
    there = replace(this_process(), pid=2**22 - 1, **elsewhere)
    assert not is_dead(there)
    assert is_dead(replace(this_process(), pid=2**22 - 1))


def test_a_stepped_clock_changes_no_process(monkeypatch):
    ours = this_process()
    clock = time.time
    monkeypatch.setattr(time, "time", lambda: clock() + 3600)
    assert this_process() == ours
    assert not is_dead(ours)


def test_a_process_that_may_not_be_looked_up_is_not_dead(other, monkeypatch):
    process, holder = other
    monkeypatch.setattr(lease, "look_up", lambda _: None)
    assert not is_dead(holder)
    monkeypatch.setattr(os, "kill", lambda *_: (_ for _ in ()).throw(PermissionError()))
    assert not is_dead(holder)
    monkeypatch.undo()
    process.kill()
    process.wait()
    assert is_dead(holder)


@pytest.mark.parametrize("broken", ["readlink", "another namespace"])
def test_where_the_system_tells_nothing_no_other_process_seems_near(monkeypatch, broken):
    before = this_process()

    def readlink(_):
        if broken == "readlink":
            raise FileNotFoundError
        return "1"

    monkeypatch.setattr(os, "readlink", readlink)
    ours = this_process()
    assert ours == this_process() != before
    assert not is_dead(before)
    assert not is_dead(replace(ours, boot_id=ours.boot_id + "0"))
    assert not is_dead(ours)


def test_a_clock_that_is_ahead_takes_no_lease_from_a_process_that_lives(campaign):
    """The holder's heartbeats seem older than a lease lives, but they go on."""
    lease, done = held_by(campaign, AWAY, age=LIFETIME + timedelta(seconds=5), lifetime=LIFETIME), []

    def beat():
        while not done:
            leases.renew(campaign.database, lease, now=now() - LIFETIME - timedelta(seconds=5))
            time.sleep(0.05)

    heart = threading.Thread(target=beat)
    heart.start()
    try:
        with pytest.raises(LeaseHeld):
            take(campaign)
    finally:
        done.append(True)
        heart.join()
    assert stored(campaign).holder == AWAY


@pytest.mark.parametrize("age", [LIFETIME, -LIFETIME])
def test_a_lease_that_was_watched_for_its_lifetime_in_silence_is_taken_over(campaign, age):
    held_by(campaign, AWAY, age=age, lifetime=SHORT)
    assert not is_gone(stored(campaign)), "a clock alone was believed"
    began = time.monotonic()
    assert take(campaign) == 2
    assert time.monotonic() - began >= SHORT.total_seconds()


def test_what_was_watched_need_not_be_watched_again_until_it_moves(campaign, monkeypatch):
    lease = held_by(campaign, AWAY, age=LIFETIME, lifetime=SHORT)
    watch(campaign.database, campaign.record.id, now=now())
    assert is_gone(stored(campaign))
    monkeypatch.setattr(time, "sleep", lambda _: pytest.fail("it was watched twice"))
    watch(campaign.database, campaign.record.id, now=now())
    leases.renew(campaign.database, lease, now=now())
    assert not is_gone(stored(campaign))


def test_a_lease_that_seems_recent_is_refused_without_watching(campaign, monkeypatch):
    held_by(campaign, AWAY)
    monkeypatch.setattr(time, "sleep", lambda _: pytest.fail("it was watched"))
    with pytest.raises(LeaseHeld):
        take(campaign)


def test_time_in_which_the_watcher_itself_was_frozen_is_no_silence(campaign, monkeypatch):
    """Else one that is thawed before the holder, when the whole machine was asleep, would take its lease."""
    held_by(campaign, AWAY, age=LIFETIME, lifetime=SHORT)
    looks, monotonic = [], time.monotonic

    def clock_that_leaps():
        looks.append(1)
        return monotonic() + 3600 * len(looks)

    monkeypatch.setattr(time, "monotonic", clock_that_leaps)
    watch(campaign.database, campaign.record.id, now=now())
    assert len(looks) > SHORT.total_seconds() / (2 * lease.LOOK_EVERY_S)


def test_a_lease_that_is_given_back_or_deleted_while_it_is_watched_is_watched_no_more(campaign, monkeypatch):
    lease = held_by(campaign, AWAY, age=LIFETIME * 2)
    monkeypatch.setattr(time, "sleep", lambda _: leases.release(campaign.database, lease, now=now()))
    watch(campaign.database, campaign.record.id, now=now())
    assert take(campaign) == 2
    watch(campaign.database, campaign.record.id + 1, now=now())


def test_the_lease_of_a_dead_process_is_taken_over_at_once(campaign, other, monkeypatch):
    monkeypatch.setattr(time, "sleep", lambda _: pytest.fail("a dead process was watched"))
    process, holder = other
    held_by(campaign, holder)
    with pytest.raises(LeaseHeld):
        take(campaign)
    process.kill()
    process.wait()
    assert take(campaign) == 2


def test_what_can_only_be_told_once_is_told_as_that(campaign, other):
    """Whoever reads a lease once says whether its holder seems to be gone; only who watches may act on it."""
    process, holder = other
    recent, old = held_by(campaign, AWAY), held_by(campaign, AWAY, age=LIFETIME)
    assert (seems_gone(recent, now=now()), seems_gone(old, now=now())) == (False, True)
    assert not is_gone(old)
    assert how_left(old).startswith("process 1 on another-machine seems to be gone: its last heartbeat was")
    assert how_left(old).endswith("winnow resume first waits for 60 s for another heartbeat")
    near = held_by(campaign, holder, age=LIFETIME)
    assert seems_gone(near, now=now())
    assert f"process {process.pid} on {holder.host} exists, but seems to be frozen: " in how_left(near)
    process.kill()
    process.wait()
    assert f"process {process.pid} on {holder.host} is gone; its last heartbeat was at " in how_left(near)
    leases.release(campaign.database, near, now=now())
    assert "stopped in order at " in how_left(stored(campaign))


def test_postgresql_is_believed_about_age_and_no_client_s_clock_is(tmp_path, request):
    with fresh_database("postgresql", tmp_path, request) as database:
        campaign = store_campaign(database)
        held_by(campaign, AWAY, age=LIFETIME * 100)
        recent = stored(campaign)
        assert not seems_gone(recent, now=now() + LIFETIME * 100)
        with pytest.raises(LeaseHeld):
            take(campaign)
        with database.writing() as session:
            session.get(Lease, campaign.record.id).heartbeat_at -= LIFETIME
        assert is_gone(stored(campaign))
        assert "sends no heartbeats" in how_left(stored(campaign))
        assert take(campaign) == 2
