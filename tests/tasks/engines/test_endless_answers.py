"""The time of a request bounds its whole exchange, whichever part of an answer has no end."""

import gc
import itertools
import socket
import threading
from contextlib import contextmanager, suppress

import pytest

from winnow.tasks.engines.errors import EngineError
from winnow.tasks.engines.openai import server_calls
from winnow.tasks.engines.protocol import ModelRef, Request, Sampling
from winnow.tasks.engines.providers import EngineSettings, start_engine

ASKED = [Request(prompt="1", sampling=Sampling(max_tokens=4), seed=0)]
OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"


def bytewise(beginning, repeated):
    """The beginning, then single bytes, each after a pause."""
    yield beginning
    for at in itertools.count():
        yield 0.02
        yield repeated[at % len(repeated) :][:1]


def at_once(beginning, repeated):
    """The beginning, then the same bytes again and again, as fast as they are read."""
    yield beginning
    while True:
        yield repeated * 64


ANSWERS = {
    "informational answers": lambda: at_once(b"", b"HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n"),
    "informational answers, slowly": lambda: bytewise(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "a status line, slowly": lambda: bytewise(b"HTTP/1.1 200 ", b"O"),
    "one header, slowly": lambda: bytewise(OK + b"X: ", b"a"),
    "headers": lambda: at_once(OK, b"X-A: b\r\n"),
    "headers, slowly": lambda: bytewise(OK, b"X-A: b\r\n"),
    "chunks": lambda: at_once(CHUNKED, b"1\r\n \r\n"),
    "chunks, slowly": lambda: bytewise(CHUNKED, b"1\r\n \r\n"),
    "the extension of a chunk": lambda: at_once(CHUNKED + b"1;", b"a"),
    "the size of a chunk, slowly": lambda: bytewise(CHUNKED, b"0"),
    "trailers": lambda: at_once(CHUNKED + b"1\r\n{\r\n0\r\n", b"X-A: b\r\n"),
    "trailers, slowly": lambda: bytewise(CHUNKED + b"1\r\n{\r\n0\r\n", b"X-A: b\r\n"),
    "a body of a length, slowly": lambda: bytewise(OK + b"Content-Length: 100\r\n\r\n", b" "),
    "a body up to the end of the connection": lambda: bytewise(OK + b"\r\n", b" "),
    "an error's body, slowly": lambda: bytewise(b"HTTP/1.1 400 Bad\r\n\r\n", b" "),
    "a redirect's body, slowly": lambda: bytewise(b"HTTP/1.1 302 Found\r\nLocation: /b\r\n\r\n", b" "),
    "nothing": lambda: iter(()),
}


@contextmanager
def server_of(answer):
    """The port of a server that begins this answer to every connection, and never ends it."""
    listening, stopped = socket.create_server(("127.0.0.1", 0)), threading.Event()
    workers = []

    def serve(connection):
        with connection, suppress(OSError):
            if answer is not None:  # a TLS server says nothing before the client has, and then nothing
                connection.recv(65_536)
                for part in answer():
                    if stopped.wait(part if isinstance(part, float) else 0):
                        return
                    if isinstance(part, bytes):
                        connection.sendall(part)
            stopped.wait()

    def accept():
        with suppress(OSError):
            while True:
                connection, _ = listening.accept()
                connection.settimeout(5)
                workers.append(threading.Thread(target=serve, args=(connection,)))
                workers[-1].start()

    accepting = threading.Thread(target=accept)
    accepting.start()
    yield listening.getsockname()[1]
    stopped.set()
    listening.shutdown(socket.SHUT_RDWR)
    listening.close()
    for each in (accepting, *workers):
        each.join()


def ends(url, monkeypatch):
    monkeypatch.setattr(server_calls, "CONTROL_TIMEOUT", 0.3)
    ref = ModelRef(name="m", provider="openai", model="m", model_base_url=url)
    settings = EngineSettings(log_folder=None, max_retries=0, request_timeout=0.3)
    engine = start_engine(ref, settings)
    try:
        with pytest.raises(EngineError) as ended:
            engine.generate(ASKED)
    finally:
        engine.close()
    return str(ended.value)


@pytest.mark.parametrize("kind", ANSWERS)
def test_an_answer_without_an_end_ends_the_request(kind, monkeypatch):
    with server_of(ANSWERS[kind]) as port:
        assert "\n" not in ends(f"http://127.0.0.1:{port}/v1", monkeypatch)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # asyncio leaves it to Python
def test_a_handshake_of_tls_that_never_goes_on_ends_the_request(monkeypatch):
    with server_of(None) as port:
        assert "\n" not in ends(f"https://127.0.0.1:{port}/v1", monkeypatch)
        gc.collect()
