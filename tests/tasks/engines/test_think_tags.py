"""Tags around a model's reasoning stay in its texts where they are special tokens; no other such does."""

import json

import numpy as np
import pytest
import torch
from tokenizers import AddedToken, Tokenizer, decoders, models
from transformers import PreTrainedTokenizerFast

from winnow.tasks.engines.chat import Reasoning, hides_thoughts, separated
from winnow.tasks.engines.protocol import Request, Sampling
from winnow.tasks.engines.transformers.decoding import Decoding
from winnow.tasks.queries.warnings.from_spec import hidden_thoughts

WORDS = ("<s>", "</s>", "<unk>", "<tool>", "<think>", "</think>", "4", "7")
WRITTEN = ("<think>", "7", "<tool>", "</think>", "4", "</s>")


def tokenizer(*, special):
    """One whose think tags are special tokens, or plain ones that were added."""
    made = Tokenizer(models.WordLevel({word: id_ for id_, word in enumerate(WORDS)}, unk_token="<unk>"))
    made.decoder = decoders.Fuse()
    made.add_special_tokens([AddedToken(word, special=True) for word in ("<s>", "</s>", "<unk>", "<tool>")])
    tags = [AddedToken(word, special=special) for word in ("<think>", "</think>")]
    (made.add_special_tokens if special else made.add_tokens)(tags)
    return PreTrainedTokenizerFast(tokenizer_object=made, eos_token="</s>", unk_token="<unk>")


def text(tokenizer, **sampling):
    """What is written where a model gives all probability to one token after the other."""
    asked = [Request(prompt="p", sampling=Sampling(max_tokens=9, **sampling), seed=0)]
    decoding = Decoding(tokenizer, asked, [[0]], [9], frozenset({WORDS.index("</s>")}))
    for word in WRITTEN:
        logits = np.full((1, len(WORDS)), -1e9, dtype=np.float32)
        logits[0, WORDS.index(word)] = 0.0
        if all(decoding.append(decoding.draw(torch.from_numpy(logits)))):
            break
    (row,) = decoding.finished_rows()
    return row.text


@pytest.mark.parametrize("special", [True, False])
def test_thoughts_are_told_apart_whether_their_tags_are_special_tokens_or_not(special):
    found = text(tokenizer(special=special), think_tags=True)
    assert found == "<think>7</think>4"
    assert separated(found, None, Reasoning("think-tags", True, False)) == ("4", "7")


def test_a_campaign_of_before_gets_the_text_that_it_got():
    assert text(tokenizer(special=True)) == "74"


def test_a_stop_sequence_is_found_beside_the_tags():
    assert text(tokenizer(special=True), think_tags=True, stop=("4",)) == "<think>7</think>"


@pytest.mark.parametrize("special", [True, False])
def test_a_tokenizer_that_hides_thoughts_is_named_where_nothing_tells_them_apart(tmp_path, special):
    tokenizer(special=special).save_pretrained(tmp_path)
    assert hides_thoughts(tmp_path) is special
    model = {"name": "m", "provider": "transformers", "model": str(tmp_path)}
    found = hidden_thoughts({"models": [model]})
    assert (found is not None) is special
    if found is not None:
        assert "the tokenizer of m treats <think> as a special token" in found.sentence
    for told in (
        {"reasoning": {}},
        {"chat_template_args": {"enable_thinking": False}},
        {"provider": "openai"},
    ):
        assert hidden_thoughts({"models": [model | told]}) is None


@pytest.mark.parametrize(
    "content", ["", "[", "{}", json.dumps({"added_tokens": [1]}), '{"added_tokens": {}}']
)
def test_a_tokenizer_that_cannot_be_read_hides_nothing(tmp_path, content):
    assert hides_thoughts(tmp_path) is False
    (tmp_path / "tokenizer.json").write_text(content)
    assert hides_thoughts(tmp_path) is False
