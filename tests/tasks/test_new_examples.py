"""What an answer says of new examples."""

from dataclasses import replace

import numpy as np
import pytest
from sqlalchemy import text
from stored_campaigns import NOW, store_campaign

from winnow.algorithms.best_mean.config import BestMeanConfig
from winnow.algorithms.bounds.mean_interval import mean_interval
from winnow.algorithms.claims import Claim
from winnow.algorithms.papers.best_mean.ucb_e import UcbE
from winnow.algorithms.protocols import round_rng
from winnow.storage.queries.objective import paired as paired_views
from winnow.tasks.answer import derive, new_examples
from winnow.tasks.answer.earlier_campaigns import Earlier, changed_since
from winnow.tasks.answer.model import Answer, CandidateStanding, Difference
from winnow.tasks.answer.opponents import closest_pair
from winnow.tasks.answer.sentences import headline
from winnow.tasks.answer.sentences.answer_lines import answer_lines
from winnow.tasks.answer.sentences.clauses import IF, MIXED
from winnow.tasks.campaign.changed_models import CanaryChange
from winnow.tasks.campaign.look import Look
from winnow.tasks.queries.status import campaign_status
from winnow.tasks.text.canonical_json import sha256

PROVEN = {"kind": "proven", "delta": 0.05, "raised_by": [], "assumptions": [], "refuted": []}
SCORES = [1.0, 0.0, 1.0, 0.0, 0.5, 1.0, 1.0, 1.0, 0.0, 1.0, 0.0]
OWN_PROMPTS = (
    "INSERT OR IGNORE INTO prompts (digest, text) SELECT 'of ' || id, key FROM examples",
    "UPDATE generations SET prompt_id = (SELECT prompts.id FROM prompts "
    "JOIN comparisons ON prompts.digest = 'of ' || comparisons.example_id "
    "WHERE comparisons.generation_a_id = generations.id) "
    "WHERE id IN (SELECT generation_a_id FROM comparisons)",
)


@pytest.fixture
def ended(database, monkeypatch):
    """A campaign that ended; b and a were both scored on all five examples, c on one."""
    monkeypatch.setattr(new_examples, "LEAST", 5)
    return end(store_campaign(database), SCORES)


def end(campaign, scores):
    round_ = campaign.plan(0, [0] * 5 + [1] * 5 + [2], [*range(5), *range(5), 0])
    campaign.finish(
        round_,
        scores,
        best=1,
        stop=True,
        reason="confident",
        claim=PROVEN,
        estimates=[0.5, 0.8, 0.6],
        lower=[0.4, 0.7, 0.0],
        upper=[0.6, 0.9, 0.7],
        status=["eliminated", "best", "dropped"],
    )
    with campaign.database.writing() as session:  # each example has a prompt of its own
        for statement in OWN_PROMPTS:
            session.execute(text(statement))
    return campaign


def full(campaign):
    with campaign.database.reading() as session:
        return campaign_status(Look(session, campaign.record), in_full=True).answer


def test_the_winner_is_compared_with_its_closest_rival_that_was_not_dropped(ended):
    found = full(ended).beyond
    assert (found.winner, found.rival, found.n) == ("b", "a", 5)
    assert found.difference == pytest.approx(0.3)
    assert -1.0 <= found.lower < 0.3 < found.upper <= 1.0


def test_it_is_said_with_all_that_it_takes_for_granted(ended):
    said = dict(answer_lines(full(ended)))["new examples"]
    assert said.startswith("b scores +0.300 against a (between -")
    assert said.endswith(
        ", so which of the two is better there is not shown. 95% confidence for all pairs of candidates "
        "together, if these 5 examples are a random sample of the examples that you will see in production"
    )


@pytest.mark.parametrize(
    ("objective", "lower", "is_open"),
    [
        ("best-mean", 0.1, False),
        ("best-mean", 0.0, True),
        ("best-duel", 0.45, True),
        ("best-duel", 0.55, False),
    ],
)
def test_that_new_examples_may_show_a_draw_is_said_where_they_may(ended, objective, lower, is_open):
    answer = full(ended)
    found = replace(answer.beyond, lower=lower, upper=0.9)
    said = dict(answer_lines(replace(answer, objective=objective, beyond=found)))["new examples"]
    assert ("), so which of the two is better there is not shown. " in said) == is_open


def test_comparisons_without_an_outcome_are_said_to_be_left_out(ended, database, monkeypatch):
    assert "left out" not in dict(answer_lines(full(ended)))["new examples"]
    lacking = [None if position in (1, 10) else score for position, score in enumerate(SCORES)]
    ended = end(store_campaign(database, "lacking"), lacking)
    monkeypatch.setattr(new_examples, "LEAST", 4)
    said = dict(answer_lines(full(ended)))["new examples"]
    left_out = "1 comparison without an outcome is left out"  # c's is not of the two
    assert said.endswith(
        "if these 4 examples are a random sample of the examples that you will see in production and "
        f"{IF['missing-at-random']}; {left_out}"
    )
    monkeypatch.setattr(new_examples, "LEAST", 5)
    said = dict(answer_lines(full(ended)))["new examples"]
    assert said.endswith(
        "the difference between b and a is not estimated: that needs at least 30 randomly drawn examples "
        f"scored for both b and a; there are 4; {left_out}"
    )


def test_examples_that_a_stored_text_is_there_for_are_no_random_sample(database, monkeypatch):
    """Which texts there are follows from scores of the first judge, as the line on texts says."""
    monkeypatch.setattr(new_examples, "LEAST", 4)
    monkeypatch.setattr(derive, "NO_STORED_TEXT", "no_answer")
    lacking = [None, *SCORES[1:]]
    made, stored = (end(store_campaign(database, name), lacking) for name in ("made", "stored"))
    stored = replace(stored, record=replace(stored.record, execution={"budget": 100, "reuse": "only"}))
    said = dict(answer_lines(full(stored)))
    assert "a mean over them does not estimate the mean on all examples" in said["texts"]
    assert said["new examples"].endswith("were chosen and are not a random sample")
    assert "if these 4 examples are a random sample" in dict(answer_lines(full(made)))["new examples"]


def test_of_duels_those_of_the_two_with_each_other_are_counted(campaign):
    planned = campaign.plan(0, [[0, 1], [1, 0], [0, 2], [1, 2]], [0, 0, 1, 2])
    campaign.finish_duels(planned, [(1.0, []), (None, []), (None, []), (None, [])])
    with campaign.database.reading() as session:
        counted = paired_views.unscored(session, campaign.record.id, "a", "b", duels=True)
        assert counted == 1
        assert paired_views.scored_examples(session, campaign.record.id, "b") == {"a": 1}


def test_the_best_of_all_by_too_few_examples_is_not_said_to_have_no_further_estimate(ended, monkeypatch):
    monkeypatch.setattr(new_examples, "LEAST", 6)
    answer = full(ended)
    shown = replace(answer.beyond, could_be_best=(answer.beyond.winner,), is_better=True)
    better, how_much = (
        said for label, said in answer_lines(replace(answer, beyond=shown)) if label == "new examples"
    )
    assert better.startswith("b is better than every other candidate there (95% confidence, ")
    assert how_much == (
        "how much better is not estimated: that needs at least 30 randomly drawn examples scored for both "
        "b and a; there are 5"
    )


def test_too_few_examples_say_nothing(ended, monkeypatch):
    monkeypatch.setattr(new_examples, "LEAST", 6)
    found = full(ended).beyond
    assert (found.n, found.difference, found.lower) == (5, None, None)
    said = dict(answer_lines(full(ended)))["new examples"]
    assert said == (
        "the difference between b and a is not estimated: that needs at least 30 randomly drawn examples "
        "scored for both b and a; there are 5"
    )


def test_a_campaign_that_goes_on_says_nothing_of_it(campaign):
    campaign.finish(campaign.plan(0, [0, 1], [0, 0]), [1.0, 0.0], best=0, estimates=[1.0, 0.0, None])
    answer = full(campaign)
    assert (answer.beyond, answer.claim) == (None, Claim())


def test_examples_that_were_chosen_say_nothing_unless_they_are_all(ended, monkeypatch):
    monkeypatch.setattr(new_examples, "draws_examples", lambda selector: False)
    found = full(ended).beyond
    assert (found.is_sample, found.n) == (True, 5)
    all_of_them = paired_views.draws
    monkeypatch.setattr(paired_views, "draws", lambda *at, **how: all_of_them(*at, **how)[1:])
    answer = full(ended)
    assert (answer.beyond.is_sample, answer.beyond.difference) == (False, None)
    assert dict(answer_lines(answer))["new examples"] == (
        "no estimate: the examples scored for both b and a were chosen and are not a random sample"
    )


@pytest.mark.parametrize(("selector", "draws"), [("ucb-e", True), ("ucb-e-lrf", False), ("theirs", False)])
def test_only_selectors_known_to_draw_examples_leave_a_sample(selector, draws):
    assert new_examples.draws_examples(selector) == draws


@pytest.mark.parametrize("risks", [(0.5, 0.5), (0.8, 0.5)])
def test_that_an_adaptive_campaign_ends_it_does_the_interval_no_harm(risks):
    # 100 campaigns that stop when they are confident. At a true rate of 5%, 13 misses or more have
    # probability 0.1%; 0.8 against 0.5 ends with about 20 examples of 100.
    rng, missed = np.random.default_rng(4), 0
    for seed in range(100):
        scores = (rng.random((2, 100)) < np.array(risks)[:, np.newaxis]).astype(float)
        selector = UcbE(BestMeanConfig(n_arms=2, n_examples=100, batch_size=16, delta=0.2))
        seen, number = np.full(scores.shape, np.nan), 0
        while len(batch := selector.ask(round_rng(seed, number))):
            seen[batch.arms, batch.examples] = scores[batch.arms, batch.examples]
            selector.tell(batch, seen[batch.arms, batch.examples])
            number += 1
        differences = seen[0] - seen[1]
        differences = differences[~np.isnan(differences)]
        lower, upper = (
            2.0 * end - 1.0 for end in mean_interval((differences + 1.0) / 2.0, new_examples.LEVEL)
        )
        missed += not lower <= risks[0] - risks[1] <= upper
    assert missed < 13


def standing(name, status, estimate=None, difference=None, lower=None, against="best"):
    found = None
    if difference is not None:
        found = Difference(against=against, estimate=difference, lower=lower, upper=0.0)
    return CandidateStanding(name=name, status=status, estimate=estimate, difference=found)


def answer_with(*candidates, best="best", **fields):
    return Answer(
        objective="best-mean",
        outcome="winner",
        claim=Claim(),
        reason="confident",
        best=best,
        candidates=(standing("best", "best", 0.9), *candidates),
        n_examples=100,
        delta=0.05,
        **fields,
    )


def pair_of(answer):
    """The runner-up's name, and whom the line on new examples compares."""
    return answer.runner_up and answer.runner_up.name, closest_pair(answer)


FEW = standing("seen-four-times", "eliminated", 0.88, -0.02, -0.95)
MANY = standing("seen-often", "eliminated", 0.8, -0.1, -0.2)


def test_a_high_estimate_of_few_examples_makes_no_runner_up():
    assert pair_of(answer_with(FEW, MANY)) == ("seen-often", ("best", "seen-often"))


def test_who_is_still_in_question_comes_closer_than_who_is_out():
    assert pair_of(answer_with(MANY, standing("open", "active", 0.7, -0.2, -0.9)))[0] == "open"


def test_without_intervals_the_highest_estimate_comes_closest():
    others = standing("c", "eliminated", 0.5, -0.4), standing("d", "eliminated", 0.8, -0.1)
    assert pair_of(answer_with(*others)) == ("d", ("best", "d"))
    assert pair_of(answer_with(standing("c", "active", 0.5), standing("d", "active", 0.8))) == (
        None,
        ("best", "d"),
    )
    assert pair_of(answer_with()) == (None, None)


def test_who_is_tied_is_no_runner_up_and_comes_closest():
    assert pair_of(answer_with(MANY, standing("even", "tied", 0.9))) == ("seen-often", ("best", "even"))


def test_of_the_m_best_the_last_of_them_has_a_closest_rival():
    rival = standing("next", "eliminated", 0.6, -0.1, -0.2, against="second")
    answer = answer_with(standing("second", "top", 0.8), rival, top_m=2)
    assert pair_of(answer) == ("next", ("second", "next"))


def test_of_the_m_best_those_that_share_the_last_place_come_closest():
    """The first of them is far ahead of both."""
    shared = standing("even", "tied", 0.5), standing("last", "tied", 0.5)
    answer = answer_with(standing("second", "top", 0.8), *shared, MANY, top_m=3)
    assert pair_of(answer)[1] == ("even", "last")
    assert pair_of(answer_with(*shared, best="even", top_m=3))[1] == ("even", "last")


@pytest.mark.parametrize(("lucky", "pair"), [("no-worse", ("lucky", "old")), ("worse", ("best", "old"))])
def test_a_gate_compares_the_highest_estimate_with_the_baseline(lucky, pair):
    """Who is shown to be worse comes last: its estimate may be high by luck."""
    old, gone = standing("old", "baseline", 0.85), standing("gone", "dropped", 1.0)
    answer = answer_with(MANY, standing("lucky", lucky, 0.95), old, gone, best=None, baseline="old")
    assert closest_pair(answer) == pair
    assert closest_pair(replace(answer, outcome="failed")) is None
    only = answer_with(best=None, baseline="best")
    assert closest_pair(only) is None


def test_a_file_that_is_sorted_by_who_is_better_says_nothing_false(database):
    """Each of two specialists is right on one half of a file sorted by task: on average they are even."""
    n = 150
    campaign = store_campaign(database, "sorted", n_examples=n)
    halves = [1.0] * (n // 2) + [0.0] * (n // 2)
    planned = campaign.plan(0, [0] * n + [1] * n, [*range(n), *range(n)])
    campaign.finish(planned, halves + [1.0 - each for each in halves], best=0, stop=True, claim=PROVEN)
    with database.reading() as session:
        look = Look(session, campaign.record)
        question = new_examples.Question(
            session=session,
            campaign_id=campaign.record.id,
            names=look.names,
            n_examples=n,
            selector="ucb-e-lrf",  # it draws no sample, so that only the complete rows count
            is_duel=False,
        )
        found = new_examples.beyond_of(question, "a", "b", finds_best=True)
    assert found.lower < 0.0 < found.upper
    assert found.could_be_best == ("a", "b", "c")
    in_file_order = mean_interval(np.array(halves), new_examples.LEVEL)
    assert in_file_order[0] > 0.5  # which is what by_chance is for


def test_the_order_by_chance_is_one_of_all_values_and_always_the_same():
    values = [float(each) for each in range(50)]
    found = new_examples.by_chance(values)
    assert sorted(found) == values
    assert list(found) != values
    assert np.array_equal(found, new_examples.by_chance(values))
    assert list(found) == sorted(values, key=lambda place: sha256(["order", int(place)]))


def test_of_a_server_that_changed_the_interval_guarantees_nothing(ended):
    answer = full(ended)
    change = CanaryChange(
        model="m", server="s", found_at=NOW, when="during", changed=9, prompts=16, texts_before=3
    )
    said = dict(answer_lines(replace(answer, servers=(change,))))["new examples"]
    assert said.count(MIXED) == 1
    assert "95%" not in said


def test_an_earlier_campaign_of_other_candidates_is_named(ended):
    """A prompt that was mended where it failed does better on these examples than on others."""
    assert "after seeing" not in dict(answer_lines(full(ended)))["new examples"]
    later = end(store_campaign(ended.database, "later"), SCORES)
    assert "after seeing" not in dict(answer_lines(full(later)))["new examples"]  # the same again
    mended = {
        **later.record.spec,
        "selector": {"name": "ucb-e", "params": {}},
        "prompts": [{"name": "mended"}],
    }
    later = replace(later, record=replace(later.record, spec=mended))
    with ended.database.reading() as session:
        asked = replace(
            later.record, spec={**later.record.spec, "prompts": None, "selector": {"name": "gate"}}
        )
        assert changed_since(Look(session, asked)) is None  # another question about the same scores
    said = dict(answer_lines(full(later)))["new examples"]
    assert (
        "; it guarantees nothing if candidates or the judge were changed or chosen after seeing results of "
        "campaign letters, which has outcomes on 5 of the 5 examples scored here"
    ) in said


def test_an_earlier_campaign_of_duels_is_named_and_duels_name_one(ended):
    duels = store_campaign(ended.database, "duels", objective="best-duel")
    duels.finish_duels(duels.plan(0, [[0, 1], [1, 2]], [0, 3]), [(1.0, []), (0.0, [])])
    later = end(store_campaign(ended.database, "later"), SCORES)
    with ended.database.reading() as session:
        mended = [
            replace(each, spec={**each.spec, "prompts": ["mended"]}) for each in (duels.record, later.record)
        ]
        assert changed_since(Look(session, mended[0])) == Earlier(campaign="letters", examples=2, of=2)
        # Duels saw two of its examples, and later; the other one saw all of them.
        assert changed_since(Look(session, mended[1])) == Earlier(campaign="letters", examples=5, of=5)


def test_rows_that_stand_twice_are_counted(ended):
    with ended.database.writing() as session:
        session.execute(text("UPDATE generations SET prompt_id = (SELECT min(id) FROM prompts)"))
    said = dict(answer_lines(full(ended)))["new examples"]
    assert (
        "in production. 4 of these examples repeat the prompt of an earlier example; if these rows were "
        "copied instead of drawn, the interval is too narrow"
    ) in said


ENDED = {
    "best": 0,
    "stop": True,
    "reason": "confident",
    "claim": PROVEN,
    "status": ["best", "eliminated", "eliminated"],
}


def played(database, name, rows, *, order=None, **decision):
    """A campaign that ended; each row has the scores of a candidate, None where nothing was asked."""
    n = len(rows[0])
    campaign = store_campaign(database, name, n_examples=n, names="abcdefgh"[: len(rows)])
    asked = [
        (arm, example)
        for example in (order if order is not None else range(n))
        for arm in range(len(rows))
        if rows[arm][example] is not None
    ]
    planned = campaign.plan(0, [arm for arm, _ in asked], [example for _, example in asked])
    means = [np.mean([each for each in row if each is not None]) for row in rows]
    status = ["best", *["eliminated"] * (len(rows) - 1)]
    campaign.finish(
        planned,
        [rows[arm][example] for arm, example in asked],
        **ENDED | {"status": status} | decision,
        estimates=means,
        lower=means,
        upper=means,
    )
    return campaign


def beyond_lines_of(answer):
    return [sentence for word, sentence in answer_lines(answer) if word == "new examples"]


RIGHT, WRONG = [1.0] * 100, [0.0] * 100


def test_one_candidate_that_is_shown_to_be_better_than_every_other_is_said_to_be(database):
    answer = full(played(database, "clear", [RIGHT, WRONG, [0.0, 1.0] * 50]))
    assert (answer.beyond.could_be_best, answer.beyond.is_better) == (("a",), True)
    assert beyond_lines_of(answer)[0] == (
        "a is better than every other candidate there (95% confidence, if the "
        "benchmark's examples are a random sample of the examples that you will see in production)"
    )


def test_that_no_other_is_better_takes_less_than_that_one_is_better_than_every_other(database):
    """15 to 4: one-sided 0.0096, which is below half of 5% / 2, and not below half of 5% / 3."""
    almost = [0.0] * 15 + [1.0] * 85
    leads = [1.0] * 96 + [0.0] * 4
    shuffled = np.random.default_rng(0).permutation(100).tolist()
    for more, is_better in ((0, False), (3, True)):
        rows = [leads, [0.0] * more + almost[: 100 - more], WRONG]
        first = new_examples.by_chance(range(100)).astype(int)[0]
        assert rows[0][first] == rows[1][first] == 1.0  # the first chooses the test
        answer = full(played(database, f"by-{more}", rows, order=shuffled))
        assert (answer.beyond.could_be_best, answer.beyond.is_better) == (("a",), is_better)
    answer = full(played(database, "again", [leads, almost, WRONG], order=shuffled))
    alone = replace(answer, shown=0, beyond=replace(answer.beyond, earlier=None, alike=0))
    assert headline._new_examples(alone) == (
        "No candidate is better than a on new examples as well, if these are a random sample of the examples "
        "that you will see in production (5% risk of error)"
    )
    said = beyond_lines_of(answer)
    assert said[0].startswith("no candidate is better there than a (95% confidence")
    assert (
        "; this interval includes 0 because, unlike the line before, it holds for all pairs together. "
        in (said[1])
    )


def test_all_that_could_be_the_best_are_named_and_the_rival_has_the_highest_upper_end(database):
    """c is better on most of the examples that it was asked on; b was asked on all and is clearly behind."""
    rng = np.random.default_rng(8)
    some = [float(each) for each in rng.random(100) < 0.7]
    better = [min(1.0, each + float(rng.random() < 0.3)) if at < 40 else None for at, each in enumerate(some)]
    behind = [each * float(at % 3 > 0) for at, each in enumerate(some)]
    answer = full(played(database, "hidden", [some, behind, better]))
    assert answer.beyond.could_be_best == ("a", "c")
    assert answer.beyond.rival == "c"
    said = beyond_lines_of(answer)
    assert said[0].startswith("the best of the 3 candidates there is a or c (95% conf")
    assert said[1].startswith("a scores -0.")


def test_of_nobody_excluded_among_several_it_is_said(database):
    rows = [[float(each) for each in np.random.default_rng(arm).random(60) < 0.5] for arm in range(3)]
    said = beyond_lines_of(full(played(database, "even", rows)))
    assert said[0] == "which candidate is best there is not known: each of the 3 can be"
    assert len(beyond_lines_of(full(played(database, "two", rows[:2])))) == 1


def test_a_dropped_candidate_could_be_the_best_and_no_other_is_better_than_every_other(database):
    campaign = played(database, "dropped", [RIGHT, WRONG, WRONG], status=["best", "eliminated", "dropped"])
    answer = full(campaign)
    assert (answer.beyond.could_be_best, answer.beyond.is_better) == (("a", "c"), False)
    assert beyond_lines_of(answer)[0].endswith(
        ". c was dropped or added after scores were seen, so nothing is known of it"
    )


def test_missing_outcomes_of_any_candidate_are_assumed_to_be_missing_at_random(database):
    campaign = store_campaign(database, "lacking", n_examples=100)
    planned = campaign.plan(0, [0] * 100 + [1] * 100 + [2] * 100, [*range(100)] * 3)
    campaign.finish(
        planned,
        RIGHT + WRONG + [None, *WRONG[1:]],
        **ENDED,
        estimates=[1.0, 0.0, 0.0],
    )
    answer = full(campaign)
    assert answer.beyond.unscored == 1
    assert f" and {IF['missing-at-random']})" in beyond_lines_of(answer)[0]


def test_of_neither_row_complete_only_what_was_asked_in_one_order_counts(database):
    """Each was asked in an order of its own: which examples both have follows from when each was asked."""
    n, campaign = 100, store_campaign(database, "apart", n_examples=100)
    ours, theirs = np.random.default_rng(0).permutation(n)[:80], np.random.default_rng(1).permutation(n)[:80]
    planned = campaign.plan(0, [0] * 80 + [1] * 80, [*ours.tolist(), *theirs.tolist()])
    campaign.finish(planned, [1.0] * 80 + [0.0] * 80, **ENDED, estimates=[1.0, 0.0, None])
    found = full(campaign).beyond
    assert len({*ours.tolist()} & {*theirs.tolist()}) > new_examples.LEAST > found.n
    assert (found.lower, found.could_be_best) == (None, ("a", "b", "c"))
