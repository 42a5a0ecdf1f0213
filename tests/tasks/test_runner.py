"""One stream of rounds: it stops, goes on after an engine died, and calls again only what asks engines."""

from contextlib import closing

import pytest
from sqlalchemy import text
from stepwise_campaigns import N_EXAMPLES, begun, write_campaign
from stored_campaigns import new_database

from winnow.tasks.engines.errors import EngineDied
from winnow.tasks.objectives import protocol, runner
from winnow.tasks.objectives.runner import Runner, finish_round, restarting
from winnow.tasks.rounds.plan import plan_round

pytestmark = pytest.mark.usefixtures("scripted_models")

STORED = """
    SELECT r.number, r.planned_after, r.arms, r.examples, x.position, x.outcome, d.reason
    FROM rounds r JOIN comparisons x ON x.round_id = r.id JOIN decisions d ON d.round_id = r.id
    ORDER BY r.number, x.position
"""


class Seen:
    """An observer that wants to stop after some rounds."""

    def __init__(self, most=99):
        self.rounds, self._most = [], most

    @property
    def wants_to_stop(self):
        return len(self.rounds) >= self._most

    def round_judged(self, campaign, judged):
        return ()

    def round_done(self, campaign, round_, decision):
        self.rounds.append((round_.number, decision.stop))


@pytest.fixture
def deaths(monkeypatch):
    """Numbers of the calls in which the engine that generates outputs dies; counted from 1."""
    calls, chosen, generate = [], set(), protocol.have_outputs

    def have_outputs(*given):
        calls.append(given)
        if len(calls) in chosen:
            raise EngineDied("one", "it is gone")
        return generate(*given)

    monkeypatch.setattr(protocol, "have_outputs", have_outputs)
    return chosen


@pytest.fixture
def new_databases(tmp_path):
    """Two databases without a campaign."""
    with closing(new_database(tmp_path / "a.db")) as one, closing(new_database(tmp_path / "b.db")) as two:
        yield one, two


def stored(database):
    with database.reading() as session:
        return [tuple(row) for row in session.execute(text(STORED))]


def small(tmp_path):
    stopping = {"budget": 4 * N_EXAMPLES, "delta": 0.05, "ties": "resolve"}
    return write_campaign(tmp_path, "small", selector={"name": "champion"}, batch_size=8, stopping=stopping)


def test_an_observer_stops_the_stream_and_the_next_goes_on_where_it_stopped(tmp_path, new_databases):
    whole, parts = new_databases
    seen = Seen()
    with begun(whole, small(tmp_path)) as campaign, Runner(campaign, seen) as stream:
        stream.run()
    assert [number for number, _ in seen.rounds] == list(range(len(seen.rounds)))
    assert len(seen.rounds) == 4
    for rounds in (1, 2, 99):
        with begun(parts, small(tmp_path)) as campaign, Runner(campaign, Seen(rounds)) as stream:
            stream.run()
    assert stored(parts) == stored(whole)


def test_a_stream_goes_on_after_an_engine_died(tmp_path, new_databases, deaths):
    whole, mortal = new_databases
    with begun(whole, small(tmp_path)) as campaign, Runner(campaign) as stream:
        stream.run()
    deaths |= {6, 7}
    with begun(mortal, small(tmp_path)) as campaign, Runner(campaign) as stream:
        for _ in range(2):
            with pytest.raises(EngineDied):
                stream.run()
        stream.run()
    assert stored(mortal) == stored(whole)


def test_a_round_is_finished_once_its_engine_lives_and_restarts_are_bounded(tmp_path, database, deaths):
    deaths |= {1, 2, 3, 4}
    with begun(database, small(tmp_path)) as campaign:
        round_ = plan_round(campaign)
        with pytest.raises(EngineDied):
            finish_round(campaign, round_, restarting(1))
        assert stored(database) == []
        found = finish_round(campaign, round_, restarting(2))
    assert [row[5] for row in stored(database)] == [each.outcome for each in found.comparisons]


def test_no_step_is_called_again_that_tells_the_selector(tmp_path, database, monkeypatch):
    told = []

    def decide(*given):
        told.append(given)
        raise EngineDied("one", "it is gone")

    monkeypatch.setattr(runner, "decide_round", decide)
    with begun(database, small(tmp_path)) as campaign, pytest.raises(EngineDied):
        finish_round(campaign, plan_round(campaign), restarting(9))
    assert len(told) == 1
