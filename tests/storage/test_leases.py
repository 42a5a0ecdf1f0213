"""One writer per campaign, whatever the others believe."""

import datetime as dt
import threading
from dataclasses import replace

import pytest
from sqlalchemy import func, select, text, update
from stored_campaigns import NOW, store_campaign

from winnow.storage.admin import prune as pruning
from winnow.storage.errors import CampaignDeleted, LeaseHeld, LeaseLost
from winnow.storage.models import Lease, Round
from winnow.storage.queries.objective.earlier_campaigns import scored_positions
from winnow.storage.records import leases
from winnow.storage.records import rounds as round_records
from winnow.storage.records.record_types import Holder

LIFETIME = dt.timedelta(seconds=60)
ONE = Holder(host="here", pid=11, boot_id="a", pid_namespace="1", started_ticks=15)
TWO = Holder(host="there", pid=22, boot_id="b", pid_namespace="1", started_ticks=25)


def acquire(campaign, holder=ONE, *, gone=()):
    return leases.acquire(
        campaign.database,
        campaign.record.id,
        holder,
        now=NOW,
        lifetime=LIFETIME,
        is_gone=lambda lease: lease.holder in gone or bool(lease.is_expired),
    )


def grow_old(campaign, age):
    """Let the last heartbeat be so long ago, by the database's clock."""
    with campaign.database.writing() as session:
        row = session.get(Lease, campaign.record.id)
        row.heartbeat_at -= age


def stored(campaign):
    with campaign.database.reading() as session:
        return leases.find(session, campaign.record.id)


def plan_under(campaign, lease, number=0):
    with leases.writing_under(campaign.database, lease) as session:
        round_records.add_round(session, campaign.record.id, number=number, arms=[0], examples=[0], now=NOW)


def n_rounds(campaign):
    with campaign.database.reading() as session:
        return session.scalar(select(func.count()).select_from(Round))


def test_a_free_campaign_is_taken_and_the_lease_is_as_stored(campaign):
    assert stored(campaign) is None
    lease = acquire(campaign)
    assert lease == stored(campaign)
    assert (lease.token, lease.holder) == (1, ONE)
    assert (lease.beats, lease.lifetime, lease.released_at) == (0, LIFETIME, None)


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_sqlite_has_no_clock_so_no_lease_is_said_to_have_expired(campaign):
    lease = acquire(campaign)
    assert (lease.heartbeat_at, lease.is_expired) == (NOW, None)
    grow_old(campaign, LIFETIME * 1000)
    assert stored(campaign).is_expired is None


@pytest.mark.parametrize("backend", ["postgresql"], indirect=True)
def test_postgresql_stamps_a_lease_and_judges_it_whatever_the_clocks_of_its_clients_say(campaign):
    lease = acquire(campaign)
    assert abs(lease.heartbeat_at - dt.datetime.now(dt.UTC)) < LIFETIME  # and not NOW, years ago
    grow_old(campaign, LIFETIME * 0.8)
    assert stored(campaign).is_expired is False
    leases.renew(campaign.database, lease, now=NOW - 1000 * LIFETIME)
    grow_old(campaign, LIFETIME * 0.5)
    assert stored(campaign).is_expired is False
    with pytest.raises(LeaseHeld):
        acquire(campaign, TWO)
    grow_old(campaign, LIFETIME * 0.5)
    assert stored(campaign).is_expired is True
    assert acquire(campaign, TWO).token == 2


@pytest.mark.parametrize("backend", ["postgresql"], indirect=True)
def test_a_reader_of_postgresql_judges_a_lease_by_the_time_of_its_beginning(campaign):
    """What it reads is as of then: the heartbeats that came since, it does not see."""
    lease = acquire(campaign)
    with campaign.database.reading() as session:
        assert leases.find(session, campaign.record.id) == lease
        session.execute(text("SELECT pg_sleep(0.3)"))
        session.get(Lease, campaign.record.id).lifetime_s = 0.3
        with session.no_autoflush:
            assert leases.find(session, campaign.record.id).is_expired is False
        session.expunge_all()
    with campaign.database.writing() as session:
        session.execute(update(Lease).values(lifetime_s=0.3))
    assert stored(campaign).is_expired is True


def test_a_live_lease_is_refused_with_its_holder_and_when_another_may_take_its_place(campaign):
    lease = acquire(campaign)
    with pytest.raises(LeaseHeld) as refused:
        acquire(campaign, TWO)
    said = str(refused.value)
    assert "'letters' is being run by process 11 on here" in said
    assert f"last heartbeat {lease.heartbeat_at:%Y-%m-%d %H:%M:%S} UTC" in said
    assert "after 60 s without a heartbeat another process can take over" in said
    assert stored(campaign).holder == ONE


def test_another_campaign_is_not_affected(campaign):
    acquire(campaign)
    assert acquire(store_campaign(campaign.database, "other"), TWO).token == 1


@pytest.mark.parametrize("end", ["released", "gone"])
def test_a_lease_nobody_holds_any_more_is_taken_over_with_a_higher_token(campaign, end):
    lease = acquire(campaign)
    if end == "released":
        leases.release(campaign.database, lease, now=NOW)
    taken = acquire(campaign, TWO, gone=[ONE] if end == "gone" else [])
    assert (taken.token, taken.holder, taken.released_at) == (2, TWO, None)
    assert stored(campaign) == taken


def test_the_same_process_may_take_its_own_lease_again(campaign):
    first, again = acquire(campaign), acquire(campaign)
    assert (first.token, again.token) == (1, 2)
    with pytest.raises(LeaseLost):
        plan_under(campaign, first)


@pytest.mark.parametrize("other", [{"started_ticks": 95}, {"boot_id": "b"}, {"pid_namespace": "2"}])
def test_a_process_of_the_same_host_and_number_is_not_the_holder(campaign, other):
    acquire(campaign)
    with pytest.raises(LeaseHeld):
        acquire(campaign, replace(ONE, **other))


def test_of_many_that_ask_at_once_one_gets_the_lease(campaign):
    got, refused = [], []

    def ask(pid):
        try:
            got.append(acquire(campaign, replace(ONE, pid=pid)))
        except LeaseHeld as error:
            refused.append(error)

    threads = [threading.Thread(target=ask, args=[pid]) for pid in range(1, 10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(got), len(refused)) == (1, 8)
    assert stored(campaign) == got[0]


def test_who_holds_the_lease_writes(campaign):
    plan_under(campaign, acquire(campaign))
    assert n_rounds(campaign) == 1


def test_who_lost_the_lease_writes_nothing(campaign):
    lost = acquire(campaign)
    taken = acquire(campaign, TWO, gone=[ONE])
    with pytest.raises(LeaseLost, match="another process, or another run in this one, took it over") as told:
        plan_under(campaign, lost)
    assert f"its lease on campaign '{campaign.record.name}': " in str(told.value)
    assert n_rounds(campaign) == 0
    plan_under(campaign, taken)


def test_a_takeover_waits_for_a_transaction_of_the_old_holder_and_fences_off_the_next(campaign):
    """The old holder's open transaction was begun under a valid lease, so it may end; nothing after it."""
    lost, order = acquire(campaign), []

    def take_over():
        acquire(campaign, TWO, gone=[ONE])
        order.append("taken over")

    other = threading.Thread(target=take_over)
    with leases.writing_under(campaign.database, lost) as session:
        other.start()
        other.join(timeout=0.2)
        round_records.add_round(session, campaign.record.id, number=0, arms=[0], examples=[0], now=NOW)
        order.append("written")
    other.join()
    assert order == ["written", "taken over"]
    with pytest.raises(LeaseLost):
        plan_under(campaign, lost, number=1)
    assert n_rounds(campaign) == 1


def test_a_campaign_nobody_ever_held_is_not_written_under_a_made_up_lease(campaign):
    lease = acquire(campaign)
    other = store_campaign(campaign.database, "other")
    with pytest.raises(LeaseLost):
        plan_under(other, replace(lease, campaign_id=other.record.id))


def test_heartbeats_are_stamped_and_counted_even_if_the_clock_goes_back(campaign):
    lease = acquire(campaign)
    for number in (1, 2):
        leases.renew(campaign.database, lease, now=NOW - number * LIFETIME)
        renewed = stored(campaign)
        assert renewed == replace(lease, beats=number, heartbeat_at=renewed.heartbeat_at)
        assert renewed.heartbeat_at != lease.heartbeat_at


def test_a_heartbeat_touches_no_other_campaign(campaign):
    other = store_campaign(campaign.database, "other")
    theirs = acquire(other, TWO)
    leases.renew(campaign.database, acquire(campaign), now=NOW + LIFETIME / 2)
    assert stored(other) == theirs


def test_a_lost_lease_cannot_be_renewed(campaign):
    lost = acquire(campaign)
    taken = acquire(campaign, TWO, gone=[ONE])
    with pytest.raises(LeaseLost):
        leases.renew(campaign.database, lost, now=NOW + LIFETIME)
    assert stored(campaign) == taken


def test_releasing_a_lost_lease_leaves_it_to_its_new_holder(campaign):
    lost = acquire(campaign)
    taken = acquire(campaign, TWO, gone=[ONE])
    leases.release(campaign.database, lost, now=NOW + LIFETIME)
    assert stored(campaign) == taken


@pytest.mark.parametrize(
    ("changes", "gone", "live"),
    [({}, False, True), ({}, True, False), ({"released_at": NOW}, False, False)],
)
def test_a_lease_is_live_until_it_is_released_or_its_holder_is_gone(campaign, changes, gone, live):
    lease = replace(acquire(campaign), **changes)
    assert leases.is_live(lease, is_gone=lambda _: gone) is live


def test_leases_that_were_not_given_back_are_listed(campaign):
    other = store_campaign(campaign.database, "other")
    leases.release(campaign.database, acquire(campaign), now=NOW)
    theirs = acquire(other, TWO)
    with campaign.database.reading() as session:
        assert leases.unreleased(session) == [theirs]


def test_a_campaign_that_was_deleted_is_neither_taken_nor_written_to(campaign):
    lease = acquire(campaign)
    with campaign.database.writing() as session:
        found = pruning.prunable(session, before=NOW + LIFETIME)
        pruning.prune(session, found, is_gone=lambda _: True, seen_by=scored_positions)
    again = store_campaign(campaign.database)
    assert again.record.id > campaign.record.id
    with pytest.raises(CampaignDeleted, match=rf"^campaign {lease.campaign_id} was deleted meanwhile"):
        plan_under(campaign, lease)
    with pytest.raises(CampaignDeleted):
        acquire(campaign)
    leases.release(campaign.database, lease, now=NOW)
