"""An OpenAI-compatible server in a thread of the test, which misbehaves as a script says.

It has Anthropic's messages too.

    with faulty_server(script=in_order(SERVER_ERROR, GARBAGE)) as server:
        ...  # server.url is a base URL; the first two calls fail, all others are answered

`GET /v1/models` is faulty where `listing` alone says so, and canary prompts, which meet the script's faults
as all others do, are counted for themselves: so a test counts only what it asked for.
"""

import hashlib
import json
import re
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from winnow.tasks.campaign.contacts import OPENINGS

MODEL = "served"
"""What the server calls its model, unless a test says otherwise."""


@dataclass(frozen=True, kw_only=True)
class Fault:
    """How a call is answered in the place of the truth; the defaults are the truth."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    """None is the true answer."""
    delay: float = 0.0
    """Seconds before the answer; infinite for one that never comes."""
    keep: float = 1.0
    """Which share of the body is sent, in [0, 1]."""
    drop: bool = False
    """Close the connection in the place of what is missing of the answer; with `keep` 0, of all of it."""
    drip: float = 0.0
    """Seconds before each byte of the body."""
    endless: bool = False
    """Send the body again and again, without a length, until whoever asked has given up."""

    @property
    def is_truth(self) -> bool:
        """Whether the true answer is given, late or not."""
        whole = self.keep == 1.0 and self.delay < float("inf") and not self.drip and not self.endless
        return self.status == 200 and self.body is None and whole


def refused(status: int, sentence: str, **headers: str) -> Fault:
    """An error in the words of OpenAI's API; underscores in a header's name stand for hyphens."""
    body = json.dumps({"error": {"message": sentence, "type": "error", "code": status}}).encode()
    return Fault(status=status, body=body, headers={k.replace("_", "-"): v for k, v in headers.items()})


def slow(seconds: float) -> Fault:
    """The truth, late."""
    return Fault(delay=seconds)


def rate_limited(retry_after: float | None = None) -> Fault:
    """429, with or without the seconds to wait."""
    wait = {} if retry_after is None else {"retry_after": f"{retry_after:g}"}
    return refused(429, "too many requests", **wait)


SERVER_ERROR = Fault(status=500, body=b"Internal Server Error")
OVERLOADED = refused(503, "the server is overloaded")
GARBAGE = Fault(body=b"\x00<html>\xff a page from some proxy")
TRUNCATED = Fault(keep=0.5)
TORN = Fault(keep=0.5, drop=True)
DROPPED = Fault(keep=0.0, drop=True)
HANGING = Fault(delay=float("inf"))
NO_CHOICES = Fault(body=b'{"id": "1", "choices": [], "usage": null}')
WRONG_SHAPE = Fault(body=b'["this", {"is": "JSON"}]')
NO_TEXT = Fault(body=b'{"choices": [{"finish_reason": "stop", "message": {"content": 7}, "text": 7}]}')
WRONG_KEY = refused(401, "Incorrect API key provided: sk-abc***xyz")
UNKNOWN_MODEL = refused(404, "The model does not exist.")

TRANSIENT = (
    SERVER_ERROR, OVERLOADED, GARBAGE, TRUNCATED, TORN, DROPPED, NO_CHOICES, WRONG_SHAPE, NO_TEXT,
    rate_limited(), rate_limited(0.01),
)  # fmt: skip
"""What goes away when the same is asked again, and takes no time."""


@dataclass(frozen=True, kw_only=True)
class Call:
    """One request for a text, as the server saw it."""

    number: int
    """Position among all calls of its kind, from 0: canaries are one, all others the other."""
    attempt: int
    """How often the very same body was sent before."""
    in_flight: int
    """Calls that are being answered, this one included."""
    at: float
    """When it came, by `time.monotonic`."""
    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]

    @property
    def prompt(self) -> str:
        """What is to be answered: the prompt, or the last message."""
        return prompt_in(self.body)


def prompt_in(body: Mapping[str, Any]) -> str:
    """What a body asks: its prompt, or its last message."""
    if "prompt" in body:
        return body["prompt"]
    content = body["messages"][-1]["content"]
    if isinstance(content, str):
        return content
    return next(each["text"] for each in content if each["type"] == "text")  # Anthropic's are in parts


CANARY = re.compile("|".join(re.sub(r"\\\{\d\\\}", ".*", re.escape(opening)) for opening in OPENINGS))


def is_canary(body: Mapping[str, Any]) -> bool:
    """Whether a body asks one of the prompts that tell whether a server still serves the same."""
    return CANARY.fullmatch(prompt_in(body)) is not None


Script = Callable[[Call], Fault | None]


def no_faults(call: Call) -> None:
    """Answer everything."""


def in_order(*faults: Fault | None) -> Script:
    """The faults of the first calls; all later ones are answered."""
    return lambda call: faults[call.number] if call.number < len(faults) else None


def always(fault: Fault) -> Script:
    """The same for every call."""
    return lambda call: fault


def now_and_then(share: float, faults: tuple[Fault, ...] = TRANSIENT) -> Script:
    """A fault for this share of all calls; which ones follows from what is asked and how often it was."""

    def script(call: Call) -> Fault | None:
        whole = json.dumps([call.body, call.attempt], sort_keys=True)
        draw = int(hashlib.sha256(whole.encode()).hexdigest()[:12], 16)
        return faults[draw % len(faults)] if draw / 16**12 < share else None

    return script


def echo(call: Call) -> str:
    """A text that differs from prompt to prompt and, where it is not greedy, from seed to seed."""
    seed = call.body.get("seed") if call.body.get("temperature") else None
    return hashlib.sha256(f"{call.prompt} {seed}".encode()).hexdigest()[:12]


class _QuietServer(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128  # of connections at once; those beyond it are reset

    def handle_error(self, request: object, client_address: object) -> None:
        if not isinstance(sys.exception(), ConnectionError):  # else whoever asked has given up
            super().handle_error(request, client_address)


class FaultyServer:
    """A running server; see `faulty_server`."""

    def __init__(
        self,
        script: Script,
        reply: Callable[[Call], str | tuple[str, str]],
        next_tokens: Mapping[str, float] | None,
        model: str,
        port: int = 0,
    ) -> None:
        self.model = model
        self.script = script
        self.reply = reply
        self.next_tokens = next_tokens
        """Log-probabilities of the most probable next tokens, told where `top_logprobs` is asked for."""
        self.names: Callable[[Call], object] = lambda call: self.model
        """Whom an answer names as who wrote it."""
        self.props: Mapping[str, object] | None = None
        """What it tells of itself at /props, as llama.cpp's server does."""
        self.listing: Fault | None = None
        """What is answered in the place of a list of models."""
        self.calls: list[Call] = []
        self.canaries: list[Call] = []
        """Calls for canary prompts, which are not among `calls`."""
        self.sent = 0
        """Bytes of all bodies that were sent to calls."""
        self.answered = 0
        """Calls to which the truth was sent."""
        self.most_in_flight = 0
        self._in_flight = 0
        self._seen: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._http = _QuietServer(("127.0.0.1", port), _handler_of(self))
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    @property
    def url(self) -> str:
        """Base URL, as a spec names it."""
        return f"http://127.0.0.1:{self._http.server_port}/v1"

    @property
    def is_closing(self) -> bool:
        """Whether the test has ended."""
        return self._closing.is_set()

    def close(self) -> None:
        """Stop listening, and let calls that hang go."""
        self._closing.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def arrived(self, path: str, headers: Mapping[str, str], body: dict[str, Any]) -> Call:
        """Count a call in."""
        whole = json.dumps(body, sort_keys=True)
        calls = self.canaries if is_canary(body) else self.calls
        with self._lock:
            self._in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self._in_flight)
            call = Call(
                number=len(calls),
                attempt=self._seen[whole],
                in_flight=self._in_flight,
                at=time.monotonic(),
                path=path,
                headers=headers,
                body=body,
            )
            self._seen[whole] += 1
            calls.append(call)
        return call

    def left(self, *, answered: bool) -> None:
        """Count a call out."""
        with self._lock:
            self._in_flight -= 1
            self.answered += answered

    def wait(self, seconds: float) -> None:
        """Sleep, but not beyond the server's end."""
        if seconds:
            self._closing.wait(None if seconds == float("inf") else seconds)

    def answer(self, call: Call) -> bytes:
        """The truth: a completion, or a chat completion, or a message of Anthropic's API."""
        reply = self.reply(call)
        text, reason = (reply, "stop") if isinstance(reply, str) else reply
        if call.path.endswith("/messages"):
            return json.dumps(self._message(call, text, reason)).encode()
        choice: dict[str, Any] = {"index": 0, "finish_reason": reason, "logprobs": self._logprobs(call)}
        chat = call.path.endswith("/chat/completions")
        choice |= {"message": {"role": "assistant", "content": text}} if chat else {"text": text}
        tokens = {"prompt_tokens": len(call.prompt), "completion_tokens": len(text)}
        usage = {**tokens, "total_tokens": sum(tokens.values())}
        kind = "chat.completion" if chat else "text_completion"
        return json.dumps(
            {
                "id": "1",
                "object": kind,
                "created": 1,
                "model": self.names(call),
                "choices": [choice],
                "usage": usage,
            }
        ).encode()

    def _message(self, call: Call, text: str, reason: str) -> dict[str, Any]:
        thought = {"type": "thinking", "thinking": f"thinking of {call.prompt}", "signature": "s"}
        return {
            "id": "1",
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": [thought, {"type": "text", "text": text}],
            "stop_reason": "end_turn" if reason == "stop" else reason,
            "stop_sequence": None,
            "usage": {"input_tokens": len(call.prompt), "output_tokens": len(text)},
        }

    def _logprobs(self, call: Call) -> dict[str, Any] | None:
        if self.next_tokens is None or not call.body.get("logprobs"):
            return None
        if not call.path.endswith("/chat/completions"):
            return {"top_logprobs": [dict(self.next_tokens)]}
        known = [{"token": token, "logprob": value} for token, value in self.next_tokens.items()]
        return {"content": [{**known[0], "top_logprobs": known}]}


def _handler_of(server: FaultyServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def log_message(self, *_: object) -> None:
            pass  # a test prints what it wants to

        def do_GET(self) -> None:
            if server.listing is not None:
                self._send(server.listing.status, {}, server.listing.body or b"")
                return
            if self.path == "/props" and server.props is not None:
                self._send(200, {}, json.dumps(server.props).encode())
                return
            known = self.path == "/v1/models"
            body = {"object": "list", "data": [{"id": server.model, "object": "model", "owned_by": "tests"}]}
            self._send(200 if known else 404, {}, json.dumps(body if known else {}).encode())

        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            body = self.rfile.read(length)
            if len(body) < length:
                self.close_connection = True  # whoever asked has given up
                return
            call = server.arrived(self.path, dict(self.headers), json.loads(body))
            fault = server.script(call) or Fault()
            server.wait(fault.delay)
            server.left(
                answered=fault.is_truth and not is_canary(call.body)
            )  # first: whoever has the answer may ask again at once
            self._answer(call, fault)

        def _answer(self, call: Call, fault: Fault) -> None:
            whole = server.answer(call) if fault.body is None else fault.body
            kept = whole[: int(len(whole) * fault.keep)]
            if fault.drop:
                self.close_connection = True
                if not kept:
                    return
            if fault.endless:
                self._send_forever(fault, kept)
            elif fault.drip:
                self._send(fault.status, fault.headers, b"", len(kept))
                for byte in kept:
                    server.wait(fault.drip)
                    self._write(bytes([byte]))
            else:
                self._send(fault.status, fault.headers, kept, len(whole) if fault.drop else len(kept))
                server.sent += len(kept)

        def _send_forever(self, fault: Fault, body: bytes) -> None:
            self.send_response(fault.status)
            self.send_header("Connection", "close")
            self.end_headers()
            while not server.is_closing:
                self._write(body)

        def _write(self, body: bytes) -> None:
            self.wfile.write(body)
            server.sent += len(body)

        def _send(
            self, status: int, headers: Mapping[str, str], body: bytes, length: int | None = None
        ) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body) if length is None else length))
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

    return Handler


@contextmanager
def faulty_server(
    script: Script = no_faults,
    reply: Callable[[Call], str | tuple[str, str]] = echo,
    next_tokens: Mapping[str, float] | None = None,
    model: str = MODEL,
) -> Iterator[FaultyServer]:
    """A server that follows a script, until the block is left.

    Args:
        script: What goes wrong with each call; it runs in the thread of the call.
        reply: The text of a true answer, or the text and why it ended.
        next_tokens: Log-probabilities of next tokens, for requests that ask for them.
        model: What it calls its model.
    """
    server = FaultyServer(script, reply, next_tokens, model)
    try:
        yield server
    finally:
        server.close()
