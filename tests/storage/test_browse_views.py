"""The browser of comparisons: filters, pages, one comparison with its judgments, and a bound on the wait."""

import pytest
from stored_campaigns import NOW, generation, judgment, new_database, store_campaign

from winnow.storage.engine.statements import give_up_after, run_sql
from winnow.storage.errors import QueryRefused
from winnow.storage.queries import browse as browse_views
from winnow.storage.queries.browse import Filters
from winnow.storage.records import generations as generation_records


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
