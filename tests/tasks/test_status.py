"""Where a campaign stands follows from its rows and its lease."""

from dataclasses import replace

import pytest
from stored_campaigns import store_campaign

from winnow.storage.queries import costs
from winnow.storage.records import leases
from winnow.storage.records.record_types import Holder
from winnow.tasks.campaign.lease import LIFETIME, holding, now
from winnow.tasks.campaign.look import Look
from winnow.tasks.queries.status import campaign_status

KNOWN = {"estimates": [0.5, 0.9, 0.1], "lower": [0.3, 0.6, 0.0], "upper": [0.7, 1.0, 0.2]}
PROVEN = {"kind": "proven", "delta": 0.05, "raised_by": [], "assumptions": [], "refuted": []}
EXACT = {"kind": "exact", "delta": None, "raised_by": [], "assumptions": [], "refuted": []}
HEURISTIC = {"kind": "heuristic", "delta": None, "raised_by": [], "assumptions": [], "refuted": []}
NOTHING = {"kind": "none", "delta": None, "raised_by": [], "assumptions": [], "refuted": []}


def status(campaign):
    with campaign.database.reading() as session:
        return campaign_status(Look(session, campaign.record))


def end(campaign, reason, claim=NOTHING, **fields):
    round_ = campaign.plan(0, [0, 1, 2], [0, 0, 0])
    said = {"stop": reason != "running", "reason": reason, "claim": claim}
    if claim in (PROVEN, EXACT):
        said["status"] = ["eliminated", "best", "eliminated"]
    campaign.finish(round_, [1.0, 0.0, None], best=1, **said, **KNOWN | fields)
    return status(campaign)


def test_means_that_are_known_exactly_have_a_runner_up_whatever_the_method_stores(campaign):
    means = [0.5, 0.9, 0.1]
    found = end(campaign, "exhausted", EXACT, estimates=means, lower=means, upper=means).answer.runner_up
    assert (found.name, found.difference.against) == ("a", "b")
    assert found.difference.lower == found.difference.estimate == pytest.approx(-0.4)


def test_means_that_are_not_known_have_none_by_the_method_alone(campaign):
    assert end(campaign, "exhausted", EXACT).answer.runner_up is None


def test_what_is_spent_is_added_up_once_also_in_full(campaign, monkeypatch):
    end(campaign, "running", status=["active"] * 3)
    read, counted = costs.of_rounds, []

    def of_rounds(*given, **named):
        counted.append(1)
        return read(*given, **named)

    monkeypatch.setattr(costs, "of_rounds", of_rounds)
    with campaign.database.reading() as session:
        campaign_status(Look(session, campaign.record), in_full=True)
    assert counted == [1]


def test_a_campaign_without_a_finished_round_is_new(campaign):
    campaign.plan(0, [0], [0])
    found = status(campaign)
    assert (found.state, found.holder, found.is_settled) == ("new", None, False)
    answer = found.answer
    assert (answer.outcome, answer.reason, answer.best, answer.of_best) == (None, "running", None, None)
    assert [each.status for each in answer.candidates] == ["active"] * 3


@pytest.mark.parametrize(
    ("reason", "claim", "delta", "state", "outcome", "settled", "guaranteed"),
    [
        ("running", NOTHING, 0.05, "interrupted", None, False, False),
        ("confident", PROVEN, 0.05, "ended", "winner", True, True),
        ("exhausted", EXACT, 0.05, "ended", "winner", True, True),
        ("exhausted", EXACT, None, "ended", "winner", True, True),
        ("exhausted", NOTHING, 0.05, "ended", "undecided", True, False),
        ("budget", NOTHING, 0.05, "ended", "undecided", True, False),
        ("budget", HEURISTIC, None, "ended", "winner", True, False),
        ("all-dropped", NOTHING, 0.05, "ended", "failed", True, False),
    ],
)
def test_how_a_campaign_ended_says_its_outcome(
    database, reason, claim, delta, state, outcome, settled, guaranteed
):
    found = end(store_campaign(database, budget=3 + (reason == "running"), delta=delta), reason, claim)
    assert (found.state, found.answer.reason, found.answer.outcome) == (state, reason, outcome)
    assert (found.is_settled, found.answer.is_guaranteed) == (settled, guaranteed)


@pytest.mark.parametrize(("reason", "settled"), [("budget", False), ("confident", True), ("exhausted", True)])
def test_a_raised_budget_reopens_only_what_the_budget_ended(database, reason, settled):
    assert end(store_campaign(database, budget=4), reason).is_settled is settled


@pytest.mark.parametrize("budget", [2, 3])
def test_a_budget_that_was_lowered_to_what_is_spent_ends_a_campaign(database, budget):
    """The reproduction: its last decision was to go on, so that it was never at an end."""
    found = end(store_campaign(database, budget=budget), "running")
    assert (found.state, found.answer.outcome, found.answer.reason) == ("ended", "undecided", "budget")
    assert (found.answer.limit.kind, found.is_settled) == ("comparisons", True)


def test_a_campaign_whose_lease_is_held_is_running_while_there_is_more_to_do(campaign):
    with holding(campaign.database, campaign.record.id) as lease:
        assert status(campaign).state == "running"
        found = end(campaign, "running", PROVEN)
        assert (found.state, found.holder) == ("running", str(lease.holder))
        assert (found.answer.outcome, found.answer.claim.kind) == (None, "none")
        assert not found.is_settled
    assert (status(campaign).state, status(campaign).holder) == ("interrupted", None)


def test_a_decided_campaign_that_another_process_holds_has_ended(campaign):
    """The reproduction: `winnow run` ended with 1 where another process took the lease right after it."""
    with holding(campaign.database, campaign.record.id) as lease:
        found = end(campaign, "confident", PROVEN)
    assert (found.state, found.holder, found.is_settled) == ("ended", str(lease.holder), True)
    assert (found.answer.outcome, found.answer.claim.kind) == ("winner", "proven")


def test_a_campaign_with_a_raised_budget_runs_while_it_is_held(database):
    campaign = store_campaign(database, budget=4)
    with holding(campaign.database, campaign.record.id):
        found = end(campaign, "budget")
        assert (found.state, found.answer.outcome, found.is_settled) == ("running", None, False)


AWAY = Holder(host="another-machine", pid=1, boot_id="b", pid_namespace="1", started_ticks=1)


@pytest.mark.parametrize(("age", "state"), [(0, "running"), (2, "interrupted"), (-2, "interrupted")])
def test_a_lease_of_another_machine_counts_for_as_long_as_its_heartbeats_seem_recent(campaign, age, state):
    end(campaign, "running")
    leases.acquire(
        campaign.database,
        campaign.record.id,
        AWAY,
        now=now() - age * LIFETIME,
        lifetime=LIFETIME,
        is_gone=lambda _: False,
    )
    assert status(campaign).state == state


def test_the_best_is_shown_with_its_interval_and_what_it_cost(campaign):
    found = end(campaign, "running")
    best = found.answer.of_best
    assert (best.name, best.estimate, best.lower, best.upper) == ("b", 0.9, 0.6, 1.0)
    assert (found.totals["comparisons"], found.totals["scored"], found.totals["grid"]) == (3, 2, 15)
    assert found.share_of_grid == 3 / 15
    assert (found.budget, found.answer.delta, found.answer.epsilon) == (100, 0.05, 0.0)


@pytest.mark.parametrize(
    ("fields", "contenders"),
    [
        ({}, ("b", "a", "c")),
        ({"status": ["eliminated", "active", "active"]}, ("b", "c")),
        ({"status": ["not-better", "best", "dropped"]}, ("b",)),
        ({"estimates": [None, 0.9, 0.1]}, ("b", "c", "a")),
    ],
)
def test_contenders_are_those_whose_status_is_open_whoever_leads_first(campaign, fields, contenders):
    assert end(campaign, "running", **fields).answer.contenders == contenders


def test_what_was_dropped_is_told_with_what_it_lacks_and_why(campaign):
    found = end(campaign, "running", status=["active", "active", "dropped"])
    (dropped,) = found.answer.dropped
    assert (dropped.name, dropped.told, dropped.unscored, dropped.reason) == ("c", 1, 1, "no_answer")


def test_status_says_how_the_last_process_left_a_campaign_that_is_to_go_on(campaign):
    assert status(campaign).left is None
    with holding(campaign.database, campaign.record.id) as lease:
        assert status(campaign).left is None
    assert status(campaign).left.startswith(f"{lease.holder} stopped in order at ")
    gone = replace(lease.holder, started_ticks=1)
    taken = {"lifetime": LIFETIME, "is_gone": lambda _: True}
    leases.acquire(campaign.database, campaign.record.id, gone, now=now(), **taken)
    assert f"{gone} is gone; its last heartbeat was at " in status(campaign).left
    leases.acquire(campaign.database, campaign.record.id, AWAY, now=now() - 2 * LIFETIME, **taken)
    assert status(campaign).left.startswith(f"{AWAY} seems to be gone: its last heartbeat was at ")
    assert "winnow resume first waits for 60 s" in status(campaign).left
    end(campaign, "confident")
    assert status(campaign).left is None
