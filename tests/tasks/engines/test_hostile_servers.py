"""What a server of foreign hands may do to whoever asks it: nothing but give no answer, in one sentence."""

import gzip
import json
import math
import threading
import tracemalloc
import zlib
from contextlib import contextmanager

import pytest
from faulty_server import MODEL, Fault, always, faulty_server, in_order

from winnow.tasks.engines.errors import EngineDied, EngineLoadFailed
from winnow.tasks.engines.openai import server_calls
from winnow.tasks.engines.openai.answers import (
    MOST_LISTED,
    SHOWN_OF_BODY,
    answer_of,
    json_value,
    read_generated,
    read_listing,
)
from winnow.tasks.engines.openai.errors import (
    Server,
    StatusError,
    Unreadable,
    retryable_error,
    seconds_to_wait,
)
from winnow.tasks.engines.openai.http_connection import HttpConnection
from winnow.tasks.engines.openai.requests import answer_bytes, bytes_for, generation_body
from winnow.tasks.engines.protocol import ModelRef, Request, Sampling
from winnow.tasks.engines.providers import EngineSettings, start_engine

MIB = 1 << 20
TOKENS = 16
ASKED = [Request(prompt="1", sampling=Sampling(max_tokens=TOKENS), seed=0)]
ANSWER = {
    "choices": [{"finish_reason": "stop", "text": "a"}],
    "usage": {"prompt_tokens": 1, "completion_tokens": 1},
}


@pytest.fixture(autouse=True)
def _short_delays(monkeypatch):
    monkeypatch.setattr(server_calls, "FIRST_DELAY", 0.001)


@contextmanager
def asking(script, **model):
    """A server and an engine that asks it, each request twice at the most."""
    with faulty_server(script) as server:
        ref = ModelRef(
            **{"name": "m", "provider": "openai", "model": MODEL, "model_base_url": server.url} | model
        )
        settings = EngineSettings(log_folder=None, max_retries=1, request_timeout=20.0)
        engine = start_engine(ref, settings)
        try:
            yield server, engine
        finally:
            engine.close()


def answer(**fields):
    return json.dumps(ANSWER | fields).encode()


def padded(length):
    """An answer of this many bytes."""
    body = answer(padding="")
    return body.replace(b'"padding": ""', b'"padding": "%s"' % (b"x" * (length - len(body))))


def test_a_body_may_have_a_kibibyte_for_each_token_and_a_mebibyte_and_not_a_byte_more():
    most = TOKENS * 1024 + MIB
    with asking(in_order(Fault(body=padded(most)))) as (server, engine):
        assert engine.generate(ASKED)[0].text == "a"
        assert len(server.calls) == 1
    with asking(always(Fault(body=padded(most + 1)))) as (server, engine):
        with pytest.raises(EngineDied, match=rf"a body of more than {most} bytes.*\(after 2 attempts\)$"):
            engine.generate(ASKED)
        assert len(server.calls) == 2 + 1  # and a control


@pytest.mark.parametrize(
    ("args", "tokens"),
    [
        ({}, 16),
        ({"max_tokens": 64}, 64),
        ({"max_tokens": None, "max_completion_tokens": 99}, 99),
        ({"max_tokens": True}, 2**17),
        ({"max_tokens": None}, 2**17),
    ],
)
def test_how_much_is_allowed_follows_from_what_is_sent(args, tokens):
    assert answer_bytes({"max_tokens": 16} | args) == bytes_for(tokens)


def test_a_body_without_an_end_is_given_up():
    """The reproduction: it was read for as long as there was memory."""
    with asking(always(Fault(body=b" " * 65_536, endless=True))) as (server, engine):
        with pytest.raises(EngineDied, match="a body of more than"):
            engine.generate(ASKED)
        assert server.sent < 64 * MIB  # what fits into the sockets' buffers included


def test_a_body_that_is_no_json_shows_how_it_begins():
    with (
        asking(always(Fault(body=b'data: {"choices": []}\n\n'))) as (_, engine),
        pytest.raises(
            EngineDied,
            match=r'no JSON: Expecting value: line 1 column 1 \(char 0\): data: \{"choices": \[\]\}',
        ),
    ):
        engine.generate(ASKED)


def test_a_content_encoding_that_is_empty_is_none():
    with asking(always(Fault(headers={"Content-Encoding": ""}))) as (_, engine):
        assert len(engine.generate(ASKED)[0].text) == 12


@pytest.mark.parametrize(
    ("encoding", "compress"), [("gzip", gzip.compress), ("deflate", zlib.compress), ("br", bytes)]
)
def test_a_compressed_body_is_not_unpacked(encoding, compress):
    bomb = compress(b" " * (64 * MIB)) if encoding != "br" else b"\x00"
    fault = Fault(body=bomb, headers={"Content-Encoding": encoding})
    with asking(always(fault)) as (server, engine):
        _ = engine.identity
        tracemalloc.start()
        try:
            with pytest.raises(
                EngineDied, match=f"a body compressed by '{encoding}', which was not requested"
            ):
                engine.generate(ASKED)
            assert tracemalloc.get_traced_memory()[1] < 8 * MIB
        finally:
            tracemalloc.stop()
        assert server.calls[0].headers["accept-encoding"] == "identity"


@pytest.mark.parametrize(
    ("told", "cached"),
    [
        ({"cached_tokens": 3}, 3),
        ({"cached_tokens": 0, "audio_tokens": None}, 0),
        ({"cached_tokens": 5}, None),  # more than the prompt has
        *[({"cached_tokens": each}, None) for each in (-1, True, "3", 1e300, None, [3])],
        *[(each, None) for each in ({}, [], "x", 7, None)],
    ],
)
def test_what_cannot_be_read_of_a_prefix_cache_is_not_known_and_the_text_is(told, cached):
    usage = {"prompt_tokens": 4, "completion_tokens": 1, "prompt_tokens_details": told}
    found = read_generated(json.loads(answer(usage=usage)), chat=False)
    completion = answer_of(found, Server(model="m", url="http://h/v1", key="", variable=None), 1.0, 2.0)
    assert (completion.text, completion.cached_tokens) == ("a", cached)


@pytest.mark.parametrize(
    ("chat", "told", "known"),
    [
        (False, {"token_logprobs": [-0.5, -1.5], "top_logprobs": [{"a": -0.5}, None]}, [-0.5, -1.5]),
        (True, {"content": [{"token": "a", "logprob": -0.5}, {"token": "", "logprob": -2}]}, [-0.5, -2]),
        (True, {"content": [{"token": "a", "logprob": -0.5}, {"token": "b"}]}, None),
        (True, {"content": []}, None),
        (True, {"content": None}, None),
        (False, {"token_logprobs": [-0.5, None]}, None),
        (False, {"token_logprobs": [-0.5, -math.inf]}, None),
        (False, {"token_logprobs": [math.nan]}, None),
        (False, {"token_logprobs": []}, None),
        (False, {}, None),
        (False, None, None),
    ],
)
def test_the_log_probabilities_of_a_text_are_known_where_each_is_told_and_was_asked_for(chat, told, known):
    said = {"message": {"content": "a"}} if chat else {"text": "a"}
    body = {
        "choices": [{**said, "finish_reason": "stop", "logprobs": told}],
        "usage": {"prompt_tokens": 4, "completion_tokens": 2},
    }
    found = read_generated(json.loads(json.dumps(body)), chat=chat)
    server = Server(model="m", url="http://h/v1", key="", variable=None)
    assert answer_of(found, server, 1.0, 2.0, wants_logprobs=True).token_logprobs == known
    assert answer_of(found, server, 1.0, 2.0).token_logprobs is None


@pytest.mark.parametrize("chat", [False, True])
def test_a_server_is_asked_for_log_probabilities_where_the_file_asks(chat):
    model = ModelRef(name="m", provider="openai", model="m", chat=chat)
    asked = [Request(prompt="x", sampling=Sampling(logprobs=each), seed=0) for each in (True, False)]
    wanted, plain = (generation_body(model, each) for each in asked)
    assert wanted == {**plain, "logprobs": True if chat else 1}
    assert "logprobs" not in plain


def test_a_compressed_refusal_is_a_refusal_without_words():
    fault = Fault(status=400, body=gzip.compress(b"x" * MIB), headers={"Content-Encoding": "gzip"})
    with asking(always(fault)) as (_, engine):
        (failure,) = engine.generate(ASKED)
    assert (failure.reason, failure.detail) == ("refused", "the server says 400: nothing more")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"[" * 500_000, "nested brackets"),
        (b'{"a":' * 100_000, "nested brackets"),
        (b'{"choices": 1%s}' % (b"0" * 5_000), "a whole number of 5001 digits"),
        (b'{"usage": -%s}' % (b"9" * 1_000_000), "a whole number of 1000001 digits"),
        (answer(usage={"prompt_tokens": -1, "completion_tokens": 1}), "usage.prompt_tokens"),
        (answer(usage={"prompt_tokens": 2**31, "completion_tokens": 1}), "usage.prompt_tokens"),
        (answer(usage={"prompt_tokens": 1, "completion_tokens": float("nan")}), "usage.completion_tokens"),
        (answer(usage={"prompt_tokens": 1, "completion_tokens": 10**90}), "usage.completion_tokens"),
        (answer(usage={"prompt_tokens": True, "completion_tokens": 1}), "usage.prompt_tokens"),
        (answer(choices=[1] * 300_000), r"choices\.0"),
    ],
)
def test_what_is_no_answer_is_named_in_one_sentence(body, said):
    with asking(always(Fault(body=body))) as (_, engine), pytest.raises(EngineDied, match=said) as caught:
        engine.generate(ASKED)
    assert len(str(caught.value)) < 600
    assert "\n" not in str(caught.value)


def nested(depth):
    """The parts of a chat's content, which have parts of their own."""
    return '[{"type": "text", "text": ' * depth + '"x"' + "}]" * depth


@pytest.mark.parametrize("depth", [40, 100, 190, 380, 400, 420, 440, 470, 480, 900])
@pytest.mark.parametrize(
    "place",
    [
        '"choices": [{"index": 0, "finish_reason": "stop", "message": {"content": %s}}]',
        '"choices": [{"finish_reason": "stop", "message": {"content": "x", "reasoning": %s}}]',
        '"choices": [{"finish_reason": %s, "message": {"content": "x"}}]',
        '"choices": [{"message": {"content": "x"}, "logprobs": %s}]',
        '"model": %s',
        '"unknown": %s',
        '"error": %s',
        '"usage": {"prompt_tokens_details": %s}',
        '"choices": %s',
    ],
)
def test_an_answer_nested_however_deep_is_refused_before_it_is_read(place, depth):
    with pytest.raises(Unreadable, match="nested brackets"):
        read_generated(json_value(f"{{{place % nested(depth)}}}".encode()), chat=True)


def test_an_answer_nested_deep_ends_in_a_sentence():
    body = json.dumps({"choices": [{"message": {"content": 0}}]}).replace("0", nested(420)).encode()
    with asking(always(Fault(body=body))) as (_, engine), pytest.raises(EngineDied, match="nested brackets"):
        engine.generate(ASKED)


def test_parts_of_parts_and_brackets_in_a_text_are_read():
    content = nested(20).replace('"x"', json.dumps("[" * 500))
    choice = f'{{"finish_reason": "stop", "message": {{"content": {content}}}}}'
    usage = '{"prompt_tokens": 1, "completion_tokens": 1}'
    read = read_generated(json_value(f'{{"choices": [{choice}], "usage": {usage}}}'.encode()), chat=True)
    assert read.choices[0].message.text == "[" * 500


@pytest.mark.parametrize("status", [400, 500])
@pytest.mark.parametrize(
    "body",
    [
        b"[" * 500_000,
        b'{"error": {"message": %s1%s}}' % (b"[" * 300, b"]" * 300),
        b'{"error": {"message": 1%s}}' % (b"0" * 5_000),
        b'{"error": {"code": 1%s, "message": "no"}}' % (b"0" * 900),
        b"x" * (8 * MIB),
        b"\xff\xfe\x00",
        b"",
    ],
)
def test_what_a_server_says_of_an_error_is_bounded(status, body):
    with asking(always(Fault(status=status, body=body))) as (_, engine):
        if status == 400:
            (failure,) = engine.generate(ASKED)
            assert failure.reason == "refused"
            sentence = failure.detail
        else:
            with pytest.raises(EngineDied) as caught:
                engine.generate(ASKED)
            sentence = str(caught.value)
    assert f"{status}: " in sentence
    assert len(sentence) < 500
    assert sentence.isprintable()


def test_a_body_that_drips_ends_with_the_time_of_a_request(monkeypatch):
    fault = Fault(drip=0.05)  # never silent, and done after ten seconds and more
    with asking(always(fault)) as (server, engine):
        monkeypatch.setattr(engine._calls, "_timeout", 0.3)
        with pytest.raises(EngineDied, match="did not answer in time"):
            engine.generate(ASKED)
        assert 0 < server.sent < 100


@pytest.mark.parametrize(
    "headers",
    [
        {"x-flood": "x" * 300_000},
        {f"x-{i}": "x" * 1000 for i in range(300)},
        {f"x-{i}": "" for i in range(40_000)},
    ],
    ids=["a long one", "some hundreds", "very many"],
)
def test_a_flood_of_headers_is_no_answer(headers):
    with asking(always(Fault(headers=headers))) as (_, engine), pytest.raises(EngineDied, match="no answer"):
        engine.generate(ASKED)


def test_cookies_are_neither_kept_nor_sent_back():
    cookies = Fault(headers={"Set-Cookie": "a=" + "x" * 4000})
    with asking(always(cookies)) as (server, engine):
        for _ in range(3):
            engine.generate(ASKED)
    assert not [call for call in server.calls if "cookie" in {name.lower() for name in call.headers}]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_nothing_is_sent_on_to_another_server(monkeypatch, status):
    """The reproduction: the prompt, and the key at another port of the same host, went on."""
    monkeypatch.setenv("TEST_KEY", "sk-secret")
    with faulty_server() as other:
        fault = Fault(status=status, body=b"", headers={"Location": f"{other.url}/completions"})
        with asking(always(fault), api_key="TEST_KEY") as (server, engine):
            said = f"redirects requests to {other.url}/completions, which gets no prompts and no keys"
            with pytest.raises(EngineLoadFailed, match=said):
                engine.generate(ASKED)
        assert len(server.calls) == 1
        assert not other.calls


@pytest.mark.parametrize(
    "place",
    ["https://127.0.0.1:{port}/v1/completions", "//localhost:{port}/v1/completions", "//evil.example/"],
)
def test_another_scheme_or_host_is_another_server(place):
    def script(call):
        port = call.headers["Host"].rpartition(":")[2]
        return Fault(status=307, body=b"", headers={"Location": place.format(port=port)})

    with asking(script) as (_, engine), pytest.raises(EngineLoadFailed, match="redirects requests to"):
        engine.generate(ASKED)


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_request_that_a_server_sends_on_to_itself_stays_what_it_is(status):
    """The reproduction: by 301 and 302 it became a GET, and the server was said not to know its model."""
    there = Fault(status=status, body=b"", headers={"Location": "/v1/completions?again"})
    with asking(in_order(there)) as (server, engine):
        assert len(engine.generate(ASKED)[0].text) == 12
        first, second = server.calls
    assert second.path == "/v1/completions?again"
    assert second.body == first.body


def test_a_server_may_send_on_to_itself_but_not_for_ever():
    there = Fault(status=308, body=b"", headers={"Location": "/v1/completions?again"})
    with asking(in_order(there, there)) as (server, engine):
        assert len(engine.generate(ASKED)[0].text) == 12
        assert [call.path for call in server.calls] == ["/v1/completions", *["/v1/completions?again"] * 2]
    with asking(always(there)) as (server, engine):
        with pytest.raises(EngineDied, match="more than 5 redirects"):
            engine.generate(ASKED)
        assert len(server.calls) == 12 + 6  # and those of a control


@pytest.mark.parametrize("place", ["http://[", "ftp://x/", "http://" + "x" * 70_000, "\x01", "/" * 9000])
def test_a_place_that_is_none_is_no_answer(place):
    fault = Fault(status=307, body=b"", headers={"Location": place})
    with (
        asking(always(fault)) as (_, engine),
        pytest.raises((EngineDied, EngineLoadFailed), match=r"^model 'm': http://127") as caught,
    ):
        engine.generate(ASKED)
    assert len(str(caught.value)) < 600


AMBIENT = {
    "OPENAI_API_KEY": "sk-ambient",
    "OPENAI_ADMIN_KEY": "sk-admin",
    "OPENAI_ORG_ID": "org-ambient",
    "OPENAI_PROJECT_ID": "proj-ambient",
    "OPENAI_CUSTOM_HEADERS": "x-ambient: ambient",
    "OPENAI_BASE_URL": "http://127.0.0.1:9/ambient",
    "OPENAI_WEBHOOK_SECRET": "whsec-ambient",
}


def test_what_the_environment_says_of_openai_goes_to_no_other_server(monkeypatch):
    """The reproduction: the organization and the project went to every server."""
    for name, value in AMBIENT.items():
        monkeypatch.setenv(name, value)
    with asking(always(Fault())) as (server, engine):
        engine.generate(ASKED)
    headers = server.calls[0].headers
    assert not [each for each in (*headers, *headers.values()) if "ambient" in each or "admin" in each]
    assert set(map(str.lower, headers)) == {
        *("host", "accept", "accept-encoding", "connection", "user-agent", "content-type", "content-length")
    }


def test_openai_itself_is_told_of_the_account(monkeypatch):
    for name, value in AMBIENT.items():
        monkeypatch.setenv(name, value)
    openai = Server(model="m", url="https://api.openai.com/v1", key="sk-given", variable="GIVEN")
    sent = HttpConnection(openai, max_connections=1)._client.headers
    assert sent["authorization"] == "Bearer sk-given"
    assert (sent["openai-organization"], sent["openai-project"]) == ("org-ambient", "proj-ambient")
    assert "x-ambient" not in sent


@pytest.mark.parametrize(
    "told",
    [
        *("sk+a/é", "SK+A/É", "sk%2Ba%2F%C3%A9", "sk%2ba/%c3%a9", "c2srYS/DqQ==", "c2srYS/DqQ"),
        *("sk+a\\/\\u00e9", "sk+a/\\u00E9"),
    ],
)
def test_a_key_is_repeated_in_none_of_its_spellings(told):
    server = Server(model="m", url="http://h/v1", key="sk+a/é", variable="KEY")
    assert server.shown(f"no {told}!").replace("==", "") == "no ***!"


def test_a_part_of_a_key_within_which_a_body_was_cut_is_not_repeated():
    server = Server(model="m", url="http://h/v1", key="sk-" + "abcdefgh" * 20, variable="KEY")
    for body in (b"<html>" + server.key.encode(), b"x" * (SHOWN_OF_BODY - 6) + server.key.encode()):
        with pytest.raises(Unreadable) as refused:
            json_value(body)
        said = retryable_error(refused.value, server).why
        assert said.endswith("***")
        assert "sk-a" not in said
    cut = StatusError(500, {}, b" " * 2_000 + server.key[:60].encode())
    assert retryable_error(cut, server).why == "answered 500: ***"


@pytest.mark.parametrize("key", ["sk-\nHost: evil", "sk-clé", "sk-\x00"])
def test_a_key_that_no_header_can_hold_is_named_by_its_variable(monkeypatch, key):
    monkeypatch.setattr("winnow.tasks.engines.openai.engine.key_in", lambda variable: key)
    with (
        pytest.raises(EngineLoadFailed, match=r"^model 'm': \$TEST_KEY contains characters") as caught,
        asking(always(Fault()), api_key="TEST_KEY"),
    ):
        pass
    assert key not in str(caught.value)
    assert not [each for each in threading.enumerate() if each.name == "openai m"]


@pytest.mark.parametrize("url", ["http://[::1/v1", "http://x:y/v1"])
def test_a_url_that_is_none_is_named(url):
    with (
        pytest.raises(EngineLoadFailed, match=r"no connection to .* can be set up"),
        asking(always(Fault()), model_base_url=url),
    ):
        pass


@pytest.mark.parametrize(
    "value",
    [
        "1e999",
        "-inf",
        "9" * 5000,
        "Mon, 01 Jan 99999999999999999999 00:00:00 GMT",
        "Mon, 01 Jan 0000 99:99:99",
    ],
)
def test_a_wait_that_is_no_time_is_none(value):
    assert seconds_to_wait({"retry-after": value}) is None


def shown(message, **fields):
    """What is read of a chat whose message and other fields are these."""
    usage = {"prompt_tokens": 10, "completion_tokens": 5}
    choice = {"finish_reason": "stop", "message": {"role": "assistant", **message}}
    told = {"choices": [choice | fields.pop("choice", {})], "usage": usage, **fields}
    nobody = Server(model="m", url="u", key="", variable=None)
    return answer_of(read_generated(told, chat=True), nobody, 0.0, 0.0, wants_logprobs=True)


def test_a_content_in_parts_is_a_text_and_a_thought():
    """The reproduction: of Mistral's models that think, no text could be read."""
    thinking = {
        "type": "thinking",
        "thinking": [{"type": "text", "text": "so "}, {"type": "text", "text": "b"}],
    }
    parts = [thinking, {"type": "text", "text": "a"}, {"type": "reference", "reference_ids": [1]}, 7]
    answer = shown({"content": parts})
    assert (answer.text, answer.reasoning) == ("a", "so b")
    assert shown({"content": []}).text == ""
    assert shown({"content": ["a", "b"]}).text == "ab"


@pytest.mark.parametrize(
    "thought",
    [
        {"type": "reasoning", "text": "so b"},
        {"type": "reasoning", "reasoning": "so b"},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "so b"}]},
        {"type": "thinking", "thinking": "so b", "signature": "x"},
    ],
)
def test_a_part_that_is_a_thought_is_no_answer(thought):
    answer = shown({"content": [thought, {"type": "text", "text": "a"}]})
    assert (answer.text, answer.reasoning) == ("a", "so b")


@pytest.mark.parametrize("ended", ["stop", "tool_calls"])
def test_a_call_of_a_tool_in_the_place_of_an_answer_is_no_empty_text(ended):
    calls = [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
    answer = shown({"content": None, "tool_calls": calls}, choice={"finish_reason": ended})
    assert (answer.reason, answer.detail) == (
        "refused",
        "the server ended the text with finish_reason 'tool_calls'",
    )
    assert shown({"content": "a", "tool_calls": []}).text == "a"
    assert shown({"content": "a", "tool_calls": calls}).text == "a"


@pytest.mark.parametrize(
    ("usage", "written"),
    [
        ({"prompt_tokens": 10, "total_tokens": 99}, 89),  # Gemini's, of a text that is thoughts alone
        ({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 99}, 89),
        ({"prompt_tokens": 10, "completion_tokens": None, "total_tokens": 15}, 5),
        ({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 0}, 5),
        ({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 10**90}, 5),
        ({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": "99"}, 5),
    ],
)
def test_thoughts_that_stand_in_the_total_alone_are_counted(usage, written):
    """The reproduction: a campaign asked Gemini for 27 000 tokens and told of 1 100."""
    assert shown({"content": "a"}, usage=usage).output_tokens == written


@pytest.mark.parametrize(
    "logprobs",
    [[], {}, {"content": [{"token": "a", "logprob": None, "top_logprobs": None}]}],
)
def test_log_probabilities_that_are_not_told_leave_the_text(logprobs):
    answer = shown({"content": "a"}, choice={"logprobs": logprobs})
    assert (answer.text, answer.token_logprobs) == ("a", None)


def test_null_is_the_logarithm_of_nothing():
    """llama.cpp writes it where others write a large negative number."""
    places = [{"top_logprobs": [{"token": "a", "logprob": -0.1}, {"token": "b", "logprob": None}]}]
    told = {"choices": [{"text": "a", "logprobs": {"content": places}}], "usage": ANSWER["usage"]}
    assert read_generated(told, chat=False).first_logprobs == {"a": -0.1, "b": -math.inf}


def test_of_tokens_that_are_written_alike_the_most_probable_one_counts():
    """The reproduction: the last one did, whose probability may be next to nothing."""
    told = [("a", -0.1), ("b", -3.0), ("a", -9.0)]
    places = [{"top_logprobs": [{"token": token, "logprob": value} for token, value in told]}]
    body = {"choices": [{"text": "a", "logprobs": {"content": places}}], "usage": ANSWER["usage"]}
    assert read_generated(body, chat=False).first_logprobs == {"a": -0.1, "b": -3.0}


@pytest.mark.parametrize("choices", [[7] * 10**5, [{"logprobs": {"content": [7] * 10**5}}]])
def test_many_wrong_parts_are_one_complaint(choices):
    with pytest.raises(Unreadable) as caught:
        read_generated({**ANSWER, "choices": choices}, chat=False)
    assert caught.value.__cause__.error_count() < 5


def test_a_list_of_models_is_read_to_a_bound():
    assert len(read_listing([{"id": "a"}] * 10**5)) == MOST_LISTED


@pytest.mark.parametrize(
    "body", [b"", b"\xff\xfe", b"{", b"\x00", b'"\xff"', b"1" * 101, b"[" * 99_999, b"-", b"NaNs"]
)
def test_no_bytes_are_worse_than_unreadable(body):
    with pytest.raises(Unreadable):
        json_value(body)
