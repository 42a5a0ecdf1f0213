"""How probable given continuations are: split as lm-eval splits them, weighed alike by every engine."""

import json
import math
from dataclasses import replace
from importlib.metadata import EntryPoint
from typing import ClassVar

import pytest
import regex
import torch
from faulty_server import Fault, faulty_server, refused
from hypothesis import given
from hypothesis import strategies as st
from tiny_models import save_tiny_llama
from transformers import AutoModelForCausalLM, AutoTokenizer

from winnow.tasks.engines.chat import Message, as_stored
from winnow.tasks.engines.errors import EngineLoadFailed
from winnow.tasks.engines.external.plugin import PluginEngine
from winnow.tasks.engines.prompt_tokens import PromptEncoder
from winnow.tasks.engines.protocol import Completion, GenerationFailure, ModelRef, Request, Sampling
from winnow.tasks.engines.providers import EngineSettings, start_engine
from winnow.tasks.engines.scoring import (
    ContinuationEncoder,
    KnownTokens,
    Likelihoods,
    OptionLogprobs,
    windows,
)
from winnow.tasks.engines.transformers.engine import TransformersEngine

PAIRS = [("1+1=", "2"), ("Q: a\n", "two words"), ("Q ", " b"), ("", "x y"), ("</s>a", "bc"), ("a", "é")]


def request(prompt, *continuations):
    return Request(prompt=prompt, continuations=continuations, sampling=Sampling(), seed=0)


class Words:
    """A tokenizer of words that takes a space into the word after it; `begin` is put before every text."""

    eos_token_id = 1
    chat_template = None

    def __init__(self, begin=None):
        self.bos_token_id = begin
        self.known = {"<e>": 1} | ({"<b>": begin} if begin else {})

    def __call__(self, text, add_special_tokens=True):
        pieces = regex.findall(r"<\w>| ?\w+|\s|.", text)
        ids = [self.known.setdefault(each, len(self.known) + 2) for each in pieces]
        return {"input_ids": [self.bos_token_id, *ids] if add_special_tokens and self.bos_token_id else ids}

    def decode(self, ids):
        names = {number: piece for piece, number in self.known.items()}
        return "".join(names[each] for each in ids)


def encoder(tokenizer, max_model_len=20):
    model = ModelRef(name="m", provider="vllm", model="m")
    prompts = PromptEncoder(tokenizer, model, vocabulary=1000, max_model_len=max_model_len)
    return ContinuationEncoder(tokenizer, prompts, chat=False)


def split(prompt, continuation, *, begin=None):
    tokenizer = Words(begin)
    found = encoder(tokenizer)(prompt, continuation)
    if isinstance(found, GenerationFailure):
        return found.reason
    (found,) = found
    return tokenizer.decode(found.ids[: found.start]), tokenizer.decode(found.ids[found.start :])


@pytest.mark.parametrize(
    ("prompt", "continuation", "expected"),
    [
        ("Q: a", " b c", ("Q: a", " b c")),
        ("Q: a ", "b c", ("Q: a", " b c")),  # the space belongs to the word that follows it
        ("Q:\n\n", "b", ("Q:", "\n\nb")),
        ("caf", "fe", ("caffe", None)),  # one token, all of it the prompt's
        ("", "b c", ("<e>", "b c")),
        (" ", "b", ("<e>", " b")),
        ("", "<e>b", ("<e>", "b")),
        ("1 " * 12, "b" + " c" * 12, "prompt_too_long"),
        ("a", "\ud800", "bad_prompt"),
    ],
)
def test_prompt_and_continuation_are_split_where_lm_eval_splits_them(prompt, continuation, expected):
    if expected[1] is None:
        expected = "bad_choices"
    assert split(prompt, continuation) == expected


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [("a", ("<b>a", " b")), ("<b>a", ("<b>a", " b")), ("", ("<b>", " b")), ("<e>a", ("<b><e>a", " b"))],
)
def test_the_token_that_begins_a_text_is_there_once(prompt, expected):
    assert split(prompt, " b", begin=2) == expected


@given(st.text("ab <>e:", max_size=8), st.text("ab <>e:", min_size=1, max_size=8))
def test_nothing_is_lost_or_added_but_what_begins_a_text(prompt, continuation):
    found = split(prompt, continuation)
    if isinstance(found, tuple):
        assert "".join(found).removeprefix("<e>") == (prompt + continuation).removeprefix("<e>")
        assert all(found)


@given(st.integers(2, 12), st.integers(2, 40))
def test_each_token_of_a_long_text_is_weighed_once_after_as_much_as_fits(longest, length):
    ids = list(range(length))
    pieces = windows(ids, longest)
    assert [token for each in pieces for token in each.ids[each.start :]] == ids[1:]
    for each in pieces:
        assert each.ids == list(range(each.ids[0], each.ids[-1] + 1))
        assert each.start >= 1
        assert len(each.ids) == min(longest, length)
    assert all(each.start == 1 for each in pieces[:-1])


def test_a_long_text_after_nothing_is_weighed_in_pieces_and_after_a_prompt_is_too_long():
    text = " ".join("abcdefgh" * 4)
    found = encoder(Words(), max_model_len=11)("", text)
    assert [(len(each.ids), each.start) for each in found] == [(10, 1), (10, 1), (10, 1), (10, 5)]
    assert encoder(Words(), max_model_len=11)("Q", text).reason == "prompt_too_long"
    (answer,) = weigher(at_all=lambda each: [-0.5] * (len(each.ids) - each.start), max_model_len=11).answer(
        [request("", text)]
    )
    assert answer.choice_logprobs == {text: -16.0}
    assert answer.input_tokens == 40


def greedy(prompt, continuation):
    return replace(request(prompt, continuation), is_greedy=True)


def weigher(at_next=None, at_all=None, log=None, max_model_len=20):
    def ask_next(questions):
        log.extend(("next", len(each.options)) for each in questions) if log is not None else None
        if isinstance(at_next, GenerationFailure):
            return [at_next] * len(questions)
        return [OptionLogprobs(at_next(each), cached_tokens=1) for each in questions]

    def ask_all(asked):
        log.extend(("all", len(each.ids) - each.start) for each in asked) if log is not None else None
        found = [at_all(each) for each in asked]
        return [
            each if isinstance(each, GenerationFailure | KnownTokens) else KnownTokens(each, True)
            for each in found
        ]

    return Likelihoods(encoder(Words(), max_model_len), ask_next=ask_next, ask_all=ask_all)


def test_one_question_answers_for_all_continuations_of_one_token():
    log = []
    likelihoods = weigher(
        lambda each: {token: -2.0 - i for i, token in enumerate(each.options)},
        lambda each: [-0.25] * (len(each.ids) - each.start),
        log,
    )
    short, long = likelihoods.answer([request("Q:", " a", " b", " c"), request("Q:", " a", " b c d")])
    assert log == [("next", 3), ("all", 1), ("all", 3)]
    assert short.choice_logprobs == {" a": -2.0, " b": -3.0, " c": -4.0}
    assert long.choice_logprobs == {" a": -0.25, " b c d": -0.75}
    assert (short.text, long.text, short.finish_reason) == (" a", " a", "stop")
    assert (short.input_tokens, short.output_tokens, long.input_tokens) == (2 + 3, 0, 3 + 5)
    assert (short.cached_tokens, long.cached_tokens) == (1, None)  # vLLM looks nothing up for the longer ones


def test_of_equal_continuations_the_first_is_the_text():
    (answer,) = weigher(lambda each: dict.fromkeys(each.options, -1.0)).answer([request("Q", " b", " a")])
    assert answer.text == " b"


@pytest.mark.parametrize("bad", [math.nan, -math.inf, math.inf, 0.5, -9999.0])
def test_what_is_no_log_probability_is_a_reason_and_no_score(bad):
    likelihoods = weigher(
        lambda each: dict.fromkeys(each.options, bad),
        lambda each: [-1.0] * (len(each.ids) - each.start - 1) + [bad],
    )
    failures = likelihoods.answer([request("Q", " a", " b"), request("Q", " a b", " c")])
    assert [each.reason for each in failures] == ["no_logprobs", "no_logprobs"]


def test_a_failure_is_its_own_requests_alone():
    refusal = GenerationFailure(reason="refused", detail="no")
    likelihoods = weigher(
        at_all=lambda each: refusal if len(each.ids) == 5 else [-1.0] * (len(each.ids) - each.start)
    )
    bad, good = likelihoods.answer([request("Q", " a b", " c d e f"), request("Q", " a b", " c d e")])
    assert bad == refusal
    assert good.text == " a b"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return save_tiny_llama(tmp_path_factory.mktemp("tiny"), seed=0)


def load(folder, **fields):
    args = {"dtype": "float32", "max_model_len": 64, "device": "cpu", "batch_size": 3}
    return TransformersEngine(
        ModelRef(name="tiny", provider="transformers", model=str(folder), model_args=args, **fields)
    )


@pytest.fixture(scope="module")
def engine(folder):
    return load(folder)


def literal(folder, prompt, continuation):
    """The log-likelihood token by token, one forward pass for each."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    bare = prompt.rstrip()
    ids = tokenizer(bare)["input_ids"] or [tokenizer.eos_token_id]
    total = 0.0
    for token in tokenizer(prompt[len(bare) :] + continuation)["input_ids"]:
        with torch.no_grad():
            total += float(model(torch.tensor([ids])).logits[0, -1].double().log_softmax(-1)[token])
        ids = [*ids, token]
    return total


def test_transformers_weighs_as_one_pass_for_each_token_does(engine, folder):
    pairs = [pair for pair in PAIRS if pair[0] != "</s>a"]
    requests = [request(prompt, continuation, "zz top") for prompt, continuation in pairs]
    for answer, (prompt, continuation) in zip(engine.generate(requests), pairs, strict=True):
        expected = literal(folder, prompt, continuation)
        assert answer.choice_logprobs[continuation] == pytest.approx(expected, abs=1e-4)


def test_what_a_continuation_weighs_depends_on_nothing_else_in_the_batch(engine):
    requests = [request(prompt, continuation, "no, never") for prompt, continuation in PAIRS]
    text = Request(prompt="7", sampling=Sampling(max_tokens=3), seed=0)
    choosing = Request(prompt="7", sampling=Sampling(choices=("A", "B")), seed=0)
    together = engine.generate([*requests, text, choosing])
    for answer, asked in zip(together, [*requests, text, choosing], strict=True):
        (alone,) = engine.generate([asked])
        assert alone.text == answer.text
        if answer.choice_logprobs is not None:
            assert answer.choice_logprobs == pytest.approx(alone.choice_logprobs, abs=1e-4)


def literal_greedy(folder, prompt, n_tokens):
    """What greedy decoding gives, one forward pass for each token; and the most probable other last token."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    start = ids = tokenizer(prompt)["input_ids"]
    for _ in range(n_tokens):
        with torch.no_grad():
            best, second = model(torch.tensor([ids])).logits[0, -1].topk(2).indices.tolist()
        ids, other = [*ids, best], [*ids, second]
    return tokenizer.decode(ids[len(start) :]), tokenizer.decode(other[len(start) :])


@pytest.mark.parametrize("n_tokens", [1, 2, 4])
def test_a_continuation_is_greedy_if_decoding_gives_it_and_not_if_its_last_token_is_another(
    engine, folder, n_tokens
):
    found = {}
    for prompt in ("1+1=", "Q: a\n?", "xyz"):
        best, other = literal_greedy(folder, prompt, n_tokens)
        for text, expected in ((best, True), (other, False)):
            if AutoTokenizer.from_pretrained(folder)(prompt + text)["input_ids"][-n_tokens:] and text.strip():
                (answer,) = engine.generate([greedy(prompt, text)])
                (plain,) = engine.generate([request(prompt, text)])
                found[prompt, expected] = answer.is_greedy
                assert (answer.text == text) is answer.is_greedy
                assert answer.text in (text, "")
                # An engine may batch the two differently, and float32 sums are the same to about 1e-6.
                assert answer.choice_logprobs == pytest.approx(plain.choice_logprobs, abs=1e-5)
                assert (plain.text, plain.is_greedy) == (text, None)
    assert found == {key: key[1] for key in found}
    assert {expected for _, expected in found} == {True, False}


@pytest.mark.parametrize("worse", [None, 0, 1, 3])
def test_a_text_is_greedy_only_if_all_of_its_pieces_are(worse):
    text, pieces = " ".join("abcdefgh" * 4), []

    def told(each):
        pieces.append(each)
        return KnownTokens([-0.5] * (len(each.ids) - each.start), is_greedy=len(pieces) - 1 != worse)

    (answer,) = weigher(at_all=told, max_model_len=11).answer([greedy("", text)])
    assert len(pieces) == 4
    assert (answer.is_greedy, answer.text) == ((True, text) if worse is None else (False, ""))
    assert answer.choice_logprobs == {text: -16.0}


def test_the_next_token_alone_does_not_say_what_is_greedy():
    log = []
    weigher(at_all=lambda each: [-1.0] * (len(each.ids) - each.start), log=log).answer([greedy("Q:", " a")])
    assert log == [("all", 1)]


def test_greedy_decoding_is_asked_about_one_continuation():
    with pytest.raises(ValueError, match="is_greedy needs exactly one continuation, got 2"):
        replace(request("1", "a", "b"), is_greedy=True)


def test_a_chat_is_weighed_after_its_template(folder, engine, tmp_path):
    template = "{% for m in messages %}<{{ m.content }}>{% endfor %}!"
    chat = load(save_tiny_llama(tmp_path, seed=0, chat_template=template), chat=True)
    (answer,), (plain,) = (
        each.generate([request(prompt, "yes", "no")]) for each, prompt in ((chat, "ok?"), (engine, "<ok?>!"))
    )
    assert answer.choice_logprobs == pytest.approx(plain.choice_logprobs, abs=1e-4)


def test_choices_are_weighed_after_what_the_assistant_has_begun_to_say(engine, tmp_path):
    turn = "<{{ m.role[0] }}>{{ m.content }}{% if not loop.last %}|{% endif %}"
    template = f"{{% for m in messages %}}{turn}{{% endfor %}}"
    chat = load(save_tiny_llama(tmp_path, seed=0, chat_template=template), chat=True)
    messages = (Message("user", "ok?"), Message("assistant", "I say"))
    asked = replace(request(as_stored(messages), " yes", " no"), messages=messages)
    (answer,), (plain,) = chat.generate([asked]), engine.generate([request("<u>ok?|<a>I say", " yes", " no")])
    assert answer.choice_logprobs == pytest.approx(plain.choice_logprobs, abs=1e-4)


def test_a_request_weighs_different_texts_and_does_not_choose_as_well():
    with pytest.raises(ValueError, match="different, non-empty strings"):
        request("1", "a", "a")
    with pytest.raises(ValueError, match="non-empty"):
        request("1", "")
    with pytest.raises(ValueError, match="not both"):
        Request(prompt="1", continuations=("a",), sampling=Sampling(choices=("A", "B")), seed=0)


def echoing(**changes):
    """A server of one token per character; each weighs -1/8 of its place in the alphabet."""

    def script(call):
        prompt = call.body["prompt"]
        told = [None, *(-(ord(each) % 32) / 8 for each in prompt[1:]), -7.0]
        whole = {
            "choices": [{"text": "x", "finish_reason": "length", "logprobs": {"token_logprobs": told}}],
            "usage": {"prompt_tokens": len(prompt), "completion_tokens": 1},
        }
        return Fault(body=json.dumps(changes.get("change", lambda body: body)(whole)).encode())

    return changes.get("script", script)


def served(tmp_path, script, requests):
    with faulty_server(script) as server:
        model = ModelRef(name="m", provider="openai", model="served", model_base_url=server.url)
        engine = start_engine(model, EngineSettings(log_folder=tmp_path, max_retries=0))
        try:
            return engine.generate(requests), [call.body for call in server.calls]
        finally:
            engine.close()


def test_a_server_weighs_the_tokens_that_follow_the_prompts_own(tmp_path):
    requests = [request("Q: ", "ab", "b"), request("Q", " a"), request("", "a", "b"), request(" ", "a")]
    (first, second, *empty), bodies = served(tmp_path, echoing(), requests)
    assert first.choice_logprobs == {"ab": -(0 + 1 + 2) / 8, "b": -2 / 8}
    assert second.choice_logprobs == {" a": -1 / 8}
    assert (first.text, first.input_tokens, first.output_tokens) == ("b", 5 + 4, 0)
    assert [each.reason for each in empty] == ["empty_prompt", "empty_prompt"]
    echoed = [body for body in bodies if body.get("echo")]
    assert {(body["logprobs"], body["max_tokens"], body["temperature"]) for body in echoed} == {(1, 1, 0.0)}
    assert [body["prompt"] for body in bodies].count("Q:") == 1


def without_first_token(begins):
    """llama-cpp-python's server, which tells nothing of a token that begins a text, and counts it.

    Where there is no such token, what it tells in the place of each is of one place later, and the last is
    missing.
    """

    def script(call):
        prompt = call.body["prompt"]
        own = [-(ord(each) % 32) / 8 for each in prompt]
        told, tokens = ([*own, -7.0], [*prompt, "x"]) if begins else ([-9.0] * len(prompt), [*prompt])
        logprobs = {"token_logprobs": [None, *told[1:]], "tokens": tokens}
        whole = {
            "choices": [{"text": f"{prompt}x", "finish_reason": "length", "logprobs": logprobs}],
            "usage": {"prompt_tokens": len(prompt) + begins, "completion_tokens": 1},
        }
        return Fault(body=json.dumps(whole).encode())

    return script


def test_a_server_that_leaves_out_what_begins_a_text_weighs_the_same_tokens(tmp_path):
    """The reproduction: the first token of each choice was passed over for the one written after it."""
    (plain,), _ = served(tmp_path, echoing(), [request("Q: ", "ab", "b")])
    (found,), _ = served(tmp_path, without_first_token(True), [request("Q: ", "ab", "b")])
    assert found.choice_logprobs == plain.choice_logprobs


def test_a_server_that_tells_of_other_places_than_it_names_is_refused(tmp_path):
    with pytest.raises(EngineLoadFailed, match=r"for 16 tokens of the prompt and 1 after it .* 16"):
        served(tmp_path, without_first_token(False), [request("Q", " a")])


def highest(*tops):
    """A server that tells these as the most probable tokens in the places of an echo, whatever was asked."""

    def change(body):
        logprobs = body["choices"][0]["logprobs"]
        own = logprobs["token_logprobs"]
        logprobs["top_logprobs"] = [*([None] * (len(own) - len(tops))), *tops]
        return body

    return echoing(change=change)


@pytest.mark.parametrize(
    ("tops", "found"),
    [
        ([{"a": -0.125}, {"b": -0.25}, {"x": -1.0}], True),
        ([{"a": -0.125}, {"b": -0.25, "z": -0.3}, {"x": -1.0}], True),
        ([{"a": -0.125}, {"b": -0.25, "z": -0.2}, {"x": -1.0}], False),
        ([{"a": -0.125, "z": -0.1}, {"b": -0.25}, {"x": -1.0}], False),
        ([{"z": -0.125}, {"b": -0.25}, {"x": -1.0}], True),  # a tie
        ([{"b": -0.25}, {"x": -1.0}], None),
        ([{}, {"b": -0.25}, {"x": -1.0}], None),
        ([{"a": math.nan}, {"b": -0.25}, {"x": -1.0}], None),
        ([{"a": -0.125, "z": math.nan}, {"b": -0.25}, {"x": -1.0}], None),
    ],
)
def test_a_server_tells_whether_a_text_is_greedy_by_its_most_probable_tokens(tmp_path, tops, found):
    (answer, plain), _ = served(tmp_path, highest(*tops), [greedy("Q", "ab"), request("Q", "ab")])
    assert plain.choice_logprobs == {"ab": -3 / 8}
    if found is None:
        assert (answer.reason, "the most probable token at each" in answer.detail) == ("no_logprobs", True)
    else:
        assert (answer.is_greedy, answer.text) == (found, "ab" if found else "")
        assert answer.choice_logprobs == plain.choice_logprobs


def without_echo(body):
    del body["choices"][0]["logprobs"]["token_logprobs"][:-1]
    return body


def placeholders(body):
    told = body["choices"][0]["logprobs"]["token_logprobs"]
    told[:] = [-9999.0] * len(told)
    return body


def no_logprobs(body):
    body["choices"][0]["logprobs"] = None
    return body


@pytest.mark.parametrize(
    "script",
    [
        echoing(change=without_echo),
        echoing(change=placeholders),
        echoing(change=no_logprobs),
        lambda call: refused(400, "echo is not supported") if call.body.get("echo") else None,
    ],
)
def test_a_server_that_cannot_is_refused_in_one_sentence_before_it_is_asked(tmp_path, script):
    with pytest.raises(EngineLoadFailed) as refusal:
        served(tmp_path, script, [request("Q", " a")])
    sentence = str(refusal.value)
    assert "does not return the log-probabilities of a prompt's tokens" in sentence
    assert "provider vllm or transformers" in sentence
    assert "\n" not in sentence


def test_a_server_that_cannot_weigh_a_text_by_itself_is_refused_where_perplexity_is_asked_for(tmp_path):
    with pytest.raises(EngineLoadFailed) as refusal:
        served(tmp_path, echoing(), [request("", "a")])
    assert str(refusal.value).endswith(
        "does not return the tokens of a text without a prompt, which output_type: perplexity needs and only "
        "vLLM's servers offer; serve the model with vLLM, or choose provider vllm or transformers"
    )


class WritesOnly:
    """A plug-in's engine that knows nothing of continuations."""

    identity = "writes 1"

    def __init__(self, model, settings):
        pass

    def generate(self, requests):
        return [
            Completion(text="a", finish_reason="stop", input_tokens=1, output_tokens=1, seconds=0.0)
            for _ in requests
        ]

    def close(self):
        pass


def test_an_engine_of_another_package_that_only_writes_is_refused_in_one_sentence():
    entry = EntryPoint(name="writes", group="winnow.engines", value=f"{__name__}:WritesOnly")
    engine = PluginEngine(entry, ModelRef(name="m", provider="writes", model="m"), None)
    assert engine.generate([Request(prompt="1", sampling=Sampling(), seed=0)])[0].text == "a"
    with pytest.raises(EngineLoadFailed, match="engine 'writes' returns no log-likelihoods"):
        engine.generate([request("1", " a", " b")])


class SaysGreedy(WritesOnly):
    """One that weighs, and whose words on greedy decoding follow from the prompt."""

    SAID: ClassVar = {
        "yes": ("a", True), "no": ("", False), "mute": ("a", None),
        "odd": ("a", False), "other": ("b", True), "word": ("a", "yes"),
    }  # fmt: skip

    def generate(self, requests):
        counts = {"finish_reason": "stop", "input_tokens": 1, "output_tokens": 0, "seconds": 0.0}
        told = [(self.SAID[each.prompt], dict.fromkeys(each.continuations, -1.0)) for each in requests]
        return [
            Completion(text=text, is_greedy=said, choice_logprobs=known, **counts)
            for (text, said), known in told
        ]


def test_an_engine_of_another_package_has_to_say_what_is_greedy():
    entry = EntryPoint(name="says", group="winnow.engines", value=f"{__name__}:SaysGreedy")
    engine = PluginEngine(entry, ModelRef(name="m", provider="says", model="m"), None)
    answers = engine.generate([greedy("yes", "a"), greedy("no", "a")])
    assert [(each.text, each.is_greedy) for each in answers] == [("a", True), ("", False)]
    for prompt in ("mute", "odd", "other", "word"):
        with pytest.raises(EngineLoadFailed, match="does not report whether greedy decoding gives"):
            engine.generate([greedy(prompt, "a")])
