"""The browser of comparisons: filters, pages, one comparison with its judgments, and a bound on the wait."""

import json

import pytest
from stored_campaigns import NOW, generation, judgment, new_database, store_campaign

from winnow.storage.engine.statements import give_up_after, run_sql
from winnow.storage.errors import QueryRefused
from winnow.storage.models import Example
from winnow.storage.queries import browse as browse_views
from winnow.storage.queries import campaign_views
from winnow.storage.queries.browse import Filters
from winnow.storage.queries.objective.judgment_pairs import annotators
from winnow.storage.records import annotations, notes
from winnow.storage.records import generations as generation_records
from winnow.storage.records.notes import NoteRecord
from winnow.storage.records.row_counts import wrong_counts


@pytest.fixture
def duelled(database):
    return duels_in(database)


@pytest.fixture
def kept_duels(kept, backend):
    return kept(backend, duels_in)


def duels_in(database):
    """Four duels in two rounds: a beats b, b loses to a after two judgments, a ties c, b and c unscored."""
    campaign = store_campaign(database, objective="best-duel")
    first = campaign.plan(0, [[0, 1], [1, 0]], [0, 1])
    campaign.finish_duels(first, [(1.0, []), (0.0, swapped_judgments(campaign, first))])
    campaign.finish_duels(campaign.plan(1, [[0, 2], [1, 2]], [2, 3]), [(0.5, []), (None, [])])
    return campaign


def swapped_judgments(campaign, round_):
    with campaign.database.writing() as session:
        made = [generation("reply", text="B, I think", prompt="which?")]
        generation_records.add_generations(session, round_.id, made, NOW)
        reply = generation_records.texts_by_key(session, ["reply"])["reply"].id
    return [judgment("original", 0.0, reply=reply), judgment("swapped", "verdict_missing")]


def places(campaign, filters=Filters(), *, before=None, most=10):  # noqa: B008 -- frozen
    with campaign.database.reading() as session:
        rows = browse_views.comparisons(
            session, campaign.record.id, filters, before=before, most=most, characters=5
        )
    return [(row["round"], row["position"]) for row in rows]


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        (Filters(), [(1, 1), (1, 0), (0, 1), (0, 0)]),
        (Filters(candidate="c"), [(1, 1), (1, 0)]),
        (Filters(candidate="a"), [(1, 0), (0, 1), (0, 0)]),
        (Filters(among=("c", "nobody")), [(1, 1), (1, 0)]),
        (Filters(among=()), []),
        (Filters(kind="failures"), [(1, 1)]),
        (Filters(kind="failures", candidate="b"), [(1, 1), (0, 1), (0, 0)]),
        (Filters(kind="failures", candidate="a"), []),
        (Filters(kind="differs"), [(1, 1), (1, 0), (0, 1), (0, 0)]),
        (Filters(kind="noted"), []),
        (Filters(judge="llm"), [(1, 1), (1, 0), (0, 1), (0, 0)]),
        (Filters(judge="j"), [(0, 1)]),
        (Filters(lowest=0.5), [(1, 0), (0, 0)]),
        (Filters(lowest=0.5, highest=0.9), [(1, 0)]),
        (Filters(is_scored=True), [(1, 0), (0, 1), (0, 0)]),
        (Filters(is_scored=False), [(1, 1)]),
        (Filters(reason="verdict_missing"), [(1, 1)]),
        (Filters(reason="nothing"), []),
        (Filters(words="e3"), [(1, 1)]),
        (Filters(words="TEXT OF letters-1"), [(1, 1), (1, 0)]),
        (Filters(words="letters-0-1-b"), [(0, 1)]),
        (Filters(words="100%"), []),
        (Filters(words="letters_0"), []),
        (Filters(words="a%é/" * 50_000), []),
    ],
)
def test_a_filter_keeps_what_is_like_it_newest_first(kept_duels, filters, found):
    assert places(kept_duels, filters) == found


@pytest.fixture
def kept_scores(kept, backend):
    return kept(backend, scores_in)


def scores_in(database):
    """Scores on three examples: all alike on e0, one lower on e1, one missing on e2; e3 is another's."""
    campaign = store_campaign(database)
    outcomes = {(0, 0): 1.0, (1, 0): 1.0, (0, 1): 0.4, (1, 1): 1.0, (0, 2): None, (1, 2): 1.0, (2, 3): 0.5}
    arms, examples = zip(*outcomes, strict=True)
    campaign.finish(campaign.plan(0, arms, examples), list(outcomes.values()))
    other = store_campaign(database, "other")  # on the same examples
    other.finish(other.plan(0, [0], [0]), [0.0])
    with database.writing() as session:
        session.connection().exec_driver_sql("UPDATE generations SET text = 'the same'")
    return campaign


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        (Filters(kind="failures"), [2, 4]),
        (Filters(kind="failures", candidate="b"), []),
        (Filters(kind="differs"), [2, 3, 4, 5]),
        (Filters(kind="differs", candidate="a"), [2, 4]),
        (Filters(among=("b", "c")), [1, 3, 5, 6]),
    ],
)
def test_failures_and_differing_candidates_are_found_among_scores(kept_scores, filters, found):
    assert sorted(position for _, position in places(kept_scores, filters)) == found


def test_another_output_differs_though_the_score_is_the_same(database):
    campaign = scores_in(database)
    with database.writing() as session:
        session.connection().exec_driver_sql("UPDATE generations SET text = 'another' WHERE id = 1")
    assert sorted(position for _, position in places(campaign, Filters(kind="differs")))[:2] == [0, 1]


def test_of_a_long_input_and_target_the_beginning_is_read(database):
    campaign = scores_in(database)
    long = {"input": "é" * 100_000, "other": "x" * 100_000}
    with campaign.database.writing() as session:
        example = session.get(Example, campaign.example_ids[0])
        example.fields, example.targets = long, ["ü" * 100_000, "b", "c"]
        session.get(Example, campaign.example_ids[1]).fields = {"question": "ä" * 100_000}
        session.get(Example, campaign.example_ids[2]).fields = {"input": {"a": 1}}
    with campaign.database.reading() as session:
        rows = browse_views.comparisons(
            session, campaign.record.id, Filters(candidate="a"), before=None, most=9, characters=5
        )
        few = browse_views.beginnings(session, [row["id"] for row in rows], characters=5)
    third, second, first = rows
    assert (first["input"], first["target"], first["more_targets"]) == ("ééééé", "üüüüü", 2)
    assert second["input"] == '{"que'
    assert third["input"].startswith('{"a"')
    assert not {"fields", "targets"} & {*first}
    with campaign.database.reading() as session:
        exported = {
            row["position"]: (row["input"], row["target"])
            for row in campaign_views.comparisons(session, campaign.record.id, candidate="a")
        }
    assert exported[0][0] == "é" * 100_000
    assert json.loads(exported[0][1]) == ["ü" * 100_000, "b", "c"]
    assert json.loads(exported[2][0]) == {"question": "ä" * 100_000}
    assert (json.loads(exported[4][0]), exported[4][1]) == ({"a": 1}, "x")
    assert {id_: row["input"] for id_, row in few.items()} == {row["id"]: row["input"] for row in rows}


def test_a_note_is_stored_replaced_found_and_removed(database):
    campaign = scores_in(database)
    with campaign.database.writing() as session:
        first, second = [
            row["id"]
            for row in browse_views.comparisons(
                session, campaign.record.id, Filters(), before=None, most=2, characters=1
            )
        ]
        notes.set_note(session, first, NoteRecord(is_starred=True, text="", annotator="Ann"), NOW)
        notes.set_note(session, second, NoteRecord(is_starred=False, text="odd\0", annotator="Ann"), NOW)
        notes.set_note(session, first, NoteRecord(is_starred=True, text="why?", annotator="Ben"), NOW)
    with campaign.database.reading() as session:
        assert notes.note_of(session, first) == NoteRecord(is_starred=True, text="why?", annotator="Ben")
        assert notes.note_of(session, second).text == "odd\N{REPLACEMENT CHARACTER}"
        # Nobody judged anything.
        assert annotations.tasks(session, campaign.record.id) == []
        assert annotations.annotators(session, campaign.record.id) == []
        assert annotations.lacking(session, campaign.record.id) == 0
        assert annotators(session, campaign.record.id) == []
        assert wrong_counts(session) == []
    assert len(places(campaign, Filters(kind="noted"))) == 2
    with campaign.database.writing() as session:
        notes.set_note(session, first, NoteRecord(is_starred=False, text="", annotator="Ben"), NOW)
    assert len(places(campaign, Filters(kind="noted"))) == 1
    with campaign.database.reading() as session:
        assert wrong_counts(session) == []
        assert session.connection().exec_driver_sql("SELECT count(*) FROM annotations").scalar() == 1


def test_pages_follow_each_other_without_gap_or_repetition(kept_duels):
    first = places(kept_duels, most=3)
    assert first + places(kept_duels, before=first[-1], most=3) == places(kept_duels)


def test_another_campaign_of_the_database_is_not_looked_into(duelled):
    other = store_campaign(duelled.database, "other")
    other.finish(other.plan(0, [0], [0]), [1.0])
    assert places(other) == [(0, 0)]
    with duelled.database.reading() as session:
        (row,) = browse_views.comparisons(
            session, other.record.id, Filters(), before=None, most=1, characters=5
        )
        assert browse_views.comparison(session, duelled.record.id, row["id"], characters=5) is None
        assert browse_views.comparison(session, other.record.id, row["id"], characters=5)["text"] == "text "


def test_the_choices_are_what_the_campaign_has(duelled):
    with duelled.database.reading() as session:
        found = browse_views.choices(session, duelled.record.id)
    assert found == browse_views.Choices(
        candidates=["a", "b", "c"], judges=["j", "llm"], reasons=["verdict_missing"]
    )


def test_the_choices_are_those_of_the_newest_comparisons(duelled, monkeypatch):
    monkeypatch.setattr(browse_views, "LOOKED_THROUGH", 2)
    with duelled.database.reading() as session:
        assert browse_views.choices(session, duelled.record.id).judges == ["llm"]


def test_one_comparison_comes_with_both_texts_and_all_its_judgments(duelled):
    with duelled.database.reading() as session:
        (row,) = browse_views.comparisons(
            session, duelled.record.id, Filters(judge="j"), before=None, most=5, characters=4
        )
        whole = browse_views.comparison(session, duelled.record.id, row["id"], characters=None)
        played = browse_views.judgments(session, row["id"], characters=3)
    assert (row["text"], row["text_b"]) == ("text", "text")
    assert (whole["text"], whole["text_b"]) == ("text of letters-0-1-a", "text of letters-0-1-b")
    assert (whole["fields"], whole["targets"], whole["label"]) == ({"input": "1"}, ["x"], None)
    assert (whole["model"], whole["seconds_b"], whole["text_length"]) == ("m", 0.25, 21)
    assert [
        (each["presentation_order"], each["verdict"], each["reason"], each["reply"]) for each in played
    ] == [
        ("original", 0.0, None, "B, "),
        ("swapped", None, "verdict_missing", None),
    ]
    assert (played[0]["reply_length"], played[0]["prompt"]) == (10, "whi")


def test_the_columns_of_all_tables_are_listed(duelled):
    with duelled.database.reading() as session:
        found = browse_views.columns(session)
    (verdict,) = [row for row in found if (row["table"], row["column"]) == ("judgments", "verdict")]
    assert verdict["type"] in ("FLOAT", "DOUBLE PRECISION")
    assert found == sorted(found, key=lambda row: row["table"])


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"


def test_an_endless_statement_is_broken_off(duelled):
    with (
        duelled.database.reading() as session,
        give_up_after(session, 0.1),
        pytest.raises(QueryRefused, match=r"interrupted|timeout"),
    ):
        run_sql(session, ENDLESS)


def test_a_search_that_takes_too_long_says_so_and_the_next_one_may_take_its_time(tmp_path, monkeypatch):
    duelled = duels_in(new_database(tmp_path / "winnow.db"))
    monkeypatch.setattr("winnow.storage.engine.statements.STEPS_BETWEEN_CLOCKS", 1)
    with duelled.database.reading() as session:
        with (
            give_up_after(session, -1.0),
            pytest.raises(QueryRefused, match="the search was aborted"),
        ):
            browse_views.choices(session, duelled.record.id)
        assert browse_views.choices(session, duelled.record.id).candidates == ["a", "b", "c"]
