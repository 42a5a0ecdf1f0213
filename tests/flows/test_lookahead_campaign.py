"""Rounds in flight: planned ahead, answered in any order, told in that of asking, resumed as they were."""

import shutil
import sqlite3
from contextlib import closing

import campaign_processes as processes
import pytest
import scripted_engines
from ahead_campaigns import (
    decided,
    decided_again,
    finish_with_kills,
    history,
    is_killed,
    most_in_flight,
    persistent,
    run,
    write,
)
from campaign_processes import rows
from without_prefect import leave_prefect_out

from winnow.algorithms.errors import PairAlreadyTold, ToldOutOfOrder
from winnow.flows.reports.summary import status_of
from winnow.flows.run import flow
from winnow.flows.run.callbacks import NullCallback, using_callback
from winnow.storage.admin.check import problems
from winnow.storage.engine.database import open_database
from winnow.tasks.objectives import runner
from winnow.tasks.rounds.plan import plan_rounds
from winnow.tasks.setup.load import check_campaign_file


@pytest.fixture(autouse=True)
def plainly(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    leave_prefect_out(monkeypatch)
    scripted_engines.provide(monkeypatch, "joining")
    scripted_engines.JOINING.clear()


def test_killed_at_every_commit_boundary_it_ends_as_uninterrupted(tmp_path):
    changes = {"stopping": {"budget": 40, "delta": 0.05}}
    run(write(tmp_path / "whole", **changes))
    kills = finish_with_kills(write(tmp_path / "killed", **changes))
    whole = history(tmp_path / "whole")
    assert kills >= 16
    assert most_in_flight(whole) == 2
    assert history(tmp_path / "killed") == whole


def test_a_resumed_selector_that_does_not_know_what_is_in_flight_would_be_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr("winnow.tasks.campaign.replay.take_up_rounds", lambda *_: None)
    path = write(tmp_path / "killed")
    with pytest.raises(PairAlreadyTold):
        finish_with_kills(path)


def test_rounds_told_in_the_order_of_arrival_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "plan_rounds", lambda *given, **named: plan_rounds(*given, **named)[::-1])
    with pytest.raises(ToldOutOfOrder):
        run(write(tmp_path))


def test_several_groups_of_one_engine_are_in_hand_at_once_and_without_lookahead_one(tmp_path):
    run(write(tmp_path / "ahead"))
    ahead = max(engine.most_at_once for engine in scripted_engines.JOINING)
    scripted_engines.JOINING.clear()
    run(write(tmp_path / "plain", lookahead=0))
    assert ahead == 3
    assert max(engine.most_at_once for engine in scripted_engines.JOINING) == 1
    assert most_in_flight(history(tmp_path / "plain")) == 0


def test_what_is_in_flight_when_it_is_decided_is_finished_and_all_decisions_follow_from_the_tells_alone(
    tmp_path,
):
    path = write(tmp_path, prompts=[{"name": "plain", "template": "{{ input }}="}])
    run(path)
    stops = [bool(stop) for (stop,) in rows(tmp_path, "SELECT stop FROM decisions ORDER BY round_id")]
    assert rows(tmp_path, "SELECT count(*) FROM rounds") == [(len(stops),)]
    assert stops.index(True) == len(stops) - 3
    assert decided_again(path) == decided(tmp_path)


def undecide(connection, round_id):
    """As if the round had not been told."""
    for table in ("decisions", "comparisons", *processes.OF_CANDIDATES):
        connection.execute(f"DELETE FROM {table} WHERE round_id = ?", (round_id,))


def test_it_has_not_ended_before_all_that_is_in_flight_is_told_in_its_order(tmp_path):
    path = write(tmp_path, prompts=[{"name": "plain", "template": "{{ input }}="}])
    run(path)
    spec = check_campaign_file(str(path)).spec
    assert status_of(spec.storage, spec.name).is_settled
    whole = history(tmp_path)
    last = len(whole["rounds"])
    with closing(sqlite3.connect(tmp_path / "winnow.db")) as connection, connection:
        undecide(connection, last - 1)
    with closing(open_database(spec.storage)) as database, database.reading() as session:
        early = (
            f"round {last} of campaign 1 was recorded before round {last - 1}, which was planned before it"
        )
        assert early in problems(session)
    with closing(sqlite3.connect(tmp_path / "winnow.db")) as connection, connection:
        undecide(connection, last)
    found = status_of(spec.storage, spec.name)
    assert rows(tmp_path, "SELECT stop FROM decisions ORDER BY id DESC LIMIT 1") == [(1,)]
    assert (found.state, found.is_settled, found.answer.outcome) == ("interrupted", False, None)
    run(path)
    assert history(tmp_path) == whole


def test_candidates_join_once_all_that_was_planned_without_them_is_told(tmp_path):
    once, again = tmp_path / "once", tmp_path / "again"
    assert is_killed(write(once, stopping={"budget": 64, "delta": 0.05}), 9, after=True)
    before = len(rows(once, "SELECT 1 FROM rounds"))
    again.mkdir()
    for file in once.glob("winnow.db*"):
        shutil.copy(file, again)
    longer = {"n_models": 3, "stopping": {"budget": 64, "delta": 0.05}}
    run(write(once, **longer))
    kills = finish_with_kills(write(once, name="ahead", **longer, storage=f"sqlite:///{again}/winnow.db"))
    assert kills > 10
    found = history(once)
    assert history(again) == found
    assert (before, before) in found["planned"]
    assert rows(once, "SELECT DISTINCT first_round FROM candidates ORDER BY 1") == [(0,), (before,)]
    assert most_in_flight(found) == 2


def test_what_costs_nothing_is_asked_for_again_with_rounds_in_flight_too(tmp_path, monkeypatch):
    scripted_engines.provide(monkeypatch, "absent")
    histories = []
    # What fails is not stored, and asked for by each process: that many commits later it has got on.
    turns = [(8 + more, False) for more in range(4)]
    for name, finish in (("whole", run), ("killed", lambda path: finish_with_kills(path, turns))):
        path = write(tmp_path / name, selector={"name": "row-mean"}, stopping={"budget": 32, "delta": 0.05})
        path.write_text(
            path.read_text().replace("name: m1\n  provider: joining", "name: m1\n  provider: absent")
        )
        finish(path)
        assert rows(tmp_path / name, "SELECT sum(answered) FROM decisions") == [(32,)]
        histories.append(history(tmp_path / name))
    assert len(histories[0]["comparisons"]) > 32
    assert histories[0] == histories[1]


def test_another_limit_lets_no_further_round_begin_and_those_in_flight_are_finished(tmp_path):
    run(write(tmp_path, stopping={"budget": {"comparisons": 240, "tokens": 30}, "delta": 0.05}))
    # Of 16 tokens each: with the second that is told the limit is spent, and by then four are planned.
    assert history(tmp_path)["planned"] == [(0, 0), (1, 0), (2, 0), (3, 1)]
    assert rows(tmp_path, "SELECT count(*) FROM decisions") == [(4,)]


class StopsAfter(NullCallback):
    def __init__(self, rounds):
        self._left = rounds

    @property
    def wants_to_stop(self):
        return self._left == 0

    def round_judged(self, campaign, judged):
        return ()

    def round_done(self, campaign, round_, decision):
        self._left -= 1


def test_whoever_stops_it_leaves_rounds_in_flight_that_resume_goes_on_with(tmp_path):
    run(write(tmp_path / "whole"))
    path = write(tmp_path / "stopped")
    kept = []
    for _ in range(3):
        with using_callback(StopsAfter(2)):
            run(path)
        told, planned, texts, compared = (
            rows(tmp_path / "stopped", f"SELECT count(*) FROM {table}")[0][0]
            for table in ("decisions", "rounds", "generations", "comparisons")
        )
        kept.append(texts > compared)
    assert (told, planned) == (6, 8)
    assert any(kept)  # what an engine had begun; on a busy machine it may once have begun nothing
    run(path)
    assert history(tmp_path / "stopped") == history(tmp_path / "whole")


def test_an_engine_that_dies_with_several_rounds_in_hand_is_asked_again_for_what_is_not_stored(
    tmp_path, monkeypatch
):
    run(write(tmp_path / "whole"))
    deaths = []
    monkeypatch.setattr(flow, "run_rounds", persistent(deaths))
    monkeypatch.setattr(scripted_engines.JoiningEngine, "lifespan", 5)
    run(write(tmp_path / "mortal", execution={"max_restarts": 99, "log_folder": str(tmp_path / "logs")}))
    assert len(deaths) > 2
    assert history(tmp_path / "mortal") == history(tmp_path / "whole")
