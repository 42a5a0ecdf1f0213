"""What would probably settle an undecided answer: reckoned from the observed gap, and said as an estimate."""

import math
from dataclasses import replace

import numpy as np
import pytest
from stored_campaigns import new_database, store_campaign

import winnow
from winnow.algorithms.claims import Claim
from winnow.storage.models import Campaign
from winnow.tasks.answer.earlier_campaigns import held_out_positions
from winnow.tasks.answer.follow_ups import next_step_of
from winnow.tasks.answer.model import Answer, CandidateStanding, Difference
from winnow.tasks.answer.next_step import examples_to_separate
from winnow.tasks.answer.sentences.answer_lines import answer_lines
from winnow.tasks.campaign.look import Look
from winnow.tasks.queries.status import campaign_status


def test_half_the_width_takes_four_times_the_examples_of_an_endless_benchmark():
    n = examples_to_separate(100, 10**9, gap=0.1, reach=0.1, epsilon=0.0)
    assert n == pytest.approx(400, abs=1)


def test_the_examples_are_those_at_which_the_width_is_the_gap():
    n, of = 50, 1_000
    wanted = examples_to_separate(n, of, gap=0.05, reach=0.2, epsilon=0.01)
    width = [math.sqrt(1.0 / each - 1.0 / of) for each in (wanted - 1, wanted)]
    target = math.sqrt(1.0 / n - 1.0 / of) * 0.06 / 0.25
    assert width[1] <= target < width[0]


@pytest.mark.parametrize(
    "case",
    [
        {"n": 0},
        {"n": 1_000},
        {"gap": 0.0},
        {"reach": 0.0},
        {"epsilon": 0.2},
        {"reach": 0.95},  # all that 900 examples that are left allow
    ],
)
def test_without_a_gap_or_a_width_that_shrinks_nothing_is_said(case):
    usual = {"n": 100, "n_examples": 1_000, "gap": 0.05, "reach": 0.1, "epsilon": 0.0}
    assert examples_to_separate(**usual) is not None
    assert examples_to_separate(**(usual | case)) is None


def test_a_smaller_gap_takes_more_and_never_more_than_there_are():
    found = [
        examples_to_separate(100, 1_000, gap=gap, reach=0.1, epsilon=0.0) for gap in (0.2, 0.1, 0.05, 0.001)
    ]
    assert found == sorted(found)
    assert 100 < found[0] < found[-1] <= 1_000


def reckoned_and_taken(seed, n_examples=600, gap=0.06):
    """How many comparisons an undecided race of two was said to take, and took; None where it is decided."""
    scores = np.random.default_rng(seed).random((2, n_examples)) < [[0.6], [0.6 - gap]]

    def score(candidate, example):
        return float(scores[candidate, example])

    found = winnow.select(score, [0, 1], range(n_examples), seed=seed, budget=240)
    apart = found.decision.differences
    if found.claim.kind != "none" or apart is None:
        return None
    rival = 1 - apart.against
    known = np.isfinite(found.scores)
    wanted = examples_to_separate(
        int(known.all(axis=0).sum()),
        n_examples,
        gap=-apart.estimates[rival],
        reach=apart.upper[rival],
        epsilon=0.0,
    )
    if wanted is None:
        return None
    in_full = winnow.select(score, [0, 1], range(n_examples), seed=seed)
    return int((wanted - known.sum(axis=1)).clip(0).sum()), in_full.comparisons - found.comparisons


def test_most_races_take_about_what_was_reckoned():
    ratios = [taken / said for said, taken in filter(None, map(reckoned_and_taken, range(14)))]
    assert len(ratios) >= 8
    assert 0.5 < np.median(ratios) < 1.5
    assert np.mean([1 / 3 <= ratio <= 1.5 for ratio in ratios]) > 0.6


ANSWER = Answer(
    objective="best-mean",
    outcome="undecided",
    claim=Claim(kind="none"),
    reason="budget",
    best="a",
    candidates=(
        CandidateStanding(name="a", status="active", estimate=0.8),
        CandidateStanding(
            name="b",
            status="active",
            estimate=0.7,
            difference=Difference(against="a", estimate=-0.1, lower=-0.4, upper=0.2),
        ),
    ),
    n_examples=14,
    delta=0.05,
)


def undecided(tmp_path, budget=16, epsilon=0.0, **changes):
    """The lines of a campaign whose two best were both scored on the same eight of twenty examples."""
    campaign = store_campaign(
        new_database(tmp_path / "winnow.db"), n_examples=20, budget=budget, epsilon=epsilon
    )
    differences = {
        "against": 0,
        "delta": 0.05,
        "estimates": [None, -0.1, -0.5],
        "lower": [None, -0.4, -0.9],
        "upper": [None, 0.2, -0.1],
    }
    believed = {
        "estimates": [0.8, 0.7, 0.3],
        "lower": [0.5, 0.4, 0.0],
        "upper": [1.0, 1.0, 0.5],
        "status": ["active", "active", "eliminated"],
        "stop": True,
        "reason": "budget",
        "differences": differences,
    }
    round_ = campaign.plan(0, [0, 1] * 8, [place // 2 for place in range(16)])
    campaign.finish(round_, [1.0, 0.5] * 8, best=0, **(believed | changes))
    with campaign.database.reading() as session:
        return [
            dict(answer_lines(campaign_status(Look(session, campaign.record), in_full=in_full).answer))
            for in_full in (True, False)
        ]


def test_an_undecided_answer_says_what_would_settle_it_as_an_estimate(tmp_path):
    in_full, in_short = undecided(tmp_path)
    wanted = examples_to_separate(8, 20, gap=0.1, reach=0.2, epsilon=0.0)
    assert in_full["next"] == (
        f"about {2 * (wanted - 8)} more comparisons of a and b would separate the two, if their "
        "difference stays at 0.100 (an estimate from what was observed, not a claim)"
    )
    assert "next" not in in_short


def test_what_is_reckoned_is_how_epsilon_would_be_shown_where_there_is_one(tmp_path):
    in_full, _ = undecided(tmp_path, epsilon=0.05)
    wanted = examples_to_separate(8, 20, gap=0.1, reach=0.2, epsilon=0.05)
    assert in_full["next"] == (
        f"about {2 * (wanted - 8)} more comparisons of a and b would show that b is not ahead by more than "
        "0.05, if their difference stays at 0.100 (an estimate from what was observed, not a claim)"
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"differences": None},
        {"reason": "exhausted"},
        {"reason": "exhausted", "stop": False},  # a limit ended what is held out
        {"stop": False, "reason": "running", "budget": 17},
        {"claim": {"kind": "proven", "delta": 0.05, "raised_by": [], "assumptions": [], "refuted": []}},
    ],
)
def test_where_it_cannot_be_reckoned_or_is_settled_nothing_is_said(tmp_path, changes):
    if changes.get("claim"):
        changes = changes | {"status": ["best", "eliminated", "eliminated"], "reason": "confident"}
    for lines in undecided(tmp_path, **changes):
        assert "next" not in lines


def test_held_out_examples_are_none_that_separate_the_two(tmp_path):
    """The winner's and the runner-up's are all asked for in any case, and no interval rests on them."""
    campaign = store_campaign(new_database(tmp_path / "winnow.db"), n_examples=20, budget=16)
    spec = {**campaign.record.spec, "holdout": 0.3}
    with campaign.database.writing() as session:
        session.get_one(Campaign, campaign.record.id).spec = spec
    record = replace(campaign.record, spec=spec)
    with campaign.database.reading() as session:
        held_out = held_out_positions(Look(session, record))
        before = next_step_of(Look(session, record), ANSWER)
    assert (len(held_out), before) == (6, None)
    seen = sorted({*range(20)} - held_out)[:8]
    round_ = campaign.plan(0, [0, 1] * 8, [position for position in seen for _ in range(2)])
    campaign.finish(round_, [1.0, 0.5] * 8, best=0)
    with campaign.database.reading() as session:
        first = next_step_of(Look(session, record), ANSWER)
    round_ = campaign.plan(1, [0, 1] * 6, [position for position in held_out for _ in range(2)])
    campaign.finish(round_, [1.0, 0.5] * 6, best=0)
    with campaign.database.reading() as session:
        assert next_step_of(Look(session, record), ANSWER) == first
    wanted = examples_to_separate(8, 14, gap=0.1, reach=0.2, epsilon=0.0)
    assert first.comparisons == 2 * (wanted - 8)
