"""`winnow.select` with a database: what a program's function gave is stored, found again, and shown."""

import linecache
import os
import re
import reprlib
import runpy
import signal
import threading
from collections import Counter
from contextlib import closing, suppress
from dataclasses import dataclass
from zlib import crc32

import numpy as np
import pandas as pd
import pytest
from campaign_processes import rows
from campaigns import winnow

from winnow.flows.api import score_calls, stored_selection
from winnow.flows.api.select import select
from winnow.storage.engine.database import open_database
from winnow.storage.errors import LeaseHeld, StorageError
from winnow.storage.records.leases import acquire
from winnow.storage.records.record_types import Holder
from winnow.tasks.answer import unit_costs
from winnow.tasks.answer.model import Answer
from winnow.tasks.campaign.lease import LIFETIME, is_gone, now
from winnow.tasks.engines.external.scoring_function import NO_SCORE
from winnow.tasks.errors import SpecError, WinnowError
from winnow.tasks.judges.protocol import Sample
from winnow.tasks.judges.registry import create_judge
from winnow.tasks.objectives import protocol
from winnow.tasks.rounds.generate import plan_generations

CANDIDATES = ["ask {}", "tell/{}", "guess"]
SHARES = dict(zip(CANDIDATES, (90, 60, 20), strict=True))
EXAMPLES = [f"question {number}" for number in range(80)]


def score(candidate, example):
    return float(crc32(f"{candidate}{example}".encode()) % 100 < SHARES.get(candidate, 50))


class Counted:
    """The function, with what it was asked; its text is the same wherever it is made."""

    def __init__(self, *, ends=lambda calls: None):
        self.asked, self._ends, self._one_by_one = [], ends, threading.Lock()

    def __call__(self, candidate, example):
        with self._one_by_one:
            self._ends(len(self.asked))
            self.asked.append((candidate, example))
        return score(candidate, example)


@pytest.fixture
def storage(tmp_path):
    return f"sqlite:///{tmp_path}/winnow.db"


def chosen(function, storage, **options):
    return select(function, CANDIDATES, EXAMPLES, storage=storage, name="chosen", **options)


def test_it_ends_with_an_answer_that_the_command_line_shows_as_well(storage, tmp_path):
    function = Counted()
    found = chosen(function, storage)
    assert (found.best, found.claim.kind, found.candidates) == ("ask {}", "proven", tuple(CANDIDATES))
    assert (
        len(function.asked)
        == len(set(function.asked))
        == found.comparisons
        == np.isfinite(found.scores).sum()
    )
    for candidate, example in function.asked:
        known = found.scores[CANDIDATES.index(candidate), EXAMPLES.index(example)]
        assert known == score(candidate, example)
    shown = winnow(tmp_path, "status", "chosen", "--storage", storage)
    assert "  winner       ask" in shown.stdout
    assert f"  cost         {found.comparisons} comparisons" in shown.stdout
    assert re.search(
        rf"\n  spent        {found.comparisons} calls of its function, \d+\.\d s\n", shown.stdout
    )
    assert re.search(
        r"\n  running cost 1,000 examples: ask \S+ s; \S.* \S+ s; measured over the calls", shown.stdout
    )
    assert not {"engine", "tokens", "models"} & set(shown.stdout.split())
    assert str(found.results).startswith("chosen: winner, proven")
    leaderboard = found.results.leaderboard()
    assert leaderboard["candidate"].tolist()[0] == "ask"
    assert leaderboard["estimate"].tolist() == found.leaderboard()["estimate"].tolist()
    assert winnow(tmp_path, "db", "check", "--storage", storage).returncode == 0
    for command in (["query", "chosen", "comparisons"], ["report", "chosen", "--html", "chosen.html"]):
        assert winnow(tmp_path, *command, "--storage", storage).returncode == 0, command


def test_a_confidence_is_no_error_probability_unless_it_began_so(storage, monkeypatch):
    with pytest.raises(SpecError, match=r"delta: .* for a confidence of 0.95 write 0.05"):
        chosen(Counted(), storage, delta=0.95)
    with monkeypatch.context() as patch:
        patch.setattr(stored_selection, "refuse_confidence", lambda *_: None)
        found = chosen(Counted(), storage, delta=0.95)
    again = Counted()
    assert repr(chosen(again, storage, delta=0.95)) == repr(found)
    assert again.asked == []


def test_one_that_has_ended_only_answers(storage):
    found, again = chosen(Counted(), storage), Counted()
    same = chosen(again, storage)
    assert again.asked == []
    assert repr(same) == repr(found)
    assert np.array_equal(same.scores, found.scores, equal_nan=True)
    assert np.array_equal(same.decision.lower, found.decision.lower)


def test_what_the_function_raises_is_passed_on_and_the_next_call_goes_on(storage, tmp_path):
    class Impatient(Exception):
        pass

    def raises_at(number):
        def ends(calls):
            if calls == number:
                raise Impatient

        return ends

    whole = chosen(Counted(), f"{storage}-whole")
    asked = []
    for number in (0, 1, 17, 18, 10**6):
        function = Counted(ends=raises_at(number))
        try:
            found = chosen(function, storage)
        except Impatient:
            assert winnow(tmp_path, "status", "chosen", "--storage", storage).returncode == 0
        asked.append(function.asked)
    assert repr(found) == repr(whole)
    assert np.array_equal(found.scores, whole.scores, equal_nan=True)
    # Nothing that the function gave is asked for again.
    assert len(asked[-1]) >= 1
    every = [pair for pairs in asked for pair in pairs]
    assert len(every) == len(set(every)) == whole.comparisons


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, WinnowError])
def test_what_the_function_gave_before_it_raised_is_stored_and_it_is_not_called_again(storage, error):
    def raises(calls):
        if calls == 20:
            raise error

    function, again = Counted(ends=raises), Counted()
    with pytest.raises(error):
        chosen(function, storage)
    assert rows_of(storage, "SELECT count(*) FROM generations") == [(20,)]
    found = chosen(again, storage)
    assert len(function.asked) == 20
    assert set(function.asked).isdisjoint(again.asked)
    assert found.comparisons == 20 + len(again.asked)


@pytest.mark.parametrize("number", [5, 20, 50])
def test_killed_at_any_call_it_ends_as_one_that_is_not(storage, number):
    def killed(calls):
        if calls == number:
            os.kill(os.getpid(), signal.SIGKILL)

    whole = chosen(Counted(), f"{storage}-whole")
    child = os.fork()
    if child == 0:
        chosen(Counted(ends=killed), storage)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    function = Counted()
    found = chosen(function, storage)
    assert repr(found) == repr(whole)
    assert np.array_equal(found.scores, whole.scores, equal_nan=True)
    assert number - 15 <= whole.comparisons - len(function.asked) <= number


def test_only_the_program_goes_on_with_it(storage, tmp_path):
    def stops(calls):
        if calls == 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        chosen(Counted(ends=stops), storage)
    before = rows(tmp_path, "SELECT count(*) FROM comparisons")
    refused = winnow(tmp_path, "resume", "chosen", "--storage", storage)
    assert refused.returncode == 2
    assert (
        "scores come from a function of a program, which is not here; continue in that program"
        in refused.stderr
    )
    stands = winnow(tmp_path, "status", "chosen").stdout
    assert "\n  go on        by winnow.select, where its function is\n" in stands
    assert "Traceback" not in refused.stderr
    assert refused.stderr.count("\n") == 1
    assert "winnow resume" not in refused.stderr
    every = winnow(tmp_path, "resume", "--all", "--storage", storage)
    skipped = "its scores come from a function of a program; run that program again to continue"
    assert (every.returncode, every.stdout) == (0, f"chosen: skipped: {skipped}\n")
    assert "winnow resume" not in every.stderr
    assert rows(tmp_path, "SELECT count(*) FROM comparisons") == before


def test_no_file_can_name_the_provider(storage, tmp_path):
    (tmp_path / "campaign.yaml").write_text(
        "name: a\nobjective: best-mean\nmodels: [{name: x, provider: function, model: x}, {name: y, "
        "provider: function, model: y}]\nprompts: [{name: p, template: '{{ input }}'}]\ndataset: "
        "{path: d.jsonl}\njudge: {type: score}\nselector: {name: race}\nbatch_size: 9\n"
        "stopping: {budget: 9}\n"
    )
    (tmp_path / "d.jsonl").write_text('{"input": "a", "target": "1"}\n')
    refused = winnow(tmp_path, "validate", "campaign.yaml")
    assert refused.returncode == 2
    assert "scores come from a function of a program, which is not here" in refused.stderr


KINDS = [number % 11 for number in range(len(EXAMPLES))]


@pytest.mark.parametrize(
    "options",
    [
        {"groups": np.array(KINDS)},
        {"groups": KINDS, "group_weights": [1.0 + number for number in range(11)]},
        {"groups": pd.Series(KINDS), "group_weights": (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)},
    ],
    ids=["worst group", "lists", "a column and a tuple"],
)
def test_groups_are_stored_and_the_means_are_the_same(storage, options):
    whole = {"delta": None, "budget": 240, **options}
    plain, found = select(score, CANDIDATES, EXAMPLES, **whole), chosen(Counted(), storage, **whole)
    assert (found.best, found.claim) == (plain.best, plain.claim)
    assert np.array_equal(found.decision.estimates, plain.decision.estimates)
    assert not np.array_equal(found.decision.estimates, found.scores.mean(axis=1))
    again = Counted()
    assert (repr(chosen(again, storage, **whole)), again.asked) == (repr(found), [])


@pytest.mark.parametrize(
    "costs", [np.array([3.0, 2.0, 1.0]), [3, 2, 1], pd.Series([3, 2, 1], index=[2, 1, 0])]
)
def test_costs_are_stored_and_the_cheapest_that_is_good_enough_is_chosen(storage, costs):
    thrifty = {"prefer": "cost", "costs": costs, "epsilon": 0.6}
    plain, function = select(score, CANDIDATES, EXAMPLES, **thrifty), Counted()
    found = chosen(function, storage, **thrifty)
    assert (found.best, found.chosen) == (plain.best, plain.chosen) == ("ask {}", "tell/{}")
    again = Counted()
    assert (repr(chosen(again, storage, **thrifty)), again.asked) == (repr(found), [])


def test_what_was_changed_is_told_and_needs_another_name(storage):
    chosen(Counted(), storage)
    with pytest.raises(
        SpecError, match=r"stopping.delta: 0.05 -> 0.1\nundo the change, or give the campaign"
    ):
        chosen(Counted(), storage, delta=0.1)
    assert changed(score, CANDIDATES, EXAMPLES, storage) == ["  the function's text changed"]
    assert changed(Counted(), CANDIDATES, EXAMPLES[:-1], storage) == ["  the examples changed"]
    assert changed(Counted(), ["ask {}!", "tell/{}", "shout"], EXAMPLES, storage) == [
        "  candidates[ask]: 'ask {}' -> 'ask {}!'",
        "  candidates[guess] is gone",
        "  candidates[shout] is new",
    ]
    assert changed(Counted(), CANDIDATES[::-1], EXAMPLES, storage) == [
        "  candidates: ['ask', 'tell', 'guess'] -> ['guess', 'tell', 'ask']",
    ]
    assert select(score, CANDIDATES, EXAMPLES, storage=storage, name="other").best == "ask {}"


def test_a_lambda_is_known_by_its_own_text_and_not_by_that_of_the_call_around_it(storage, tmp_path):
    def called(function, budget):
        program = tmp_path / "program.py"
        program.write_text(
            f"found = select({function}, CANDIDATES, EXAMPLES, storage={storage!r}, budget={budget})\n"
        )
        linecache.checkcache()
        return runpy.run_path(str(program), globals())["found"]

    assert called("lambda c, e: score(c, e)", 10).comparisons == 10
    assert called("lambda c, e: score(c, e)", 20).comparisons == 20
    with pytest.raises(SpecError, match="the function's text changed"):
        called("lambda c, e: score(c, e) / 2", 20)


def test_two_lambdas_on_a_line_are_two(storage):
    one, other = (lambda c, e: score(c, e)), (lambda c, e: (lambda half: score(c, e) * half)(0.5))
    assert chosen(one, storage, budget=10).comparisons == 10
    assert changed(other, CANDIDATES, EXAMPLES, storage, budget=10) == ["  the function's text changed"]


def changed(function, candidates, examples, storage, **options):
    """The lines that say what is not as it was."""
    with pytest.raises(SpecError) as refused:
        select(function, candidates, examples, storage=storage, name="chosen", **options)
    first, *lines, last = str(refused.value).splitlines()
    assert first == "campaign 'chosen' began with another definition, which cannot change:"
    assert last == "undo the change, or give the campaign another name"
    return lines


def test_a_selector_that_takes_no_more_candidates_says_so_and_what_to_do(storage):
    chosen(Counted(), storage, selector="row-mean", delta=None, budget=20)
    with pytest.raises(SpecError) as refused:
        select(
            Counted(), [*CANDIDATES, "another"], EXAMPLES,
            storage=storage, name="chosen", selector="row-mean", delta=None, budget=40,
        )  # fmt: skip
    assert str(refused.value) == (
        "campaign 'chosen' began without another, and its selector row-mean accepts no further "
        "candidates (champion without prefer: cost or constraints, race without judge.spare, and selectors "
        "for route do): undo the "
        "change, or give the campaign another name"
    )


def test_candidates_may_join_wherever_they_stand(storage):
    chosen(Counted(), storage)
    function = Counted()
    longer = ["ask {}", "another", *CANDIDATES[1:]]
    found = select(function, longer, EXAMPLES, storage=storage, name="chosen")
    assert found.candidates == (*CANDIDATES, "another")
    assert found.names == ("ask", "tell", "guess", "another")
    assert {candidate for candidate, _ in function.asked} >= {"another"}
    scored = np.isfinite(found.scores).sum(axis=1)
    assert scored[3] == sum(candidate == "another" for candidate, _ in function.asked) > 0
    assert found.leaderboard()["candidate"].tolist()[0] == found.best == "ask {}"


def test_scores_that_are_not_there_stay_without_and_wrong_ones_are_refused(storage):
    def partly(candidate, example):
        return None if example.endswith("3") else score(candidate, example)

    found = chosen(partly, storage)
    assert found.best == "ask {}"
    missing = [at for at, each in enumerate(EXAMPLES) if each.endswith("3")]
    assert np.isnan(found.scores[:, missing]).all()
    reasons = found.results.comparisons()["reason"].dropna().unique().tolist()
    assert reasons == ["no_score"]
    with pytest.raises(WinnowError, match=r"the score of candidate 0 on example \d+ is 2"):
        select(lambda *_: 2, CANDIDATES, EXAMPLES, storage=storage, name="wrong")


def test_numbers_are_stored_to_the_last_bit_and_told_in_this_thread(storage):
    threads = set()

    def fine(candidate, example):
        threads.add(threading.get_ident())
        return np.float64(crc32(f"{candidate}{example}".encode()) / 2**32 / 3)

    found = select(fine, CANDIDATES, EXAMPLES, storage=storage, budget=np.int64(60), delta=None)
    assert threads == {threading.get_ident()}
    for arm, example in zip(*np.nonzero(np.isfinite(found.scores)), strict=True):
        assert found.scores[arm, example] == fine(CANDIDATES[arm], EXAMPLES[example])
    assert found.comparisons == 60


def test_selectors_that_compare_otherwise_are_stored_too(storage):
    gate = chosen(Counted(), storage, selector="gate", baseline=1)
    assert gate.best is None
    assert gate.decision.status[1] == "baseline"
    assert gate.decision.status[0] in ("better", "no-worse")
    first = select(Counted(), CANDIDATES, EXAMPLES, storage=storage, name="first", selector="gate")
    assert first.decision.status[0] == "baseline"  # as it is without storage
    two = select(Counted(), CANDIDATES, EXAMPLES, storage=storage, name="two", top_m=2)
    assert set(two.top) | set(two.tied) >= {"ask {}"}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"name": "a b"}, "select: name: may hold letters (a to z), digits"),
        (
            {"selector": "pulse", "history": np.zeros((1, 80)), "delta": None, "budget": 99},
            "history cannot be stored; remove it, or remove storage",
        ),
        (
            {"groups": np.zeros(80, dtype=int)},
            "the examples have 1 different values of group, and 2 to",
        ),
        (
            {"costs": {"guess": 1.0}, "prefer": "cost", "epsilon": 0.1},
            "costs is {'guess': 1.0}; give a list of numbers, one per candidate, in order",
        ),
        ({"costs": [1, 2, 3]}, "costs needs prefer='cost'; add prefer='cost', or remove costs"),
        (
            {"costs": [1, 2, 3], "storage": None},
            "costs needs prefer='cost'; add prefer='cost', or remove costs",
        ),
        (
            {"groups": ["a"] * 80},
            "groups is ['a', 'a', 'a', 'a', 'a', 'a', ...]; give a list of numbers, one",
        ),
        ({"groups": [[0], [1, 2]]}, "groups is [[0], [1, 2]]; give a list of numbers, one per example"),
        ({"n_arms": 3}, "select counts candidates and examples itself; remove n_arms"),
        ({"storage": "nowhere://x"}, "nowhere"),
        ({"bogus": 1}, "bogus"),
    ],
)
def test_what_cannot_be_is_said_and_nothing_is_asked(storage, options, said):
    function = Counted()
    with pytest.raises((WinnowError, StorageError), match=re.escape(said)):
        select(function, CANDIDATES, EXAMPLES, **{"storage": storage, **options})
    assert function.asked == []


@pytest.mark.parametrize(("groups", "count"), [([0] * 80, 1), (range(80), 80), (range(101), 101)])
def test_as_many_groups_are_taken_with_storage_as_without(storage, groups, count):
    function, said, options = Counted(), [], {"groups": list(groups), "delta": None, "budget": 99}
    for kept in ({}, {"storage": storage}):
        try:
            select(function, CANDIDATES, range(len(groups)), **options, **kept)
            said.append("")
        except SpecError as error:
            said.append(error.message)
    assert said[0] == said[1]
    assert ("different values of group, and 2 to 100 groups are allowed" in said[0]) == (
        count not in range(2, 101)
    )


def test_candidates_and_examples_that_read_alike_stay_apart(storage):
    candidates, examples = ["a!", "a?", "a-1", "", "é\ud800"], ["same", "same", "", 3, None]
    asked = set()

    def once(candidate, example):
        asked.add((candidate, example))
        return 1.0 if candidate == "a?" else 0.0

    found = select(once, candidates, examples, storage=storage, delta=None, budget=25)
    assert (found.best, found.comparisons) == ("a?", 25)
    assert np.isfinite(found.scores).all()
    names = [name for (name,) in rows_of(storage, "SELECT name FROM candidates ORDER BY position")]
    assert found.names == tuple(names)
    assert dict(zip(found.names, found.candidates, strict=True))[found.results.answer.best] == "a?"
    assert names[0] == "a"
    assert [bool(re.fullmatch(r"(a|a-1|candidate)(-\w+)?", name)) for name in names] == [True] * 5
    assert len(set(names)) == 5


def test_examples_are_found_by_their_own_text_in_what_is_stored(storage):
    frame = pd.DataFrame({"good": [1.0, 0.0, 1.0]}, index=[2, 0, 1])
    found = select(
        lambda share, example: frame.good[example] * share, [0.5, 1.0], frame.index,
        storage=storage, delta=None, budget=6,
    )  # fmt: skip
    told = found.results.comparisons()
    assert len(told) == 6
    shares = told["candidate"].astype(float)
    assert (told["example"].astype(int).map(frame.good) * shares).tolist() == told["outcome"].tolist()


def test_the_place_of_an_example_is_never_the_text_of_another():
    texts = ["2", "same", "same", "two\nlines", "x" * 101, "x" * 100, "é", " "]
    assert stored_selection._ids(texts) == ["2", "#1", "#2", "#3", "#4", "x" * 100, "é", " "]
    assert stored_selection._ids(["#1", "same", "same", "##"]) == ["#1", "###1", "###2", "##"]


def test_names_are_different_and_stay_where_others_come_later():
    given = ["a", "a!", "a", "a?", "", "b" * 99, "a-1", "é"] * 3
    names = stored_selection._names(given)
    assert len(set(names)) == len(given)
    assert stored_selection._names(given[:7]) == names[:7]
    assert all(re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", name) for name in names)


def rows_of(storage, statement):
    with closing(open_database(storage)) as database, database.reading() as session:
        return [tuple(row) for row in session.connection().exec_driver_sql(statement)]


def test_two_programs_do_not_run_it_at_once(storage):
    with pytest.raises(KeyboardInterrupt):
        chosen(Counted(ends=interrupted), storage)
    elsewhere = Holder(host="elsewhere", pid=1, boot_id="b", pid_namespace="1", started_ticks=0)
    with closing(open_database(storage)) as database:
        acquire(database, 1, elsewhere, now=now(), lifetime=LIFETIME, is_gone=is_gone)
    function = Counted()
    with pytest.raises(LeaseHeld, match="is being run by process 1 on elsewhere"):
        chosen(function, storage)
    assert function.asked == []


def test_one_that_has_ended_answers_whoever_asks_while_another_one_holds_it(storage):
    found = chosen(Counted(), storage)
    elsewhere = Holder(host="elsewhere", pid=1, boot_id="b", pid_namespace="1", started_ticks=0)
    with closing(open_database(storage)) as database:
        acquire(database, 1, elsewhere, now=now(), lifetime=LIFETIME, is_gone=is_gone)
    again = chosen(Counted(), storage)
    assert (again.decision, again.comparisons) == (found.decision, found.comparisons)


def interrupted(calls):
    if calls == 3:
        raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("output", "score", "reason"),
    [
        ("0.25", 0.25, None),
        (" 1 \n", 1.0, None),
        ("-0.0", 0.0, None),
        ("1e-3", 0.001, None),
        (repr(1 / 3), 1 / 3, None),
        (NO_SCORE, None, "no_score"),
        ("1.5", None, "invalid_score"),
        ("-1e999", None, "invalid_score"),
        ("nan", None, "no_number"),
        ("the score is 0.5", None, "no_number"),
        ("9" * 10_000, None, "no_number"),
    ],
)
def test_the_judge_of_scores_takes_a_number_and_nothing_else(output, score, reason):
    verdict = create_judge("score", no_answer="unscored").judge(Sample(output=output))
    assert (verdict.score, verdict.reason) == (score, reason)


class Odd:
    """Reads like every other of its kind."""

    def __init__(self, value):
        self.value = value

    def __str__(self):
        return "odd"


@pytest.mark.parametrize(
    "candidates",
    [[1, "1"], [Odd(0.1), Odd(0.9)], [np.zeros(5_000), np.eye(1, 5_000, 2_500)[0] * 1.0]],
    ids=["one", "objects", "arrays"],
)
def test_what_reads_alike_and_is_not_the_same_is_refused_and_never_taken_for_one_another(storage, candidates):
    function = Counted()
    with pytest.raises(SpecError, match=r"candidates\[0\] and candidates\[1\] differ but have the same text"):
        select(function, candidates, EXAMPLES, storage=storage)
    with pytest.raises(SpecError, match=r"examples\[0\] and examples\[1\] differ"):
        select(function, CANDIDATES, candidates, storage=storage)
    assert function.asked == []


class Nameless:
    """Reads as where in memory it is."""

    def told(self):
        """A method of one."""


@dataclass
class Holding:
    what: object


@pytest.mark.parametrize(
    "made",
    [
        Nameless,
        lambda: [1, Nameless()],
        lambda: {"a": Nameless()},
        lambda: Holding(Nameless()),
        lambda: Nameless().told,
        lambda: lambda: 0,
    ],
    ids=["object", "list", "dict", "dataclass", "method", "function"],
)
def test_what_reads_otherwise_in_every_run_is_refused_before_anything_is_asked(storage, tmp_path, made):
    function, objects = Counted(), [made() for _ in range(3)]
    for given, what in (
        ((["a", "b", *objects], EXAMPLES), "candidates[2]"),
        ((CANDIDATES, objects), "examples[0]"),
    ):
        with pytest.raises(SpecError) as refused:
            select(function, *given, storage=storage)
        assert str(refused.value) == (
            f"the text of {what} is {reprlib.repr(str(objects[0]))}, which changes with every run; with "
            "storage, entries are identified by their text, so add a __repr__ with the content, or pass "
            "names and let the function look the objects up"
        )
    assert function.asked == []
    assert list(tmp_path.iterdir()) == []
    assert select(lambda *_: 0.5, objects, EXAMPLES).comparisons > 0


def test_texts_that_quote_where_an_object_is_last(storage):
    told = "got <O object at 0x7f00>, isn't it"
    given = [told, {"q": told}, [told], Holding(told)]
    assert len(select(lambda *_: 0.5, given, EXAMPLES, storage=storage).candidates) == 4


def test_the_same_twice_is_scored_twice(storage):
    asked = []

    def once(candidate, example):
        asked.append((candidate, example))
        return 1.0 if candidate == "a" else 0.0

    found = select(once, ["a", "a", "b"], ["x", "x", "y"], storage=storage, delta=None, budget=9)
    assert len(asked) == 9
    assert found.scores.tolist() == [[1.0] * 3, [1.0] * 3, [0.0] * 3]


def test_tables_columns_are_taken_by_place_whatever_their_index_says(storage):
    given = pd.DataFrame({"prompt": ["bad", "good", "mid"], "length": [3, 1, 2]}).sort_values("length")
    worth = {"bad": 0.1, "good": 0.9, "mid": 0.5}
    for where in ({}, {"storage": storage}):
        found = select(lambda prompt, _: worth[prompt], given["prompt"], given["length"] * 10, **where)
        assert (found.best, found.candidates) == ("good", ("good", "mid", "bad"))
        assert found.leaderboard()["candidate"].tolist()[0] == "good"
    assert found.results.answer.best == "good"
    with pytest.raises(SpecError, match="examples is a DataFrame; give the rows as a list"):
        select(score, CANDIDATES, given)


def test_long_prompts_and_examples_are_stored_and_told_apart_by_their_ends(storage):
    long = "You are a careful assistant. " * 1_000
    candidates, examples = (
        [f"{long}{end}" for end in "ab"],
        [f"{'x' * 1_200_000}{number}" for number in range(3)],
    )
    found = select(lambda prompt, _: float(prompt.endswith("b")), candidates, examples, storage=storage)
    assert found.best == candidates[1]
    (stored,) = {len(spec) < 60_000 for (spec,) in rows_of(storage, "SELECT spec FROM campaigns")}
    assert stored


def test_rounds_may_hold_more_than_there_is(storage):
    few = {"name": "few", "batch_size": 64}
    without = select(score, CANDIDATES[:2], EXAMPLES[:3], batch_size=64)
    found = select(Counted(), CANDIDATES[:2], EXAMPLES[:3], storage=storage, **few)
    assert (found.best, found.comparisons) == (without.best, without.comparisons)
    asked = Counted()
    longer = select(asked, CANDIDATES, EXAMPLES[:3], storage=storage, **few)
    assert longer.comparisons - found.comparisons == len(asked.asked) <= 3
    assert {each for each, _ in asked.asked} <= {CANDIDATES[2]}


def test_a_small_budget_may_be_raised_and_the_answer_says_how(storage):
    first = chosen(Counted(), storage, budget=10)
    assert first.comparisons == 10
    assert "call winnow.select with a larger budget in the program that has its function" in str(
        first.results
    )
    function = Counted()
    assert chosen(function, storage, budget=50).comparisons == 50
    assert len(function.asked) == 40


@pytest.mark.parametrize("wrong", [10**400, 1j, np.complex128(0.5), "1", float("nan"), -0.1, [0.5]])
def test_what_is_no_score_is_said(wrong):
    with pytest.raises(WinnowError, match="return a number in"):
        select(lambda *_: wrong, CANDIDATES, EXAMPLES)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"function": 0.5}, "score is 0.5; give a function of a candidate and an example"),
        ({"max_workers": 0}, "max_workers is 0; give a whole number of at least 1"),
        ({"retries": 1.5}, "retries is 1.5; give a whole number of at least 0"),
        ({"on_error": "skip"}, "on_error is 'skip'; give 'raise' or 'unscored'"),
    ],
)
def test_a_call_that_is_not_sound_is_refused_before_anything_is_stored(storage, tmp_path, given, said):
    with pytest.raises(SpecError, match=said):
        chosen(**{"function": score, "storage": storage} | given)
    assert not (tmp_path / "winnow.db").exists()


class Meeting:
    """A function whose first two calls wait for each other, so that it ends only where two run at once."""

    def __init__(self):
        self._first, self._both = [0, 1], threading.Barrier(2)

    def __call__(self, candidate, example):
        with suppress(IndexError):
            self._first.pop()
            self._both.wait(timeout=60)
        return score(candidate, example)

    def __repr__(self):
        return "Meeting"


@pytest.mark.parametrize("stored", [True, False])
def test_calls_run_at_once_and_give_what_they_give_one_after_the_other(storage, stored):
    options = {"storage": storage} if stored else {}
    found = select(Meeting(), CANDIDATES, EXAMPLES, max_workers=2, **options)
    assert (found.best, found.claim.kind) == (CANDIDATES[0], "proven")


@pytest.mark.parametrize("workers", [1, 4])
def test_what_was_scored_beside_an_error_is_stored_and_not_asked_again(storage, workers):
    function = Counted(ends=lambda calls: 1 / (calls != 20))
    with pytest.raises(ZeroDivisionError):
        chosen(function, storage, max_workers=workers)
    again = Counted()
    assert chosen(again, storage, max_workers=workers).best == CANDIDATES[0]
    assert not set(function.asked) & set(again.asked)


@pytest.mark.parametrize("workers", [1, 4])
def test_the_outputs_of_a_round_are_planned_once(storage, monkeypatch, workers):
    planned = []
    for module in (stored_selection, protocol):
        monkeypatch.setattr(
            module,
            "plan_generations",
            lambda *given: planned.append(given[1].number) or plan_generations(*given),
        )
    found = chosen(score, storage, max_workers=workers)
    assert planned == list(range(len(found.results.view("rounds"))))


@pytest.mark.parametrize("stored", [True, False])
def test_a_call_that_raises_is_made_again_and_at_last_counts_as_no_score(storage, monkeypatch, stored):
    pauses, calls = [], Counter()
    monkeypatch.setattr(score_calls.time, "sleep", pauses.append)

    def fails(candidate, example):
        calls[candidate, example] += 1
        if example.endswith("3") or (example.endswith("4") and calls[candidate, example] < 3):
            raise ConnectionError("away")
        return score(candidate, example)

    options = {"storage": storage} if stored else {}
    found = select(fails, CANDIDATES, EXAMPLES, retries=2, on_error="unscored", **options)
    assert set(pauses) == {0.5, 1.0}
    assert {each.example[-1] for each in found.failed} == {"3"}
    assert str(found.failed[0].error) == "away"
    failed = len(found.failed)
    assert f", {failed} failed>" in repr(found)
    assert all(calls[each.candidate, each.example] == 3 for each in found.failed)
    assert np.isnan(found.scores[:, 3::10]).all()
    assert not np.isnan(found.scores[:, 4::10]).all()


@pytest.mark.parametrize("stored", [True, False])
def test_progress_ends_with_all_scores_that_were_asked_for(storage, capsys, stored):
    options = {"storage": storage} if stored else {}
    found = select(score, CANDIDATES, EXAMPLES, progress=True, **options)
    last = capsys.readouterr().err.splitlines()[-1]
    assert f": {found.comparisons} of 240 scores, 'ask {{}}' leads, " in last


def test_scores_of_a_function_are_not_looked_at_like_outputs(storage, tmp_path):
    select(lambda candidate, _: float(candidate == "b"), ["a", "b"], EXAMPLES, storage=storage, name="level")
    assert "check " not in winnow(tmp_path, "status", "level", "--storage", storage).stdout


def test_candidates_that_are_arrays_are_shown(storage):
    assert repr(select(lambda *_: 0.5, np.eye(3), range(10))).startswith("<Selection: best array(")
    with pytest.raises(SpecError, match="selector is None; give the name of one"):
        select(score, CANDIDATES, EXAMPLES, selector=None)


def test_thousands_of_candidates_are_looked_at_once_each_for_the_answer(storage, monkeypatch):
    found = chosen(score, storage, delta=0.05)
    asked, named = [], []
    ordered, engines_of = Answer._best_first, unit_costs.engines_of
    monkeypatch.setattr(Answer, "_best_first", lambda *given: named.append(given[1]) or ordered(*given))
    monkeypatch.setattr(unit_costs, "engines_of", lambda *given: asked.extend(given[2]) or engines_of(*given))
    answer = found.results.answer
    assert asked == []  # a query for each of them
    named.clear()
    assert answer.runner_up is not None
    assert sorted(named) == ["tied", "top"]  # and not once for each candidate
