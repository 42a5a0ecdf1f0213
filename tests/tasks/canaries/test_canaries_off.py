"""A campaign with `execution.canaries: off`: no canary prompt is sent, and the answer says so."""

from faulty_server import faulty_server, is_canary
from served_campaigns import run, served_model, served_spec

from winnow.storage.records import canaries as canary_records
from winnow.tasks.answer.status_lines import NOT_ASKED, status_lines
from winnow.tasks.campaign.look import Look
from winnow.tasks.queries.status import campaign_status

OFF = {"execution": {"canaries": False}}


def reply(call):
    return f"about {call.prompt}" if is_canary(call.body) else "abcdef"[int(call.prompt[0])]


def server_lines(database, record):
    with database.reading() as session:
        status = campaign_status(Look(session, record), in_full=True)
    return [said for word, said in status_lines(status.answer, status.totals) if word == "server"]


def test_none_is_sent_and_the_answer_says_so(database):
    with faulty_server(reply=reply) as server:
        record = run(database, served_spec(served_model(server.url), **OFF))
        assert server.calls
        assert server.canaries == []
    with database.reading() as session:
        assert canary_records.canaries(session, record.id) == []
    assert server_lines(database, record) == [NOT_ASKED]


def test_by_default_they_are_sent_and_nothing_is_said(database):
    with faulty_server(reply=reply) as server:
        record = run(database, served_spec(served_model(server.url)))
        assert server.canaries
    assert "canaries" not in record.execution["execution"]
    assert server_lines(database, record) == []


def test_outputs_of_a_campaign_with_canaries_are_reused(database):
    """A model is taken for what the last campaign found, with its number of changes."""
    with faulty_server(reply=reply) as server:
        run(database, served_spec(served_model(server.url)))
        before = len(server.calls), len(server.canaries)
        run(database, served_spec(served_model(server.url), name="again", **OFF))
        assert (len(server.calls), len(server.canaries)) == before
