"""Campaigns of models that think: what is kept, what judges are given, and what counts as cut off."""

import json

import pytest
from faulty_server import Fault, faulty_server
from served_campaigns import run, served_model, served_spec, write_data
from sqlalchemy import text
from stored_campaigns import new_database

from winnow.tasks.engines.chat import Message, as_stored, from_stored

TAGS = {"reasoning": {"parser": "think-tags"}}
SERVER = {"reasoning": {"parser": "server"}, "chat": True}


@pytest.fixture
def database(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_data(tmp_path)
    database = new_database(tmp_path / "results.db")
    yield database
    database.close()


def rows(database, query):
    with database.reading() as session:
        return [tuple(row) for row in session.execute(text(query))]


def thought(call):
    """A thought, the right letter and why the text ended; of number 5, and of canaries, the thought alone."""
    number = int(call.prompt[0]) if call.prompt[0] in "01234" else 5
    if number == 5:
        return "Could be a to f, or", None, "length"
    return f"Could be x or {'fedcba'[number]}", "abcdef"[number], "stop"


def in_tags(call):
    reasoning, answer, reason = thought(call)
    return f"<think>\n{reasoning}" + (f"\n</think>\n\n{answer}" if answer else ""), reason


def told_apart(call):
    """As a server with a parser of its own tells it."""
    reasoning, answer, reason = thought(call)
    message = {"role": "assistant", "content": answer, "reasoning_content": reasoning}
    usage = {"prompt_tokens": 1, "completion_tokens": 2}
    return Fault(
        body=json.dumps({"choices": [{"finish_reason": reason, "message": message}], "usage": usage}).encode()
    )


@pytest.mark.parametrize(
    ("server", "keys"), [({"reply": in_tags}, TAGS), ({"script": told_apart}, SERVER)], ids=["tags", "server"]
)
def test_judges_are_given_the_answer_and_the_reasoning_is_kept_beside_it(database, server, keys):
    with faulty_server(**server) as serving:
        run(database, served_spec(served_model(serving.url, **keys), judge={"type": "exact"}))
    found = rows(
        database,
        "SELECT DISTINCT example, text, reasoning, truncated, outcome FROM v_comparisons ORDER BY example",
    )
    answered = [(f"e{i}", "abcdef"[i], f"Could be x or {'fedcba'[i]}", 0, 1.0) for i in range(5)]
    assert found == [*answered, ("e5", "", "Could be a to f, or", 1, 0.0)]
    assert rows(database, "SELECT sum(truncated), sum(comparisons) FROM v_coverage") == [(2, 12)]


def test_a_judge_that_asks_sees_the_reasoning_and_one_that_does_not_is_given_none_of_it(database, tmp_path):
    (tmp_path / "mine.py").write_text(
        "def score(sample):\n    return 'think' not in sample.output and 'x or' in (sample.reasoning or '')\n"
    )
    judge = {"type": "python", "path": "mine.py:score", "range": [0, 1]}
    with faulty_server(reply=in_tags) as serving:
        run(database, served_spec(served_model(serving.url, **TAGS), judge=judge))
        run(database, served_spec(served_model(serving.url), name="whole", judge=judge))
    query = "SELECT DISTINCT example, outcome FROM v_comparisons WHERE campaign = '{}' ORDER BY example"
    assert rows(database, query.format("letters")) == [(f"e{i}", float(i < 5)) for i in range(6)]
    assert rows(database, query.format("whole")) == [(f"e{i}", 0.0) for i in range(6)]


def test_a_text_whose_reasoning_was_told_apart_is_not_used_where_nobody_asks_for_that(database):
    with faulty_server(reply=in_tags) as serving:
        run(database, served_spec(served_model(serving.url, **TAGS)))
        calls = len(serving.calls)
        run(database, served_spec(served_model(serving.url), name="whole"))
        assert len(serving.calls) == 2 * calls
    assert rows(database, "SELECT count(*), count(reasoning) FROM generations") == [(24, 12)]


def test_a_canary_hears_what_a_model_thinks(database):
    with faulty_server(told_apart) as serving:
        run(database, served_spec(served_model(serving.url, **SERVER)))
    ((texts,),) = rows(database, "SELECT texts FROM canaries")
    assert all(each.startswith("Could be ") for each in json.loads(texts))


@pytest.mark.parametrize(
    "kept",
    [
        "1+1=",
        '[{"role": "user", "content": "x"}',
        '[{"role": "user", "content": "x"}, {"role": "user", "content": "y"}]',
        '[{"role": "user", "text": "x"}]',
        '[{"role": "user"}]',
        '[{"role": 1}]',
    ],
)
def test_a_text_that_looks_like_messages_is_a_text(kept):
    assert from_stored(kept) == (Message("user", kept),)


def test_messages_are_read_as_they_were_written():
    messages = (Message("system", 'a "b"\n'), Message("user", "é"), Message("assistant", "c"))
    assert from_stored(as_stored(messages)) == messages
