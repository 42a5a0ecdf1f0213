"""One writer per campaign, whatever the others believe."""

import datetime as dt
import threading
from dataclasses import replace

import pytest
from sqlalchemy import func, select
from stored_campaigns import NOW, store_campaign

from storage import leases, pruning, round_records
from storage.errors import CampaignDeleted, LeaseHeld, LeaseLost
from storage.models import Round
from storage.records import Holder

LIFETIME = dt.timedelta(seconds=60)
ONE = Holder(host="here", pid=11, process_started_at=1.5)
TWO = Holder(host="there", pid=22, process_started_at=2.5)


def acquire(campaign, holder=ONE, *, now=NOW, gone=()):
    return leases.acquire(
        campaign.database,
        campaign.record.id,
        holder,
        now=now,
        lifetime=LIFETIME,
        is_gone=lambda other: other in gone,
    )


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
    assert (lease.heartbeat_at, lease.expires_at, lease.released_at) == (NOW, NOW + LIFETIME, None)


def test_a_live_lease_is_refused_with_its_holder_and_its_end(campaign):
    acquire(campaign)
    with pytest.raises(LeaseHeld) as refused:
        acquire(campaign, TWO, now=NOW + LIFETIME - dt.timedelta(microseconds=1))
    said = str(refused.value)
    assert "'letters' is being run by process 11 on here" in said
    assert "last heartbeat 2026-01-02 03:04:05 UTC" in said
    assert "ends at 03:05:05 UTC" in said
    assert stored(campaign).holder == ONE


def test_another_campaign_is_not_affected(campaign):
    acquire(campaign)
    assert acquire(store_campaign(campaign.database, "other"), TWO).token == 1


@pytest.mark.parametrize("end", ["stale", "released", "dead"])
def test_a_lease_nobody_holds_any_more_is_taken_over_with_a_higher_token(campaign, end):
    lease = acquire(campaign)
    if end == "released":
        leases.release(campaign.database, lease, now=NOW)
    now = NOW + LIFETIME if end == "stale" else NOW
    taken = acquire(campaign, TWO, now=now, gone=[ONE] if end == "dead" else [])
    assert (taken.token, taken.holder, taken.released_at) == (2, TWO, None)
    assert stored(campaign) == taken


def test_the_same_process_may_take_its_own_lease_again(campaign):
    first, again = acquire(campaign), acquire(campaign)
    assert (first.token, again.token) == (1, 2)
    with pytest.raises(LeaseLost):
        plan_under(campaign, first)


def test_a_later_process_of_the_same_number_is_not_the_holder(campaign):
    acquire(campaign)
    with pytest.raises(LeaseHeld):
        acquire(campaign, replace(ONE, process_started_at=9.5))


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
    taken = acquire(campaign, TWO, now=NOW + LIFETIME)
    with pytest.raises(LeaseLost, match="another process took it over"):
        plan_under(campaign, lost)
    assert n_rounds(campaign) == 0
    plan_under(campaign, taken)


def test_a_takeover_waits_for_a_transaction_of_the_old_holder_and_fences_off_the_next(campaign):
    """The old holder's open transaction was begun under a valid lease, so it may end; nothing after it."""
    lost, order = acquire(campaign), []

    def take_over():
        acquire(campaign, TWO, now=NOW + LIFETIME)
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


def test_a_heartbeat_puts_off_the_end(campaign):
    lease = acquire(campaign)
    leases.renew(campaign.database, lease, now=NOW + LIFETIME / 2, lifetime=LIFETIME)
    with pytest.raises(LeaseHeld):
        acquire(campaign, TWO, now=NOW + LIFETIME)
    renewed = stored(campaign)
    assert renewed == replace(
        lease, heartbeat_at=NOW + LIFETIME / 2, expires_at=NOW + LIFETIME / 2 + LIFETIME
    )


def test_a_heartbeat_touches_no_other_campaign(campaign):
    other = store_campaign(campaign.database, "other")
    theirs = acquire(other, TWO)
    leases.renew(campaign.database, acquire(campaign), now=NOW + LIFETIME / 2, lifetime=LIFETIME)
    assert stored(other) == theirs


def test_a_lost_lease_cannot_be_renewed(campaign):
    lost = acquire(campaign)
    taken = acquire(campaign, TWO, now=NOW + LIFETIME)
    with pytest.raises(LeaseLost):
        leases.renew(campaign.database, lost, now=NOW + LIFETIME, lifetime=LIFETIME)
    assert stored(campaign) == taken


def test_releasing_a_lost_lease_leaves_it_to_its_new_holder(campaign):
    lost = acquire(campaign)
    taken = acquire(campaign, TWO, now=NOW + LIFETIME)
    leases.release(campaign.database, lost, now=NOW + LIFETIME)
    assert stored(campaign) == taken


@pytest.mark.parametrize(
    ("changes", "gone", "live"),
    [
        ({}, False, True),
        ({}, True, False),
        ({"expires_at": NOW}, False, False),
        ({"released_at": NOW}, False, False),
    ],
)
def test_a_lease_is_live_until_it_is_released_or_runs_out_or_its_holder_dies(campaign, changes, gone, live):
    lease = replace(acquire(campaign), **changes)
    assert leases.is_live(lease, now=NOW, is_gone=lambda _: gone) is live


def test_a_campaign_that_was_deleted_is_neither_taken_nor_written_to(campaign):
    lease = acquire(campaign)
    with campaign.database.writing() as session:
        later = NOW + LIFETIME
        found = pruning.prunable(session, before=later)
        pruning.prune(session, found, now=later, is_gone=lambda _: False)
    again = store_campaign(campaign.database)
    assert again.record.id > campaign.record.id
    with pytest.raises(CampaignDeleted, match=rf"^campaign {lease.campaign_id} was deleted meanwhile"):
        plan_under(campaign, lease)
    with pytest.raises(CampaignDeleted):
        acquire(campaign)
    leases.release(campaign.database, lease, now=NOW)
