"""Every recorded comparison is held against the texts that it should be of, and any exchange is found."""

import json
import re
import shutil
import sqlite3
from contextlib import closing

import pytest
from scripted_engines import provide_all
from stepwise_campaigns import prune, run_campaign, write_campaign, write_duels
from stored_campaigns import new_database

from winnow.storage.admin import recorded_comparisons
from winnow.storage.engine.database import open_database
from winnow.tasks.queries.check_texts import findings

CERTIFY = {
    "objective": "certify",
    "certify": {
        "alpha": 0.3,
        "cost": "custom",
        "costs": {"one/plain": 4, "one/asked": 3, "two/plain": 2, "two/asked": 1},
        "unlabelled_per_label": 1,
        "labellable": 4,
    },
    "selector": {"name": "r-autoeval-plus"},
    "batch_size": 2,
    "stopping": {"budget": 4, "delta": 0.1},
}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A folder with a database of one campaign of each kind, some of whose texts another had paid for."""
    folder = tmp_path_factory.mktemp("recorded")
    database = new_database(folder / "results.db")
    certify = json.loads(json.dumps(CERTIFY))
    certify["certify"]["autoevaluator"] = {
        "model": {"name": "judge", "provider": "grader", "model": str(folder / "judge")},
        "prompt": "What is {{ input }}?",
    }
    with pytest.MonkeyPatch.context() as patch:
        provide_all(patch)
        run_campaign(database, write_campaign(folder, "first"))
        run_campaign(
            database,
            write_campaign(
                folder, "scores", generate_configs=WAYS, batch_size=64, stopping={"budget": 64, "delta": 0.05}
            ),
        )
        run_campaign(database, write_duels(folder, "duels"))
        run_campaign(database, write_campaign(folder, "certified", **certify))
    prune(database, "first")
    database.close()
    return folder


WAYS = [{"name": "greedy"}, {"name": "warm", "temperature": 0.9}]


@pytest.fixture
def copy(recorded, tmp_path, monkeypatch):
    """A copy of the database that can be tampered with."""
    provide_all(monkeypatch)
    shutil.copy(recorded / "results.db", tmp_path / "results.db")
    return tmp_path / "results.db"


def tamper(path, *statements):
    """As a hand with another tool would: without our foreign keys."""
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.executescript(statement)


def found(path):
    with (
        closing(open_database(f"sqlite:///{path}", read_only=True)) as database,
        database.reading() as session,
    ):
        return list(findings(session))


def first(path, query):
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchone()


PAIR = """
    SELECT x.id, y.id, x.generation_a_id, y.generation_a_id
    FROM comparisons x JOIN comparisons y ON x.round_id = y.round_id AND x.id < y.id
    JOIN rounds r ON r.id = x.round_id JOIN campaigns c ON c.id = r.campaign_id AND c.name = '{campaign}'
    JOIN candidates j ON j.id = x.candidate_a_id JOIN candidates k ON k.id = y.candidate_a_id
    WHERE {which} LIMIT 1
"""
OTHER_EXAMPLE = "x.candidate_a_id = y.candidate_a_id AND x.example_id <> y.example_id"
OTHER_MODEL = "x.example_id = y.example_id AND j.name LIKE 'one/plain%' AND k.name LIKE 'two/plain%'"
OTHER_SAMPLING = "x.example_id = y.example_id AND j.name = 'one/plain/greedy' AND k.name = 'one/plain/warm'"


def swap(path, campaign, which):
    """Exchange the texts of two comparisons."""
    one, other, text, other_text = first(path, PAIR.format(campaign=campaign, which=which))
    tamper(
        path,
        f"UPDATE comparisons SET generation_a_id = {other_text} WHERE id = {one}",
        f"UPDATE comparisons SET generation_a_id = {text} WHERE id = {other}",
    )


def test_what_campaigns_recorded_is_found_sound(copy):
    assert [str(each) for each in found(copy)] == []
    counts = "SELECT c.name, count(*) FROM comparisons x JOIN rounds r ON r.id = x.round_id JOIN campaigns c "
    with closing(sqlite3.connect(copy)) as connection:
        rows = connection.execute(f"{counts} ON c.id = r.campaign_id GROUP BY c.name").fetchall()
    assert dict(rows) == {"scores": 64, "duels": 12, "certified": 2}
    assert first(copy, "SELECT count(*) FROM judgments")[0] > 0
    assert first(copy, "SELECT count(*) FROM generations WHERE round_id IS NULL")[0] > 0


@pytest.mark.parametrize(
    ("campaign", "which", "sentence"),
    [
        ("scores", OTHER_EXAMPLE, "its output is the answer to another prompt"),
        ("scores", OTHER_MODEL, "its output was generated with another model, sampling or seed"),
        ("scores", OTHER_SAMPLING, "its output was generated with another model, sampling or seed"),
        ("certified", OTHER_EXAMPLE, "its output is the answer to another prompt"),
    ],
)
def test_two_texts_that_were_exchanged_are_both_named(copy, campaign, which, sentence):
    swap(copy, campaign, which)
    wrong = found(copy)
    assert [(each.campaign, each.sentence, each.is_wrong) for each in wrong] == [
        (campaign, sentence, True)
    ] * 2


def test_the_place_of_a_mismatch_is_told_in_full(copy):
    swap(copy, "scores", OTHER_EXAMPLE)
    place = first(
        copy,
        "SELECT r.number, x.position, k.name, e.key FROM comparisons x JOIN rounds r ON r.id = x.round_id "
        "JOIN campaigns c ON c.id = r.campaign_id JOIN candidates k ON k.id = x.candidate_a_id "
        "JOIN examples e ON e.id = x.example_id WHERE c.name = 'scores' ORDER BY x.id LIMIT 1",
    )
    round_number, position, candidate, example = place
    assert str(found(copy)[0]) == (
        f"campaign 'scores', round {round_number + 1}, position {position + 1} ({candidate} on {example}): "
        "its output is the answer to another prompt"
    )


DUEL = "SELECT x.id FROM comparisons x JOIN judgments m ON m.comparison_id = x.id LIMIT 1"


def test_the_sides_of_a_duel_that_were_exchanged_are_both_named(copy):
    (duel,) = first(copy, DUEL)
    tamper(
        copy,
        "UPDATE comparisons SET generation_a_id = generation_b_id, generation_b_id = generation_a_id "
        f"WHERE id = {duel}",
    )
    wrong = found(copy)
    assert len([each for each in wrong if each.sentence.startswith("its output")]) == 2
    # The judge's prompts show the answers the other way round.
    assert {each.sentence for each in wrong if "judge" in each.sentence} == {
        "the reply of judge judge is the answer to another prompt"
    }
    assert {each.campaign for each in wrong} == {"duels"}


def test_replies_of_a_judge_that_were_exchanged_are_found(copy):
    (duel,) = first(copy, DUEL)
    tamper(
        copy,
        "UPDATE judgments SET generation_id = (SELECT o.generation_id FROM judgments o WHERE "
        f"o.comparison_id = {duel} AND o.id <> judgments.id) WHERE comparison_id = {duel}",
    )
    # The second update reads what the first one wrote: both judgments now have one reply.
    assert [each.sentence for each in found(copy)] == [
        "the reply of judge judge is the answer to another prompt"
    ]


@pytest.mark.parametrize(
    ("statement", "sentence"),
    [
        (
            "DELETE FROM judgments WHERE id = (SELECT max(id) FROM judgments)",
            "makes a call that is not stored",
        ),
        ("UPDATE comparisons SET generation_b_id = generation_a_id", "belongs to no call of"),
        ("UPDATE judgments SET generation_id = NULL", "the reply of judge judge is missing"),
        ("UPDATE prompts SET text = text || '!'", "is the answer to another prompt"),
        (
            "UPDATE candidates SET prompt = replace(prompt, 'Q ', 'R ')",
            "its output is the answer to another prompt",
        ),
        (
            "UPDATE examples SET fields = replace(fields, '\"6\"', '\"66\"')",
            "its output is the answer to another prompt",
        ),
        ("UPDATE campaigns SET seed = 4", "its output was generated with another model, sampling or seed"),
        ("UPDATE comparisons SET generation_a_id = NULL", "it is scored, but its output is missing"),
        (
            "UPDATE rounds SET examples = replace(examples, '1', '2')",
            "its round planned another example here",
        ),
        (
            "UPDATE comparisons SET candidate_a_id = candidate_b_id, candidate_b_id = candidate_a_id "
            "WHERE candidate_b_id IS NOT NULL",
            "its round planned another candidate here",
        ),
    ],
)
def test_whatever_was_changed_by_hand_is_found(copy, statement, sentence):
    tamper(copy, statement)
    assert any(sentence in each.sentence for each in found(copy))


@pytest.mark.parametrize(
    ("statement", "sentence"),
    [
        ("DELETE FROM examples WHERE key = 'e3'", "its example no longer exists"),
        (
            "UPDATE examples SET fields = replace(fields, 'input', 'asked')",
            "the candidate cannot be read: .*'input'|its example lacks 'input'",
        ),
        ("UPDATE candidates SET model = '{}'", "the candidate cannot be read: KeyError"),
        (
            "UPDATE campaigns SET spec = replace(spec, '\"llm\"', '\"away\"')",
            "its judge cannot be created: .*'away'",
        ),
        (
            "UPDATE campaigns SET spec = json_set(spec, '$.judge_identity.template', 'another one')",
            "its judge differs from the one that the campaign began with",
        ),
    ],
)
def test_what_cannot_be_made_again_is_told_as_not_checked_and_not_as_wrong(copy, statement, sentence):
    tamper(copy, statement)
    told = found(copy)
    assert told
    assert [each for each in told if each.is_wrong] == []
    assert {bool(re.search(sentence, each.sentence)) for each in told} == {True}


def test_judgments_meet_their_comparisons_however_few_rows_are_fetched_at_once(copy, monkeypatch):
    with (
        closing(open_database(f"sqlite:///{copy}", read_only=True)) as database,
        database.reading() as session,
    ):
        (campaign_id,) = first(copy, "SELECT id FROM campaigns WHERE name = 'duels'")
        whole = list(recorded_comparisons.recorded_comparisons(session, campaign_id))
        monkeypatch.setattr(recorded_comparisons, "ROWS_AT_ONCE", 1)
        assert list(recorded_comparisons.recorded_comparisons(session, campaign_id)) == whole
    assert sum(len(each.judgments) for each in whole) == first(copy, "SELECT count(*) FROM judgments")[0]
