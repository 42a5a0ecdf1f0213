"""Answers of a server are stored as they come: a kill loses those that are under way and no others."""

import threading
from contextlib import closing

import pytest
from faulty_server import echo, faulty_server, is_canary
from served_campaigns import begun, run, served_model, served_spec, write_data
from sqlalchemy import text
from stored_campaigns import new_database
from waiting import PATIENCE_S, until

from winnow.tasks.campaign.session import running
from winnow.tasks.objectives.round_functions import generate_round
from winnow.tasks.objectives.runner import RoundsInFlight
from winnow.tasks.rounds.plan import plan_round, plan_rounds

N = 8


@pytest.fixture
def database(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_data(tmp_path)
    with closing(new_database(tmp_path / "winnow.db")) as database:
        yield database


@pytest.fixture
def holding():
    """A server that holds the last request of a round of N back until it is let go."""
    go = threading.Event()

    def reply(call):
        if call.number == N - 1 and not is_canary(call.body):
            go.wait(PATIENCE_S)
        return echo(call)

    with faulty_server(reply=reply) as server:
        server.go = go
        yield server
        go.set()


def stored(database):
    with database.reading() as session:
        return session.execute(text("SELECT count(*) FROM generations")).scalar_one()


def generated(campaign, round_, ended):
    """Have the texts of a round made in a thread, and remember how that ended."""

    def make():
        try:
            ended.append(generate_round(campaign, round_))
        except BaseException as error:
            ended.append(error)

    thread = threading.Thread(target=make)
    thread.start()
    return thread


@pytest.mark.parametrize("lookahead", [0, 2])
def test_all_but_one_are_stored_while_the_last_one_is_waited_for(database, holding, lookahead):
    spec = served_spec(served_model(holding.url), batch_size=N, lookahead=lookahead)
    record, checked = begun(database, spec)
    with running(database, record, checked) as campaign:
        if lookahead:
            rounds = plan_rounds(campaign, begins=True)[:1]
            ahead = RoundsInFlight(campaign)
            thread = threading.Thread(target=lambda: ahead.texts_of_first(rounds))
            thread.start()
        else:
            thread = generated(campaign, plan_round(campaign), [])
        until(lambda: stored(database) == N - 1)
        assert thread.is_alive()
        holding.go.set()
        thread.join(PATIENCE_S)
        assert stored(database) == N


def test_a_kill_loses_what_is_under_way_and_nothing_else(database, holding):
    """The reproduction: up to 63 answered texts of a group were paid for twice."""
    spec = served_spec(served_model(holding.url), batch_size=N)
    record, checked = begun(database, spec)
    ended = []
    with running(database, record, checked) as campaign:
        thread = generated(campaign, plan_round(campaign), ended)
        until(lambda: stored(database) == N - 1)
        campaign.engines.abandon()
        thread.join(PATIENCE_S)
    assert isinstance(ended[0], BaseException)
    holding.go.set()
    until(lambda: len(holding.calls) == N)
    run(database, spec, rounds=1)
    assert len(holding.calls) == N + 1
    assert stored(database) == N


def test_a_group_that_is_asked_as_a_whole_is_stored_as_a_whole(database, holding):
    spec = served_spec(served_model(holding.url), batch_size=N, streaming=False)
    record, checked = begun(database, spec)
    ended = []
    with running(database, record, checked) as campaign:
        thread = generated(campaign, plan_round(campaign), ended)
        until(lambda: len(holding.calls) == N)
        campaign.engines.abandon()
        thread.join(PATIENCE_S)
    assert stored(database) == 0
