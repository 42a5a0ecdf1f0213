"""Which tokens tell choices apart, and what that makes each of them worth."""

import math
import re
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from winnow.tasks.engines.protocol import Completion, GenerationFailure, Request, Sampling
from winnow.tasks.engines.scoring import ChoiceEncoder, ChoiceTree, Chooser, OptionLogprobs


class Letters:
    """A tokenizer of one token per ASCII letter, whatever its case when `blind`."""

    unk_token_id = 0

    def __init__(self, blind=False):
        self.blind = blind

    def __call__(self, text, add_special_tokens):
        assert not add_special_tokens
        text = text.lower() if self.blind else text
        return {"input_ids": [ord(c) if c.isascii() else 0 for c in text if c != "\n"]}


def tree(*choices):
    return ChoiceTree({choice: tuple(map(ord, choice)) for choice in choices})


def asked(tree):
    return {"".join(map(chr, fork.prefix)): "".join(map(chr, fork.options)) for fork in tree.forks}


@pytest.mark.parametrize(
    ("choices", "forks"),
    [
        (["A", "B", "C"], {"": "ABC"}),
        (["[[A]]", "[[B]]", "[[C]]"], {"[[": "ABC"}),
        (["A>>B", "A>B", "A=B", "B>A", "B>>A"], {"": "AB", "A": ">=", "A>": ">B", "B": ">", "B>": "A>"}),
    ],
)
def test_the_model_is_asked_where_choices_part_ways_and_no_later(choices, forks):
    assert asked(tree(*choices)) == forks


def test_a_choice_is_worth_the_product_of_the_tokens_that_distinguish_it():
    logprobs = {"": {"A": -1.0, "B": -2.0}, "A": {">": -0.1, "=": -0.2}, "A>": {">": -3.0, "B": -5.0}}
    logprobs |= {"B": {">": -7.0}, "B>": {"A": -0.5, ">": -0.25}}
    choices = tree("A>>B", "A>B", "A=B", "B>A", "B>>A")
    told = [
        {ord(token): value for token, value in logprobs["".join(map(chr, fork.prefix))].items()}
        for fork in choices.forks
    ]
    expected = {"A>>B": -4.1, "A>B": -6.1, "A=B": -1.2, "B>A": -9.5, "B>>A": -9.25}
    assert choices.logprobs(told) == pytest.approx(expected)


PREFIX_FREE = st.lists(st.text("ab", min_size=1, max_size=5), min_size=2, max_size=6, unique=True).filter(
    lambda texts: not any(a != b and b.startswith(a) for a, b in product(texts, texts))
)


@given(PREFIX_FREE)
def test_probabilities_of_choices_never_exceed_one_in_all(texts):
    choices = tree(*texts)
    halves = [dict.fromkeys(map(ord, "ab"), math.log(0.5))] * len(choices.forks)
    assert list(choices.logprobs(halves)) == texts
    assert sum(map(math.exp, choices.logprobs(halves).values())) <= 1.0 + 1e-12


@pytest.mark.parametrize(
    ("tokenizer", "choices", "sentence"),
    [
        (Letters(), ("yes", "né"), "no tokens for the choice 'né'"),
        (Letters(), ("yes", "\n"), r"no tokens for the choice '\\n'"),
        (Letters(), ("yes", "~"), "no tokens for the choice '~'"),  # beyond the weights
        (Letters(blind=True), ("m", "M"), "are the same for choices 'm' and 'M'"),
        (Letters(blind=True), ("Ab", "aBc"), "are the same for choices 'Ab' and 'aBc'"),
        (None, ("yes", "no"), "the choice 'yes' cannot be encoded: TypeError"),
    ],
)
def test_choices_that_the_tokens_cannot_express_are_a_failure_that_says_which(tokenizer, choices, sentence):
    failure = ChoiceEncoder(tokenizer, vocabulary=ord("~"))(choices)
    assert failure.reason == "bad_choices"
    assert re.search(sentence, failure.detail)


def chosen(answers_of, sampling, prompt=(1, 2), seeds=(0,), window=10, cached=None):
    """What a chooser makes of requests, with `answers_of` as the model, which has `cached` tokens of each."""

    def told(question):
        answer = answers_of(question)
        known = cached(question) if cached else None
        return answer if isinstance(answer, GenerationFailure) else OptionLogprobs(answer, known)

    chooser = Chooser(
        ChoiceEncoder(Letters(), vocabulary=200),
        max_model_len=window,
        ask=lambda questions: [told(question) for question in questions],
    )
    requests = [Request(prompt="", sampling=sampling, seed=seed) for seed in seeds]
    return chooser.answer([list(prompt)] * len(requests), requests)


def by_letter(logprobs):
    return lambda question: {token: logprobs[chr(token)] for token in question.options}


YES_NO = Sampling(choices=("no", "yes"))


def test_the_greedy_choice_is_the_most_probable_and_the_first_of_equals():
    model = by_letter({"y": -0.5, "n": -1.5})
    (answer,) = chosen(model, YES_NO)
    assert answer == Completion(
        text="yes",
        finish_reason="stop",
        input_tokens=2,
        output_tokens=3,
        seconds=answer.seconds,
        choice_logprobs={"no": -1.5, "yes": -0.5},
    )
    assert chosen(by_letter({"y": -1.0, "n": -1.0}), YES_NO)[0].text == "no"


def test_what_was_cached_of_a_prompt_is_what_the_first_of_its_questions_found():
    model = by_letter({"A": -1, "B": -2, ">": -3})
    several, one = Sampling(choices=("A>B", "AB>", "B>A")), Sampling(choices=("[[A", "[[B"))
    found = [chosen(model, each, cached=lambda question: len(question.ids) - 1)[0] for each in (several, one)]
    assert [each.cached_tokens for each in found] == [1, 2]  # of two tokens of a prompt
    assert chosen(model, several)[0].cached_tokens is None
    partly = chosen(model, several, cached=lambda question: 2 if len(question.ids) == 2 else None)
    assert partly[0].cached_tokens is None


@pytest.mark.statistical
def test_choices_are_drawn_with_their_probabilities_at_a_temperature():
    """P(yes) = 1/4 at temperature 1; 400 draws leave [61, 141] with probability below 1e-5."""
    model = by_letter({"y": math.log(0.1), "n": math.log(0.3)})
    warm = replace(YES_NO, temperature=1.0)
    drawn = [answer.text for answer in chosen(model, warm, seeds=range(400))]
    assert 61 <= drawn.count("yes") <= 141
    assert drawn == [answer.text for answer in chosen(model, warm, seeds=range(400))]
    cut = replace(warm, top_k=1)
    assert {answer.text for answer in chosen(model, cut, seeds=range(50))} == {"no"}


@pytest.mark.parametrize("answer", [{}, {ord("y"): -1.0}, {ord("y"): math.nan, ord("n"): -math.inf}])
def test_missing_log_probabilities_are_a_failure(answer):
    assert chosen(lambda _: answer, YES_NO)[0].reason == "no_logprobs"


def test_a_failure_of_the_engine_and_a_full_window_are_failures_of_that_request_only():
    refusal = GenerationFailure(reason="refused", detail="no")
    assert chosen(lambda _: refusal, YES_NO) == [refusal]
    assert chosen(by_letter({}), YES_NO, prompt=range(10), window=10)[0].reason == "prompt_too_long"
    fits = chosen(by_letter({"A": -1, "B": -2}), Sampling(choices=("[[A", "[[B")), prompt=range(7))
    assert fits[0].text == "[[A"
    full = chosen(by_letter({"A": -1, "B": -2}), Sampling(choices=("[[A", "[[B")), prompt=range(8))
    assert full[0].reason == "prompt_too_long"
