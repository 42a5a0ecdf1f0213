"""Models behind APIs that are not OpenAI's: the real litellm against servers of ours that misbehave."""

import gzip
import json
import os
import signal
import subprocess
import sys
from base64 import b64decode
from contextlib import contextmanager
from dataclasses import replace

import pytest
from faulty_server import (
    DROPPED,
    GARBAGE,
    HANGING,
    OVERLOADED,
    SERVER_ERROR,
    TRUNCATED,
    UNKNOWN_MODEL,
    Fault,
    always,
    echo,
    faulty_server,
    in_order,
    no_faults,
    rate_limited,
    refused,
)
from tiny_images import png

from winnow.tasks.engines.chat import Message
from winnow.tasks.engines.errors import EngineDied, EngineLoadFailed
from winnow.tasks.engines.images import Image
from winnow.tasks.engines.litellm.engine import LitellmEngine
from winnow.tasks.engines.openai import server_calls
from winnow.tasks.engines.openai.requests import bytes_for
from winnow.tasks.engines.protocol import Completion, ModelRef, Request, Sampling, Structure
from winnow.tasks.engines.providers import EngineSettings, start_engine
from winnow.tasks.engines.server_keys import APIS, UNKNOWN

KEY = "sk-named-in-the-spec"
AMBIENT = {
    "ANTHROPIC_API_KEY": "sk-ambient",
    "ANTHROPIC_AUTH_TOKEN": "sk-ambient",
    "OPENAI_API_KEY": "sk-ambient",
    "ANTHROPIC_API_BASE": "http://127.0.0.1:9/elsewhere",
    "OPENAI_BASE_URL": "http://127.0.0.1:9/elsewhere",
    "OPENAI_API_BASE": "http://127.0.0.1:9/elsewhere",
}
"""What litellm would take up by itself."""


def reference(server, model, **fields):
    given = {
        "name": "m",
        "provider": "litellm",
        "model": model,
        "chat": True,
        "model_base_url": server.url.removesuffix("/v1") if model.startswith("anthropic") else server.url,
        "api_key": "NAMED_KEY",
    }
    return ModelRef(**given | fields)


@contextmanager
def asked(folder, model="anthropic/claude-x", *, settings=None, **fields):
    """A server and an engine that asks it."""
    with pytest.MonkeyPatch.context() as patch, faulty_server() as server:
        for name, value in {**AMBIENT, "NAMED_KEY": KEY}.items():
            patch.setenv(name, value)
        patch.setattr(server_calls, "FIRST_DELAY", 0.001)
        given = {"max_retries": 1, "request_timeout": 60.0} | (settings or {})
        how = EngineSettings(log_folder=folder, **given)
        engine = start_engine(reference(server, model, **fields), how)
        try:
            yield server, engine
        finally:
            engine.close()


@pytest.fixture(scope="module")
def claude(tmp_path_factory):
    with asked(tmp_path_factory.mktemp("claude")) as both:
        yield both


@pytest.fixture(scope="module")
def gpt(tmp_path_factory):
    with asked(tmp_path_factory.mktemp("gpt"), "openai/gpt-x") as both:
        yield both


@pytest.fixture
def scripted(claude):
    """The same server under another script, whose calls are counted from here."""
    server, engine = claude

    def begin(script=no_faults, reply=echo):
        server.calls.clear()
        server.script, server.reply = script, reply
        return server, engine

    yield begin
    server.script, server.reply = no_faults, echo


def ask(*prompts, seed=0, **sampling):
    return [Request(prompt=prompt, sampling=Sampling(**sampling), seed=seed) for prompt in prompts]


PROMPTS = [f"prompt {i}" for i in range(40)]


def test_texts_come_in_order_with_tokens_thoughts_and_shares_of_the_time(scripted):
    server, engine = scripted(reply=lambda call: f"re: {call.prompt}")
    answers = engine.generate(ask(*PROMPTS))
    assert [each.text for each in answers] == [f"re: {prompt}" for prompt in PROMPTS]
    assert [each.input_tokens for each in answers] == [len(prompt) for prompt in PROMPTS]
    assert [each.output_tokens for each in answers] == [len(prompt) + 4 for prompt in PROMPTS]
    assert [each.reasoning for each in answers] == [f"thinking of {prompt}" for prompt in PROMPTS]
    assert {each.finish_reason for each in answers} == {"stop"}
    assert all(each.seconds > 0.0 for each in answers)
    assert {call.path for call in server.calls} == {"/v1/messages"}
    assert engine.identity.split(" ")[0::2] == ["litellm", "anthropic/claude-x"]
    assert engine.joins


def test_only_the_named_key_is_sent_whatever_the_environment_holds(scripted, gpt):
    server, engine = scripted()
    engine.generate(ask("hello"))
    openai, other = gpt
    other.generate(ask("hello"))
    assert server.calls[0].headers["x-api-key"] == KEY
    assert openai.calls[-1].headers["authorization"] == f"Bearer {KEY}"
    for call in (server.calls[0], openai.calls[-1]):
        assert "sk-ambient" not in json.dumps([call.headers, call.body])


def test_a_request_says_all_that_decides_its_text_and_nothing_else(scripted):
    server, engine = scripted()
    drawn = {"temperature": 0.7, "top_p": 0.9, "top_k": 5, "max_tokens": 9, "stop": ("Q:",)}
    engine.generate(ask("<|im_end|>one", **drawn, seed=7))
    chat = (Message("system", "Be brief."), Message("user", "two"))
    engine.generate([Request(prompt="", messages=chat, sampling=Sampling(), seed=3)])

    def said(text):
        return [{"role": "user", "content": [{"type": "text", "text": text}]}]

    assert server.calls[0].body == {
        "model": "claude-x",
        "messages": said("< |im_end|>one"),
        "temperature": 0.7,
        "top_p": 0.9,
        "top_k": 5,
        "max_tokens": 9,
        "stop_sequences": ["Q:"],
    }
    assert server.calls[1].body == {
        "model": "claude-x",
        "messages": said("two"),
        "system": [{"type": "text", "text": "Be brief."}],
        "temperature": 0.0,
        "max_tokens": 256,
    }


def test_a_seed_is_sent_where_the_api_takes_one_and_a_text_is_drawn(gpt):
    server, engine = gpt
    engine.generate(ask("drawn", temperature=0.5, seed=2**31 - 1))
    engine.generate(ask("greedy", seed=5, frequency_penalty=0.5, logit_bias=((7, -1.0),)))
    drawn, greedy = (call.body for call in server.calls[-2:])
    assert drawn["seed"] == 2**31 - 1
    assert "seed" not in greedy
    assert (greedy["frequency_penalty"], greedy["logit_bias"]) == (0.5, {"7": -1.0})


@pytest.mark.parametrize(
    ("reason", "found"),
    [("max_tokens", "length"), ("stop_sequence", "stop"), ("end_turn", "stop")],
)
def test_why_a_text_ended_is_told(scripted, reason, found):
    _, engine = scripted(reply=lambda call: ("text", reason))
    assert engine.generate(ask("one"))[0].finish_reason == found


@pytest.mark.parametrize("reason", ["refusal", "tool_use"])
def test_a_text_that_ended_by_anything_else_is_none(scripted, reason):
    _, engine = scripted(reply=lambda call: ("text", reason))
    assert engine.generate(ask("one"))[0].reason == "refused"


@pytest.mark.parametrize("reason", ["pause_turn", "model_context_window_exceeded"])
def test_a_text_that_was_interrupted_is_none_or_cut_off(scripted, reason):
    _, engine = scripted(reply=lambda call: ("text", reason))
    (found,) = engine.generate(ask("one"))
    told = found.finish_reason if isinstance(found, Completion) else found.reason
    assert told in ("length", "refused")  # by the version of litellm


@pytest.mark.parametrize(
    "fault",
    [SERVER_ERROR, OVERLOADED, DROPPED, GARBAGE, TRUNCATED, rate_limited(), rate_limited(0.01),
     Fault(body=b'{"content": []}'), Fault(body=b"[1]"), Fault(body=b"[" * 100_000)],
)  # fmt: skip
def test_what_goes_away_is_asked_again_and_by_winnow_alone(scripted, fault):
    server, engine = scripted(in_order(fault))
    assert isinstance(engine.generate(ask("one"))[0], Completion)
    assert len(server.calls) == 2
    server, engine = scripted(always(fault))
    with pytest.raises(EngineDied, match=r"^model 'm': http://127.0.0.1:\d+ .*\(after 2 attempts\)$"):
        engine.generate(ask("one"))
    assert [call.prompt for call in server.calls].count("one") == 2


def message(input_tokens, output_tokens):
    """An answer of Anthropic's API with these counts."""
    usage = {"input_tokens": input_tokens, "output_tokens": output_tokens}
    fields = {"id": "1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn"}
    content = [{"type": "text", "text": "a"}]
    return Fault(body=json.dumps(fields | {"content": content, "usage": usage}).encode())


def test_an_answer_without_counted_tokens_is_none(scripted):
    _, engine = scripted(in_order(message(1, 1)))
    assert engine.generate(ask("one"))[0].text == "a"
    _, engine = scripted(always(message(0, 0)))
    with pytest.raises(EngineDied, match=r"sent an invalid answer: it reports no token counts \(`usage`\)"):
        engine.generate(ask("one"))


@pytest.mark.parametrize("counts", [(-1, 1), (1, -1), (1, 2**26), ("1", 1), (1, None), (None, 1)])
def test_counts_that_are_none_are_not_believed(scripted, counts):
    _, engine = scripted(always(message(*counts)))
    with pytest.raises(EngineDied, match="sent an invalid answer"):
        engine.generate(ask("one"))


def test_a_wrong_key_is_named_by_its_variable_and_not_repeated(scripted):
    _, engine = scripted(always(refused(401, f"invalid x-api-key {KEY}")))
    with pytest.raises(EngineLoadFailed, match=r"refuses the key in \$NAMED_KEY \(401: .*\*\*\*") as raised:
        engine.generate(ask("one"))
    assert KEY not in str(raised.value)


def test_an_unknown_model_ends_it_and_a_refused_request_only_that_one(scripted):
    _, engine = scripted(always(UNKNOWN_MODEL))
    with pytest.raises(EngineLoadFailed, match="does not have the model"):
        engine.generate(ask("one"))
    too_long = refused(400, "prompt is too long: exceeds the context window")
    _, engine = scripted(lambda call: too_long if call.prompt == "long" else None)
    answers = engine.generate(ask("one", "long", "two"))
    assert [getattr(each, "reason", "") for each in answers] == ["", "prompt_too_long", ""]


def test_a_body_longer_than_it_can_need_is_given_up(scripted):
    most = bytes_for(16)
    server, engine = scripted(always(Fault(body=b" " * 65_536, endless=True)))
    with pytest.raises(EngineDied, match=rf"a body of more than {most} bytes"):
        engine.generate(ask("one", max_tokens=16))
    assert server.sent < 64 << 20


def test_a_compressed_body_is_not_unpacked(scripted):
    bomb = gzip.compress(b" " * (64 << 20))
    server, engine = scripted(always(Fault(body=bomb, headers={"Content-Encoding": "gzip"})))
    with pytest.raises(EngineDied, match="a body compressed by 'gzip', which was not requested"):
        engine.generate(ask("one"))
    assert server.calls[0].headers["accept-encoding"] == "identity"


def test_no_key_follows_a_redirect_to_another_server(scripted):
    with faulty_server() as elsewhere:
        moved = Fault(status=307, body=b"", headers={"Location": f"{elsewhere.url}/messages"})
        _, engine = scripted(always(moved))
        with pytest.raises(EngineLoadFailed, match=r"redirects requests to http://127.0.0.1:\d+, which gets"):
            engine.generate(ask("one"))
        assert elsewhere.calls == []


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        (ask("a", presence_penalty=0.5)[0], "this API does not support presence_penalty"),
        (ask("a", min_p=0.5)[0], "this API does not support min_p"),
        (ask("a", structure=Structure("regex", "a"))[0], "structured_output of the kind regex"),
        (ask("a", choices=("x", "y"))[0], "log-probabilities are not available"),
        (
            Request(prompt="a", continuations=("x",), sampling=Sampling(), seed=0),
            "log-probabilities are not available",
        ),
        (
            Request(prompt="", messages=(Message("assistant", "So"),), sampling=Sampling(), seed=0),
            "continues an assistant's message",
        ),
    ],
)
def test_what_an_api_cannot_do_is_refused_and_not_asked(scripted, request_, said):
    server, engine = scripted()
    failure, other = engine.generate([request_, *ask("b")])
    assert (failure.reason, said in failure.detail) == ("refused", True)
    assert other.text
    assert [call.prompt for call in server.calls] == ["b"]


def test_a_schema_is_asked_for_in_the_words_of_the_api(gpt):
    server, engine = gpt
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    engine.generate(ask("one", structure=Structure("json_schema", json.dumps(schema))))
    assert server.calls[-1].body["response_format"]["json_schema"]["schema"] == schema


def test_what_a_process_of_litellms_does_not_answer_ends_in_time_and_with_it(tmp_path):
    with asked(tmp_path, settings={"max_retries": 0, "request_timeout": 0.5}) as (server, engine):
        server.script = always(HANGING)
        with pytest.raises(EngineDied, match=r"(not answer in time|gave no answer: .*) \(after one attempt"):
            engine.generate(ask("two"))
        os.kill(engine.pid, signal.SIGKILL)
        with pytest.raises(EngineDied, match=r"the litellm process does not answer any more: .*SIGKILL"):
            engine.generate(ask("three"))


def test_what_it_may_not_be_told_is_refused_before_anything_starts(tmp_path):
    for fields in ({"chat": False}, {"model_args": {"api_base": "x"}}, {"model": "claude-x"}):
        ref = ModelRef(**{"name": "m", "provider": "litellm", "model": "anthropic/c", "chat": True} | fields)
        with pytest.raises(EngineLoadFailed, match=f"^model 'm': {next(iter(fields))}: provider litellm"):
            LitellmEngine(ref, EngineSettings(log_folder=tmp_path))


WHERE_TO = """
import json, os, sys
import anyio, httpx
seen = []
async def record(self, request):
    seen.append([str(request.url), json.dumps(dict(request.headers)), (await request.aread()).decode()])
    return httpx.Response(429, request=request, json={"error": {"message": "slow"}})
httpx.AsyncHTTPTransport.handle_async_request = record
httpx.HTTPTransport.handle_request = lambda self, request: sys.exit("asked at once")
from winnow.tasks.engines.litellm.worker import EXCHANGE, Exchange
from winnow.tasks.engines.litellm.worker import Caller
async def main():
    for name, base in json.loads(sys.argv[1]).items():
        load = {"model": f"{name}/anthropic.x", "api_key": "KEY-" + name, "api_base": base, "timeout": 9}
        caller = Caller(load)
        call = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 3, "top_k": 5}
        reply = await caller.reply({"call": json.dumps(call), "most_bytes": 9})
        assert len(seen) == 1, (name, reply, seen)
        print(json.dumps([name, *seen.pop()]))
anyio.run(main)
"""


def test_every_api_is_asked_where_the_user_was_told_that_its_key_goes(tmp_path):
    from winnow.tasks.engines.litellm.engine import FORCED, INHERITED
    from winnow.tasks.processes.child_process import worker_environment

    own = "https://own.example/base"
    bases = json.dumps({name: api.base if api.origin else own for name, api in APIS.items()})
    found = subprocess.run(
        [sys.executable, "-c", WHERE_TO, bases],
        env=worker_environment({}, FORCED, INHERITED),
        capture_output=True, text=True, cwd=tmp_path,
    )  # fmt: skip
    lines = [json.loads(line) for line in found.stdout.splitlines() if line.startswith("[")]
    assert [name for name, *_ in lines] == list(APIS), found.stderr
    for name, url, headers, body in lines:
        assert url.startswith((APIS[name].origin or "https://own.example") + "/"), name
        assert f"KEY-{name}" in url + headers, name
        assert "KEY-" not in (url + headers).replace(f"KEY-{name}", ""), name
        if APIS[name].top_k:
            assert json.loads(body).get("top_k") or json.loads(body)["generationConfig"]["top_k"] == 5
    assert set(UNKNOWN) == {"min_p", "repetition_penalty", "stop_token_ids"}


def test_images_go_to_the_api_in_its_own_form(scripted):
    server, engine = scripted()
    content = png("red")
    request = replace(
        ask("what")[0], messages=(Message("user", "what"),), images=(Image.of(content, content),)
    )
    [answer] = engine.generate([request])
    assert isinstance(answer, Completion)
    [call] = server.calls
    image, text = call.body["messages"][-1]["content"]
    assert b64decode(image["source"]["data"]) == content
    assert text["text"] == "what"
