"""Which log-probabilities say something, and what becomes of those that do not."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from winnow.tasks.engines.probabilities import why_unusable
from winnow.tasks.engines.protocol import Completion, GenerationFailure, Request, Sampling
from winnow.tasks.engines.scoring import ChoiceEncoder, Chooser, OptionLogprobs
from winnow.tasks.engines.transformers.decoding import Decoding

BROKEN = {
    "NaN": {"A": math.nan, "B": -1.0},
    "minus infinity": {"A": -math.inf, "B": -1.0},
    "plus infinity": {"A": math.inf, "B": -1.0},
    "placeholders": {"A": -9999.0, "B": -9999.0},
    "below a placeholder": {"A": -1e300, "B": -0.1},
    "one is missing": {"A": -0.1},
    "both certain": {"A": 0.0, "B": 0.0},
    "more than certain": {"A": 5.0, "B": -1.0},
    "far too large for exp": {"A": 1e300, "B": -1.0},
}


@pytest.mark.parametrize("known", BROKEN.values(), ids=BROKEN)
def test_what_is_no_distribution_is_named(known):
    assert why_unusable(known, ("A", "B"))


def test_others_than_those_that_are_asked_for_do_not_matter():
    assert why_unusable({"A": -1.0, "B": -1.0, "C": math.nan}, ("A", "B")) is None


@given(st.lists(st.floats(-500.0, 500.0), min_size=2, max_size=6), st.floats(-9000.0, 0.0))
def test_every_share_of_a_distribution_is_usable_however_small(logits, shift):
    logprobs = torch.tensor(logits, dtype=torch.float32).log_softmax(dim=0) + shift
    assert why_unusable(dict(enumerate(logprobs.tolist())), range(len(logits))) is None


class Letters:
    """A tokenizer of one token for each letter."""

    unk_token_id = None

    def __call__(self, text, *, add_special_tokens):
        return {"input_ids": [ord(letter) for letter in text]}


@pytest.mark.parametrize("known", BROKEN.values(), ids=BROKEN)
def test_an_engine_of_ours_has_no_choice_without_usable_probabilities(known):
    told = {ord(letter): value for letter, value in known.items()}
    chooser = Chooser(
        ChoiceEncoder(Letters(), vocabulary=999),
        max_model_len=99,
        ask=lambda questions: [OptionLogprobs(told)] * len(questions),
    )
    request = Request(prompt="?", sampling=Sampling(choices=("A", "B")), seed=0)
    (answer,) = chooser.answer([[1, 2]], [request])
    assert answer.reason == "no_logprobs"
    assert "for the next token the engine returned" in answer.detail


GOOD = {"text": "a", "finish_reason": "stop", "input_tokens": 1, "output_tokens": 1, "seconds": 0.5}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("text", 7),
        ("finish_reason", "content_filter"),
        ("input_tokens", -1),
        ("input_tokens", 2**26),
        ("output_tokens", 1.5),
        ("output_tokens", True),
        ("seconds", math.nan),
        ("seconds", math.inf),
        ("seconds", -0.1),
        ("cached_tokens", 2),
        ("cached_tokens", -1),
        ("cached_tokens", 0.5),
        ("choice_logprobs", {"A": math.nan}),
        ("choice_logprobs", {"A": -math.inf}),
        ("token_logprobs", [-1.0, math.nan]),
        ("token_logprobs", [-math.inf]),
    ],
)
def test_a_completion_holds_what_a_database_can(field, value):
    with pytest.raises(ValueError, match="must be"):
        Completion(**GOOD | {field: value})
    assert Completion(**GOOD).seconds == 0.5


PLAIN = torch.tensor([0.0, 3.0, -math.inf])


@pytest.mark.parametrize("temperature", [0.0, 0.7])
@pytest.mark.parametrize(
    "broken",
    [[math.nan, 0.0, 1.0], [0.0, math.inf, 1.0], [-math.inf] * 3],
    ids=["NaN", "plus infinity", "only minus infinity"],
)
def test_a_request_whose_logits_are_no_numbers_fails_alone(broken, temperature):
    sampling = Sampling(temperature=temperature, max_tokens=2, top_k=1)
    requests = [Request(prompt="?", sampling=sampling, seed=i) for i in range(2)]

    class Spelled:
        def decode(self, tokens, **_):
            return "".join("abc"[token] for token in tokens)

    decoding = Decoding(Spelled(), requests, [[0], [0]], [2, 2], frozenset())
    assert decoding.append(decoding.draw(torch.stack([torch.tensor(broken), PLAIN]))) == [True, False]
    decoding.append(decoding.draw(torch.stack([PLAIN, PLAIN])))
    failed, written = decoding.finished_rows()
    assert isinstance(failed, GenerationFailure)
    assert failed.reason == "bad_logits"
    assert (written.text, written.finish_reason) == ("bb", "length")
