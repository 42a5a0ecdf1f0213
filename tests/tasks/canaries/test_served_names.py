"""What a server calls the model that wrote a text: a gateway may have put another in its place."""

import pytest
from both_databases import BOTH
from faulty_server import faulty_server, is_canary
from served_campaigns import N_EXAMPLES, run, served_model, served_spec
from sqlalchemy import select

from winnow.storage.models import Generation
from winnow.tasks.answer.status_lines import status_lines
from winnow.tasks.campaign.changed_models import SeveralNames, server_changes
from winnow.tasks.campaign.look import Look
from winnow.tasks.queries.status import campaign_status

ON_BOTH = pytest.mark.parametrize("database", BOTH, indirect=True)

DATED = "served-2026-10-06"
GRID = 2 * N_EXAMPLES


def knows(call):
    return "nothing" if is_canary(call.body) else "abcdef"[int(call.prompt[0])]


def fallback(call):
    """Every third answer is another model's."""
    return "small" if call.number % 3 == 2 else DATED


def names_of(database, model):
    with database.reading() as session:
        query = select(Generation.served_as).where(Generation.model == model)
        return sorted(session.scalars(query), key=str)


def found(database, record):
    with database.reading() as session:
        return server_changes(session, record)


def said(database, record):
    """The words and sentences of a campaign's answer."""
    with database.reading() as session:
        status = campaign_status(Look(session, record))
    return status_lines(status.answer, status.totals)


@ON_BOTH
def test_texts_that_a_gateway_had_another_model_write_take_the_claim_away(database):
    """The reproduction: a candidate half of whose texts were another model's was "winner, exact"."""
    with faulty_server(reply=knows) as server:
        server.names = fallback
        record = run(database, served_spec(served_model(server.url)))
    assert names_of(database, "one") == [DATED] * 8 + ["small"] * 4
    assert found(database, record) == [SeveralNames(model="one", texts={DATED: 8, "small": 4})]
    lines = dict(said(database, record))
    assert lines["server"] == (
        "several models wrote the outputs of one that are used here, according to their server: 8 by "
        "'served-2026-10-06', 4 by 'small'. Set `model` to one of them, or restrict the server to one; a "
        "campaign under another name with reuse: campaign requests all outputs again"
    )
    assert lines["confidence"].startswith("heuristic: a served model changed during the campaign")


def test_one_name_throughout_is_stored_and_nothing_to_speak_of(database):
    with faulty_server(reply=knows) as server:
        server.names = lambda call: DATED
        record = run(database, served_spec(served_model(server.url)))
    assert names_of(database, "one") == [DATED] * GRID
    assert found(database, record) == []
    lines = dict(said(database, record))
    assert "server" not in lines
    assert lines["confidence"].startswith("exact")


@pytest.mark.parametrize("name", [None, "", 7, ["a"], {"id": "a"}, True])
def test_a_reply_without_a_readable_name_is_used_and_says_nothing_of_who_wrote_it(database, name):
    with faulty_server(reply=knows) as server:
        server.names = lambda call: name if call.number % 2 else DATED
        record = run(database, served_spec(served_model(server.url)))
    assert names_of(database, "one") == sorted([None] * (GRID // 2) + [DATED] * (GRID // 2), key=str)
    assert found(database, record) == []


def test_a_judge_that_another_model_stood_in_for_is_named(database):
    with faulty_server(reply=knows) as server, faulty_server(reply=lambda call: "[[yes]]") as judging:
        judging.names = fallback
        grader = served_model(judging.url, "grader", chat=True)
        judge = {"type": "llm", "model": grader, "rubric": "Right.", "scale": "yes/no", "read": "text"}
        record = run(database, served_spec(served_model(server.url), judge=judge))
    [names] = found(database, record)
    assert names.model == "grader"
    assert set(names.texts) == {DATED, "small"}


def test_only_texts_that_the_campaign_uses_count(database):
    """Another campaign's of the same name, on another server, are none of its texts; reused ones are."""
    with faulty_server(reply=knows) as one, faulty_server(reply=knows) as other:
        one.names, other.names = fallback, (lambda call: "other")
        spec = served_spec(served_model(one.url))
        run(database, spec)
        elsewhere = run(database, served_spec(served_model(other.url), name="elsewhere"))
        assert found(database, elsewhere) == []
        one.names = lambda call: DATED
        again = run(database, served_spec(served_model(one.url), name="again"))
        assert len(one.calls) == GRID
    [names] = found(database, again)
    assert names.texts == {DATED: 8, "small": 4}


@ON_BOTH
def test_an_alias_that_was_moved_is_another_model_to_later_campaigns(database):
    """All canary prompts are answered alike, so that only the name tells."""
    with faulty_server(reply=knows) as server:
        server.names = lambda call: DATED
        spec = served_spec(served_model(server.url))
        record = run(database, spec)
        server.names = lambda call: "served-2026-11-20"
        later = run(database, served_spec(served_model(server.url), name="later"))
        assert len(server.calls) == 2 * GRID
        again = run(database, served_spec(served_model(server.url), name="again"))
        assert len(server.calls) == 2 * GRID
    assert [(each.when, each.names) for each in found(database, record)] == [
        ("after", (DATED, "served-2026-11-20"))
    ]
    assert [each.when for each in found(database, later)] == ["before"]
    assert not any(each.mixes for each in (*found(database, record), *found(database, later)))
    assert found(database, again) == []
    assert dict(said(database, record))["server"].endswith(
        ", and reported 'served-2026-10-06' before: this answer is about the model before the change"
    )


def test_an_alias_that_is_moved_between_two_runs_of_a_campaign_takes_the_claim_away(database):
    with faulty_server(reply=knows) as server:
        server.names = lambda call: DATED
        spec = served_spec(served_model(server.url))
        run(database, spec, rounds=1)
        server.names = lambda call: "served-2026-11-20"
        record = run(database, spec)
    change, names = found(database, record)
    assert (change.when, change.texts_before, change.mixes) == ("during", 4, True)
    assert names.texts == {DATED: 4, "served-2026-11-20": 8}
    assert dict(said(database, record))["confidence"].startswith("heuristic")


def test_servers_that_people_say_are_one_may_each_have_a_name_of_their_own(database):
    with faulty_server(reply=knows) as one, faulty_server(reply=knows) as other:
        one.names, other.names = (lambda call: "here"), (lambda call: "there")
        same = {"served_identity": "letters fp16"}
        run(database, served_spec(served_model(one.url, **same)), rounds=1)
        record = run(database, served_spec(served_model(other.url, **same)))
    assert names_of(database, "one") == ["here"] * 4 + ["there"] * 8
    assert found(database, record) == []


def test_a_server_that_stops_to_name_who_answers_is_no_other_one(database):
    with faulty_server(reply=knows) as server:
        server.names = lambda call: DATED
        run(database, served_spec(served_model(server.url)))
        server.names = lambda call: None
        record = run(database, served_spec(served_model(server.url), name="later"))
        assert len(server.calls) == GRID
    assert found(database, record) == []


def test_a_campaign_of_its_own_texts_has_one_model_again(database):
    with faulty_server(reply=knows) as server:
        server.names = fallback
        run(database, served_spec(served_model(server.url)))
        server.names = lambda call: DATED
        anew = served_spec(served_model(server.url), name="anew", reuse="campaign")
        record = run(database, anew)
    assert found(database, record) == []


def test_stored_texts_tell_who_wrote_them_whatever_the_campaign_calls_its_model(database):
    """The reproduction: what `winnow rescore` made of such texts was "known exactly"."""
    with faulty_server(reply=knows) as server:
        server.names = fallback
        spec = served_spec(served_model(server.url))
        record = run(database, spec)
        other = served_model(server.url, "another")
    again = run(database, served_spec(other, name="again", reuse="only"))
    [names], [same] = found(database, record), found(database, again)
    assert (names.model, same.model) == ("one", "one")
    assert names.texts == same.texts
    assert dict(said(database, again))["confidence"].startswith("heuristic")


def test_hostile_names_are_cut_quoted_and_few(database):
    with faulty_server(reply=knows) as server:
        server.names = lambda call: f"{call.number:02d}\n\x1b[31m\x00\ud800" + "x" * 10_000
        record = run(database, served_spec(served_model(server.url)))
    names = names_of(database, "one")
    assert len(set(names)) == GRID
    assert all(len(name) <= 200 for name in names)
    sentence = dict(said(database, record))["server"]
    assert "\n" not in sentence
    assert "\x1b" not in sentence
    assert "the rest by 8 more" in sentence
    assert len(sentence) < 1_500
