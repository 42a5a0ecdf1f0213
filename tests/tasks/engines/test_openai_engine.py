"""The engine of served models against a server of ours that misbehaves on purpose."""

import json
import math
import re
import threading
import time
from concurrent.futures import CancelledError
from contextlib import closing, suppress
from dataclasses import replace
from email.utils import formatdate

import anyio
import pytest
from faulty_server import (
    DROPPED,
    GARBAGE,
    HANGING,
    MODEL,
    OVERLOADED,
    SERVER_ERROR,
    TRANSIENT,
    UNKNOWN_MODEL,
    WRONG_KEY,
    Fault,
    always,
    faulty_server,
    in_order,
    no_faults,
    now_and_then,
    rate_limited,
    refused,
    slow,
)
from waiting import PATIENCE_S, eventually

from winnow.tasks.engines.errors import EngineDied, EngineError, EngineLoadFailed, EngineTimeout
from winnow.tasks.engines.known_providers import NO_SEED
from winnow.tasks.engines.openai import engine as engine_module
from winnow.tasks.engines.openai import server_calls
from winnow.tasks.engines.openai.answers import read_generated
from winnow.tasks.engines.openai.engine import CONTROL
from winnow.tasks.engines.openai.errors import TOO_MUCH, Forbidden, NotThere, seconds_to_wait
from winnow.tasks.engines.openai.http_connection import HttpConnection
from winnow.tasks.engines.openai.requests import SPELLED, escape_special_tokens, generation_body
from winnow.tasks.engines.openai.server_calls import FIRST_WIDTH
from winnow.tasks.engines.pool.pool import EnginePool
from winnow.tasks.engines.protocol import BatchUnfinished, Completion, ModelRef, Request, Sampling, Structure
from winnow.tasks.engines.providers import EngineSettings, start_engine


@pytest.fixture(autouse=True)
def _short_delays(monkeypatch):
    monkeypatch.setattr(server_calls, "FIRST_DELAY", 0.001)


@pytest.fixture
def serve(tmp_path):
    """Start a server and an engine for it; both end with the test."""
    left = []

    def started(script=no_faults, *, settings=None, next_tokens=None, reply=None, listing=None, **model):
        serving = faulty_server(script, next_tokens=next_tokens, **({"reply": reply} if reply else {}))
        server = serving.__enter__()
        server.listing = listing
        left.append(lambda: serving.__exit__(None, None, None))
        ref = reference(server.url, **model)
        engine = start_engine(ref, EngineSettings(log_folder=tmp_path, **(settings or {})))
        left.append(engine.close)
        return server, engine

    yield started
    for end in reversed(left):
        end()


def reference(url, **fields):
    fields = {"name": "m", "provider": "openai", "model": MODEL, "model_base_url": url} | fields
    return ModelRef(**fields)


def ask(*prompts, seed=0, **sampling):
    return [Request(prompt=prompt, sampling=Sampling(**sampling), seed=seed) for prompt in prompts]


PROMPTS = [f"prompt {i}" for i in range(40)]


def texts(answers):
    return [answer.text for answer in answers]


@pytest.mark.parametrize("chat", [False, True])
def test_texts_come_in_order_with_their_tokens_and_shares_of_the_time(serve, chat):
    server, engine = serve(reply=lambda call: f"re: {call.prompt}", chat=chat)
    started = time.perf_counter()
    answers = engine.generate(ask(*PROMPTS))
    took = time.perf_counter() - started
    assert texts(answers) == [f"re: {prompt}" for prompt in PROMPTS]
    assert [each.input_tokens for each in answers] == [len(prompt) for prompt in PROMPTS]
    assert [each.output_tokens for each in answers] == [len(prompt) + 4 for prompt in PROMPTS]
    assert all(each.seconds > 0 for each in answers)
    assert 0 < sum(each.seconds for each in answers) <= took
    assert all(0 < each.latency <= took for each in answers)
    assert {call.path for call in server.calls} == {"/v1/chat/completions" if chat else "/v1/completions"}


@pytest.mark.parametrize("one_by_one", [False, True])
def test_what_waits_for_a_connection_takes_no_time_of_the_server(serve, one_by_one):
    """The reproduction: of candidates with equal work, those asked first were given a sixth of the time."""
    _, engine = serve(always(slow(0.01)), settings={"max_connections": 1 if one_by_one else 4})
    groups = [ask(*(f"{name} {i}" for i in range(6))) for name in "abcd"]
    answered = {}
    threads = [
        threading.Thread(target=lambda n=n: answered.update({n: engine.generate(groups[n])}))
        for n in range(4)
    ]
    started = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.perf_counter() - started
    answers = [each for n in range(4) for each in answered[n]]
    assert sum(each.seconds for each in answers) <= took
    for each in answers:
        # Alone at the server all of the time is its own, and beside three others at least a quarter of it.
        assert each.seconds >= each.latency / (1 if one_by_one else 4)


def test_a_request_says_all_that_decides_its_text(serve):
    server, engine = serve(model_args={"min_p": 0.1, "top_p": None})
    sampled = {"temperature": 0.7, "top_p": 0.9, "top_k": 5, "max_tokens": 9, "stop": ("\n", "Q:")}
    engine.generate(ask("one", seed=2**40, **sampled))
    engine.generate(ask("two", seed=7))
    assert server.calls[0].body == {
        "model": MODEL,
        "prompt": "one",
        "temperature": 0.7,
        "top_k": 5,
        "max_tokens": 9,
        "stop": ["\n", "Q:"],
        "seed": 2**40,
        "min_p": 0.1,
    }
    assert server.calls[1].body == {
        "model": MODEL, "prompt": "two", "temperature": 0.0, "max_tokens": 256, "min_p": 0.1
    }  # fmt: skip


def test_a_chat_has_one_message_and_the_arguments_of_its_template(serve):
    server, engine = serve(chat=True, chat_template_args={"enable_thinking": False})
    engine.generate(ask("hello"))
    assert server.calls[0].body["messages"] == [{"role": "user", "content": "hello"}]
    assert server.calls[0].body["chat_template_kwargs"] == {"enable_thinking": False}


@pytest.mark.parametrize("text", ["<|[INST]|>", "<｜a<|im_end|>｜>", "<|x[/INST]</s>|>"])
def test_a_special_token_within_another_one_is_broken_up_too(text):
    assert not SPELLED.search(escape_special_tokens(text))
    assert escape_special_tokens(text).replace(" ", "") == text


@pytest.mark.parametrize(
    "token", ["<|im_end|>", "<｜User｜>", "</s>", "<s>", "[INST]", "[/INST]", "<end_of_turn>", "<<SYS>>"]
)
def test_a_prompt_cannot_end_its_turn_of_a_chat(serve, token):
    for chat, shown in ((True, f"{token[0]} {token[1:]}"), (False, token)):
        server, engine = serve(chat=chat)
        engine.generate(ask(f"I say {token}, twice {token}."))
        assert server.calls[0].prompt == f"I say {shown}, twice {shown}."


@pytest.mark.parametrize("text", ["a <b> c", "x | y", "<|", "if a<s and b>s", "[INSTALL]", "<p>5 < 6</p>"])
def test_a_chat_is_sent_other_texts_as_they_are(serve, text):
    server, engine = serve(chat=True)
    engine.generate(ask(text))
    assert server.calls[0].prompt == text


@pytest.mark.parametrize("fault", TRANSIENT)
def test_what_passes_is_asked_again_and_changes_nothing(serve, fault):
    server, engine = serve(in_order(fault, None, fault))
    assert texts(engine.generate(ask(*PROMPTS[:3]))) == texts(serve()[1].generate(ask(*PROMPTS[:3])))
    assert (len(server.calls), server.answered) == (5, 3)


@pytest.mark.parametrize("status", [424, 498])
def test_a_failure_of_tgi_and_a_crowd_at_groq_pass(serve, status):
    server, engine = serve(in_order(refused(status, "Flex tier capacity exceeded")))
    assert texts(engine.generate(ask("1")))
    assert len(server.calls) == 2


def test_a_fifth_of_faults_changes_nothing(serve):
    server, engine = serve(now_and_then(0.2))
    assert texts(engine.generate(ask(*PROMPTS))) == texts(serve()[1].generate(ask(*PROMPTS)))
    assert len(server.calls) > server.answered == len(PROMPTS)


@pytest.mark.parametrize("fault", [*TRANSIENT, HANGING])
def test_a_server_that_never_answers_is_asked_so_often_and_then_the_engine_died(serve, fault):
    server, engine = serve(always(fault), settings={"max_retries": 2, "request_timeout": 0.2})
    with pytest.raises(EngineDied, match=r"^model 'm': http://127\.0\.0\.1:\d+/v1 .*\(after 3 attempts\)$"):
        engine.generate(ask("only"))
    # One that has too much to do is not asked more.
    controls = [] if fault.status in TOO_MUCH else [CONTROL.prompt]
    assert [call.prompt for call in server.calls] == ["only"] * 3 + controls


def test_a_server_that_is_not_there_is_named(tmp_path):
    engine = start_engine(
        reference("http://127.0.0.1:9/v1"), EngineSettings(log_folder=tmp_path, max_retries=0)
    )
    with pytest.raises(EngineDied, match=r"http://127\.0\.0\.1:9/v1 gave no answer: .*\(after one attempt\)"):
        _ = engine.identity
    engine.close()


def test_a_pool_starts_anew_and_then_gives_up_this_model_only(serve, tmp_path):
    broken, _ = serve(always(SERVER_ERROR))
    working, _ = serve()
    with EnginePool(log_folder=tmp_path, max_restarts=1, max_loaded=2) as pool:
        model = reference(broken.url, name="broken", model="other")
        with pytest.raises(EngineDied):
            pool.generate(model, ask("1"))
        (failure,) = pool.generate(model, ask("1"))
        assert failure.reason == "engine_failed"
        assert "answered 500: Internal Server Error" in failure.detail
        assert len(texts(pool.generate(reference(working.url), ask("1")))) == 1


ONE_BY_ONE = {"max_connections": 1, "max_retries": 0}


def one_by_one(model, settings):
    """An engine that asks for one text after the other, each once."""
    return start_engine(model, replace(settings, **ONE_BY_ONE))


def overloaded_by(prompt, *, times):
    """A script of a server that has too much of one prompt, so often."""
    left = [OVERLOADED] * times
    return lambda call: left.pop() if call.prompt == prompt and left else None


def test_an_engine_that_dies_in_a_batch_tells_what_was_answered_before(serve):
    _, engine = serve(overloaded_by("bad", times=1), settings=ONE_BY_ONE)
    with pytest.raises(BatchUnfinished) as unfinished:
        engine.generate(ask("1", "2", "bad", "3"))
    assert unfinished.value.answered.keys() == {0, 1}
    assert isinstance(unfinished.value.cause, EngineDied)


def test_an_engine_that_is_closed_in_a_batch_tells_what_was_answered_before(serve):
    server, engine = serve(lambda call: HANGING if call.prompt == "hang" else None, settings=ONE_BY_ONE)
    told = []

    def generate():
        try:
            engine.generate(ask("1", "hang"))
        except BatchUnfinished as error:
            told.append(error)

    waiting = threading.Thread(target=generate)
    waiting.start()
    eventually(lambda: [call.prompt for call in server.calls] == ["1", "hang"])
    engine.close()
    waiting.join(PATIENCE_S)
    assert [list(each.answered) for each in told] == [[0]]
    assert isinstance(told[0].cause, CancelledError)


def test_a_pool_asks_for_no_text_again_that_an_engine_had_before_it_died(serve, tmp_path):
    server, _ = serve(overloaded_by("bad", times=1))
    asked = ask("1", "2", "bad", "3")
    with EnginePool(log_folder=tmp_path, factory=one_by_one) as pool:
        with pytest.raises(EngineDied):
            pool.generate(reference(server.url), asked)
        assert len(texts(pool.generate(reference(server.url), asked))) == 4
        assert [call.prompt for call in server.calls] == ["1", "2", "bad", "bad", "3"]
        pool.generate(reference(server.url), asked[:1])  # what was given is not kept
    assert [call.prompt for call in server.calls][5:] == ["1"]


def test_what_a_model_answered_before_it_was_given_up_is_no_failure(serve, tmp_path):
    server, _ = serve(overloaded_by("bad", times=2))
    with EnginePool(log_folder=tmp_path, factory=one_by_one, max_restarts=1) as pool:
        with pytest.raises(EngineDied):
            pool.generate(reference(server.url), ask("1", "bad", "2"))
        answered, *failed = pool.generate(reference(server.url), ask("1", "bad", "2"))
        assert isinstance(answered, Completion)
        assert [each.reason for each in failed] == ["engine_failed"] * 2
        assert pool.identity(reference(server.url)) == f"openai {MODEL}"


def test_a_request_that_a_server_fails_over_while_it_answers_others_fails_alone(serve):
    def after_the_others(call):
        if call.prompt != "bad":
            return None
        eventually(lambda: server.answered >= 2)
        return SERVER_ERROR

    server, engine = serve(after_the_others, settings={"max_retries": 2})
    good, bad, also_good = engine.generate(ask("1", "bad", "2"))
    assert len(texts([good, also_good])) == 2
    assert (bad.reason, bad.detail) == (
        "refused",
        "the server answered 500: Internal Server Error (after 3 attempts), but answered others meanwhile",
    )
    assert attempts(server) == 3


GATEWAYS = (refused(502, "Bad gateway"), refused(504, "Gateway timeout"), DROPPED)


@pytest.mark.parametrize("fault", GATEWAYS)
def test_a_request_that_a_gateway_fails_over_again_while_others_are_answered_fails_alone(serve, fault):
    def failed_before(call):
        if call.prompt == "bad":
            if call.attempt == 2:
                eventually(lambda: server.answered >= 2)
            return fault
        eventually(lambda: attempts(server) == 3)
        return None

    server, engine = serve(failed_before, settings={"max_retries": 2})
    good, bad, also_good = engine.generate(ask("1", "bad", "2"))
    assert len(texts([good, also_good])) == 2
    assert bad.reason == "refused"
    assert bad.detail.endswith("(after 3 attempts), but answered others meanwhile")
    assert attempts(server) == 3


def attempts(server):
    """How often what is bad was asked so far."""
    return [call.prompt for call in server.calls].count("bad")


@pytest.mark.parametrize("fault", [SERVER_ERROR, *GATEWAYS, OVERLOADED, rate_limited()])
@pytest.mark.parametrize("under_way", [0, 1])
def test_a_server_that_ends_once_it_has_answered_others_is_no_fault_of_a_request(
    serve, fault, under_way, monkeypatch
):
    """Others are answered before the first failure, or, as they were under way, between it and the second."""
    has_read = []

    def counted(value, *, chat):
        has_read.append(value)
        return read_generated(value, chat=chat)

    monkeypatch.setattr(engine_module, "read_generated", counted)

    def after_the_others(call):
        if call.prompt in ("1", "2"):
            eventually(lambda: attempts(server) > under_way)
            return None
        if call.attempt >= under_way:
            eventually(lambda: len(has_read) >= 2)
        return fault

    server, engine = serve(after_the_others, settings={"max_retries": 2})
    server.props = {"total_slots": 16}  # so that one is left for it when it is sent half as much
    with pytest.raises(BatchUnfinished) as unfinished:
        engine.generate(ask("1", "bad", "2"))
    assert isinstance(unfinished.value.cause, EngineDied)
    assert str(unfinished.value.cause).endswith("(after 3 attempts)")


LOADING = refused(503, "Loading model", Retry_After="0")
"""As llama.cpp says it until the model is there."""


def test_a_server_that_still_loads_the_model_is_waited_for_beyond_all_attempts(serve):
    """The reproduction: it was given up after most of a minute, which a large model takes longer than."""
    server, engine = serve(in_order(*[LOADING] * 7), settings={"max_retries": 1})
    assert len(texts(engine.generate(ask("1")))) == 1
    assert len(server.calls) == 8


def test_a_server_is_waited_for_as_long_as_loading_may_take_and_no_longer(serve):
    settings = {"max_retries": 1, "load_timeout": server_calls.LONGEST_DELAY + 0.1}
    server, engine = serve(always(LOADING), settings=settings)
    with pytest.raises(EngineDied, match=r"answered 503: Loading model \(after \d+ attempts\)$"):
        engine.generate(ask("1"))
    assert len(server.calls) > 2


def test_what_fails_once_the_model_is_there_is_not_asked_for_ever(serve):
    server, engine = serve(
        lambda call: LOADING if call.number < 4 else SERVER_ERROR, settings={"max_retries": 1}
    )
    with pytest.raises(EngineDied, match=r"answered 500: Internal Server Error \(after 5 attempts\)$"):
        engine.generate(ask("1"))
    assert len(server.calls) == 6  # the last is the control


ALONE = [SERVER_ERROR, *GATEWAYS, HANGING]


@pytest.mark.parametrize("fault", ALONE)
@pytest.mark.parametrize("chat", [False, True])
def test_a_request_that_fails_when_nobody_else_is_asked_is_told_from_an_outage_by_a_control(
    serve, fault, chat
):
    """The reproduction: one prompt without an answer ended its model, as all others had theirs before."""

    def script(call):
        return fault if call.prompt == "bad" else None

    # So long a control may take on a busy machine.
    server, engine = serve(script, settings={"max_retries": 1, "request_timeout": 3.0}, chat=chat)
    (bad,) = engine.generate(ask("bad"))
    assert bad.reason == "refused"
    assert bad.detail.endswith("(after 2 attempts), but answered others meanwhile")
    assert [call.prompt for call in server.calls] == ["bad", "bad", CONTROL.prompt]


@pytest.mark.parametrize("answer", [WRONG_KEY, UNKNOWN_MODEL, GARBAGE, refused(400, "no")])
def test_a_control_that_is_not_answered_either_says_nothing_against_a_request(serve, answer):
    _, engine = serve(
        lambda call: SERVER_ERROR if call.prompt == "bad" else answer, settings={"max_retries": 0}
    )
    with pytest.raises(EngineDied, match="answered 500"):
        engine.generate(ask("bad"))


def test_all_that_fail_together_ask_one_control(serve):
    tried, together = set(), threading.Barrier(FIRST_WIDTH)

    def script(call):
        if call.prompt == CONTROL.prompt:
            return None
        if call.prompt in tried:
            together.wait(PATIENCE_S)
        tried.add(call.prompt)
        return SERVER_ERROR

    server, engine = serve(script, settings={"max_retries": 1})
    assert {each.reason for each in engine.generate(ask(*PROMPTS[:FIRST_WIDTH]))} == {"refused"}
    assert [call.prompt for call in server.calls].count(CONTROL.prompt) == 1


def test_a_request_that_hangs_is_given_up_while_there_is_time_to_ask_a_control(serve, monkeypatch):
    """And not when its whole batch is, over which its model could be given up."""
    server, engine = serve(
        lambda call: HANGING if call.prompt == "bad" else None, settings={"request_timeout": 3.0}
    )
    monkeypatch.setattr(anyio, "current_effective_deadline", lambda: anyio.current_time() + 2.9)
    (bad,) = engine.generate(ask("bad"))
    assert (
        bad.detail == "the server did not answer in time (after one attempt), but answered others meanwhile"
    )
    assert attempts(server) == 1


@pytest.mark.parametrize(
    ("sentence", "reason"),
    [
        ("response_format is no object", "refused"),
        ("the request exceeds the available context size", "prompt_too_long"),
        ("prompt is too long: 200001 tokens > 200000 maximum", "prompt_too_long"),
        ("The input token count (9) exceeds the maximum number of tokens allowed (8).", "prompt_too_long"),
    ],
)
def test_a_refused_request_fails_alone_in_the_servers_bounded_words(serve, sentence, reason):
    fault = refused(400, f"{sentence}\x1b[31m\n{'x' * 9999}")
    server, engine = serve(lambda call: fault if call.prompt == "bad" else None)
    good, bad, also_good = engine.generate(ask("1", "bad", "2"))
    assert bad.reason == reason
    assert bad.detail.startswith(f"the server says 400: {sentence}")
    assert bad.detail.isprintable()
    assert len(bad.detail) < 400
    assert isinstance(good, Completion)
    assert isinstance(also_good, Completion)
    assert len(server.calls) == 3


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        (
            b'"finish_reason": "content_filter", "text": ""',
            "the server ended the text with finish_reason 'content_filter'",
        ),
        (b'"finish_reason": null, "text": "half"', "the server ended the text with finish_reason None"),
    ],
)
def test_a_text_that_the_server_cut_off_is_no_text(serve, body, detail):
    usage = b'"usage": {"prompt_tokens": 1, "completion_tokens": 1}'
    _, engine = serve(always(Fault(body=b'{"choices": [{%s}], %s}' % (body, usage))))
    (failure,) = engine.generate(ask("1"))
    assert (failure.reason, failure.detail) == ("refused", detail)


@pytest.mark.parametrize(
    ("ended", "reason"),
    [
        ("eos", "stop"),
        ("STOP", "stop"),
        ("end_turn", "stop"),
        ("MAX_TOKENS", "length"),
        ("model_length", "length"),
    ],
)
def test_other_words_for_an_end_are_an_end(serve, ended, reason):
    """The reproduction: of Together, which says eos, no text was used."""
    told = {"choices": [{"finish_reason": ended, "text": "a"}]}
    told["usage"] = {"prompt_tokens": 1, "completion_tokens": 1}
    _, engine = serve(always(Fault(body=json.dumps(told).encode())))
    (answer,) = engine.generate(ask("1"))
    assert (answer.text, answer.finish_reason) == ("a", reason)


@pytest.mark.parametrize("ended", ["error", "abort", "insufficient_system_resource"])
def test_a_text_that_a_server_broke_off_is_asked_for_again(serve, ended):
    body = b'{"choices": [{"finish_reason": "%s", "text": "h"}], "usage": %s}'
    broken = Fault(body=body % (ended.encode(), b'{"prompt_tokens": 1, "completion_tokens": 1}'))
    server, engine = serve(in_order(broken))
    assert texts(engine.generate(ask("1"))) != ["h"]
    assert len(server.calls) == 2


@pytest.mark.parametrize(
    ("sentence", "reason"),
    [
        ("Your input was flagged", "refused"),
        ("refused by moderation: violence", "refused"),
        ("prompt is too long: 9000 tokens of 8193", "prompt_too_long"),
    ],
)
def test_a_prompt_that_a_gateway_does_not_let_pass_fails_alone(serve, sentence, reason):
    fault = refused(403, sentence)
    server, engine = serve(lambda call: fault if call.prompt == "bad" else None)
    good, bad, also_good = engine.generate(ask("1", "bad", "2"))
    assert (bad.reason, bad.detail) == (reason, f"the server says 403: {sentence}")
    assert len(texts([good, also_good])) == 2
    assert len(server.calls) == 3


BLOCKED = Fault(
    status=403,
    body=b"<!DOCTYPE html>%s<head><title>\nAttention Required!\n</title></head>" % (b"<!-- -->" * 50),
)


def test_a_prompt_that_a_firewall_does_not_let_pass_fails_alone(serve):
    """The reproduction: one prompt that looked like an attack ended its model, over its key."""
    server, engine = serve(lambda call: BLOCKED if call.prompt == "bad" else None)
    engine.generate(ask("0"))
    good, bad, also_good = engine.generate(ask("1", "bad", "2"))
    assert (bad.reason, bad.detail) == ("refused", "the server says 403: Attention Required!")
    assert len(texts([good, also_good])) == 2
    assert attempts(server) == 1


def test_a_key_that_may_nothing_any_more_is_no_fault_of_a_request(serve):
    _, engine = serve(lambda call: BLOCKED if call.number else None)
    engine.generate(ask("0"))
    with pytest.raises(
        EngineLoadFailed, match=r"refuses requests without a key \(403: Attention Required!\)"
    ):
        engine.generate(ask("1"))


@pytest.mark.parametrize("listing", [refused(403, "Missing scopes: api.model.read"), BLOCKED, GARBAGE])
def test_a_server_that_does_not_list_its_models_is_asked_all_the_same(serve, listing):
    """The reproduction: a key of OpenAI's that may ask models, and not list them, was refused as a whole."""
    _, engine = serve(listing=listing, settings={"max_retries": 1})
    assert texts(engine.generate(ask("1")))
    assert engine.identity == f"openai {MODEL}"


@pytest.mark.parametrize("error", [NotThere, Forbidden])
def test_a_vllm_server_whose_gateway_hides_its_version_is_one_like_others(error):
    class Hidden:
        async def get(self, path, read):
            if path != "/models":
                raise error("m", "not for you")
            return read({"data": [{"id": MODEL, "owned_by": "vllm", "max_model_len": 64}]})

    found = anyio.run(server_calls.probe, Hidden(), reference("http://x/v1"), "http://x")
    assert (found.listed, found.vllm, found.max_model_len) == ((MODEL,), None, 64)


def error(status, **told):
    return Fault(status=status, body=json.dumps({"error": told}).encode())


@pytest.mark.parametrize(
    "fault",
    [
        error(
            429,
            message="You exceeded your current quota",
            type="insufficient_quota",
            code="insufficient_quota",
        ),
        error(429, message="Your account is not active", code="billing_not_active"),
        error(400, message="Budget has been exceeded! Max budget: 0.1", type="budget_exceeded", code="400"),
        error(400, message="Your credit balance is too low to access the API", type="invalid_request_error"),
        error(402, message="Insufficient Balance"),
        error(200, message="Insufficient credits", code=402),
    ],
)
def test_an_account_without_money_ends_its_model_at_once(serve, monkeypatch, fault):
    """The reproduction: it was asked again for most of a minute, or lost its prompts one by one."""
    monkeypatch.setenv("TEST_KEY", "sk-abc")
    server, engine = serve(always(fault), api_key="TEST_KEY")
    with pytest.raises(
        EngineLoadFailed, match=r"requires payment .*; add credit to the account of \$TEST_KEY, or"
    ):
        engine.generate(ask("1"))
    assert len(server.calls) == 1


def test_a_prompt_that_a_server_quotes_is_not_taken_for_its_own_words(serve):
    quoted = "cannot read 'Your credit balance is too low', 'API key not valid' and 'Model Not Exist'"
    _, engine = serve(always(error(400, message=quoted)))
    (failure,) = engine.generate(ask("1"))
    assert (failure.reason, failure.detail) == ("refused", f"the server says 400: {quoted}")


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (
            Fault(status=400, body=b'[{"error": {"code": 400, "message": "API key not valid."}}]'),
            "refuses requests",
        ),
        (
            error(400, message="Invalid model: foo", type="invalid_model", code="1500"),
            "does not have the model",
        ),
        (error(400, message="Model Not Exist", type="invalid_request_error"), "does not have the model"),
        (
            error(400, message="/chat/completions: Invalid model name passed in model=foo."),
            "does not have the model",
        ),
    ],
)
def test_a_wrong_key_or_model_is_one_by_whichever_status_it_is_told(serve, fault, said):
    server, engine = serve(always(fault))
    with pytest.raises(EngineLoadFailed, match=said):
        engine.generate(ask("1"))
    assert len(server.calls) == 1


CHOICES = b'"choices": [{"finish_reason": "stop", "text": "a"}]'


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (
            b'{"error": {"message": "upstream is overloaded", "code": 502}}',
            "the error 'upstream is overloaded'",
        ),
        (b'{"error": {"code": 502}, "choices": []}', "the error '{\"code\": 502}'"),
        (b'{"error": "no room"}', "the error 'no room'"),
    ],
)
def test_what_is_sent_in_the_place_of_an_answer_is_told_in_words(serve, body, said):
    _, engine = serve(always(Fault(body=body)), settings={"max_retries": 0})
    with pytest.raises(EngineDied) as caught:
        engine.generate(ask("1"))
    assert str(caught.value).endswith(f"/v1 sent an invalid answer: {said} (after one attempt)")


UNCOUNTED = (b"{%s}" % CHOICES, b'{%s, "usage": null}' % CHOICES)


@pytest.mark.parametrize("body", UNCOUNTED)
def test_a_server_that_never_counts_tokens_fails_the_model_at_the_second_answer(serve, body):
    """The reproduction: each of its answers, which may cost money, was asked for 18 times."""
    server, engine = serve(always(Fault(body=body)), settings={"max_retries": 5})
    with pytest.raises(EngineLoadFailed) as caught:
        engine.generate(ask("1"))
    assert str(caught.value).endswith(
        "/v1 sent an invalid answer: it reports no token counts (`usage`), which costs and limits "
        "need (after 2 attempts); configure it, or the gateway before it, to send `usage`"
    )
    assert len(server.calls) == 2


@pytest.mark.parametrize(
    ("usage", "counts"),
    [
        ({"prompt_tokens": None, "completion_tokens": 3, "total_tokens": 10}, (7, 3)),
        ({"prompt_tokens": 7, "completion_tokens": None, "total_tokens": 10}, (7, 3)),
        ({"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": None}, (7, 3)),
        ({"prompt_tokens": 7, "completion_tokens": 3, "prompt_tokens_details": None}, (7, 3)),
        ({"completion_tokens": 3, "total_tokens": 10}, (7, 3)),
        ({"prompt_tokens": 7, "completion_tokens": None, "total_tokens": None}, None),
        ({"prompt_tokens": None, "completion_tokens": None, "total_tokens": 10}, None),
        ({"prompt_tokens": None, "completion_tokens": None, "total_tokens": None}, None),
        ({}, None),
    ],
)
def test_a_count_that_is_null_follows_from_the_others_or_is_not_told(serve, usage, counts):
    body = json.dumps({"choices": [{"finish_reason": "stop", "text": "a"}], "usage": usage}).encode()
    _, engine = serve(always(Fault(body=body)))
    if counts is None:
        with pytest.raises(EngineLoadFailed, match="send `usage`"):
            engine.generate(ask("1"))
        return
    [answer] = engine.generate(ask("1"))
    assert (answer.input_tokens, answer.output_tokens) == counts


@pytest.mark.parametrize(
    ("said", "remedy"),
    [
        (
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
            "'max_completion_tokens' instead.",
            "model_args: {max_tokens: null, max_completion_tokens: 1000} sends the limit under that name",
        ),
        (
            "Unsupported value: 'temperature' does not support 0.0 with this model. Only the default (1) "
            "value is supported.",
            "model_args: {temperature: null} leaves the temperature out of requests",
        ),
        ("`temperature` is deprecated for this model.", "model_args: {temperature: null} leaves"),
        (
            "`temperature` and `top_p` cannot both be specified for this model. Please use only one.",
            "model_args: {top_p: null} leaves the top_p out of requests",
        ),
        ("property 'seed' is unsupported", "model_args: {seed: null} leaves the seed out of requests"),
    ],
)
def test_a_key_that_a_server_does_not_take_is_named_with_its_remedy(serve, said, remedy):
    fault = Fault(status=400, body=json.dumps({"error": {"message": said}}).encode())
    _, engine = serve(always(fault))
    [failure] = engine.generate(ask("1", temperature=0.7))
    assert f"; {remedy}" in failure.detail


def test_a_server_is_sent_no_seed_where_its_model_says_so(serve):
    """The reproduction: a server that refuses seeds could not be asked at any temperature."""

    def script(call):
        if "seed" not in call.body:
            return None
        return Fault(
            status=422,
            body=json.dumps(
                {"detail": [{"loc": ["body", "seed"], "msg": "Extra inputs are not permitted"}]}
            ).encode(),
        )

    _, engine = serve(script)
    [failure] = engine.generate(ask("1", temperature=0.7))
    assert failure.detail.endswith("; model_args: {seed: null} leaves the seed out of requests")
    assert not engine.identity.endswith(NO_SEED)
    _, engine = serve(script, model_args={"seed": None})
    assert len(texts(engine.generate(ask("1", temperature=0.7)))) == 1
    assert engine.identity == f"openai {MODEL} {NO_SEED}"


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("", "models are listed at {root}/v1: set model_base_url to that"),
        ("/v2", "check `model` and `model_base_url`; it lists no models"),
        ("/api", "the base URL of most servers ends with /v1: {root}/api/v1"),
    ],
)
@pytest.mark.parametrize(
    "answer",
    [
        Fault(status=404, body=b'{"detail": "Not Found"}'),
        Fault(status=405, body=b"Method Not Allowed"),
        Fault(body=b"<html><title>A page</title></html>"),
        Fault(body=b'{"error": "Unexpected endpoint or method. (POST /chat/completions)"}'),
    ],
)
def test_a_base_url_without_its_version_is_named_with_the_right_one(serve, answer, path, said):
    """The reproduction: the sentence did not say what is missing; the address stays as it was given."""
    server, _ = serve(lambda call: None if call.path.startswith("/v1/") else answer)
    root = server.url.removesuffix("/v1")
    ref = reference(root + path, chat=True)
    with closing(start_engine(ref, EngineSettings(log_folder=None, max_retries=1))) as engine:
        if path == "/v2" and answer.status == 200:
            said = "sent an invalid answer"
        with pytest.raises(EngineError, match=re.escape(said.format(root=root))):
            engine.generate(ask("1"))
    assert {call.path for call in server.calls} <= {f"{path}/chat/completions"}


def test_a_server_that_forgets_to_count_now_and_then_is_asked_again(serve):
    faults = [Fault(body=UNCOUNTED[0]) if number != 1 else None for number in range(5)]
    server, engine = serve(in_order(*faults), settings={"max_retries": 5})
    assert [len(texts(engine.generate(ask(prompt)))) for prompt in ("1", "2")] == [1, 1]
    assert len(server.calls) == 6


def test_prompts_that_cannot_be_sent_are_not(serve):
    server, engine = serve()
    empty, broken = engine.generate(ask("", "\ud800"))
    assert (empty.reason, broken.reason) == ("empty_prompt", "bad_prompt")
    assert not server.calls


@pytest.mark.parametrize(
    ("fault", "fields", "said"),
    [
        (WRONG_KEY, {}, "refuses requests without a key .*; set api_key$"),
        (WRONG_KEY, {"api_key": "TEST_KEY"}, r"refuses the key in \$TEST_KEY \(401: .*; check the key"),
        (refused(403, "no"), {}, "refuses requests without a key"),
        (
            UNKNOWN_MODEL,
            {},
            "does not have the model .*check `model` and `model_base_url`; it lists served, so it may be a "
            "chat-only model: set chat: true$",
        ),
    ],
)
def test_a_wrong_key_or_model_fails_the_model_in_one_sentence(serve, monkeypatch, fault, fields, said):
    monkeypatch.setenv("TEST_KEY", "sk-abc")
    server, engine = serve(always(fault), **fields)
    with pytest.raises(EngineLoadFailed, match=said) as caught:
        engine.generate(ask("1"))
    assert len(server.calls) == 1
    assert "\n" not in str(caught.value)


def test_a_key_is_sent_and_never_repeated(serve, monkeypatch):
    monkeypatch.setenv("TEST_KEY", "sk-very-secret\n")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-for-openai-alone")
    server, engine = serve(always(refused(400, "you sent sk-very-secret")), api_key="TEST_KEY")
    (failure,) = engine.generate(ask("1"))
    assert failure.detail == "the server says 400: you sent ***"
    keyless, engine = serve()
    engine.generate(ask("1"))
    sent = [call.headers.get("authorization") for call in (*server.calls, *keyless.calls)]
    assert sent == ["Bearer sk-very-secret", None]


def test_a_server_that_has_too_much_is_asked_for_half_as_much_at_once(serve):
    places = 16
    together = threading.Barrier(places)

    def refuse_the_first(call):
        if call.number < places:
            together.wait(60)
            return rate_limited()
        return slow(0.05)

    server, engine = serve(refuse_the_first)
    server.props = {"total_slots": places}
    assert len(texts(engine.generate(ask(*PROMPTS)))) == len(PROMPTS)
    later = max(call.in_flight for call in server.calls[places:])
    assert later <= places // 2 + 5  # it has grown by one with each full set since


@pytest.mark.parametrize(
    ("props", "most"),
    [
        ({"total_slots": 2, "model_path": "m.gguf"}, 2),
        (None, FIRST_WIDTH),
        ({"total_slots": 0}, FIRST_WIDTH),
        ({"total_slots": "many"}, FIRST_WIDTH),
    ],
)
def test_a_server_is_first_sent_what_it_has_places_for(serve, props, most):
    """The reproduction: a server with few places was sent 16 requests at once, and then 64."""
    together = threading.Barrier(most)

    def script(call):
        if call.number < most:
            together.wait(PATIENCE_S)
        return None

    server, engine = serve(script)
    server.props = props
    engine.generate(ask(*PROMPTS[:most]))
    assert server.most_in_flight == most
    server, engine = serve(always(slow(0.01)))
    server.props = props
    engine.generate(ask(*PROMPTS[: most + 4]))
    assert server.most_in_flight == most


def test_requests_that_time_out_are_told(serve, caplog):
    server, engine = serve(
        lambda call: HANGING if call.attempt == 0 else None,
        settings={"request_timeout": 0.2, "max_connections": 1},
    )
    engine.generate(ask("1", "2", "3"))
    told = [each.getMessage() for each in caplog.records if getattr(each, "event", "") == "timed_out"]
    assert told == [
        f"model 'm': {server.url} did not answer {count} within execution.request_timeout (0.2 s); "
        "Winnow now sends it fewer at once"
        for count in ("1 request", "2 requests")
    ]


def test_an_answer_after_the_time_of_its_request_is_never_taken_for_anothers(serve):
    """On one connection, which is open again for the next request."""
    _, punctual = serve()
    truth = [each.text for each in punctual.generate(ask("1", "2", "3"))]
    server, engine = serve(
        lambda call: slow(1.0) if call.attempt == 0 else None,
        settings={"request_timeout": 0.3, "max_connections": 1, "max_retries": 8},
    )
    assert [each.text for each in engine.generate(ask("1", "2", "3"))] == truth
    assert len(set(truth)) == 3
    assert len(server.calls) >= 6


def test_never_more_than_max_connections_are_under_way(serve):
    server, engine = serve(always(slow(0.002)), settings={"max_connections": 3})
    engine.generate(ask(*PROMPTS))
    assert server.most_in_flight <= 3


@pytest.mark.parametrize("fault", [rate_limited(0.3), refused(503, "busy", retry_after="0.3")])
def test_all_requests_wait_as_long_as_the_server_says(serve, fault):
    server, engine = serve(lambda call: fault if call.number == 0 else None, settings={"max_connections": 1})
    started = time.perf_counter()
    answers = engine.generate(ask("1", "2"))
    took = time.perf_counter() - started
    first, *others = server.calls
    assert len(others) == 2
    assert all(each.latency <= took - 0.3 for each in answers)  # who was told to wait had no answer yet
    assert min(call.at for call in others) - first.at >= 0.3


def test_a_wait_of_no_time_is_as_long_as_one_that_is_not_told(serve, monkeypatch):
    """The reproduction: all attempts were made within a moment, and then the model was given up."""
    monkeypatch.setattr(server_calls, "FIRST_DELAY", 0.2)
    server, engine = serve(in_order(rate_limited(0), rate_limited(0)))
    assert texts(engine.generate(ask("1")))
    first, second, third = (call.at for call in server.calls)
    assert second - first >= 0.15
    assert third - second >= 0.3


def test_a_wait_that_is_longer_than_there_is_time_ends_at_once(serve):
    _, engine = serve(always(rate_limited(3600)), settings={"batch_timeout": 60.0})
    with pytest.raises(EngineTimeout, match=r"asks to wait for 3600 s, longer than"):
        engine.generate(ask("1"))


def test_gemini_tells_in_the_body_how_long_it_wants_to_be_left_alone(serve):
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "0.3s"}]
    body = json.dumps([{"error": {"code": 429, "message": "You exceeded your quota", "details": details}}])
    server, engine = serve(in_order(Fault(status=429, body=body.encode())))
    assert texts(engine.generate(ask("1")))
    first, second = (call.at for call in server.calls)
    assert second - first >= 0.3


def test_milliseconds_go_before_seconds():
    assert seconds_to_wait({"retry-after-ms": "250", "retry-after": "1"}) == 0.25
    assert seconds_to_wait({"retry-after-ms": "soon"}) is None


def test_retry_after_is_seconds_or_a_date():
    assert seconds_to_wait({"retry-after": "1.5"}) == 1.5
    in_an_hour = {"retry-after": formatdate(time.time() + 3600, usegmt=True)}
    assert 3600 - PATIENCE_S < seconds_to_wait(in_an_hour) <= 3600
    assert seconds_to_wait({"retry-after": formatdate(time.time() - 60, usegmt=True)}) == 0.0
    assert [seconds_to_wait({"retry-after": each}) for each in ("soon", "nan", "inf", "")] == [None] * 4
    assert seconds_to_wait({}) is None


def test_a_batch_that_takes_too_long_is_a_timeout(serve):
    _, engine = serve(always(HANGING), settings={"batch_timeout": 0.3})
    with pytest.raises(EngineTimeout, match="did not answer 2 of 2 requests in time"):
        engine.generate(ask("1", "2"))


def test_what_is_asked_meanwhile_is_answered_meanwhile_and_the_shares_of_the_time_add_up(serve):
    is_asked = threading.Event()

    def script(call):
        if call.prompt != "slow":
            return None
        is_asked.set()
        return slow(0.3)

    _, engine = serve(script)
    answered = []
    engine.generate(ask("before"))  # the server is probed
    started = time.perf_counter()
    other = threading.Thread(target=lambda: answered.extend(engine.generate(ask("slow"))))
    other.start()
    assert is_asked.wait(PATIENCE_S)
    meanwhile = engine.generate(ask("one", "two"))
    assert not answered
    other.join(PATIENCE_S)
    assert engine.joins
    assert answered[0].latency >= 0.3
    assert 0.3 <= sum(each.seconds for each in [*answered, *meanwhile]) <= time.perf_counter() - started


@pytest.mark.parametrize("closing_s", [0.0, 0.2])
def test_closing_ends_the_thread_even_when_a_request_hangs(serve, monkeypatch, closing_s):
    """What hangs is given up before its connection is: else it is sent again, over one that is closed."""
    close = HttpConnection.close

    async def close_slowly(line):
        await close(line)
        await anyio.sleep(closing_s)

    monkeypatch.setattr(HttpConnection, "close", close_slowly)
    server, engine = serve(lambda call: HANGING if call.prompt == "hang" else None)
    before = threading.active_count()

    def hang():
        with suppress(CancelledError):
            engine.generate(ask("hang"))

    waiting = threading.Thread(target=hang)
    engine.generate(ask("1"))
    waiting.start()
    while len(server.calls) < 2:
        time.sleep(0.005)
    engine.close()
    engine.close()
    waiting.join(PATIENCE_S)
    assert not waiting.is_alive()
    assert threading.active_count() <= before
    assert not [each.name for each in threading.enumerate() if each.name == "openai m"]


def test_model_args_may_not_take_the_place_of_what_winnow_sends(tmp_path):
    with pytest.raises(EngineLoadFailed, match="model_args cannot contain seed"):
        start_engine(
            reference("http://127.0.0.1:9/v1", model_args={"seed": 1}), EngineSettings(log_folder=tmp_path)
        )


@pytest.mark.parametrize("chat", [False, True])
def test_choices_are_drawn_by_the_probabilities_that_the_server_tells(serve, chat):
    known = {"A": -0.5, "B": -1.0, "C": -3.0}
    server, engine = serve(next_tokens=known, chat=chat)
    best, *drawn = engine.generate(
        [
            *ask("1", choices=("B", "A")),
            *(each for i in range(40) for each in ask("1", seed=i, choices=("B", "A"), temperature=1.0)),
        ]
    )
    assert (best.text, best.finish_reason) == ("A", "stop")
    assert best.choice_logprobs == {"B": -1.0, "A": -0.5}
    assert {each.text for each in drawn} == {"A", "B"}
    body = server.calls[0].body
    assert (body["temperature"], body["max_tokens"]) == (1.0, 1)
    assert body["top_logprobs" if chat else "logprobs"] == (20 if chat else 5)


@pytest.mark.parametrize("chat", [False, True])
@pytest.mark.parametrize(
    "known",
    [
        None,
        {"A": -0.5},
        {"A": math.nan, "B": -0.5},
        {"A": -math.inf, "B": -0.5},
        {"A": math.inf, "B": -0.5},
        {"A": -9999.0, "B": -9999.0},
        {"A": 0.0, "B": 0.0},
    ],
)
def test_choices_of_which_the_server_tells_nothing_usable_have_no_logprobs(serve, known, chat):
    """The reproduction: NaN and infinity were certain verdicts, and two placeholders were a tie."""
    _, engine = serve(next_tokens=known, chat=chat)
    (failure,) = engine.generate(ask("1", choices=("A", "B")))
    assert failure.reason == "no_logprobs"
    assert failure.detail.startswith("for the next token the server returned ")
    assert failure.spent.input_tokens == 1  # it was paid all the same


@pytest.mark.parametrize("chat", [False, True])
@pytest.mark.parametrize(
    "known",
    [
        {"Yes": -0.001, "No": -7.0, "no": -9.0, "yes": -12.0},
        {"<think>": -0.001, "no": -9.0, "yes": -14.0},
        {"Sure": -0.6, "no": -1.5, "yes": -2.0},
    ],
)
def test_choices_that_the_model_would_hardly_say_have_no_logprobs(serve, known, chat):
    """The reproduction: of judges that say "Yes", or think first, the odds of "yes" and "no" were noise."""
    _, engine = serve(next_tokens=known, chat=chat)
    (failure,) = engine.generate(ask("1", choices=("yes", "no")))
    assert failure.reason == "no_logprobs"
    assert "a total probability of only 0." in failure.detail


@pytest.mark.parametrize(
    ("args", "sent"),
    [
        ({}, {"max_tokens": 1, "temperature": 1.0}),
        ({"max_tokens": None, "max_completion_tokens": 9}, {"max_completion_tokens": 1, "temperature": 1.0}),
        ({"temperature": None}, {"max_tokens": 1}),
    ],
)
def test_choices_are_asked_for_by_the_keys_that_a_server_takes(serve, args, sent):
    """The reproduction: max_tokens was sent to servers that refuse it, whatever model_args said."""
    server, engine = serve(next_tokens={"A": -0.1, "B": -3.0}, chat=True, model_args=args)
    engine.generate(ask("1", choices=("A", "B")))
    keys = ("max_tokens", "max_completion_tokens", "temperature")
    assert {key: server.calls[0].body[key] for key in keys if key in server.calls[0].body} == sent


def test_the_identity_is_the_model_where_the_server_does_not_tell_its_software(serve):
    assert serve()[1].identity == f"openai {MODEL}"


@pytest.mark.parametrize("body", [b"[" * 100_000, b"\xff\xfe", b"null", b'{"choices": {}}', b""])
def test_no_answer_is_so_strange_that_it_breaks_the_engine(serve, body):
    _, engine = serve(in_order(Fault(body=body)))
    assert len(texts(engine.generate(ask("1")))) == 1


def test_other_connections_go_on_when_one_is_dropped(serve):
    server, engine = serve(lambda call: (DROPPED, GARBAGE, OVERLOADED, None)[call.attempt])
    assert len(texts(engine.generate(ask(*PROMPTS[:8])))) == 8
    assert len(server.calls) == 32


def structured(kind, value, **fields):
    model = reference("http://here/v1", **fields)
    asked = Request(prompt="p", sampling=Sampling(structure=Structure(kind, value)), seed=0)
    return model, asked


@pytest.mark.parametrize(
    ("kind", "value", "key", "sent"),
    [
        ("regex", "a+", "regex", "a+"),
        ("choice", '["a", "b"]', "choice", ["a", "b"]),
        ("json_schema", '{"type": "object"}', "json", {"type": "object"}),
        ("grammar", 'root ::= "a"', "grammar", 'root ::= "a"'),
    ],
)
def test_a_server_of_vllm_is_told_a_structure_in_the_words_of_its_version(kind, value, key, sent):
    model, asked = structured(kind, value)
    for version in ("0.11.0", "0.32.0", "1.0", "dev"):
        assert generation_body(model, asked, vllm=version)["structured_outputs"] == {key: sent}
    old = generation_body(model, asked, vllm="0.10.2")
    assert old[f"guided_{key}"] == sent
    assert "structured_outputs" not in old


def test_another_server_is_told_a_schema_in_openais_words_and_nothing_else(serve):
    server, engine = serve(chat=True)
    _, json_schema = structured("json_schema", '{"type": "object"}')
    _, regex = structured("regex", "a+")
    answer, refused = engine.generate([json_schema, regex])
    assert isinstance(answer, Completion)
    assert refused.reason == "refused"
    assert refused.detail.startswith("only vLLM's server is known to support regex")
    assert [call.body["response_format"] for call in server.calls] == [
        {
            "type": "json_schema",
            "json_schema": {"name": "answer", "schema": {"type": "object"}, "strict": True},
        }
    ]


def test_a_request_says_penalties_and_biases_where_they_are_set(serve):
    server, engine = serve()
    rare = {
        "min_p": 0.1, "presence_penalty": 1.0, "frequency_penalty": -0.5, "repetition_penalty": 1.2,
        "logit_bias": ((7, -100.0),), "stop_token_ids": (2, 3),
    }  # fmt: skip
    engine.generate(ask("one", **rare))
    expected = rare | {"logit_bias": {"7": -100.0}, "stop_token_ids": [2, 3]}
    assert {key: server.calls[0].body[key] for key in rare} == expected
