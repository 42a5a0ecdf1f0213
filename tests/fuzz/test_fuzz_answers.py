# ruff: noqa: E501 -- lists of odd values
"""Whatever a server answers, as bytes on the line and as JSON."""

import json
import socket
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from cases import JSON_VALUES, NASTY_TEXT, damaged, kept, paths_in, put, settles, taken_out
from hypothesis import given
from hypothesis import strategies as st
from property_settings import tries

from winnow.tasks.engines.openai.answers import (
    Tokens,
    Version,
    answer_of,
    json_value,
    read,
    read_generated,
    read_listing,
)
from winnow.tasks.engines.openai.engine import OpenaiEngine
from winnow.tasks.engines.openai.errors import (
    Server,
    StatusError,
    Unreadable,
    retryable_error,
    seconds_to_wait,
)
from winnow.tasks.engines.protocol import Completion, GenerationFailure, ModelRef, Request, Sampling
from winnow.tasks.engines.providers import EngineSettings

PLAIN = {
    "choices": [
        {"text": " 4", "finish_reason": "stop", "logprobs": {"top_logprobs": [{"A": -0.1, "B": -2.0}]}}
    ],
    "usage": {"prompt_tokens": 3, "completion_tokens": 1},
}
CHAT = {
    "choices": [
        {
            "message": {"content": "4", "refusal": None},
            "finish_reason": "length",
            "logprobs": {
                "content": [
                    {"top_logprobs": [{"token": "A", "logprob": -0.1}, {"token": "B", "logprob": -2}]}
                ]
            },
        }
    ],
    "usage": {"prompt_tokens": 3, "completion_tokens": 1},
}
LISTING = {"data": [{"id": "m", "owned_by": "vllm", "max_model_len": 64}]}
TOKENS = {"tokens": [1, 2], "token_strs": ["a", "<unk>"]}
VALUES = {"plain": PLAIN, "chat": CHAT, "listing": LISTING, "tokens": TOKENS, "version": {"version": "0.9"}}
SERVER = Server(model="m", url="http://h/v1", key="secret", variable="KEY")
LIKELY = st.sampled_from(
    [
        None,
        0,
        -1,
        1.5,
        2**40,
        "NaN",
        float("nan"),
        float("-inf"),
        -9999.0,
        1e308,
        "",
        "stop",
        [],
        {},
        True,
        10**120,
    ]
)


@st.composite
def bodies(draw):
    """The bytes of an answer: right but for some values, damaged, or anything."""
    value = json.loads(json.dumps(VALUES[draw(st.sampled_from(sorted(VALUES)))]))
    for _ in range(draw(st.integers(0, 3))):
        path = draw(st.sampled_from(sorted(paths_in(value), key=str) or [()]))
        if draw(st.integers(0, 3)):
            put(value, path, draw(LIKELY | JSON_VALUES))
        else:
            taken_out(value, path)
    body = json.dumps(value).encode()
    return draw(st.just(body) | damaged(body) | st.binary(max_size=60))


def read_all(body):
    """Read a body as each kind of answer; what cannot be read has one name, and what can is in range."""
    try:
        value = json_value(body)
    except Unreadable as error:
        return _said(error)
    for reader in (
        lambda: answer_of(read_generated(value, chat=False), SERVER, 0.1, 0.2),
        lambda: answer_of(read_generated(value, chat=True), SERVER, 0.1, 0.2),
        lambda: read_generated(value, chat=False).first_logprobs,
        lambda: read_listing(value),
        lambda: read(Tokens, value),
        lambda: read(Version, value),
    ):
        try:
            found = reader()
        except Unreadable as error:
            _said(error)
            continue
        if isinstance(found, Completion):
            assert found.input_tokens >= 0 <= found.output_tokens
        elif isinstance(found, GenerationFailure):
            assert found.detail.isprintable()


def _said(error):
    said = retryable_error(error, SERVER).why
    assert said.isprintable()
    assert len(said) < 1_000


@pytest.mark.parametrize("path", kept("answers"), ids=lambda path: path.name)
def test_answers_that_are_kept_settle(engine, path):
    content = path.read_bytes()
    settles(read_all, content.partition(b"\r\n\r\n")[2] or content)
    asked(engine, content)


@tries(40)
@given(bodies())
def test_whatever_body_is_read_or_called_unreadable(body):
    settles(read_all, body)


HEADERS = st.dictionaries(
    st.sampled_from(["retry-after", "Retry-After", "x"]),
    NASTY_TEXT | st.floats().map(str) | st.dates().map(str),
)


@tries(15)
@given(
    st.integers(300, 599),
    HEADERS,
    bodies() | NASTY_TEXT.map(lambda text: text.encode("utf-8", "surrogatepass")),
)
def test_whatever_status_settles(status, headers, said):
    from winnow.tasks.engines.openai.errors import RequestRefused

    def told():
        with suppress(RequestRefused):
            found = retryable_error(StatusError(status, headers, said), SERVER)
            assert found.why.isprintable()
            assert found.wait is None or found.wait >= 0.0

    settles(told)
    settles(seconds_to_wait, headers)


class Line:
    """A server that sends the same bytes to whoever asks, and closes."""

    def __init__(self):
        self.says = b""
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}/v1"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        with suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                with connection, suppress(OSError):
                    connection.settimeout(2.0)
                    connection.recv(65_536)
                    connection.sendall(self.says)

    def close(self):
        self._socket.close()


@pytest.fixture(scope="module")
def engine():
    """An engine for that server, the line itself, and one for chats."""
    line = Line()
    settings = EngineSettings(log_folder=Path("logs"), max_retries=0, request_timeout=5.0, load_timeout=10.0)
    yield line, settings
    line.close()


def asked(engine, content):
    """Ask for a text, a chat and a choice; the server answers everything, its list of models too, so."""
    line, settings = engine
    line.says = content
    for chat, choices in ((False, ()), (True, ("A", "B"))):
        model = ModelRef(name="m", provider="openai", model="m", model_base_url=line.url, chat=chat)
        asking = OpenaiEngine(model, settings)
        try:
            requests = [Request(prompt="2 + 2?", sampling=Sampling(choices=choices), seed=1)]
            settles(asking.generate, requests)
        finally:
            asking.close()


STATUSES = st.sampled_from(
    [
        "200 OK",
        "200",
        "204 No",
        "206 P",
        "301 M",
        "307 T",
        "400 B",
        "401 U",
        "404 N",
        "429 T",
        "500 E",
        "999 X",
        "abc",
        "",
    ]
)
MORE_HEADERS = st.lists(
    st.sampled_from([
        "Content-Length: 5", "Content-Length: -1", "Content-Length: 99999999999999999999", "Content-Length: x", "Transfer-Encoding: chunked",
        "Content-Encoding: gzip", "Content-Encoding: br", "Location: http://127.0.0.2/v1", "Location: /v1/x", "Location: ://", "Location:",
        "Retry-After: 0", "Set-Cookie: a=b", "X: " + "a" * 3_000, "\x00: 1", ": 1", "X\x1b[2J: 1", "Connection: close", "Upgrade: h2c",
    ]),
    max_size=3,
)  # fmt: skip


@tries(3)
@given(STATUSES, MORE_HEADERS, bodies(), st.booleans())
def test_whatever_is_on_the_line_settles(engine, status, headers, body, has_length):
    lines = [f"HTTP/1.1 {status}", *headers, *([f"Content-Length: {len(body)}"] if has_length else [])]
    asked(engine, "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body)


@tries(2)
@given(st.binary(max_size=200))
def test_whatever_bytes_are_on_the_line_settle(engine, content):
    asked(engine, content)
