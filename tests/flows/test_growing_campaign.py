"""Candidates that join a campaign on a benchmark, and budgets that are raised: what is kept and said."""

import json
import shutil

import campaign_processes as processes
import pytest
import scripted_engines
from campaign_processes import Kill, rows
from campaigns import status_json, winnow
from growing_campaigns import FIRST, LONGER, begin, write_growing
from waiting import PATIENCE_S

pytestmark = pytest.mark.usefixtures("plain_runs")

CANDIDATES = "SELECT position, name, first_round FROM candidates ORDER BY position"


@pytest.fixture(autouse=True)
def scripted_models(monkeypatch):
    scripted_engines.provide_all(monkeypatch)


@pytest.fixture(scope="session")
def forks():
    return processes.fork_server()


def run(folder, *more, code=0):
    """What `winnow run` prints where it ends with this code."""
    result = winnow(folder, "run", "campaign.yaml", *more)
    assert result.returncode == code, result.stderr
    return result.stdout


@pytest.mark.parametrize("selector", ["champion", "race"])
def test_a_longer_list_goes_on_with_what_was_learned_and_the_answer_states_what_then_holds(
    tmp_path, selector
):
    write_growing(tmp_path, selector={"name": selector})
    said = run(tmp_path)
    assert "winner       guesses/plain" in said
    assert "(at most 5% risk of error)" in said
    early, n_rounds = processes.history(tmp_path), rows(tmp_path, "SELECT count(*) FROM rounds")[0][0]
    write_growing(tmp_path, LONGER, selector={"name": selector})
    said = run(tmp_path)
    assert "winner       mumbles/plain" in said
    assert (
        "(at most 10% risk of error; a 5% risk of error was requested; candidates that were added after "
        "scores had been seen increase it), if how often candidates were added did not depend on the scores"
    ) in " ".join(said.split())
    assert f"added        mumbles/plain joined after {n_rounds} rounds" in said
    assert "mumbles/plain was added after scores on these examples were seen" in " ".join(said.split())
    late = processes.history(tmp_path)
    for table in ("rounds", "comparisons", "decisions"):
        assert late[table][: len(early[table])] == early[table]
    names = [f"{name}/plain" for name in (*FIRST, "mumbles")]
    assert rows(tmp_path, CANDIDATES) == [
        (place, name, n_rounds if place == 2 else 0) for place, name in enumerate(names)
    ]
    run(tmp_path)
    assert processes.history(tmp_path) == late  # settled again


def test_where_additions_are_expected_the_answer_states_what_was_asked_for(tmp_path):
    selector = {"name": "champion", "params": {"additions": "expected"}}
    write_growing(tmp_path, selector=selector)
    run(tmp_path)
    write_growing(tmp_path, LONGER, selector=selector)
    said = " ".join(run(tmp_path).split())
    assert "(at most 5% risk of error)" in said
    assert "was requested" not in said


def test_a_campaign_that_candidates_joined_is_open_until_they_are_tested(tmp_path):
    write_growing(tmp_path)
    run(tmp_path)
    before = status_json(tmp_path)
    assert (before["state"], before["outcome"]) == ("ended", "winner")
    spent = before["totals"]["comparisons"]
    write_growing(tmp_path, LONGER, stopping={"delta": 0.05, "budget": spent})
    said = " ".join(run(tmp_path, code=3).split())
    assert "undecided at error probability 0.05: the comparison budget is spent" in said
    found = status_json(tmp_path)
    assert (found["outcome"], found["claim"]["kind"]) == ("undecided", "none")
    board = json.loads(winnow(tmp_path, "query", "survivor", "leaderboard", "--json").stdout)
    assert {row["status"] for row in board} <= {"active", "eliminated"}
    assert "winner       mumbles/plain" in run(tmp_path, "--set", "stopping.budget=720")


def test_killed_at_any_commit_after_candidates_joined_it_comes_to_the_same(forks, tmp_path):
    first = tmp_path / "first"
    first.mkdir()
    write_growing(first, stopping={"delta": 0.05, "budget": 20})
    run(first, code=3)
    histories = []
    for kills in ((), (2, 5, 9)):
        folder = tmp_path / f"killed-{len(kills)}"
        shutil.copytree(first, folder)
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(folder)
            storage = processes.store(write_growing(folder, LONGER))
        for commit in (*kills, None):
            process = begin(forks, folder, storage, Kill(commit=commit, after=True) if commit else None)
            process.join(PATIENCE_S)
            assert process.exitcode == (-9 if commit else 0)
        histories.append((processes.history(folder), rows(folder, CANDIDATES)))
        assert status_json(folder)["best"] == "mumbles/plain"
    assert histories[0] == histories[1]


def test_a_list_that_joins_while_a_round_is_unfinished_takes_part_from_the_next_one(forks, tmp_path):
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        storage = processes.store(write_growing(tmp_path))
    process = begin(forks, tmp_path, storage, Kill(commit=3, after=True))
    process.join(PATIENCE_S)
    (unfinished,) = rows(
        tmp_path,
        "SELECT r.number FROM rounds r LEFT JOIN decisions d ON d.round_id = r.id WHERE d.id IS NULL",
    )
    write_growing(tmp_path, LONGER)
    assert "winner       mumbles/plain" in run(tmp_path)
    assert rows(tmp_path, CANDIDATES)[2] == (2, "mumbles/plain", unfinished[0] + 1)


def test_another_selector_refuses_a_longer_list_in_one_sentence(tmp_path):
    write_growing(tmp_path, selector={"name": "row-mean"}, stopping={"budget": 24})
    run(tmp_path)
    write_growing(tmp_path, LONGER, selector={"name": "row-mean"}, stopping={"budget": 48})
    result = winnow(tmp_path, "run", "campaign.yaml")
    assert result.returncode == 2
    (line,) = result.stderr.strip().splitlines()
    assert "began without mumbles/plain, and its selector row-mean accepts no further candidates" in line
    assert "winnow run SPEC --fork NEW_NAME" in line


def test_with_a_larger_budget_the_asked_error_probability_is_stated_still(tmp_path):
    for budget in (12, 20):
        write_growing(tmp_path, stopping={"delta": 0.05, "budget": budget})
        said = run(tmp_path, code=3)
        assert f"undecided at error probability 0.05: the comparison budget is spent: {budget}" in said
        assert status_json(tmp_path)["claim"]["kind"] == "none"
    write_growing(tmp_path)
    said = " ".join(run(tmp_path).split())
    assert "no candidate has a mean that is higher (at most 5% risk of error)" in said
    assert "was requested" not in said


def test_when_each_candidate_was_shown_to_be_out_is_shown_wherever_a_user_looks(tmp_path):
    write_growing(tmp_path)
    run(tmp_path)
    write_growing(tmp_path, LONGER)
    said = run(tmp_path)
    board = json.loads(winnow(tmp_path, "query", "survivor", "eliminations", "--json").stdout)
    assert {row["candidate"] for row in board} == {"guesses/plain", "errs/plain", "mumbles/plain"}
    assert board[-1]["candidate"] == "mumbles/plain"
    assert (board[-1]["out_in_round"], board[-1]["out_at"]) == (None, None)
    told = rows(
        tmp_path, "SELECT r.number, d.comparisons FROM rounds r JOIN decisions d ON d.round_id = r.id"
    )
    by_then = {number: sum(size for each, size in told if each <= number) for number, _ in told}
    out = [row for row in board if row["out_in_round"] is not None]
    assert {row["candidate"] for row in out} >= {"errs/plain"}
    for row in out:
        assert row["out_at"] == by_then[row["out_in_round"]]
        assert (row["level"], row["wealth"] >= 20.0) == (20.0, True)
    last = out[-1]
    when = f"after {last['out_in_round'] + 1} rounds and {last['out_at']} comparisons"
    assert f"eliminated   {len(out)} of 3 candidates, the last ({last['candidate']}) {when}" in said
    found = {each["name"]: each for each in status_json(tmp_path)["candidates"]}
    assert found[last["candidate"]]["out_at"] == last["out_at"]
    shown = winnow(tmp_path, "query", "survivor", "eliminations").stdout.splitlines()
    assert len(shown) == 4
    assert max(map(len, shown)) <= 80
    report = winnow(tmp_path, "report", "survivor").stdout
    assert "Eliminations: evidence" in report
    assert winnow(tmp_path, "report", "survivor", "--html", "page.html").returncode == 0
    page = (tmp_path / "page.html").read_text()
    for shown_to_people in (report, page):  # as the lines of the run count, and not as the view does
        assert (
            f"eliminated in round {last['out_in_round'] + 1}, after {last['out_at']} comparisons"
            in shown_to_people
        )
    assert winnow(tmp_path, "export", "survivor", "exported", "--format", "csv").returncode == 0
    (exported,) = (tmp_path / "exported").rglob("*eliminations*")
    assert exported.read_text().count("\n") == 4


def test_interrupted_at_any_time_a_campaign_claims_nothing_yet(forks, tmp_path):
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        storage = processes.store(write_growing(tmp_path))
    for commit in (3, 5, 6):
        begin(forks, tmp_path, storage, Kill(commit=commit, after=True)).join(PATIENCE_S)
        if processes.has_ended(tmp_path):
            break
        found = status_json(tmp_path)
        assert (found["state"], found["outcome"]) in (("interrupted", None), ("new", None))
        assert (found["claim"]["kind"], found["is_guaranteed"]) == ("none", False)
        assert found["sure"] == "not yet: the campaign has not ended"
        assert {each["status"] for each in found["candidates"]} <= {"active", "eliminated"}
    assert rows(tmp_path, "SELECT count(*) FROM decisions") >= [(1,)]
    assert "(at most 5% risk of error)" in run(tmp_path)


def test_candidates_that_join_after_held_out_scores_were_seen_take_their_guarantee_away(tmp_path):
    write_growing(tmp_path, holdout=0.25)
    said = run(tmp_path)
    assert "on the 60 examples that selection did not use" in said
    assert "guarantees nothing" not in said
    assert status_json(tmp_path)["held_out"]["is_complete"]
    write_growing(tmp_path, LONGER, holdout=0.25)
    said = run(tmp_path)
    assert "winner       mumbles/plain" in said
    assert "this guarantees nothing: mumbles/plain was added after scores on these examples were seen" in said
    found = status_json(tmp_path)["held_out"]
    assert (found["winner"], found["is_complete"], found["joined"]) == (
        "mumbles/plain",
        True,
        "mumbles/plain",
    )
