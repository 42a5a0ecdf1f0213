"""Where a campaign stands follows from its rows and its lease."""

from dataclasses import replace

import pytest
from stored_campaigns import store_campaign

from storage import leases
from storage.records import Holder
from tasks.leasing import LIFETIME, holding, now
from tasks.status import campaign_status

KNOWN = {"estimates": [0.5, 0.9, 0.1], "lower": [0.3, 0.6, 0.0], "upper": [0.7, 1.0, 0.2]}


def status(campaign):
    with campaign.database.reading() as session:
        return campaign_status(session, campaign.record)


def end(campaign, reason, **fields):
    round_ = campaign.plan(0, [0, 1, 2], [0, 0, 0])
    campaign.finish(
        round_, [1.0, 0.0, None], best=1, stop=reason != "running", reason=reason, **KNOWN | fields
    )
    return status(campaign)


def test_a_campaign_without_a_finished_round_is_new(campaign):
    campaign.plan(0, [0], [0])
    found = status(campaign)
    assert (found.state, found.reason, found.best, found.contenders) == ("new", "running", None, ())
    assert (found.estimate, found.lower, found.upper, found.holder) == (None, None, None, None)
    assert not found.is_settled


@pytest.mark.parametrize(
    ("reason", "delta", "state", "settled", "guaranteed"),
    [
        ("running", 0.05, "interrupted", False, False),
        ("confident", 0.05, "decided", True, True),
        ("exhausted", 0.05, "decided", True, True),
        ("exhausted", None, "decided", True, True),
        ("budget", 0.05, "undecided", True, False),
        ("budget", None, "decided", True, False),
        ("all-dropped", 0.05, "undecided", True, False),
    ],
)
def test_how_a_campaign_ended_says_its_state(database, reason, delta, state, settled, guaranteed):
    found = end(store_campaign(database, budget=3, delta=delta), reason)
    assert (found.state, found.reason) == (state, reason)
    assert (found.is_settled, found.is_guaranteed) == (settled, guaranteed)


@pytest.mark.parametrize(("reason", "settled"), [("budget", False), ("confident", True), ("exhausted", True)])
def test_a_raised_budget_reopens_only_what_the_budget_ended(database, reason, settled):
    assert end(store_campaign(database, budget=4), reason).is_settled is settled


def test_a_campaign_whose_lease_is_held_is_running_whatever_its_last_decision_said(campaign):
    with holding(campaign.database, campaign.record.id) as lease:
        assert status(campaign).state == "running"
        found = end(campaign, "confident")
        assert (found.state, found.holder) == ("running", str(lease.holder))
        assert not found.is_settled
    assert status(campaign).state == "decided"
    assert status(campaign).holder is None


@pytest.mark.parametrize(("age", "state"), [(0, "running"), (2, "interrupted")])
def test_a_lease_of_another_machine_counts_until_it_runs_out(campaign, age, state):
    end(campaign, "running")
    leases.acquire(
        campaign.database,
        campaign.record.id,
        Holder(host="another-machine", pid=1, process_started_at=1.0),
        now=now() - age * LIFETIME,
        lifetime=LIFETIME,
        is_gone=lambda _: False,
    )
    assert status(campaign).state == state


def test_the_best_is_shown_with_its_interval_and_what_it_cost(campaign):
    found = end(campaign, "running")
    assert (found.best, found.estimate, found.lower, found.upper) == ("b", 0.9, 0.6, 1.0)
    assert (found.totals["comparisons"], found.totals["scored"], found.totals["grid"]) == (3, 2, 15)
    assert found.share_of_grid == 3 / 15
    assert (found.budget, found.delta, found.epsilon) == (100, 0.05, 0.0)


@pytest.mark.parametrize(
    ("intervals", "contenders"),
    [
        ({}, ("b", "a")),
        ({"upper": [0.6, 1.0, 0.2]}, ("b",)),
        ({"upper": [0.7, 1.0, 0.95]}, ("b", "a", "c")),
        ({"upper": [None, 1.0, None]}, ("b", "a", "c")),
        ({"estimates": [None, 0.9, None], "upper": [None, 1.0, None]}, ("b",)),
        ({"estimates": [0.95, 0.9, 0.1]}, ("b", "a")),
    ],
)
def test_contenders_are_those_whose_interval_reaches_above_the_lower_end_of_the_best(
    campaign, intervals, contenders
):
    assert end(campaign, "running", **intervals).contenders == contenders


def test_a_decision_without_a_best_has_no_contenders(campaign):
    campaign.finish(campaign.plan(0, [0], [0]), [None], stop=True, reason="all-dropped")
    found = status(campaign)
    assert (found.state, found.best, found.contenders, found.is_guaranteed) == ("undecided", None, (), False)


@pytest.mark.parametrize(
    ("selector", "reason", "is_guaranteed"),
    [
        ({"name": "llm-po", "params": {}}, "confident", True),
        ({"name": "rucb", "params": {"features": "factors"}}, "confident", False),
        ({"name": "llm-po-bt", "params": {}}, "confident", False),
        ({"name": "llm-po-bt", "params": {}}, "confident", True),
        ({"name": "llm-po", "params": {}}, "budget", False),
    ],
)
def test_only_a_practical_threshold_in_a_model_is_no_guarantee(campaign, selector, reason, is_guaranteed):
    believed = {key: [0.9, 0.1, 0.1] for key in ("estimates", "lower", "upper")}
    campaign.finish(campaign.plan(0, [0], [0]), [1.0], best=0, stop=True, reason=reason, **believed)
    record = replace(campaign.record, spec={**campaign.record.spec, "selector": selector})
    with campaign.database.reading() as session:
        assert campaign_status(session, record).is_guaranteed is is_guaranteed


def test_status_says_how_the_last_process_left_a_campaign_that_is_to_go_on(campaign):
    assert status(campaign).left is None
    with holding(campaign.database, campaign.record.id) as lease:
        assert status(campaign).left is None
    assert status(campaign).left.startswith(f"{lease.holder} stopped in order at ")
    gone = Holder(host=lease.holder.host, pid=lease.holder.pid, process_started_at=1.0)
    taken = {"lifetime": LIFETIME, "is_gone": lambda _: True}
    leases.acquire(campaign.database, campaign.record.id, gone, now=now(), **taken)
    assert f"{gone} is gone; its last heartbeat was at " in status(campaign).left
    away = Holder(host="another-machine", pid=1, process_started_at=1.0)
    leases.acquire(campaign.database, campaign.record.id, away, now=now() - 2 * LIFETIME, **taken)
    assert f"{away} is not heard of any more" in status(campaign).left
    end(campaign, "confident")
    assert status(campaign).left is None
