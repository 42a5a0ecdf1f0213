from dataclasses import replace
from datetime import timedelta

import numpy as np
import pandas as pd
import pyarrow
import pyarrow.parquet
import pytest
from sqlalchemy import update
from stored_campaigns import NOW, store_campaign

from winnow.storage.errors import CampaignNotFound, SchemaMissing
from winnow.storage.models import Campaign, Decision
from winnow.storage.records.campaigns import candidate_ids, grow_campaign
from winnow.storage.records.record_types import NewCandidate
from winnow.tasks.campaign.earlier_scores import load_ended_table, load_score_table
from winnow.tasks.data.score_tables import ScoreTableError, require_same_examples

NOWHERE = "sqlite:///nowhere.db"
SCORES = [[1.0, 0.0, 0.5], [0.25, np.nan, 1.0]]


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def write_csv(text):
    with open("table.csv", "w", encoding="utf-8") as file:
        file.write(text)


def write_parquet(**columns):
    pyarrow.parquet.write_table(pyarrow.table(columns), "table.parquet")


def load(source, storage=NOWHERE):
    return load_score_table(source, storage)


def refusal(source, storage=NOWHERE):
    with pytest.raises(ScoreTableError) as caught:
        load(source, storage)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_an_npz_file_gives_its_scores_and_the_names_beside_them():
    np.savez("table.npz", scores=np.array(SCORES, dtype=np.float32), models=["one", "two"], other=[1])
    table = load("table.npz")
    assert table.candidates == ("one", "two")
    assert table.examples is None
    assert (table.grid, table.missing.tolist()) == (6, [0.0, 1 / 3])
    np.testing.assert_array_equal(table.scores, SCORES)
    assert table.scores.dtype == np.float64


def test_an_array_of_an_npz_file_can_be_named():
    np.savez("table.npz", true=np.array([[1, 0], [1, 1]], dtype=np.uint8), prompts=["same", "same"])
    table = load("table.npz:true")
    assert table.scores.tolist() == [[1.0, 0.0], [1.0, 1.0]]
    assert table.candidates == ("candidate-1", "candidate-2")


def test_a_csv_file_names_candidates_and_examples():
    write_csv('model,e1,"e,2",e3\n"one, two",1,0,.5\nthree,0.25,,1\n')
    table = load("table.csv")
    assert table.candidates == ("one, two", "three")
    assert table.examples == ("e1", "e,2", "e3")
    np.testing.assert_array_equal(table.scores, SCORES)


@pytest.mark.parametrize("cell", ["", "nan", "NA", "null", " "])
def test_a_cell_without_a_score_is_missing_and_not_zero(cell):
    write_csv(f"model,e1,e2\none,1,{cell}\n")
    assert np.isnan(load("table.csv").scores[0, 1])


def test_a_score_that_rounding_puts_outside_of_the_unit_interval_is_the_bound():
    write_csv("model,e1,e2\none,1.0000000000000002,-3e-17\n")
    assert load("table.csv").scores.tolist() == [[1.0, 0.0]]
    np.savez("table.npz", scores=[[1.0 + 9e-10, 0.5, np.nan]])
    assert load("table.npz").scores[0, 0] == 1.0


def test_a_parquet_file_is_laid_out_like_a_csv_file():
    write_parquet(model=["one", "two"], e1=[1.0, 0.25], e2=[0.0, None], e3=pyarrow.array([0.5, 1.0]))
    table = load("table.parquet")
    assert (table.candidates, table.examples) == (("one", "two"), ("e1", "e2", "e3"))
    np.testing.assert_array_equal(table.scores, SCORES)
    write_parquet(model=["one", "two"], e1=[1, 0], e2=[True, False])
    assert load("table.parquet").scores.tolist() == [[1.0, 1.0], [0.0, 0.0]]


PANDAS = pd.DataFrame({"e1": [1.0, 0.25], "e2": [0.0, np.nan], "e3": [0.5, 1.0]})


@pytest.mark.parametrize(
    ("frame", "names"),
    [
        (PANDAS.set_axis(["one", "two"]), ("one", "two")),
        (PANDAS.set_axis([7, 3]), ("7", "3")),
        (PANDAS.set_axis([0.25, 0.5]), ("0.25", "0.5")),
        (PANDAS.set_axis(["one", "two"]).rename_axis("model"), ("one", "two")),
        (PANDAS.assign(model=["one", "two"]).set_index("model").loc[["two", "one"]], ("two", "one")),
        (pd.concat([pd.Series(["one", "two"], name="model"), PANDAS], axis=1), ("one", "two")),
        (pd.concat([pd.Series(["one", "two"], name="model"), PANDAS], axis=1).loc[[1, 0]], ("two", "one")),
    ],
    ids=["text", "numbers", "fractions", "a name", "other order", "a column", "selected rows"],
)
def test_the_index_of_a_parquet_file_that_pandas_wrote_names_candidates(frame, names):
    frame.to_parquet("table.parquet")
    table = load("table.parquet")
    assert (table.candidates, table.examples) == (names, ("e1", "e2", "e3"))
    np.testing.assert_array_equal(table.scores, SCORES if names[0] != "two" else SCORES[::-1])


def test_an_index_of_several_levels_is_refused():
    PANDAS.set_index([["a", "a"], ["b", "c"]]).to_parquet("table.parquet")
    assert refusal("table.parquet").endswith(
        "the index has 2 levels; join the levels into one column, and use it as the index"
    )


@pytest.mark.parametrize("name", ["table.csv", "table.parquet"])
@pytest.mark.parametrize("first", [[0.382, 0.5], [1.0, 0.0], [np.nan, 0.25], [1e-7, 0.5]], ids=str)
def test_scores_in_the_place_of_names_are_refused(name, first):
    frame = PANDAS.assign(e1=first)
    write = frame.to_csv if name.endswith("csv") else frame.to_parquet
    write(name, index=False)
    told = refusal(name)
    assert told.startswith(f"{name}: the first column, 'e1', contains ")
    assert "write the names before the scores (with pandas: make them the index" in told


@pytest.mark.parametrize("names", [("0", "1"), ("0.5", "two"), ("0.5", "1.5")], ids=str)
def test_names_may_be_numbers_that_are_no_scores(names):
    write_csv(f"model,e1\n{names[0]},0.1\n{names[1]},0.2\n")
    assert load("table.csv").candidates == names


def test_rows_can_be_picked():
    write_csv("model,e1\na,0.1\nb,0.2\nc,0.3\n")
    picked = load("table.csv").rows(np.array([2, 0]))
    assert picked.candidates == ("c", "a")
    assert picked.scores.tolist() == [[0.3], [0.1]]


BAD_CSV = {
    "not a number": ("model,e1\none,yes\n", "table.csv, line 2, column 'e1': 'yes' is not a number; write"),
    "too high": ("model,e1,e2\none,1,2\n", "candidate 'one', example 'e2': the score is 2; scale all scores"),
    "infinite": ("model,e1\none,-inf\n", "the score is -inf"),
    "a cell too few": ("model,e1,e2\none,1\n", "table.csv, line 2: 2 cells under 3 column names"),
    "two columns alike": ("model,e1,e1\none,1,1\n", "two columns 'e1'; rename one"),
    "two rows alike": ("model,e1\none,1\none,0\n", "two candidates called 'one'; rename one"),
    "no rows": ("model,e1\n", "0 candidates x 0 examples"),
    "no examples": ("model\none\n", "1 candidates x 0 examples"),
}


@pytest.mark.parametrize(("text", "told"), BAD_CSV.values(), ids=BAD_CSV)
def test_a_bad_csv_file_is_refused_with_the_place_and_the_remedy(text, told):
    write_csv(text)
    assert told in refusal("table.csv")


BAD_ARRAYS = {
    "another name": ({"score": SCORES}, "table.npz has no array 'scores'; name one as table.npz:KEY"),
    "a vector": ({"scores": [1.0]}, "array 'scores' is of shape (1,)"),
    "text": ({"scores": [["a"]]}, "type <U1; give a matrix of numbers, candidates x examples"),
    "too low": ({"scores": [[0.5, -0.5]]}, "candidate 'candidate-1', example 2: the score is -0.5"),
    "too few names": (
        {"scores": SCORES, "candidates": ["one"], "models": ["one", "two"]},
        "table.npz: array 'candidates' has shape (1,), but there are 2 rows of scores; give a name for each",
    ),
    "two names alike": ({"scores": SCORES, "candidates": ["one", "one"]}, "two candidates called 'one'"),
    "pickled": ({"scores": np.array([[None]])}, "is not a .npz file of plain arrays"),
}


@pytest.mark.parametrize(("arrays", "told"), BAD_ARRAYS.values(), ids=BAD_ARRAYS)
def test_a_bad_npz_file_is_refused_with_the_place_and_the_remedy(arrays, told):
    np.savez("table.npz", **arrays)
    assert told in refusal("table.npz")


@pytest.mark.parametrize("name", ["table.npz", "table.parquet", "table.csv"])
def test_a_file_that_is_not_what_its_suffix_says_is_refused(name):
    with open(name, "wb") as file:
        file.write(b"\xff\x00 nonsense")
    assert name in refusal(name)


def test_a_csv_file_with_semicolons_in_the_place_of_commas_is_told_so():
    write_csv("model;e1;e2\none;1;0\n")
    assert refusal("table.csv") == (
        "table.csv, line 2: there are no scores after the name; its columns are separated by semicolons: "
        "save it with commas between them"
    )


def test_a_parquet_column_of_text_is_refused():
    write_parquet(model=["one"], e1=["yes"])
    assert "column 'e1' contains string, not numbers" in refusal("table.parquet")


def test_an_unknown_suffix_or_a_missing_file_is_refused_with_the_nearest():
    np.savez("tables.npz", scores=SCORES)
    assert "did you mean 'tables.npz'?" in refusal("table.npz")
    assert "unknown suffix '.xlsx'" in refusal("table.xlsx")
    assert "there is no file absent.csv (working directory " in refusal("absent.csv")


def test_tables_of_other_examples_are_refused():
    write_csv("model,e1,e2\none,1,1\n")
    table = load("table.csv")
    np.savez("short.npz", scores=[[1.0]])
    np.savez("unnamed.npz", scores=[[1.0, 0.0]])
    write_parquet(model=["two"], e1=[1.0], e3=[1.0])
    require_same_examples(table, table)
    require_same_examples(table, load("unnamed.npz"))
    with pytest.raises(ScoreTableError, match=r"short\.npz has 1 examples, table\.csv has 2; give both"):
        require_same_examples(table, load("short.npz"))
    with pytest.raises(ScoreTableError, match=r"example 2 is 'e3' in table\.parquet and 'e2' in"):
        require_same_examples(table, load("table.parquet"))


def fill(campaign, arms=(0, 1, 2), **fields):
    """Score these arms on every example, in the order of the grid."""
    pairs = [(arm, example) for arm in arms for example in range(5)]
    round_ = campaign.plan(0, [arm for arm, _ in pairs], [example for _, example in pairs])
    scores = [(arm + example) / 8 for arm, example in pairs]
    campaign.finish(round_, scores, best=2, stop=True, reason="exhausted", **fields)


@pytest.mark.parametrize("loader", [load_score_table, load_ended_table])
def test_a_campaign_is_a_table_which_says_that_it_lacks_pairs(database, campaign, loader):
    campaign.finish(campaign.plan(0, [0, 1, 1], [4, 0, 1]), [1.0, 0.25, None], best=0)
    campaign.finish(campaign.plan(1, [2], [3]), [0.5], best=0, stop=True, reason="budget")
    table = loader("campaign:letters", database.url)
    expected = np.full((3, 5), np.nan)
    expected[0, 4], expected[1, 0], expected[2, 3] = 1.0, 0.25, 0.5
    np.testing.assert_array_equal(table.scores, expected)
    assert table.candidates == ("a", "b", "c")
    assert table.examples == ("e0", "e1", "e2", "e3", "e4")
    assert (table.is_partial, table.filled) == (True, 3 / 15)


def test_a_campaign_that_asked_for_every_pair_is_a_full_table_also_where_some_are_unscored(
    database, campaign
):
    campaign.finish(campaign.plan(0, [0] * 5 + [1] * 5 + [2] * 5, [*range(5)] * 3), [*[0.5] * 14, None])
    table = load("campaign:letters", database.url)
    assert (table.is_partial, table.filled) == (False, 14 / 15)


def test_a_dropped_candidate_is_left_out_where_all_others_met_every_example(database, campaign):
    fill(campaign, arms=(0, 2), status=["tied", "dropped", "best"])
    table = load("campaign:letters", database.url)
    assert (table.candidates, table.is_partial, table.filled) == (("a", "c"), False, 1.0)
    np.testing.assert_array_equal(table.scores[1], (2 + np.arange(5)) / 8)


def test_without_a_decision_to_drop_it_a_candidate_that_lacks_pairs_stays(database, campaign):
    fill(campaign, arms=(0, 2), status=["tied", "active", "best"])
    table = load("campaign:letters", database.url)
    assert (table.candidates, table.is_partial) == (("a", "b", "c"), True)


def test_the_full_table_of_a_campaign_is_that_of_the_one_that_filled_it(database, campaign):
    campaign.finish(campaign.plan(0, [0], [0]), [1.0], best=0, stop=True, reason="confident")
    full = store_campaign(database, "letters-exhaustive", delta=None)
    assert load("campaign:letters", database.url).source == "campaign:letters"  # nothing is there yet
    fill(full)
    table = load("campaign:letters", database.url)
    assert (table.source, table.is_partial, table.filled) == ("campaign:letters-exhaustive", False, 1.0)
    assert load_ended_table("campaign:letters", database.url).source == "campaign:letters"


@pytest.mark.parametrize("other", ["its scores differ", "it is not full"])
def test_a_campaign_of_that_name_that_does_not_fill_the_table_is_not_taken_for_it(database, campaign, other):
    campaign.finish(campaign.plan(0, [0], [0]), [1.0], best=0, stop=True, reason="confident")
    full = store_campaign(database, "letters-exhaustive")
    if other == "its scores differ":
        fill(full)
        with database.writing() as session:
            session.get_one(Campaign, full.record.id).spec = {"judge": {"type": "numeric"}}
    else:
        fill(full, arms=(0, 1))
    assert load("campaign:letters", database.url).source == "campaign:letters"


def test_a_campaign_without_a_finished_round_has_no_table(database, campaign):
    assert "has no finished round yet; resume it first: winnow resume letters" in refusal(
        "campaign:letters", database.url
    )


@pytest.mark.parametrize("loader", [load_score_table, load_ended_table])
def test_a_table_in_which_nobody_has_a_score_is_refused(database, campaign, loader):
    campaign.finish(campaign.plan(0, [0, 1], [0, 0]), [None, None], stop=True, reason="failed")
    with pytest.raises(ScoreTableError) as refused:
        loader("campaign:letters", database.url)
    assert str(refused.value) == (
        "campaign 'letters' has no scores (`winnow status letters` shows why); name another campaign or table"
    )
    write_csv("model,e1,e2\none,,\ntwo,NA,\n")
    with pytest.raises(ScoreTableError) as refused:
        loader("table.csv", NOWHERE)
    assert str(refused.value) == "table.csv has no scores; fill them in, or name another table"


def test_a_history_is_of_a_campaign_that_has_ended(database, campaign):
    campaign.finish(campaign.plan(0, [0], [0]), [1.0], best=0)
    with pytest.raises(ScoreTableError, match="is not finished; end it first: winnow resume letters"):
        load_ended_table("campaign:letters", database.url)
    assert load("campaign:letters", database.url).is_partial


def test_a_campaign_that_went_on_is_the_history_that_it_was_to_who_had_begun_by_then(database, campaign):
    campaign.finish(campaign.plan(0, [0, 1], [4, 0]), [1.0, 0.25], best=0, stop=True, reason="budget")
    before = load_ended_table("campaign:letters", database.url)
    store_campaign(database, "learner")
    with database.writing() as session:
        joins = NewCandidate(name="d", model={"name": "m", "provider": "vllm"}, prompt={}, sampling={})
        grow_campaign(session, campaign.record.id, spec=campaign.record.spec, candidates=[joins])
        campaign = replace(campaign, candidate_ids=candidate_ids(session, campaign.record.id))
    campaign.finish(campaign.plan(1, [2], [3]), [0.5], best=0, stop=True, reason="budget")
    with database.writing() as session:
        session.execute(
            update(Decision).where(Decision.id == 2).values(decided_at=NOW + timedelta(seconds=1))
        )
    now = load_ended_table("campaign:letters", database.url, "nobody")
    assert (now.candidates, np.isfinite(now.scores).sum()) == (("a", "b", "c", "d"), 3)
    campaign.plan(2, [0], [0])
    then = load_ended_table("campaign:letters", database.url, "learner")
    np.testing.assert_array_equal(then.scores, before.scores)
    assert (then.candidates, then.is_partial) == (before.candidates, True)
    with pytest.raises(ScoreTableError, match="is not finished"):
        load_ended_table("campaign:letters", database.url, "nobody")


def test_what_a_learner_knows_of_a_campaign_does_not_change_with_clocks(database, campaign):
    campaign.finish(campaign.plan(0, [0, 1], [4, 0]), [1.0, 0.25], best=0, stop=True, reason="budget")
    before = load_ended_table("campaign:letters", database.url)
    assert before.last_round == 0
    learner = store_campaign(database, "learner")
    with database.writing() as session:
        spec = {**learner.record.spec, "history_rounds": {"campaign:letters": 0}}
        session.execute(update(Campaign).where(Campaign.id == learner.record.id).values(spec=spec))
    campaign.finish(campaign.plan(1, [2], [3]), [0.5], best=0, stop=True, reason="budget")
    with database.writing() as session:
        session.execute(update(Decision).values(decided_at=NOW - timedelta(hours=1)))
    then = load_ended_table("campaign:letters", database.url, "learner")
    np.testing.assert_array_equal(then.scores, before.scores)
    assert then.last_round == 0


def test_a_learner_that_names_no_rounds_is_told_of_none(database, campaign):
    campaign.finish(campaign.plan(0, [0, 1], [4, 0]), [1.0, 0.25], best=0, stop=True, reason="budget")
    store_campaign(database, "learner")
    assert load_ended_table("campaign:letters", database.url, "learner").last_round is None


def test_a_campaign_that_a_spent_limit_ended_is_a_history(database):
    by_tokens = store_campaign(database, budget={"comparisons": 100, "tokens": 5})
    by_tokens.finish(by_tokens.plan(0, [0, 1], [0, 0]), [1.0, 0.0], best=0)
    assert load_ended_table("campaign:letters", database.url).is_partial
    # What was planned before is finished before it ends.
    by_tokens.plan(1, [0], [1])
    with pytest.raises(ScoreTableError, match="is not finished"):
        load_ended_table("campaign:letters", database.url)


def test_an_unknown_campaign_or_database_is_named(database, campaign, tmp_path):
    with pytest.raises(CampaignNotFound, match="there are: letters"):
        load("campaign:latters", database.url)
    (tmp_path / "empty.db").touch()
    with pytest.raises(SchemaMissing, match="holds no Winnow results"):
        load("campaign:letters", "sqlite:///empty.db")
