"""The headline: for each outcome what it says, and what it must not say."""

from dataclasses import replace

import pytest

from winnow.algorithms.claims import HEURISTIC, Claim
from winnow.tasks.answer.model import Addition, Answer, CandidateStanding, Difference, Unscored
from winnow.tasks.answer.new_examples import LEVEL
from winnow.tasks.answer.sentences.answer_lines import headline
from winnow.tasks.answer.sentences.headline import NOTHING_SOLVED, headline_sentences
from winnow.tasks.answer.sentences.margin import is_ahead_of_all
from winnow.tasks.campaign.budget import BudgetUsage

TOTALS = {"answered": 30, "grid": 120, "rounds": 3}
PROVEN = Claim(kind="proven", delta=0.05)
EXACT = Claim(kind="exact")


def standing(name, estimate, status="active", lower=None, upper=None):
    return CandidateStanding(name=name, estimate=estimate, status=status, lower=lower, upper=upper)


A = standing("a", 0.9, "best", 0.8, 0.95)
WON = Answer(
    objective="best-mean",
    outcome="winner",
    claim=PROVEN,
    reason="proven",
    best="a",
    candidates=(A, standing("b", 0.7, "eliminated"), standing("c", 0.6, "eliminated")),
    n_examples=40,
    delta=0.05,
)
SPENT = BudgetUsage(kind="comparisons", key="stopping.budget", spent=30, limit=30)


def said(answer, **changes):
    return headline_sentences(replace(answer, **changes), TOTALS)


def test_a_proven_winner_is_what_to_use():
    assert said(WON) == [
        "Use a: mean 0.900 (0.800 to 0.950) on these 40 examples.",
        "Best of 3 candidates there (5% risk of error); it took 30 of 120 comparisons (25.0%).",
    ]


def test_an_exact_winner_has_no_risk():
    first, second = said(WON, claim=EXACT, known=frozenset({"a", "b"}))
    assert first == "Use a: mean 0.900 on these 40 examples."
    assert second.startswith("Best of 3 candidates there (exact); ")


def test_with_open_ties_nobody_is_called_the_best():
    open_ = (A, standing("b", 0.9, "not-better"), standing("c", 0.6, "eliminated"))
    first, second = said(WON, candidates=open_)
    assert first.startswith("Use a: mean 0.900")
    assert second.startswith("No other of 3 candidates has a higher mean there (5% risk of error); ")


@pytest.mark.parametrize("epsilon", [0.01, 0.05, 0.005])
def test_with_epsilon_nobody_is_called_the_best(epsilon):
    text = " ".join(said(WON, epsilon=epsilon))
    points = {0.01: "1 point", 0.05: "5 points", 0.005: "0.5 points"}[epsilon]
    assert f"None of the 3 candidates is better there by more than {points} (5% risk of error)" in text
    assert "Best of" not in text


def ahead(**ends):
    """The winner with epsilon, before two others that are behind by intervals that hold at once."""
    found = {"b": -0.02, "c": -0.1} | ends
    others = tuple(
        replace(
            standing(name, 0.8, "not-better"),
            difference=Difference(against="a", estimate=-0.15, lower=-0.3, upper=upper),
        )
        for name, upper in found.items()
    )
    return replace(WON, candidates=(A, *others), epsilon=0.05)


def test_who_is_shown_to_be_better_than_every_other_is_no_tie():
    text = said(ahead())[1]
    assert text.startswith("Better there than each of the other 2 candidates (5% risk of error); ")
    assert headline(ahead(), "decided") == "winner, proven"


@pytest.mark.parametrize(
    "changes",
    [
        {"additions": (Addition(names=("c",), rounds=1),)},
        {"intervals_if": ("missing-at-random",)},
        {"delta": None},
        {"outcome": "undecided"},
        {"top_m": 2},
    ],
)
def test_what_intervals_do_not_prove_at_once_is_not_said(changes):
    assert not is_ahead_of_all(replace(ahead(), **changes))


@pytest.mark.parametrize("upper", [0.0, 0.01, None])
def test_one_that_may_be_level_leaves_the_margin(upper):
    assert not is_ahead_of_all(ahead(b=upper))
    assert "is better there by more than 5 points" in said(ahead(b=upper))[1]
    assert headline(ahead(b=upper), "decided").startswith("no candidate is better by more than 5 points")


def test_an_exact_margin_does_not_make_the_lead_exact():
    text = said(replace(ahead(), claim=EXACT))[1]
    assert text.startswith("Better there than each of the other 2 candidates (5% risk of error); ")


def test_the_raised_risk_is_the_one_that_is_told():
    text = " ".join(said(WON, claim=Claim(kind="proven", delta=0.1, raised_by=("dropped",))))
    assert "(10% risk of error)" in text


def test_dropped_candidates_are_not_among_those_it_is_the_best_of():
    dropped = (Unscored(name="c", told=8, unscored=8, reason="refused"),)
    assert "Best of the 2 candidates that were not dropped there" in said(WON, dropped=dropped)[1]


def test_one_that_is_left_alone_is_the_best_of_nothing():
    dropped = tuple(Unscored(name=name, told=8, unscored=8, reason="refused") for name in "bc")
    text = " ".join(said(WON, dropped=dropped, claim=HEURISTIC))
    assert text.startswith("a did best: mean 0.900")
    assert "Not proven: every other candidate was dropped" in text


def test_without_a_proof_nobody_is_to_be_used():
    text = " ".join(said(WON, claim=HEURISTIC, limit=SPENT, reason="budget"))
    assert "Use" not in text
    assert "Best of" not in text
    assert "risk of error" not in text


def test_assumptions_of_a_claim_are_said_with_it():
    claim = Claim(kind="proven", delta=0.05, assumptions=("missing-at-random",))
    assert "if the outcome that a comparison would have had does not affect" in said(WON, claim=claim)[1]


def test_a_plug_in_stands_for_its_claim_itself():
    assert "according to the third-party selector mine" in said(WON, plugin="mine")[1]


def test_scores_that_are_all_0_recommend_nobody():
    tied = tuple(standing(name, 0.0, "tied") for name in "abc")
    text = said(WON, outcome="tied", claim=EXACT, candidates=tied, is_unsolved=True)
    assert text[0] == NOTHING_SOLVED
    assert "Use" not in " ".join(text)


def test_tied_candidates_are_as_good_as_each_other():
    tied = (standing("a", 0.9, "tied"), standing("b", 0.9, "tied"), standing("c", 0.5, "eliminated"))
    first, second = said(WON, outcome="tied", candidates=tied, claim=EXACT, known=frozenset("ab"))
    assert first == "Use any of a, b, which have the same mean 0.900 on these 40 examples."
    assert second.startswith("No other of 3 candidates has a higher mean there (exact)")


def test_tied_within_epsilon_have_no_common_mean():
    tied = (standing("a", 0.9, "tied"), standing("b", 0.88, "tied"))
    first, second = said(WON, outcome="tied", candidates=tied, epsilon=0.05)
    assert first == "Use any of a (mean 0.900), b (mean 0.880), which are within 5 points of the best."
    assert "means within 0.05 of the highest" in second


ACCEPTED = "within the 5 points that you accept (stopping.epsilon)."


@pytest.mark.parametrize(
    ("means", "others", "first", "sure"),
    [
        ({"b": 0.87}, (), f"Use a: mean 0.900 on these 40 examples. b is 3 points lower (0.870), {ACCEPTED}",
         "Best of 2 candidates there (exact); "),
        ({"b": 0.8996}, (), f"Use a: mean 0.900 on these 40 examples. b is 0.04 points lower (0.900), "
         f"{ACCEPTED}",
         "Best of 2 candidates there (exact); "),
        ({"b": 0.86, "c": 0.89}, (), "Use a: mean 0.900 on these 40 examples. c is 1 point lower (0.890), "
         f"b is 4 points lower (0.860), {ACCEPTED}", "Best of 3 candidates there (exact); "),
        ({"b": 0.9, "c": 0.89}, (), "Use any of a, b, which have the same mean 0.900 on these 40 examples. "
         f"c is 1 point lower (0.890), {ACCEPTED}",
         "No other of 3 candidates has a higher mean there (exact); "),
        ({"b": 0.9}, (standing("c", 0.9, "not-better"),),
         "Use any of a, b, which have the same mean 0.900 on these 40 examples.",
         "None of the 3 candidates is better there by more than 5 points (exact); "),
        ({"b": 0.87}, (standing("c", 0.91, "not-better", 0.8, 0.94),),
         f"Use a: mean 0.900 on these 40 examples. b is 3 points lower (0.870), {ACCEPTED}",
         "None of the 3 candidates is better there by more than 5 points (exact); "),
    ],
)  # fmt: skip
def test_of_means_within_epsilon_that_are_known_exactly_the_highest_comes_first(means, others, first, sure):
    tied = [standing(name, mean, "tied") for name, mean in means.items()]
    ended = replace(WON, outcome="tied", claim=EXACT, epsilon=0.05, known=frozenset("abc"))
    found = said(ended, candidates=(*tied, standing("a", 0.9, "tied"), *others))
    assert found[0] == first
    assert found[1].startswith(sure)


@pytest.mark.parametrize(
    ("scored", "first"),
    [
        (
            (18, 0.9),
            "Use a: mean 0.900 on the 18 scored of these 40 examples (0.800 to 0.950 on all of them).",
        ),
        ((18, 0.7), "Use a: estimated mean 0.900 on these 40 examples (0.800 to 0.950), 18 of them scored."),
        ((40, 0.9), "Use a: mean 0.900 (0.800 to 0.950) on these 40 examples."),
    ],
)
def test_a_mean_names_the_examples_that_it_is_of(scored, first):
    found = said(WON, scored=scored)
    assert found[0] == first
    assert found[1].startswith("Best of 3 candidates on these 40 examples (5% risk of error); ")
    running = said(WON, scored=scored, outcome=None, claim=Claim())[0]
    assert running == "Not finished: a leads so far, mean 0.900 (0.800 to 0.950)."


def test_an_open_question_names_who_is_left():
    open_ = (standing("a", 0.9, "best"), standing("b", 0.7), standing("c", 0.6, "eliminated"))
    text = said(WON, outcome="undecided", claim=Claim(), reason="budget", limit=SPENT, candidates=open_)
    assert text[0] == "No winner yet among a, b; a leads: mean 0.900 on these 40 examples."
    assert text[1].startswith("Nothing is proven: the comparison budget is spent: 30 of 30; ")
    assert len(text) == 2


@pytest.mark.parametrize(
    ("outcome", "first"),
    [
        (None, "Not finished: a leads so far, mean 0.900 (0.800 to 0.950)."),
        ("waiting", "Waiting for 0 judgments by annotators."),
        ("failed", "No answer: every candidate was dropped."),
    ],
)
def test_other_ends_are_said_first(outcome, first):
    text = said(WON, outcome=outcome, claim=Claim())
    assert text[0] == first
    assert "Use" not in " ".join(text)


def test_a_gate_says_how_each_candidate_compares():
    against = Difference(against="base", estimate=0.0, lower=-0.01, upper=0.02)
    candidates = (
        standing("base", 0.8, "baseline"),
        replace(standing("new", 0.8, "no-worse"), difference=against),
        replace(standing("old", 0.5, "worse"), difference=against),
        standing("odd", 0.7),
    )
    gate = replace(WON, outcome="undecided", baseline="base", best=None, candidates=candidates, epsilon=0.02)
    first = said(gate, reason="exhausted")[0]
    assert first == (
        "new is not worse than base by more than 2 points (5% risk of error); old is worse than base by more "
        "than 2 points (5% risk of error); still open: odd."
    )
    measured = {"new": (58, 0.034), "old": (40, -0.3), "odd": (9, 0.1)}
    first = said(gate, measured=measured, known=frozenset({"base", "old"}), reason="exhausted")[0]
    assert first == (
        "new is not worse than base by more than 2 points (5% risk of error); measured +0.034 on 58 "
        "examples; old is worse than base by more than 2 points (5% risk of error); measured -0.300 on these "
        "40 examples, known exactly; still open: odd."
    )
    both = replace(gate, candidates=(candidates[0], candidates[1], replace(candidates[2], status="no-worse")))
    first = said(both, measured={"new": (58, 0.034), "old": (1, 0.0)}, claim=EXACT)[0]
    assert first == (
        "new, old are not worse than base by more than 2 points; measured new +0.034 on 58 examples, old "
        "+0.000 on 1 example."
    )
    first = said(gate, epsilon=0.0, reason="exhausted")[0]
    assert first == (
        "new is no worse than base (5% risk of error); old is worse than base (5% risk of error); still "
        "open: odd."
    )


def beyond(**values):
    class Found:
        winner, rival, lower, upper, earlier, left_out, alike = "a", "b", -0.1, 0.2, None, 0, 0
        could_be_best, is_better, unscored, clusters = None, False, 0, None

    for name, value in values.items():
        setattr(Found, name, value)
    return Found


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"lower": None, "upper": None},
        {"lower": 0.1, "earlier": "x"},
        {"lower": 0.1, "left_out": 2},
        {"lower": 0.1, "alike": 1},
    ],
)
def test_what_is_not_shown_of_new_examples_is_said(changes):
    text = said(WON, beyond=beyond(**changes))
    assert text[-1] == "Not known: whether a is better than b on new examples."


@pytest.mark.parametrize(
    ("left", "open_"),
    [
        (tuple("abcdef"), "which of the 6 candidates is best"),
        (tuple("abcd"), "which of 4 of the 6 candidates is best"),
        (tuple("acd"), "which of a, c, d is best"),
        (tuple("ca"), "whether a is better than c"),
    ],
)
def test_of_several_that_can_be_best_on_new_examples_none_is_singled_out(left, open_):
    """The rival is the least certain one, which can be a bad candidate that was eliminated early."""
    candidates = (A, *(standing(name, 0.7, "eliminated") for name in "bcdef"))
    text = said(WON, candidates=candidates, beyond=beyond(could_be_best=left))
    assert text[-1] == f"Not known: {open_} on new examples."


def test_a_lead_on_new_examples_is_said_with_its_condition_and_risk():
    text = said(WON, beyond=beyond(lower=0.1))[-1]
    assert text == (
        "a is better than b on new examples as well, if these are a random sample of the "
        "examples that you will see in production "
        f"({100 * LEVEL:g}% risk of error)."
    )
    assert said(WON, beyond=beyond(lower=0.1), shown=4)[-1].startswith("Not known")
    assert len(said(WON, beyond=beyond(lower=-0.2, upper=-0.1))) == 2
    assert len(said(WON, beyond=beyond(could_be_best=("b", "c")))) == 2  # another one is better there


def test_models_that_were_left_out_are_named():
    assert said(WON, left_out={"far": "no answer"})[-1] == "Not compared: far."
