"""What a server writes and counts but is no answer is paid for: it counts, and is never taken for a text."""

import pytest
from faulty_server import HANGING, faulty_server, is_canary
from served_campaigns import die_before_judging, run, served_model, served_spec, write_data

from winnow.storage.admin.check import wrong_tallies
from winnow.storage.queries.costs import costs
from winnow.storage.records import canaries as canary_records
from winnow.tasks.campaign.budget import BudgetTracker
from winnow.tasks.engines.openai import server_calls
from winnow.tasks.queries.check_texts import findings

REFUSED = "2 plus"
"""In the prompts about which the filter of the server has something to say."""


def filtered(call):
    return ("I will", "content_filter") if REFUSED in call.prompt else "x"


def hanging(call):
    return HANGING if REFUSED in call.prompt else None


def test_a_prompt_that_is_never_answered_costs_its_pairs_and_not_its_model(database, tmp_path, monkeypatch):
    """The reproduction: it was asked by one engine after the other, and then the model was given up."""
    monkeypatch.chdir(tmp_path)
    write_data(tmp_path)
    monkeypatch.setattr(server_calls, "FIRST_DELAY", 0.001)
    # What hangs is waited for twice; what is slow on a busy machine is answered by then, and so is a control.
    patience = {"max_retries": 1, "request_timeout": 3.0, "max_restarts": 0, "log_folder": "logs"}
    with faulty_server(hanging, reply=lambda call: "x") as server:
        record = run(database, served_spec(served_model(server.url), execution=patience))
    found = rows(database, "SELECT reason, count(*) FROM comparisons GROUP BY reason ORDER BY reason")
    assert found == [(None, 10), ("refused", 2)]
    with database.reading() as session:
        assert sum(row["generations"] for row in costs(session, record.id)) == 10


@pytest.fixture
def server(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_data(tmp_path)
    with faulty_server(reply=filtered) as server:
        yield server


def asked(server):
    return [call for call in server.calls if not is_canary(call.body)]


def rows(database, query):
    with database.reading() as session:
        return [tuple(row) for row in session.connection().exec_driver_sql(query)]


def test_their_tokens_count_and_nothing_takes_them_for_texts(database, server):
    record = run(database, served_spec(served_model(server.url)))
    assert len(asked(server)) == 12
    with database.reading() as session:
        paid = costs(session, record.id)
        (tokens,) = BudgetTracker(record, {"tokens": 1000}).usage(session)
        of_canaries = canary_records.spent(session, record.id)["tokens"]
        assert [*findings(session), *wrong_tallies(session)] == []
    assert [(row["candidate"], row["generations"]) for row in paid] == [
        ("one/p0", 5),
        ("one/p1", 5),
        (None, 2),
    ]
    assert sum(row["output_tokens"] for row in paid) == 10 * len("x") + 2 * len("I will")
    assert tokens.spent == of_canaries + sum(row["input_tokens"] + row["output_tokens"] for row in paid)
    unscored = "SELECT reason, generation_a_id FROM comparisons WHERE outcome IS NULL"
    assert rows(database, unscored) == [("refused", None)] * 2
    assert rows(database, "SELECT text FROM generations WHERE finish_reason = 'refused'") == [("I will",)] * 2


def test_whoever_needs_the_text_later_asks_again_and_pays_again(database, server):
    run(database, served_spec(served_model(server.url)))
    again = run(database, served_spec(served_model(server.url), name="again"))
    assert [REFUSED in call.prompt for call in asked(server)[12:]] == [True, True]
    with database.reading() as session:
        assert [row["generations"] for row in costs(session, again.id)] == [2]


def test_one_that_is_asked_again_by_the_round_after_a_kill_counts_twice(database, server):
    spec = served_spec(served_model(server.url), batch_size=12)
    die_before_judging(database, spec)
    record = run(database, spec)
    assert len(asked(server)) == 12 + 2
    with database.reading() as session:
        assert sum(row["generations"] for row in costs(session, record.id)) == 14
