"""A worker's process that writes what is no answer, or has no memory, is one that died."""

import json
import socket
import threading
from contextlib import suppress

import pytest

from winnow.tasks.engines.errors import EngineDied, EngineLoadFailed
from winnow.tasks.engines.openai.requests import bytes_for_batch
from winnow.tasks.engines.protocol import ModelRef, Request, Sampling
from winnow.tasks.engines.providers import EngineSettings
from winnow.tasks.engines.vllm import engine as vllm_engine
from winnow.tasks.engines.vllm.engine import VllmEngine
from winnow.tasks.processes.channel import CHUNK, Channel

ASKED = [Request(prompt="a", sampling=Sampling(), seed=0)]
READY = b'{"ready": "scripted 1", "at": 0.0, "waited": 0, "can_sleep": false}\n'

TOO_LONG = bytes_for_batch(ASKED) + CHUNK

ANSWER = (
    b'{"text": "a", "finish_reason": "stop", "input_tokens": 1, "output_tokens": 1, "seconds": 0.5, '
    b'"choice_logprobs": null}'
)


class ScriptedProcess:
    """In the place of a worker: it has written all it is going to."""

    def __init__(self, written):
        self._theirs, ours = socket.socketpair()
        self._channel = Channel(ours)
        self._writer = threading.Thread(target=self._write, args=(written,))
        self._writer.start()

    def send(self, message):
        json.dumps(message)

    def receive(self, timeout, most_bytes):
        return self._channel.receive(1.0, most_bytes)

    def close(self):
        self._channel.close()
        self._writer.join()
        self._theirs.close()

    def _write(self, written):
        with suppress(OSError):  # nobody reads any more
            self._theirs.sendall(written)


@pytest.fixture
def engine_that_wrote(tmp_path, monkeypatch):
    (tmp_path / "config.json").touch()
    opened = []

    def engine(written):
        monkeypatch.setattr(vllm_engine, "WorkerProcess", lambda *_, **__: ScriptedProcess(written))
        model = ModelRef(name="m", provider="vllm", model=str(tmp_path))
        opened.append(VllmEngine(model, EngineSettings(log_folder=tmp_path)))
        return opened[-1]

    yield engine
    for each in opened:
        each.close()


@pytest.mark.parametrize(
    "written",
    [
        b"\x00\xff{not json\n",
        b"[1, 2, 3]\n",
        b'{"results": []}\n',
        b'{"number": 1, "results": []}\n',
        b'{"number": [1], "answers": []}\n',
        b'{"number": 2, "answers": []}\n',
        b'{"number": 1, "answers": 7}\n',
        b'{"number": 1, "answers": [7]}\n',
        b'{"number": 1, "answers": [{"sentence": "no answer"}]}\n',
        b'{"number": 1, "answers": []}\n',
        b'{"number": 1, "answers": [%s, %s]}\n' % (ANSWER, ANSWER),
        b'{"number": 1, "answers": [%s]}\n' % ANSWER.replace(b"0.5", b"NaN"),
        b'{"number": 1, "answers": [%s]}\n' % ANSWER.replace(b"0.5", b"1e999"),
        b'{"number": 1, "answers": [%s]}\n' % ANSWER.replace(b'"input_tokens": 1', b'"input_tokens": -1'),
        b'{"number": 1, "answers": [%s]}\n'
        % ANSWER.replace(b'"input_tokens": 1', b'"input_tokens": %s' % (b"9" * 5000)),
        b'{"number": 1, "answers": [%s]}\n' % ANSWER.replace(b"null", b'{"A": -Infinity}'),
        b'{"number": 1, "answers": [{"reason": 7, "detail": null}]}\n',
        b"[" * 100_000 + b"\n",
        b'{"number": 1, "answers": [%s]}\n' % ANSWER.replace(b'"a"', b'"%s"' % (b"a" * TOO_LONG)),
        b"a" * TOO_LONG,
    ],
    ids=[
        *(
            "bytes",
            "a list",
            "no number",
            "no answers",
            "a strange number",
            "another's",
            "a number",
            "numbers",
            "strange fields",
            "too few",
            "too many",
        ),
        *("NaN seconds", "infinite seconds", "negative tokens", "5 000 digits", "infinite log-probability"),
        *("a failure without words", "deep nesting", "a long text", "no end"),
    ],
)
def test_what_is_no_answer_is_the_end_of_the_engine(engine_that_wrote, written):
    with pytest.raises(EngineDied, match="model 'm': the vLLM process sent an unreadable message"):
        engine_that_wrote(READY + written).generate(ASKED)


def test_an_answer_that_can_be_read_is_one(engine_that_wrote):
    (answer,) = engine_that_wrote(READY + b'{"number": 1, "answers": [%s]}\n' % ANSWER).generate(ASKED)
    assert (answer.text, answer.seconds) == ("a", 0.5)


@pytest.mark.parametrize("at", ["NaN", "1e999", '"now"', "null"])
def test_a_worker_that_is_ready_at_no_time_is_the_end_of_the_engine(engine_that_wrote, at):
    with pytest.raises(EngineDied, match="is not a valid time"):
        _ = engine_that_wrote(READY.replace(b"0.0", at.encode())).load_seconds


def test_a_first_message_that_says_nothing_is_the_end_of_the_engine(engine_that_wrote):
    with pytest.raises(EngineDied, match="did not report that it is ready"):
        _ = engine_that_wrote(b'{"hello": 1}\n').identity


@pytest.mark.parametrize(
    ("why", "kind"),
    [
        ("OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB.", EngineDied),
        ("ValueError: Free memory on device cuda:0 (1.05/79.15 GiB) on startup is less than", EngineDied),
        ("AssertionError: Error in memory profiling. Initial free memory 1 GiB, current 2 GiB.", EngineDied),
        ("MemoryError: ", EngineDied),
        ("OSError: [Errno 12] Cannot allocate memory", EngineDied),
        ("ValueError: max_model_len 99999 is larger than the model's 256", EngineLoadFailed),
    ],
)
def test_a_model_that_lacks_memory_may_load_later_and_a_bad_one_may_not(engine_that_wrote, why, kind):
    refused = json.dumps({"load_failed": why}).encode() + b"\n"
    with pytest.raises(kind, match="vLLM cannot load it"):
        _ = engine_that_wrote(refused).identity
