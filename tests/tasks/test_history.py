import numpy as np
import pytest

from winnow.tasks.campaign.earlier_scores import load_history
from winnow.tasks.data.datasets import Dataset, Example
from winnow.tasks.errors import SpecError

NOWHERE = "sqlite:///none.db"


@pytest.fixture
def dataset():
    examples = tuple(Example(key=key, fields={"input": key}, targets=("x",)) for key in ("a", "b", "c"))
    return Dataset(name="d", path="d.jsonl", examples=examples, fingerprint="0" * 64)


def test_tables_that_name_their_examples_are_matched_by_id(tmp_path, dataset):
    table = tmp_path / "old.csv"
    table.write_text("model,c,z,a\nm1,0.25,1,0\nm2,,1,1\n")
    history = load_history([str(table)], NOWHERE, dataset)
    np.testing.assert_array_equal(history.scores, [[0.0, np.nan, 0.25], [1.0, np.nan, np.nan]])


def test_tables_without_names_are_taken_in_order_and_stacked(tmp_path, dataset):
    np.savez(tmp_path / "one.npz", scores=np.eye(3)[:2])
    np.savez(tmp_path / "two.npz", scores=np.ones((1, 3)))
    history = load_history([str(tmp_path / "one.npz"), str(tmp_path / "two.npz")], NOWHERE, dataset)
    np.testing.assert_array_equal(history.scores, [[1, 0, 0], [0, 1, 0], [1, 1, 1]])
    assert history.identity != load_history([str(tmp_path / "one.npz")], NOWHERE, dataset).identity
    assert "history_rounds" not in history.identity


@pytest.mark.parametrize(
    ("content", "told"),
    [("model,x,y\nm,1,1\n", "no example of d.jsonl"), ("model,a\nm,two\n", "'two' is not a number")],
)
def test_a_table_that_says_nothing_about_the_examples_is_refused(tmp_path, dataset, content, told):
    table = tmp_path / "old.csv"
    table.write_text(content)
    with pytest.raises(SpecError, match=told) as refused:
        load_history([str(table)], NOWHERE, dataset)
    assert refused.value.path == "history[0]"


def test_a_table_of_another_width_is_refused(tmp_path, dataset):
    np.savez(tmp_path / "one.npz", scores=np.ones((2, 4)))
    with pytest.raises(SpecError, match=r"has 4 examples, d.jsonl has 3"):
        load_history([str(tmp_path / "one.npz")], NOWHERE, dataset)
