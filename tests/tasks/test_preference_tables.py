import numpy as np
import pytest
from stored_campaigns import store_campaign

from winnow.tasks.campaign.look import Look
from winnow.tasks.data.preference_tables import load_preference_table
from winnow.tasks.data.score_tables import ScoreTableError
from winnow.tasks.objectives.best_duel.views import strengths

WINS = np.array([[0.0, 0.75, np.nan], [0.25, 0.0, 0.6], [np.nan, 0.4, 0.0]])


def load(source, database=None):
    return load_preference_table(str(source), database.url if database else "sqlite:///none.db")


def test_an_array_has_names_and_features_beside_it(tmp_path):
    path = tmp_path / "wins.npz"
    features = np.arange(6).reshape(3, 2)
    np.savez(path, preferences=WINS, features=features, names=np.array(["x", "y", "z"]))
    table = load(path)
    assert table.candidates == ("x", "y", "z")
    np.testing.assert_array_equal(table.preferences, np.where(np.eye(3, dtype=bool), 0.5, WINS))
    np.testing.assert_array_equal(table.features, features)
    np.savez(path, mine=WINS)
    assert load(f"{path}:mine").features is None
    with pytest.raises(ScoreTableError, match="has no array 'preferences'"):
        load(path)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"preferences": WINS[:2]}, "has 2 rows and 3 columns of numbers; give a row and"),
        ({"preferences": np.full((1, 1), 0.5)}, "at least 2 candidates"),
        ({"preferences": np.full((2, 2), 0.6)}, "preferred to 'candidate-2' at 0.6"),
        ({"preferences": [[0.5, np.nan], [0.5, 0.5]]}, "at nan, 'candidate-2' to 'candidate-1' at 0.5"),
        ({"preferences": [[0.5, 1.2], [-0.2, 0.5]]}, "the score is 1.2; scale all scores"),
        ({"features": np.zeros((2, 2))}, r"features are of shape \(2, 2\) and type float64; give a row"),
        ({"features": np.array(["a", "b", "c"])}, "give a row of numbers for each candidate"),
    ],
)
def test_what_is_no_table_of_preferences_is_refused(tmp_path, change, told):
    np.savez(tmp_path / "wins.npz", **({"preferences": WINS} | change))
    with pytest.raises(ScoreTableError, match=told):
        load(tmp_path / "wins.npz")


@pytest.fixture
def played(database):
    campaign = store_campaign(database, "letters", objective="best-duel")
    outcomes = [(1.0, []), (0.5, []), (None, []), (1.0, [])]
    campaign.finish_duels(campaign.plan(0, [[0, 1], [1, 0], [0, 2], [0, 1]], [0, 1, 2, 3]), outcomes)
    return campaign


def test_a_campaign_of_duels_is_a_table_with_holes_where_nobody_met(database, played):
    table = load("campaign:letters", database)
    assert table.candidates == ("a", "b", "c")
    expected = [[0.5, 5 / 6, np.nan], [1 / 6, 0.5, np.nan], [np.nan, np.nan, 0.5]]
    np.testing.assert_allclose(table.preferences, expected)
    store_campaign(database, "scores")
    with pytest.raises(ScoreTableError, match="has objective best-mean and so no duels"):
        load("campaign:scores", database)


def test_strengths_come_strongest_first_and_unknown_ones_last(database, played):
    with database.reading() as session:
        rows = strengths(Look(session, played.record))
    assert [row["candidate"] for row in rows] == ["a", "b", "c"]
    assert rows[0]["strength"] == pytest.approx(-rows[1]["strength"])
    assert rows[0]["lower"] < rows[0]["strength"] < rows[0]["upper"]
    assert rows[2] == {"candidate": "c", "strength": None, "lower": None, "upper": None}
