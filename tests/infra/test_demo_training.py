"""The demo's tokenizer, and a training of a few steps."""

from statistics import mean

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from winnow.infra.demo.data import TrainingText, evaluation_examples
from winnow.infra.demo.prompts import TEMPLATES, render
from winnow.infra.demo.recipes import Recipe
from winnow.infra.demo.training import (
    EOS,
    IGNORED,
    PAD,
    UNKNOWN,
    VOCABULARY,
    build_tokenizer,
    encode,
    train_checkpoint,
)

TINY = Recipe(
    name="tiny", hidden_size=32, layers=1, heads=2, steps=12, batch_size=10, mix={"letter": 1.0, "sum": 1.0}
)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("checkpoint")
    return folder, train_checkpoint(TINY, folder)


def test_the_tokenizer_gives_back_every_evaluation_text():
    tokenizer = build_tokenizer()
    for example in evaluation_examples():
        for style in TEMPLATES:
            text = render(style, example.task, example.input) + " ".join(example.target)
            ids = tokenizer(text)["input_ids"]
            assert len(ids) == len(text)
            assert VOCABULARY[UNKNOWN] not in ids
            assert tokenizer.decode(ids) == text


def test_the_tokenizer_survives_unknown_characters():
    tokenizer = build_tokenizer()
    ids = tokenizer("sum 1\x00+\u00e9\U0001f600 =")["input_ids"]
    assert ids.count(VOCABULARY[UNKNOWN]) == 3
    assert tokenizer.decode(ids, skip_special_tokens=True) == "sum 1+ ="


def test_only_the_answer_and_the_end_mark_are_learned():
    tokens, labels = encode([TrainingText("sum 1+1 =", "2"), TrainingText("a", "bc")])
    assert tokens.shape == labels.shape == (2, 11)
    assert labels[0].tolist() == [IGNORED] * 9 + [VOCABULARY["2"], VOCABULARY[EOS]]
    assert labels[1, :4].tolist() == [IGNORED, VOCABULARY["b"], VOCABULARY["c"], VOCABULARY[EOS]]
    assert set(labels[1, 4:].tolist()) == {IGNORED}
    assert set(tokens[1, 4:].tolist()) == {VOCABULARY[PAD]}


def test_a_few_steps_lower_the_loss(trained):
    _, losses = trained
    assert len(losses) == TINY.steps
    assert mean(losses[-3:]) < mean(losses[:3]) - 0.5


def test_the_saved_folder_loads_and_generates_until_its_end_mark(trained):
    folder, _ = trained
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder)
    assert model.generation_config.eos_token_id == tokenizer.eos_token_id == VOCABULARY[EOS]
    tokens = tokenizer("letter ape =", return_tensors="pt")["input_ids"]
    written = model.generate(input_ids=tokens, max_new_tokens=4, do_sample=False)
    assert written.shape[0] == 1
    assert written.shape[1] > tokens.shape[1]


def test_the_same_recipe_gives_the_same_model_and_leaves_global_randomness_alone(trained, tmp_path):
    folder, losses = trained
    before = torch.get_rng_state()
    assert train_checkpoint(TINY, tmp_path) == losses
    assert torch.equal(torch.get_rng_state(), before)
    assert (tmp_path / "model.safetensors").read_bytes() == (folder / "model.safetensors").read_bytes()
