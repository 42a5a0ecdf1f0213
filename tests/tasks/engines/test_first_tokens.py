"""A prompt that spells out the token that a tokenizer puts first is given no second one in new campaigns."""

import pytest
from transformers import AutoTokenizer

from tests.golden_database.campaigns import HERE
from winnow.tasks.engines.prompt_tokens import PromptEncoder
from winnow.tasks.engines.protocol import GenerationFailure, ModelRef, Request, Sampling
from winnow.tasks.engines.transformers.engine import TransformersEngine

FOLDER = HERE / "files" / "model"
FIRST = 0


@pytest.fixture(scope="module")
def tokenizer():
    return AutoTokenizer.from_pretrained(FOLDER)


def encoder(tokenizer, *, max_model_len=64, **fields):
    model = ModelRef(name="m", provider="transformers", model=str(FOLDER), **fields)
    return PromptEncoder(tokenizer, model, vocabulary=200, max_model_len=max_model_len)


@pytest.mark.parametrize("text", ["[INST] 1 [/INST]", " 1", "</s>1", "<unk>", "<s", "s>"])
def test_a_text_that_does_not_begin_with_it_is_read_as_before(tokenizer, text):
    encode = encoder(tokenizer)
    assert encode(text, one_bos=True) == encode(text)
    assert encode(text)[0] == FIRST


@pytest.mark.parametrize("rest", ["[INST] 1 [/INST]", "<s>1", " 1", ""])
def test_a_text_that_begins_with_it_is_read_as_it_is_spelled(tokenizer, rest):
    encode = encoder(tokenizer)
    spelled = list(tokenizer(f"<s>{rest}", add_special_tokens=False)["input_ids"])
    assert encode(f"<s>{rest}", one_bos=True) == spelled
    assert encode(f"<s>{rest}") == [FIRST, *spelled]
    assert encode.of_many(["a", f"<s>{rest}"], [False, True])[1] == spelled


def test_one_token_less_may_fit_in(tokenizer):
    encode = encoder(tokenizer, max_model_len=5)
    assert isinstance(encode("<s>abc"), GenerationFailure)
    assert encode("<s>abc", one_bos=True) == encode("abc")
    assert isinstance(encode("<s>abcd", one_bos=True), GenerationFailure)
    assert isinstance(encode("abcde", one_bos=True), GenerationFailure)


def test_a_chat_has_the_tokens_of_its_template(tokenizer):
    encode = encoder(tokenizer, chat=True)
    assert encode("<s>a", one_bos=True) == encode("<s>a")


@pytest.mark.parametrize("text", [5, "\ud800", None])
def test_what_cannot_be_encoded_fails_as_before(tokenizer, text):
    found = encoder(tokenizer)(text, one_bos=True)
    assert isinstance(found, GenerationFailure)
    assert found.reason == "bad_prompt"


def test_the_engine_reads_it_so_in_new_campaigns_alone():
    args = {"device": "cpu", "max_model_len": 64}
    model = ModelRef(name="m", provider="transformers", model=str(FOLDER), model_args=args)
    prompts = {"bare": "[a]=", "begun": "<s>[a]="}

    def answers(**sampling):
        engine = TransformersEngine(model)
        way = Sampling(max_tokens=6, **sampling)
        found = engine.generate([Request(prompt=each, sampling=way, seed=0) for each in prompts.values()])
        return dict(zip(prompts, found, strict=True))

    new, before = answers(one_bos=True), answers()
    assert (new["bare"].text, new["bare"].input_tokens) == (new["begun"].text, new["begun"].input_tokens)
    assert before["begun"].input_tokens == new["begun"].input_tokens + 1
    assert before["bare"].text == new["bare"].text
