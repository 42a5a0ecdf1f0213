"""A campaign on servers asks for its first texts while Prefect comes up, and for none of them twice."""

from contextlib import closing, nullcontext

import pytest
from faulty_server import HANGING, MODEL, faulty_server, is_canary, no_faults
from served_campaigns import begun, served_model, served_spec, write_data
from stored_campaigns import new_database
from waiting import eventually

from winnow.flows.run import head_start as early
from winnow.flows.run.head_start import begin_loading, head_start, session_of
from winnow.storage.errors import LeaseHeld
from winnow.storage.records import leases
from winnow.storage.records.record_types import Holder
from winnow.tasks.campaign.campaign import find_in
from winnow.tasks.campaign.lease import LIFETIME, now
from winnow.tasks.objectives.round_functions import generate_round
from winnow.tasks.rounds.plan import plan_round

ANOTHER = Holder(host="another-machine", pid=1, boot_id="b", pid_namespace="1", started_ticks=1)


@pytest.fixture(autouse=True)
def _without_prefect(monkeypatch):
    monkeypatch.setattr(early, "early_server", nullcontext)


@pytest.fixture
def database(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_data(tmp_path)
    with closing(new_database(tmp_path / "results.db")) as opened:
        yield opened


def stored(database, server, **keys):
    """A campaign on this server that is about to run."""
    spec = served_spec(served_model(server.url, model=MODEL), storage=database.url, **keys)
    record, _ = begun(database, spec)
    return find_in(database, database.url, record.name)


def is_free(database):
    """Whether its lease was given back."""
    with database.reading() as session:
        return [each for each in leases.unreleased(session) if each] == []


def first_texts(campaign):
    assert begin_loading(campaign)
    return generate_round(campaign, plan_round(campaign))


def test_the_first_texts_are_asked_for_before_the_flow_runs_and_only_once(database):
    with faulty_server(no_faults) as server:
        stored_one = stored(database, server)
        with head_start(stored_one):
            assert eventually(lambda: server.answered == 4), "the first round is asked for"
            with session_of(stored_one) as campaign:
                texts = first_texts(campaign)
                assert (len(texts.texts), server.answered) == (4, 4)
                assert generate_round(campaign, plan_round(campaign)).texts == texts.texts
            assert is_free(database), "the flow ends what it took over"
        assert server.answered == 4


def test_a_flow_of_another_campaign_leaves_it_alone(database):
    with faulty_server(no_faults) as server:
        stored_one, other = stored(database, server), stored(database, server, name="other", seed=8)
        with head_start(stored_one), session_of(other) as campaign:
            assert campaign.record.name == other.name
            assert campaign.head_start is None
        assert is_free(database)


def test_rounds_that_are_planned_ahead_begin_with_their_flow(database):
    with faulty_server(no_faults) as server:
        stored_one = stored(database, server, lookahead=1, selector={"name": "champion"})
        with head_start(stored_one), session_of(stored_one) as campaign:
            assert campaign.is_loading
            assert campaign.head_start is None
        assert server.answered == 0


def test_who_leaves_in_haste_waits_for_no_text(database):
    with faulty_server(lambda call: None if is_canary(call.body) else HANGING) as server:
        stored_one = stored(database, server)

        def interrupted():
            with head_start(stored_one):
                assert eventually(lambda: server.calls)
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            interrupted()
        assert is_free(database)


def test_what_keeps_a_campaign_from_beginning_is_said_by_its_flow(database):
    with faulty_server(no_faults) as server:
        stored_one = stored(database, server)
        leases.acquire(
            database, stored_one.record.id, ANOTHER, now=now(), lifetime=LIFETIME, is_gone=lambda _: False
        )
        with head_start(stored_one):
            assert server.calls == []
            with pytest.raises(LeaseHeld), session_of(stored_one):
                pass


def test_what_goes_wrong_with_the_first_texts_is_raised_by_their_step(database, monkeypatch):
    def fail(campaign, round_, planned):
        raise ConnectionError("the server is gone")

    monkeypatch.setattr("winnow.tasks.objectives.protocol.have_outputs", fail)
    with faulty_server(no_faults) as server:
        stored_one = stored(database, server)
        with (
            head_start(stored_one),
            session_of(stored_one) as campaign,
            pytest.raises(ConnectionError, match="the server is gone"),
        ):
            first_texts(campaign)
