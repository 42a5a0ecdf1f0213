"""Winnow as a library: what a program and a notebook do with it."""

import asyncio
import functools
import subprocess
import sys
import threading
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from stored_campaigns import new_database, store_first_round

import winnow
from winnow.storage.errors import CampaignNotFound, StorageError
from winnow.tasks.errors import SpecError, WinnowError

PROMPTS = ["direct", "asked", "shouted"]
SKILL = {"direct": 0.3, "asked": 0.9, "shouted": 0.2}
QUESTIONS = [f"{i} + {i}" for i in range(200)]


def right(prompt, question):
    """Whether a prompt's answer is right: always the same for the same question."""
    return (
        np.random.default_rng([PROMPTS.index(prompt), len(question), QUESTIONS.index(question)]).random()
        < (SKILL[prompt])
    )


@pytest.fixture
def storage(tmp_path):
    """The URL of a database with a campaign of one round."""
    database = new_database(tmp_path / "results.db")
    store_first_round(database)
    database.close()
    return f"sqlite:///{tmp_path / 'results.db'}"


def test_any_function_can_be_the_scorer():
    asked = []

    def score(prompt, question):
        asked.append((prompt, question))
        return right(prompt, question)

    found = winnow.select(score, PROMPTS, QUESTIONS, delta=0.05)
    assert found.best == "asked"
    assert (found.claim.kind, found.claim.delta) == ("proven", 0.05)
    assert len(asked) == len(set(asked)) == found.comparisons == np.isfinite(found.scores).sum()
    assert found.share < 0.7
    asked_for = f"{len(asked)} of {len(PROMPTS) * len(QUESTIONS)} scores"
    assert repr(found) == (
        f"<Selection: best 'asked', claim proven (wrong with probability at most 0.05), {asked_for}>"
    )
    rows = found.leaderboard()
    assert rows["candidate"].tolist()[0] == "asked"
    assert rows["scored"].sum() == found.comparisons


def test_the_same_seed_gives_the_same_answer_in_any_thread():
    first = winnow.select(right, PROMPTS, QUESTIONS, seed=3)
    found = []
    thread = threading.Thread(target=lambda: found.append(winnow.select(right, PROMPTS, QUESTIONS, seed=3)))
    thread.start()
    thread.join()
    np.testing.assert_array_equal(found[0].scores, first.scores)
    assert found[0].decision == first.decision
    other = winnow.select(right, PROMPTS, QUESTIONS, seed=4)
    assert not np.array_equal(np.isnan(other.scores), np.isnan(first.scores))


def test_a_tie_is_told_as_one():
    found = winnow.select(lambda name, _: name != "bad", ["a", "bad", "b"], range(20))
    assert found.tied == ("a", "b")
    assert repr(found).startswith(f"<Selection: best {found.best!r}, tied with 1 more, claim ")


@pytest.mark.parametrize("seed", ["x", -1, 0.5, True, None])
def test_a_seed_that_is_none_is_refused_in_a_sentence(seed):
    with pytest.raises(SpecError, match="give a whole number of at least 0"):
        winnow.select(lambda name, _: 0.5, ["a", "b"], range(3), seed=seed)


MEANS = {"a": 0.9, "b": 0.88, "c": 0.5, "d": None}


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"top_m": 2}, "the best are ['a', 'b'], dropped ['d'], claim proven "),
        (
            {"selector": "gate", "baseline": 1},
            "against the baseline 'b': no-worse ['a'], worse ['c'], dropped ['d'], claim proven ",
        ),
        (
            {"selector": "gate", "baseline": 1, "budget": 24},
            "against the baseline 'b': open ['a', 'c', 'd'], claim none",
        ),
        (
            {"prefer": "cost", "costs": np.array([2.0, 1.0, 1.0, 1.0]), "epsilon": 0.1},
            "best 'a', chosen 'b', dropped ['d'], claim proven to within 0.1 (",
        ),
    ],
)
def test_what_is_printed_beside_a_claim_is_what_is_claimed(params, said):
    """Of three best it is not claimed that the first is the best, and of a gate not that anybody is."""
    found = winnow.select(lambda name, _: MEANS[name], list(MEANS), range(300), **params)
    assert repr(found).startswith(f"<Selection: {said}")
    assert found.chosen == ("b" if "prefer" in params else None)
    assert found.best == (None if "baseline" in params else "a")


def test_the_best_ones_are_told_in_order():
    scores = {"a": 0.2, "b": 0.9, "c": 0.7, "d": 0.2}
    found = winnow.select(lambda name, place: scores[name], list(scores), range(30), top_m=2)
    assert (found.best, found.top, found.tied) == ("b", ("b", "c"), ())
    assert found.decision.differences.against == 2
    tied = winnow.select(lambda name, place: scores[name], list(scores), range(30), top_m=3)
    assert (tied.top, tied.tied) == (("b", "c"), ("a", "d"))


def test_who_has_no_score_is_told_last_of_the_best():
    scores = {"a": 0.9, "none": None, "b": 0.5, "c": 0.7, "d": 0.0}
    for order in permutations(scores):
        found = winnow.select(lambda name, _: scores[name], order, range(30), top_m=4)
        assert found.top[:3] == ("a", "c", "b")


def test_a_budget_is_kept_and_nothing_is_claimed_of_what_it_bought():
    found = winnow.select(right, PROMPTS, QUESTIONS, delta=None, budget=12, batch_size=4, selector="row-mean")
    assert found.comparisons <= 12
    assert found.claim.kind == "heuristic"


def test_a_missing_score_is_at_its_worst_for_the_claim():
    found = winnow.select(lambda name, i: None if name == "unknown" else 0.5, ["known", "unknown"], range(30))
    assert found.claim.kind != "proven"
    assert not np.isfinite(found.scores[1]).any()


def test_who_is_left_alone_is_claimed_to_be_nothing_sure():
    found = winnow.select(
        lambda name, i: None if name == "unknown" else i % 2, ["known", "unknown"], range(40)
    )
    assert (found.best, found.decision.status) == ("known", ("best", "dropped"))
    assert found.claim.kind == "heuristic"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"selector": "champoin"}, "champion"),
        ({"selector": "llm-po"}, "select needs one for best-mean"),
        ({"delta": 2.0}, "delta"),
        ({"delta": 0.95}, "delta: .* not the confidence; for a confidence of 0.95 write 0.05"),
        ({"delta": np.float32(0.9)}, "for a confidence of 0.9 write 0.1 "),
        ({"speed": 9}, "speed"),
        ({"examples": (each for each in "ab")}, "examples is a generator; give a list or another sequence"),
        ({"candidates": {"a": 1, "b": 2}}, "candidates is a dict; give a list or another sequence"),
        ({"candidates": ["only"]}, "select needs two candidates and an example, got 1 and 200"),
        ({"examples": []}, "got 3 and 0"),
        ({"examples": np.array(5)}, "examples is a ndarray; give a list or another sequence"),
    ],
)
def test_what_cannot_be_is_one_sentence(change, told):
    given = {"candidates": PROMPTS, "examples": QUESTIONS} | change
    with pytest.raises(SpecError, match=told):
        winnow.select(right, given.pop("candidates"), given.pop("examples"), **given)


@pytest.mark.parametrize("value", [1.5, -0.1, float("nan"), "0.5", [1]])
def test_a_score_that_is_none_names_its_place(value):
    with pytest.raises(WinnowError, match=r"candidate \d on example \d+ is .*number in \[0, 1\], or None"):
        winnow.select(lambda *_: value, PROMPTS, QUESTIONS)


@pytest.mark.parametrize("options", [{}, {"storage": "sqlite:///rounding.db"}])
def test_a_score_that_rounding_puts_outside_of_the_unit_interval_is_the_bound(options, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    beyond = {0: 1.0000000000000002, 1: -1e-17, 2: 1.0 + 9e-10, 3: np.float64(-9e-10)}
    found = winnow.select(lambda _, i: beyond[i % 4], ["a", "b"], range(40), **options)
    assert {*found.scores[np.isfinite(found.scores)].tolist()} == {0.0, 1.0}


def test_what_the_function_raises_is_passed_on():
    with pytest.raises(ZeroDivisionError):
        winnow.select(lambda *_: 1 / 0, PROMPTS, QUESTIONS)


def test_a_database_is_read_as_frames(storage, tmp_path):
    db = winnow.open(storage)
    assert list(db) == ["letters"]
    assert db.campaigns()["campaign"].tolist() == ["letters"]
    campaign = db["letters"]
    assert campaign.answer.best == campaign.leaderboard()["candidate"].tolist()[0]
    assert len(campaign.comparisons()) == 3
    assert len(campaign.comparisons(limit=1)) == 1
    assert campaign.view("rounds")["comparisons"].tolist() == [3]
    assert db.sql("SELECT count(*) AS n FROM comparisons")["n"].tolist() == [3]
    written = campaign.report(tmp_path / "report.html")
    assert written.read_text().startswith("<!DOCTYPE html>")


def test_what_is_shown_of_a_database_and_of_a_campaign_says_where_they_are(storage):
    db = winnow.open(storage)
    assert repr(db) == f"<Results of {storage}>"
    assert repr(db["letters"]) == f"<Campaign 'letters' in {storage}>"


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (lambda db: winnow.open(Path("winnow.db")), r"storage is PosixPath\('winnow.db'\); give the URL"),
        (lambda db: db.sql(None), "the statement is None; write a SELECT statement as text"),
        (lambda db: db["letters"].view(None), "unknown view 'None'; available: agreement"),
        (lambda db: db["letters"].comparisons(limit="x"), "limit is 'x'; give a whole number of at least 1"),
        (lambda db: db["letters"].comparisons(limit=1.5), "limit is 1.5; give a whole number of at least 1"),
        (lambda db: winnow.run(None), "spec is None; give the path of a campaign's file, or a mapping"),
        (lambda db: winnow.run(""), "[.] is a folder; name a file"),
    ],
)
def test_what_is_of_another_type_is_refused_in_a_sentence(storage, asked, said):
    with pytest.raises(SpecError, match=said):
        asked(winnow.open(storage))


async def awaited_right(prompt, question):
    await asyncio.sleep(0)
    return right(prompt, question)


@pytest.mark.parametrize(
    "score",
    [
        awaited_right,
        functools.partial(awaited_right),
        lambda prompt, question: awaited_right(prompt, question),
    ],
)
def test_a_coroutine_function_scores_like_a_plain_one(score):
    async def cell():
        return winnow.select(score, PROMPTS, QUESTIONS)

    plain = winnow.select(right, PROMPTS, QUESTIONS)
    for found in (winnow.select(score, PROMPTS, QUESTIONS), asyncio.run(cell())):
        assert np.array_equal(found.scores, plain.scores, equal_nan=True)
        assert found.best == "asked"


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt])
def test_a_coroutine_that_ends_the_program_does(error):
    async def score(prompt, question):
        raise error

    with pytest.raises(error):
        winnow.select(score, PROMPTS, QUESTIONS)


def test_a_type_checker_tells_a_name_that_is_not_there_from_those_that_are(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("import winnow\nwinnow.select\nwinnow.__version__.upper()\nwinnow.selcet\n")
    options = ["--follow-imports=skip", "--no-error-summary", f"--cache-dir={tmp_path}"]
    command = [sys.executable, "-m", "mypy", *options, str(program), winnow.__file__]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    [said] = done.stdout.splitlines()
    assert said.startswith('program.py:4: error: Module has no attribute "selcet"')


def test_what_is_not_there_is_said_at_once(storage, tmp_path):
    with pytest.raises(StorageError, match="nowhere"):
        winnow.open(f"sqlite:///{tmp_path}/nowhere.db")
    with pytest.raises(CampaignNotFound, match="numbers"):
        winnow.open(storage)["numbers"]


def test_figures_of_a_selection_are_those_of_its_page(storage):
    found = winnow.select(right, PROMPTS, QUESTIONS, storage=storage, name="drawn").results
    lead = found.plot_lead()
    best, others = found.answer.best, [each.name for each in found.answer.candidates if each.difference]
    assert len(lead.data[0].x) == len(others)
    assert min(lead.data[0].x) > 0
    assert lead.layout.xaxis.title.text == f"lead of {best}"
    assert found.plot_estimates().data
    assert found.plot_curve().data
    assert found.plot_factors().data
    shown = found._repr_html_()
    assert shown.startswith("<p><b>")
    assert all(f"<td>{name}</td>" in shown for name in (best, *others))


def test_a_figure_of_nothing_is_refused_in_a_sentence(storage):
    found = winnow.select(
        lambda *_: None, PROMPTS, QUESTIONS, storage=storage, name="bare", delta=None, budget=32
    ).results
    with pytest.raises(WinnowError, match="bare has no results for the figure 'lead' yet"):
        found.plot_lead()
    with pytest.raises(WinnowError, match="bare has no results for the figure 'factors' yet"):
        found.plot_factors()
