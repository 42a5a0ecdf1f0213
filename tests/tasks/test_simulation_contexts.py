"""Vectors and types of the examples of a table, from every kind of source."""

import json

import numpy as np
import pandas as pd
import pytest
from stored_campaigns import store_campaign

from winnow.storage.errors import StorageError
from winnow.tasks.campaign.earlier_scores import load_score_table
from winnow.tasks.embedding import embedded_prompts
from winnow.tasks.errors import SpecError, WinnowError
from winnow.tasks.simulation.example_facts import embedded_contexts, read_contexts, read_types

VECTORS = np.array([[3.0, 4.0], [0.0, 2.0], [-1.0, 0.0]])
UNIT = np.array([[0.6, 0.8], [0.0, 1.0], [-1.0, 0.0]])
KINDS = ["sum", "word", "sum"]


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def table(tmp_path):
    """Two candidates on the examples x, y and z."""
    (tmp_path / "scores.csv").write_text("name,x,y,z\na,1,0,1\nb,0,1,1\n")
    return load_score_table("scores.csv", "")


@pytest.fixture
def unnamed():
    np.savez("scores.npz", scores=np.eye(3))
    return load_score_table("scores.npz", "")


@pytest.fixture
def stored(database):
    """The table of a finished campaign on e0 to e4, and a campaign that routes the same prompts."""
    letters, routes = store_campaign(database), store_campaign(database, "routes", objective="route")
    every = letters.plan(0, [0] * 5 + [1] * 5 + [2] * 5, list(range(5)) * 3)
    letters.finish(every, [1.0] * 15, best=0, stop=True, reason="exhausted")
    _write_rows("vectors.jsonl", [{"id": f"e{i}", "vector": [1.0, float(i)]} for i in range(5)])
    specs = {
        letters.record.id: {"dataset": {"path": "d.jsonl"}, "dataset_fingerprint": "f"},
        routes.record.id: {
            "dataset": {"path": "d.jsonl"},
            "dataset_fingerprint": "f",
            "embedder": {"type": "precomputed", "path": "vectors.jsonl"},
        },
    }
    with database.writing() as session:
        for key, spec in specs.items():
            update = "UPDATE campaigns SET spec = ? WHERE id = ?"
            session.connection().exec_driver_sql(update, (json.dumps(spec), key))
    return load_score_table("campaign:letters", database.url)


def _write_rows(path, rows):
    with open(path, "w") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


def _write_vectors(suffix):
    """In another order than the table's where they have names, with one that is not needed."""
    rows = [{"id": key, "vector": VECTORS["xyz".index(key)].tolist()} for key in "zxy"]
    rows.append({"id": "other", "vector": [1.0, 1.0]})
    match suffix:
        case "jsonl":
            _write_rows("v.jsonl", rows)
        case "parquet":
            pd.DataFrame(rows).to_parquet("v.parquet")
        case "npy":
            np.save("v.npy", VECTORS.astype(np.float32))
        case "npz":
            np.savez("v.npz", anything=VECTORS)
        case "npz:b":
            np.savez("v.npz", a=np.eye(3), b=VECTORS)
    return f"v.{suffix}"


@pytest.mark.parametrize("suffix", ["jsonl", "parquet", "npy", "npz", "npz:b"])
def test_vectors_come_in_the_order_of_the_table_and_of_length_one(table, suffix):
    np.testing.assert_allclose(read_contexts(_write_vectors(suffix), table, ""), UNIT, atol=1e-7)


def test_examples_without_names_need_an_array(unnamed):
    np.testing.assert_allclose(read_contexts(_write_vectors("npy"), unnamed, ""), UNIT, atol=1e-7)
    with pytest.raises(SpecError, match=r"the examples of scores\.npz have no names, so values cannot"):
        read_contexts(_write_vectors("jsonl"), unnamed, "")


def test_a_campaign_that_routes_embeds_the_examples(stored, database):
    contexts = read_contexts("campaign:routes", stored, database.url)
    np.testing.assert_allclose(contexts[2], [1 / 5**0.5, 2 / 5**0.5], atol=1e-7)
    assert contexts.shape == (5, 2)
    with pytest.raises(SpecError, match="'letters' has objective best-mean and so no vectors"):
        read_contexts("campaign:letters", stored, database.url)
    with pytest.raises(StorageError, match="no campaign is named 'none'"):
        read_contexts("campaign:none", stored, database.url)


class CodesModel:
    """Vectors of a text's last character."""

    dim = 2
    identity = {"type": "codes"}  # noqa: RUF012 -- read only

    def embed(self, texts):
        return np.array([[1.0, float(text[-1])] for text in texts])

    def close(self):
        pass


def test_the_examples_of_a_campaign_are_embedded_by_a_template(stored, database, table, monkeypatch):
    monkeypatch.setattr(embedded_prompts, "create_embedder", lambda spec: CodesModel())
    contexts = embedded_contexts("number {{ input }}", stored, database.url)
    np.testing.assert_allclose(contexts[3], [1 / 10**0.5, 3 / 10**0.5], atol=1e-7)
    with pytest.raises(SpecError, match=r"^--embed: .*unknown variable 'inptu'; did you mean 'input'"):
        embedded_contexts("{{ inptu }}", stored, database.url)
    with pytest.raises(SpecError, match=r"^--embed x: scores\.csv has only scores and no texts"):
        embedded_contexts("x", table, database.url)


BAD_VECTORS = {
    "gone": ("none.npy", "--contexts none.npy cannot be read: No such file or directory"),
    "rows gone": ("none.jsonl", "--contexts: there is no file none.jsonl"),
    "short": ("short.npy", "has shape (2, 2) and type float64; scores.csv needs shape (3, d) of numbers"),
    "flat": ("flat.npy", "has shape (3,) and type float64"),
    "text": ("text.npy", "type <U1; scores.csv needs shape (3, d) of numbers"),
    "two arrays": ("two.npz", "name the array as FILE.npz:KEY; its arrays: a, b"),
    "no array": ("two.npz:aa", "did you mean 'a'?"),
    "garbage": ("garbage.npy", "is not a file of plain arrays"),
    "missing": ("missing.jsonl", "--contexts missing.jsonl has no vector for example 'y'; add it"),
    "zero": ("zero.npy", "--contexts zero.npy: the vector of 'x' is zero"),
    "infinite": ("infinite.npy", "the vector of 'x' is not finite"),
    "suffix": ("vectors.txt", "--contexts: unknown suffix '.txt'"),
}


@pytest.mark.parametrize(("source", "told"), BAD_VECTORS.values(), ids=BAD_VECTORS)
def test_vectors_that_cannot_be_used_get_one_sentence(table, source, told):
    np.save("short.npy", VECTORS[:2])
    np.save("flat.npy", VECTORS[:, 0])
    np.save("text.npy", [["a", "b"]] * 3)
    np.savez("two.npz", a=VECTORS, b=VECTORS)
    np.save("zero.npy", [[0.0, 0.0]] * 3)
    np.save("infinite.npy", [[np.inf, 0.0]] * 3)
    with open("garbage.npy", "w") as file:
        file.write("not an array")
    _write_rows("missing.jsonl", [{"id": "x", "vector": [1.0]}, {"id": "z", "vector": [1.0]}])
    with pytest.raises(WinnowError) as caught:
        read_contexts(source, table, "")
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "npy"])
def test_types_are_numbered_in_the_order_of_their_names(table, suffix):
    rows = [{"id": key, "type": KINDS["xyz".index(key)]} for key in "yzx"]
    pd.DataFrame(rows).to_csv("t.csv", index=False)
    _write_rows("t.jsonl", rows)
    np.save("t.npy", KINDS)
    types = read_types(f"t.{suffix}", table, "")
    assert types.names == ("sum", "word")
    assert types.of_examples.tolist() == [0, 1, 0]


def test_types_may_be_a_field_of_the_examples_of_a_campaign(stored, database, table):
    assert read_types("input", stored, database.url).names == ("0", "1", "2", "3", "4")
    with pytest.raises(SpecError, match=r"--types: example 'e0': unknown field 'kind'; available: input"):
        read_types("kind", stored, database.url)
    with pytest.raises(SpecError, match=r"scores\.csv has only scores"):
        read_types("kind", table, database.url)


BAD_TYPES = {
    "no column": ([{"id": "x", "kind": "sum"}], "line 1: there is no column 'type'; add it"),
    "twice": ([{"id": "x", "type": "a"}, {"id": "x", "type": "b"}], "line 2: the id 'x' occurs twice"),
    "missing": ([{"id": "x", "type": "a"}], "has no type for example 'y'"),
    "no rows": ([], "has no type for example 'x'"),
}


@pytest.mark.parametrize(("rows", "told"), BAD_TYPES.values(), ids=BAD_TYPES)
def test_types_that_cannot_be_used_get_one_sentence(table, rows, told):
    _write_rows("t.jsonl", rows)
    with pytest.raises(SpecError, match=r"^--types t\.jsonl") as caught:
        read_types("t.jsonl", table, "")
    assert told in str(caught.value)
