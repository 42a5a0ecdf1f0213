"""The cosine between vectors of texts, against its definition worked out by hand."""

import json

import numpy as np
import pytest
import torch
from tiny_models import save_tiny_llama
from transformers import AutoModel, AutoTokenizer

from winnow.tasks.errors import JudgeError
from winnow.tasks.judges.isolated import similarity
from winnow.tasks.judges.isolated.similarity import DIGITS, measured
from winnow.tasks.judges.protocol import Sample
from winnow.tasks.judges.registry import create_judge, describe, judge_code

TEXTS = ["What is 17 + 25?", "Name a colour that many flags share.", "a", "\ud800 no text", "ä b\x00"]
POOLED = {
    "mean": lambda states: states.sum(axis=0) / len(states),
    "cls": lambda states: states[0],
    "last": lambda states: states[len(states) - 1],
}


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return str(save_tiny_llama(tmp_path_factory.mktemp("tiny"), seed=4))


def by_hand(folder, pooling, a, b):
    """The sum of products over the roots of the sums of squares."""
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder)
    vectors = []
    for text in (a, b):
        with torch.inference_mode():
            states = model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0]
        vectors.append([float(each) for each in POOLED[pooling](states.numpy())])
    x, y = vectors
    product = sum(each * other for each, other in zip(x, y, strict=True))
    return product / np.sqrt(sum(each * each for each in x) * sum(each * each for each in y))


@pytest.mark.parametrize("pooling", POOLED)
def test_a_score_is_the_cosine_where_that_is_positive(tiny, pooling):
    judge = measured(tiny, pooling)
    negative = 0
    for target in TEXTS[1:3]:
        for output in TEXTS[:3]:
            cosine = by_hand(tiny, pooling, output, target)
            verdict = judge(Sample(output=output, targets=[target]))
            assert verdict.score == pytest.approx(max(0.0, cosine), abs=0.6 * 10**-DIGITS)
            assert verdict.answer == f"cosine {round(cosine, DIGITS):.4f}" or abs(cosine) > 0.9999
            negative += cosine < 0
    assert negative or pooling != "cls"


def test_the_closest_target_counts_and_a_text_is_closest_to_itself(tiny):
    judge = measured(tiny, "mean")
    for output in TEXTS:
        alone = [judge(Sample(output=output, targets=[target])).score for target in TEXTS]
        assert judge(Sample(output=output, targets=TEXTS)).score == max(alone) == 1.0
        assert alone[TEXTS.index(output)] == 1.0
        back = [judge(Sample(output=target, targets=[output])).score for target in TEXTS]
        assert back == alone


def test_blank_texts_are_none(tiny):
    judge = create_judge("similarity", model=tiny, no_answer="unscored")
    assert judge.judge(Sample(output="a", targets=["", " "])).reason == "no_target"
    assert judge.judge(Sample(output=" \n", targets=["a"])).reason == "no_answer"


class Lengths:
    """Texts of one length are alike and others are not; broken for some texts."""

    def __init__(self, *_):
        pass

    def embed(self, texts):
        return np.array([[np.nan] * 20 if "nan" in text else np.eye(20)[len(text)] for text in texts])


def test_an_embedder_that_is_broken_fails_and_answers_are_not_wrong_for_that(monkeypatch):
    monkeypatch.setattr(similarity, "SentenceModel", Lengths)
    judge = measured(None, "mean")
    assert judge(Sample(output="ab", targets=["abc", "cd"])).score == 1.0
    assert judge(Sample(output="nan", targets=["a"])).reason == "no_answer"
    failed = judge(Sample(output="nan", targets=["a", "nan."]))
    assert (failed.reason, failed.score) == ("judge_failed", None)
    assert failed.detail.startswith("the vector of 'nan.' is not finite")


def test_values_of_the_cosine_are_mapped_to_the_unit_interval():
    scale = describe("similarity").scale
    assert [scale.score(each) for each in (-1.0, -0.2, 0.0, 0.3, 1.0)] == [0.0, 0.0, 0.0, 0.3, 1.0]


def test_the_weights_are_part_of_what_the_judge_is(tiny, tmp_path):
    other = str(save_tiny_llama(tmp_path, seed=5))
    known = [{"model": tiny}, {"model": other}, {"model": tiny, "pooling": "cls"}, {}]
    found = {json.dumps(judge_code("similarity", **params), sort_keys=True) for params in known}
    assert len(found) == 4


def test_a_checkpoint_that_cannot_be_loaded_is_refused_in_a_sentence(tmp_path):
    (tmp_path / "config.json").write_text('{"hidden_size": 8}')
    with pytest.raises(JudgeError, match="give the folder of a sentence-embedding model") as caught:
        create_judge("all", judges=[{"type": "similarity", "model": str(tmp_path)}]).try_out()
    assert "\n" not in caught.value.message
