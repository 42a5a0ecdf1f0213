"""Texts become vectors of length 1: the same ones whatever stands beside them, made once, kept as float32."""

import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from tiny_models import save_tiny_llama
from transformers import AutoModel, AutoTokenizer

from winnow.tasks.data.datasets import load_dataset
from winnow.tasks.embedding.embedded_prompts import check_embedder, stored_vectors
from winnow.tasks.embedding.precomputed import read_vectors
from winnow.tasks.embedding.protocol import EmbeddingFailed, of_unit_length
from winnow.tasks.embedding.registry import create_embedder
from winnow.tasks.embedding.sentence_model import SentenceModel
from winnow.tasks.embedding.vllm_embedder import VllmEmbedder
from winnow.tasks.errors import SpecError, TemplateError
from winnow.tasks.spec.sections.objectives import EmbedderSpec

TEXTS = ["What is 17 + 25?", "Name a colour that many flags share.", "a"]
POOLED = {
    "mean": lambda states: states.sum(axis=0) / len(states),
    "cls": lambda states: states[0],
    "last": lambda states: states[len(states) - 1],
}
"""What each pooling makes of the states of a text's tokens, shape (tokens, d)."""


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """A language model with random weights."""
    return str(save_tiny_llama(tmp_path_factory.mktemp("tiny"), seed=4))


@pytest.fixture(scope="module")
def packaged():
    """The sentence-embedding model that Winnow installs."""
    return SentenceModel(None, "mean")


class CountingModel:
    """Vectors from the first two characters' codes; it remembers what it was asked for."""

    dim = 2

    def __init__(self, name="counting", broken=""):
        self.identity = {"type": name}
        self.groups = []
        self.closed = 0
        self._broken = broken

    def embed(self, texts):
        self.groups.append(list(texts))
        if self._broken in texts:
            return np.zeros((len(texts), 2))
        return np.array([[ord(text[0]), ord(text[-1])] for text in texts], dtype=np.float64)

    def close(self):
        self.closed += 1


@pytest.mark.parametrize("pooling", POOLED)
def test_a_vector_is_what_is_pooled_from_the_last_hidden_states(tiny, pooling):
    tokenizer, model = AutoTokenizer.from_pretrained(tiny), AutoModel.from_pretrained(tiny, dtype="float32")
    made = SentenceModel(tiny, pooling).embed(TEXTS)
    for text, vector in zip(TEXTS, made, strict=True):
        with torch.no_grad():
            states = model(torch.tensor([tokenizer.encode(text)])).last_hidden_state[0].numpy()
        np.testing.assert_allclose(vector, POOLED[pooling](states), rtol=1e-5, atol=1e-6)


def test_the_packaged_model_places_texts_of_one_subject_together(packaged):
    arithmetic, colour, sum_ = of_unit_length(packaged.embed([*TEXTS[:2], "What is 3 + 96?"]), TEXTS)
    assert packaged.dim == 384 == len(arithmetic)
    assert arithmetic @ sum_ > arithmetic @ colour + 0.2


def test_a_vector_does_not_depend_on_the_texts_beside_it_or_on_threads(packaged):
    together = packaged.embed(TEXTS)
    before = torch.get_num_threads()
    torch.set_num_threads(before + 1)
    try:
        assert packaged.embed(TEXTS[1:2]).tobytes() == together[1].tobytes()
        assert torch.get_num_threads() == before + 1
    finally:
        torch.set_num_threads(before)
    assert packaged.embed([]).shape == (0, 384)


def test_less_precision_changes_a_direction_little_and_keeps_the_identity(packaged):
    coarse = SentenceModel(None, "mean", "bfloat16")
    assert coarse.identity == packaged.identity
    rows, exact = coarse.embed(TEXTS), packaged.embed(TEXTS)
    assert not np.array_equal(rows, exact)
    cosines = (rows * exact).sum(axis=1) / np.linalg.norm(rows, axis=1) / np.linalg.norm(exact, axis=1)
    assert (cosines > 0.999).all()


def test_long_texts_are_cut_at_the_models_limit(packaged, tiny):
    assert np.array_equal(*packaged.embed(["word " * 600, "word " * 900]))
    model = SentenceModel(tiny, "last")
    assert np.array_equal(*model.embed(["a" * 256, "a" * 300]))
    assert not np.array_equal(*model.embed(["a" * 255 + "b", "a" * 256]))


def test_other_pooling_and_other_weights_have_another_identity(tiny, tmp_path):
    other = str(save_tiny_llama(tmp_path / "other", seed=5))
    models = [SentenceModel(tiny, each) for each in POOLED] + [SentenceModel(other, "mean")]
    assert len({json.dumps(each.identity, sort_keys=True) for each in models}) == 4
    copied = save_tiny_llama(tmp_path / "copied", seed=4)
    assert SentenceModel(str(copied), "mean").identity == SentenceModel(tiny, "mean").identity


def test_a_precision_that_there_is_not_is_refused_before_the_first_text(tiny):
    with pytest.raises(SpecError, match="precision='fp8' is not supported; use float32 or bfloat16"):
        SentenceModel(tiny, "mean", "fp8")


def test_vectors_are_stored_once_in_single_precision_and_read_back(database):
    model = CountingModel()
    first = stored_vectors(database, model, ["ab", "cd", "ab"])
    assert model.groups == [["ab", "cd"]]
    assert (first.shape, first.dtype) == ((3, 2), np.float64)
    assert np.array_equal(first[0], first[2])
    np.testing.assert_allclose(np.linalg.norm(first, axis=1), 1.0, atol=1e-7)
    with database.engine.connect() as connection:
        rows = connection.exec_driver_sql("SELECT vector FROM embeddings ORDER BY id").all()
    expected = np.array([97, 98]) / np.hypot(97, 98)
    assert rows[0][0] == expected.astype("<f4").tobytes()
    again = CountingModel()
    assert stored_vectors(database, again, ["cd", "ab"]).tobytes() == first[[1, 0]].tobytes()
    assert again.groups == []
    stored_vectors(database, again, ["cd", "ef"])
    assert again.groups == [["ef"]]
    other = CountingModel("another")
    stored_vectors(database, other, ["ab"])
    assert other.groups == [["ab"]]


def test_texts_are_committed_in_groups_and_a_bad_one_loses_no_other_group(database):
    texts = [f"{number:03}" for number in range(130)]
    model = CountingModel(broken="100")
    with pytest.raises(EmbeddingFailed, match=r"the vector of '064' is zero.* remove the example"):
        stored_vectors(database, model, texts)
    assert [len(group) for group in model.groups] == [64, 64]
    assert model.closed == 1
    mended = CountingModel()
    stored_vectors(database, mended, texts)
    assert mended.groups == [texts[64:128], texts[128:]]


@pytest.mark.parametrize(("number", "what"), [(0.0, "zero"), (np.nan, "not finite"), (np.inf, "not finite")])
def test_a_vector_without_a_direction_is_refused_with_its_text(number, what):
    with pytest.raises(EmbeddingFailed, match=f"the vector of 'bad' is {what}, so it has"):
        of_unit_length(np.array([[3.0, 4.0], [number, number]]), ["good", "bad"])
    assert of_unit_length(np.array([[3.0, 4.0]]), ["good"]).tolist() == [[np.float32(0.6), np.float32(0.8)]]


def test_a_text_without_tokens_is_refused(tiny):
    with pytest.raises(EmbeddingFailed, match="the text '' has no tokens"):
        SentenceModel(tiny, "mean").embed(["a", ""])


def test_checkpoints_that_are_none_are_refused_in_a_sentence(tmp_path, tiny):
    with pytest.raises(SpecError, match=r"embedder.model: there is no checkpoint in 'nowhere' \(looked"):
        create_embedder(EmbedderSpec(model="nowhere"))
    with pytest.raises(SpecError, match="there is no checkpoint"):
        create_embedder(EmbedderSpec(type="vllm", model="nowhere"))
    for content in ("{}", "[1]", '{"hidden_size": "wide"}', '{"hidden_size": 1e999}', "not JSON"):
        (tmp_path / "config.json").write_text(content)
        with pytest.raises(SpecError, match=r"config.json has no hidden_size; choose another checkpoint"):
            SentenceModel(str(tmp_path), "mean")
    broken = save_tiny_llama(tmp_path / "broken", seed=0)
    (broken / "model.safetensors").write_bytes(b"no weights")
    with pytest.raises(SpecError, match=r"embedder.model: the checkpoint in '.*broken' cannot be loaded: "):
        SentenceModel(str(broken), "mean").embed(["a"])


GOOD = [{"id": "e0", "vector": [3.0, 4.0]}, {"id": "e1", "vector": [0, -2]}]
REFUSED = {
    "no rows": ("", "has no rows; add a row for each example"),
    "no id": ('{"vector": [1]}', "line 1: there is no column 'id'; add it"),
    "no vector": ('{"id": "e0"}', "line 1: there is no column 'vector'; add it"),
    "a repeated id": ('{"id": "e0", "vector": [1]}\n' * 2, "line 2: the id 'e0' occurs twice"),
    "another length": (
        '{"id": "e0", "vector": [1, 2]}\n{"id": "e1", "vector": [1]}',
        "line 2: the vector has 1 numbers, the first one has 2",
    ),
    "text": ('{"id": "e0", "vector": "long"}', "line 1: the vector is not a list of numbers"),
    "a list of text": ('{"id": "e0", "vector": ["1", "x"]}', "line 1: the vector is not a list of numbers"),
    "null": ('{"id": "e0", "vector": null}', "line 1: the vector is not a list of numbers"),
    "nothing": ('{"id": "e0", "vector": []}', "line 1: the vector is not a list of numbers"),
    "a table": ('{"id": "e0", "vector": [[1], [2]]}', "line 1: the vector is not a list of numbers"),
    "a huge number": (
        f'{{"id": "e0", "vector": [1{"0" * 400}]}}',
        "line 1: the vector is not a list of numbers",
    ),
    "infinite": ('{"id": "e0", "vector": [Infinity]}', "line 1: column 'vector' contains an infinite number"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_files_of_vectors_that_make_no_sense_are_refused_in_a_sentence(tmp_path, case):
    content, message = REFUSED[case]
    path = tmp_path / "vectors.jsonl"
    path.write_text(content)
    with pytest.raises(SpecError) as refused:
        read_vectors(str(path))
    assert message in refused.value.message
    assert str(path) in refused.value.message
    assert refused.value.path == "embedder.path"


@pytest.mark.parametrize("suffix", ["jsonl", "json", "parquet"])
def test_vectors_made_elsewhere_are_read_by_example_and_brought_to_length_one(
    database, two_examples, tmp_path, suffix
):
    given = check_embedder(given_vectors(tmp_path, GOOD, suffix), two_examples)
    assert given.dim == 2
    expected = np.array([[0.6, 0.8], [0.0, -1.0]], dtype=np.float32)
    assert np.array_equal(given.contexts(database, two_examples), expected)
    other = check_embedder(given_vectors(tmp_path, [GOOD[0], {"id": "e1", "vector": [0, 2]}]), two_examples)
    assert given.identity != other.identity


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
@pytest.mark.parametrize(
    ("vector", "message"),
    [
        (None, "embedder.path: example 'e1' has no vector; add it, or choose an embedder"),
        ([0.0, 0.0], "embedder.path: the vector of 'e1' is zero"),
        ([1.0, float("nan")], "embedder.path: the vector of 'e1' is not finite"),
    ],
)
def test_an_example_without_a_usable_vector_is_refused(two_examples, tmp_path, vector, message, suffix):
    rows = [GOOD[0], {"id": "another" if vector is None else "e1", "vector": vector or [1.0, 1.0]}]
    with pytest.raises(SpecError, match=message):
        check_embedder(given_vectors(tmp_path, rows, suffix), two_examples)


def test_what_is_embedded_is_a_template_of_the_fields_and_part_of_the_identity(database, two_examples, tiny):
    plain, framed = (
        check_embedder(EmbedderSpec(model=tiny, text=text), two_examples)
        for text in ("{{ input }}", "{{ kind }}: {{ input }}")
    )
    assert plain.identity != framed.identity
    assert not np.array_equal(*(each.contexts(database, two_examples) for each in (plain, framed)))
    literal = of_unit_length(SentenceModel(tiny, "mean").embed(["sum: 1 + 1"]), ["sum: 1 + 1"])[0]
    assert np.array_equal(framed.contexts(database, two_examples)[0], literal)
    for text in ("{{ answer }}", "{{ target }}", "{{ input"):
        with pytest.raises(TemplateError, match=r"embedder\.text"):
            check_embedder(EmbedderSpec(model=tiny, text=text), two_examples)


@pytest.mark.vllm
@pytest.mark.usefixtures("vllm_imports")
def test_vllm_makes_the_vectors_of_the_packaged_model(packaged, tmp_path, monkeypatch):
    from winnow.tasks.embedding.sentence_model import _packaged

    monkeypatch.chdir(tmp_path)
    embedder = create_embedder(EmbedderSpec(type="vllm", model=_packaged()))
    assert embedder.dim == packaged.dim
    try:
        made = of_unit_length(embedder.embed(TEXTS), TEXTS)
    finally:
        embedder.close()
    cosines = np.einsum("ij,ij->i", made, of_unit_length(packaged.embed(TEXTS), TEXTS))
    assert cosines.min() > 0.9999
    assert embedder.identity != packaged.identity


@pytest.fixture
def two_examples(tmp_path):
    path = tmp_path / "data.jsonl"
    rows = [{"id": "e0", "input": "1 + 1", "kind": "sum"}, {"id": "e1", "input": "blue", "kind": "word"}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return load_dataset(path, {"id": "id"})


def given_vectors(folder, rows, suffix="jsonl"):
    """A spec of vectors that were made elsewhere, and their file."""
    path = folder / f"vectors.{suffix}"
    if suffix == "parquet":
        pd.DataFrame(rows).to_parquet(path)
    elif suffix == "json":
        path.write_text(json.dumps(rows))
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return EmbedderSpec(type="precomputed", path=str(path))


@pytest.mark.parametrize(
    ("made", "sentence"),
    [
        (np.array([[1.0, np.nan]]), "is not finite"),
        (np.array([[1.0, np.inf]]), "is not finite"),
        (np.array([[1.0, 2.0, 3.0]]), r"vectors of shape \(1, 3\), not \(1, 2\)"),
        (np.array([[1.0, 2.0]] * 2), r"vectors of shape \(2, 2\), not \(1, 2\)"),
    ],
)
def test_vectors_that_nobody_could_use_are_not_stored(database, made, sentence):
    embedder = CountingModel()
    embedder.embed = lambda texts: made
    with pytest.raises(EmbeddingFailed, match=sentence):
        stored_vectors(database, embedder, ["one"])


@pytest.mark.parametrize("reply", [{}, {"vectors": [[1.0], [2.0, 3.0]]}, {"vectors": [["wide"]]}])
def test_a_vllm_process_that_writes_no_vectors_is_named(tiny, monkeypatch, reply):
    embedder = VllmEmbedder(tiny)
    worker = SimpleNamespace(send=lambda message: None, receive=lambda timeout: reply, close=lambda: None)
    monkeypatch.setattr(embedder, "_loaded", lambda: worker)
    with pytest.raises(EmbeddingFailed, match="the vLLM process returned invalid vectors"):
        embedder.embed(["one"])
