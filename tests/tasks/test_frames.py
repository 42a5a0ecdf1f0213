"""Frames for notebooks: the same types whatever the rows, and the views in SQL for other tools."""

import sqlite3

import pandas as pd
import pytest
from stored_campaigns import NOW, new_database, store_first_round

from winnow.storage.errors import CampaignNotFound, QueryRefused, SchemaMissing
from winnow.tasks.errors import SpecError
from winnow.tasks.queries.frames import campaigns, frame, sql_frame


@pytest.fixture
def storage(tmp_path):
    """The URL of a database with a campaign of two rounds, the last one still to be judged."""
    database = new_database(tmp_path / "results.db")
    campaign = store_first_round(database)
    campaign.plan(1, [2], [0])
    database.close()
    return f"sqlite:///{tmp_path / 'results.db'}"


def dtypes(made):
    return {name: str(dtype) for name, dtype in made.dtypes.items()}


def test_columns_have_their_types_also_where_they_hold_nothing(storage):
    assert dtypes(frame(storage, "letters", "rounds")) == {
        "round": "Int64",
        "comparisons": "Int64",
        "scored": "Int64",
        "candidates": "Int64",
        "best": "string",
        "stop": "boolean",
        "reason": "string",
        "planned_at": "datetime64[us, UTC]",
        "decided_at": "datetime64[us, UTC]",
    }
    leaderboard = dtypes(frame(storage, "letters", "leaderboard"))
    assert (leaderboard["best"], leaderboard["estimate"]) == ("boolean", "float64")
    comparisons = dtypes(frame(storage, "letters", "comparisons"))
    assert (comparisons["detail"], comparisons["outcome"]) == ("string", "float64")


def test_what_is_missing_is_missing_and_times_are_exact(storage):
    rounds = frame(storage, "letters", "rounds")
    assert rounds["stop"].tolist() == [False, pd.NA]
    assert rounds["decided_at"].isna().tolist() == [False, True]
    assert rounds["planned_at"][0].to_pydatetime() == NOW
    assert frame(storage, "letters", "comparisons")["outcome"].isna().tolist() == [False, False, True]


def test_comparisons_can_be_limited_to_a_candidate_and_a_number(storage):
    assert frame(storage, "letters", "comparisons", candidate="a")["example"].tolist() == ["e0", "e1"]
    assert len(frame(storage, "letters", "comparisons", limit=1)) == 1


def test_a_view_without_rows_is_an_empty_frame(storage):
    assert frame(storage, "letters", "reuse").empty
    judgments = frame(storage, "letters", "judgments")
    assert judgments.empty
    assert dtypes(judgments)["round"] == "Int64"


@pytest.mark.parametrize(
    ("name", "view", "options", "error", "said"),
    [
        ("letter", "curve", {}, CampaignNotFound, "no campaign is named 'letter'; there are: letters"),
        ("letters", "curves", {}, SpecError, "unknown view 'curves'; did you mean 'curve'?"),
        ("letters", "curve", {"limit": 1}, SpecError, "curve cannot be limited to a candidate or a number"),
        ("letters", "comparisons", {"limit": 0}, SpecError, "limit is 0; give a whole number of at least 1"),
        ("letters", "strengths", {}, SpecError, "only best-duel campaigns have the view strengths"),
        (
            "letters",
            "comparisons",
            {"candidate": "d"},
            SpecError,
            "'letters' has no candidate 'd'; winnow show",
        ),
    ],
)
def test_what_does_not_exist_is_refused_in_a_sentence(storage, name, view, options, error, said):
    with pytest.raises(error) as refused:
        frame(storage, name, view, **options)
    assert str(refused.value).startswith(said)


def test_a_database_that_is_not_one_of_ours_is_refused(tmp_path):
    sqlite3.connect(tmp_path / "empty.db").close()
    with pytest.raises(SchemaMissing):
        campaigns(f"sqlite:///{tmp_path / 'empty.db'}")


def test_all_campaigns_come_with_where_they_stand(storage):
    found = campaigns(storage)
    assert found[["campaign", "best", "comparisons", "estimate"]].values.tolist() == [
        ["letters", "a", 3, 0.5]
    ]
    assert dtypes(found)["created_at"] == "datetime64[us, UTC]"


def test_sql_is_answered_with_the_types_of_its_values(storage):
    found = sql_frame(
        storage, "SELECT 1 AS n, 0.5 AS n, 'x' AS t, NULL AS gap UNION SELECT 2, 1, NULL, NULL ORDER BY 1"
    )
    assert found.columns.tolist() == ["n", "n", "t", "gap"]
    assert [str(dtype) for dtype in found.dtypes] == ["Int64", "float64", "string", "object"]
    assert found.iloc[:, 1].tolist() == [0.5, 1.0]
    assert sql_frame(storage, "SELECT name FROM campaigns WHERE 1 = 0").columns.tolist() == ["name"]


def test_sql_that_writes_is_refused(storage):
    with pytest.raises(QueryRefused, match="statements can only read: write one SELECT"):
        sql_frame(storage, "DELETE FROM campaigns")


def test_other_tools_read_the_views_in_sql_by_a_plain_connection(storage):
    connection = sqlite3.connect(f"file:{storage.removeprefix('sqlite:///')}?mode=ro", uri=True)
    board = pd.read_sql("SELECT * FROM v_leaderboard WHERE campaign = 'letters'", connection)
    curve = pd.read_sql("SELECT * FROM v_curve", connection)
    connection.close()
    ours = frame(storage, "letters", "leaderboard")
    assert board.sort_values("position")["estimate"].fillna(-1).tolist() == [0.5, -1, -1]
    assert set(board["candidate"]) == set(ours["candidate"])
    assert curve["comparisons"].tolist() == frame(storage, "letters", "curve")["comparisons"].tolist()
