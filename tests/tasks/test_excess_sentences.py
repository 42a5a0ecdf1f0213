"""What is said of how much better another candidate can be, and where nothing is."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from stored_campaigns import NOW

from winnow.algorithms.claims import Claim
from winnow.storage.records.outcomes import _reopen
from winnow.storage.records.record_types import DecisionRecord
from winnow.tasks.answer.excess import excess_of
from winnow.tasks.answer.model import Addition, Answer, CandidateStanding, Excess, Unscored
from winnow.tasks.answer.sentences.answer_lines import answer_lines
from winnow.tasks.answer.sentences.excess import excess_clause, excess_words, not_excluded, whom_words
from winnow.tasks.answer.sentences.headline import headline_sentences
from winnow.tasks.campaign.budget import BudgetUsage
from winnow.tasks.spec.stored_spec import Grouping

FORBIDDEN = ("within", "equal", "told apart")
TOTALS = {"answered": 30, "grid": 120, "rounds": 3}
FOUND = Excess(over="a", most=0.043, claim="proven", delta=0.05, not_excluded=("b", "c"))
OPEN = Answer(
    objective="best-mean",
    outcome="undecided",
    claim=Claim(),
    reason="budget",
    best="a",
    candidates=(
        CandidateStanding(name="a", estimate=0.9, status="active", lower=0.8, upper=0.95),
        CandidateStanding(name="b", estimate=0.8, status="active"),
        CandidateStanding(name="c", estimate=0.7, status="active", out_in_round=3),
        CandidateStanding(name="d", estimate=0.6, status="eliminated"),
    ),
    n_examples=40,
    delta=0.05,
    limit=BudgetUsage(kind="comparisons", key="stopping.budget", spent=30, limit=30),
    excess=FOUND,
)
SAID = "no candidate is better than a by more than 0.043 (95% confidence)"


def test_it_stands_in_the_headline_of_an_undecided_answer():
    assert headline_sentences(OPEN, TOTALS) == [
        f"a leads: mean 0.900 (0.800 to 0.950) on these 40 examples; {SAID}.",
        "Not excluded: b, c.",
        "No winner yet: the comparison budget is spent: 30 of 30; it took 30 of 120 comparisons (25.0%).",
    ]
    assert ("bound", f"{SAID}; not excluded: b, c") in answer_lines(OPEN)


def test_it_is_said_of_the_candidate_that_it_is_proven_for_though_another_leads():
    first, *_ = headline_sentences(replace(OPEN, best="b"), TOTALS)
    assert first.startswith("b leads: mean 0.800")
    assert SAID in first


def test_while_it_runs_and_without_delta_it_is_said_too():
    running = headline_sentences(replace(OPEN, outcome=None, limit=None), TOTALS)
    assert running[0].startswith("Not finished: a leads so far")
    assert SAID in running[0]
    assert running[1] == "Not excluded: b, c."
    heuristic = headline_sentences(replace(OPEN, outcome="winner", claim=Claim(kind="heuristic")), TOTALS)
    assert SAID in heuristic[0]


@pytest.mark.parametrize("kind", ["proven", "exact"])
def test_a_proven_answer_says_as_much_itself(kind):
    claim = Claim(kind=kind, delta=0.05 if kind == "proven" else None)
    answer = replace(OPEN, outcome="winner", claim=claim)
    assert excess_clause(answer) == ""
    assert "0.043" not in " ".join(headline_sentences(answer, TOTALS))


DROPPED = (Unscored(name="d", told=8, unscored=8, reason="refused"),)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"dropped": DROPPED}, "no candidate that was not dropped is better than a by more than 0.043"),
        ({"top_m": 3}, "at most 2 candidates are better than a by more than 0.043"),
        ({"top_m": 2}, "at most 1 candidate is better than a by more than 0.043"),
        (
            {"groups": Grouping(by="level", objective="worst", weights="equal")},
            "no candidate has a worst-group mean above that of a by more than 0.043",
        ),
        ({"excess": replace(FOUND, delta=0.1)}, "by more than 0.043 (90% confidence)"),
        ({"excess": replace(FOUND, most=0.0)}, "no candidate is better than a (95% confidence)"),
        ({"excess": replace(FOUND, claim="exact", delta=0.0)}, "by more than 0.043 (exact)"),
        (
            {"intervals_if": ("unseen-draws",)},
            "(95% confidence), if the served models were not changed after seeing the examples",
        ),
        (
            {"additions": (Addition(names=("c", "d"), rounds=2),)},
            "(95% confidence), if how often candidates were added did not depend on the scores",
        ),
    ],
)
def test_it_says_of_whom_it_is_and_what_it_takes_for_granted(changes, said):
    found = excess_clause(replace(OPEN, **changes))
    assert said in found
    assert not any(word in found for word in FORBIDDEN)


def test_the_line_says_how_many_are_new_and_the_m_best_exclude_nobody():
    line = dict(answer_lines(replace(OPEN, additions=(Addition(names=("c", "d"), rounds=2),))))["bound"]
    assert line.endswith("; 2 of all candidates were added after scores were seen")
    assert not_excluded(replace(OPEN, top_m=2)) == ""


def test_with_constraints_it_is_about_those_that_meet_them():
    found = excess_words("a", 0.1, 0.05, whom=whom_words(has_constraints=True, has_dropped=True))
    assert found.startswith("no candidate that meets the constraints and was not dropped is better than a by")


def test_a_margin_is_written_as_no_less_than_it_is():
    assert "by more than 0.044 " in excess_words("a", 0.0433, 0.05)


def decision(n_joined=0, **excess):
    stored = {"over": 0, "most": 0.043, "delta": 0.05} | excess
    return DecisionRecord(
        round_number=3,
        best="a",
        estimates=[0.9, 0.8, 0.7, 0.6],
        lower=[None] * 4,
        upper=[None] * 4,
        status=[each.status for each in OPEN.candidates],
        claim={"kind": "none", "delta": None, "raised_by": [], "assumptions": [], "excess": stored},
        stop=False,
        reason="running",
        decided_at=NOW,
        n_joined=n_joined,
    )


def test_it_is_what_the_decision_states():
    assert excess_of("abcd", decision(), OPEN) == FOUND
    assert excess_of("abcd", decision(most=0.0), OPEN).not_excluded == ()
    assert excess_of("abcd", decision(delta=0.0), OPEN).claim == "exact"


def test_nothing_is_said_where_nothing_is_proven():
    plain = replace(decision(), claim={"kind": "none"})
    assert excess_of("abcd", None, OPEN) is None
    assert excess_of("abcd", plain, OPEN) is None
    assert excess_of("abcd", decision(), replace(OPEN, plugin="theirs")) is None
    alone = tuple(Unscored(name=name, told=8, unscored=8, reason="refused") for name in "bcd")
    assert excess_of("abcd", decision(), replace(OPEN, dropped=alone)) is None
    mixed = replace(OPEN, servers=(SimpleNamespace(mixes=True),))
    assert excess_of("abcd", decision(), mixed) is None


def test_those_who_join_after_a_decision_are_not_in_it():
    assert "excess" not in _reopen(decision(n_joined=1)).claim
    assert "excess" in _reopen(decision()).claim
