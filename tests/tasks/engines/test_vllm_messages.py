"""Both ends of the conversation with a vLLM process, each against a stand-in for the other; no model."""

import json
import time

import pytest
from pool_engines import model

from winnow.tasks.engines.errors import EngineDied, EngineLoadFailed, EngineTimeout
from winnow.tasks.engines.protocol import LoadsAside, Request, Sampling, Sleeper, Structure
from winnow.tasks.engines.providers import EngineSettings
from winnow.tasks.engines.vllm import engine as vllm_engine
from winnow.tasks.engines.vllm import worker as vllm_worker
from winnow.tasks.engines.vllm.engine import VllmEngine, visibility
from winnow.tasks.processes.worker_process import WorkerEnded


class ScriptedWorker:
    """Takes the place of the process: keeps what it is sent and gives the replies of a script."""

    replies, sent, options = (), [], {}

    def __init__(self, module, **options):
        type(self).options = options
        self._replies = list(self.replies)

    def send(self, message):
        self.sent.append(message)

    def receive(self, timeout, most_bytes):
        reply = self._replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply

    def close(self):
        pass


@pytest.fixture
def started(monkeypatch, tmp_path):
    def started(*replies, at=0.0, waited=0.0, **settings):
        checkpoint = tmp_path / "checkpoint"
        checkpoint.mkdir()
        (checkpoint / "config.json").write_text("{}")
        ready = {"ready": "vllm 1", "at": time.time() + at, "waited": waited, "can_sleep": True}
        worker = type("Worker", (ScriptedWorker,), {"replies": (ready, *replies), "sent": []})
        monkeypatch.setattr(vllm_engine, "WorkerProcess", worker)
        engine = VllmEngine(
            model("m", model=str(checkpoint)), EngineSettings(log_folder=tmp_path, **settings)
        )
        return engine, worker

    return started


def test_an_engine_says_how_long_it_loaded_however_late_it_is_asked(started):
    engine, _ = started(at=5.0)
    assert isinstance(engine, LoadsAside)
    assert engine.load_seconds == pytest.approx(5.0, abs=1.0)


def test_a_wait_for_others_on_the_device_is_no_part_of_a_load(started):
    engine, _ = started(at=5.0, waited=4.0)
    assert engine.load_seconds == pytest.approx(1.0, abs=1.0)


def test_the_process_is_told_of_adapters_and_sleep_and_sees_its_devices_alone(started, monkeypatch, tmp_path):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    _, worker = started(devices=(2, 3), adapters=("x", "y"), memory_share=0.5, sleeps=True, is_fresh=True)
    assert worker.options["forced"] == {"CUDA_VISIBLE_DEVICES": "2,3"}
    (load,) = (message["load"] for message in worker.sent)
    assert (load["adapters"], load["sleeps"], load["is_fresh"]) == (("x", "y"), True, True)
    assert (load["memory_share"], load["locks"]) == (0.5, str(tmp_path))


def test_falling_asleep_and_waking_wait_until_it_is_done(started):
    engine, worker = started({"sleep": True}, {"wake": True})
    assert isinstance(engine, Sleeper)
    assert engine.can_sleep
    engine.sleep()
    engine.wake()
    assert worker.sent[1:] == [{"sleep": True}, {"wake": True}]


@pytest.mark.parametrize(
    ("reply", "error", "said"),
    [
        (TimeoutError(), EngineTimeout, "did not wake within 7 s"),
        (WorkerEnded("it ended with exit code 1"), EngineDied, "exit code 1"),
    ],
)
def test_an_engine_that_does_not_wake_has_failed(started, reply, error, said):
    engine, _ = started({"sleep": True}, reply, load_timeout=7.0)
    assert engine.can_sleep
    engine.sleep()
    with pytest.raises(error, match=said):
        engine.wake()


@pytest.mark.parametrize(
    ("ours", "devices", "shown"),
    [
        (None, (), {}),
        ("4,5", (), {}),
        (None, (0, 3), {"CUDA_VISIBLE_DEVICES": "0,3"}),
        ("4,5,GPU-6", (0, 2), {"CUDA_VISIBLE_DEVICES": "4,GPU-6"}),
        ("", (1,), {"CUDA_VISIBLE_DEVICES": ""}),
    ],
)
def test_devices_are_counted_among_those_that_the_user_shows(monkeypatch, ours, devices, shown):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if ours is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", ours)
    assert visibility(model("m"), devices) == shown


def test_a_device_that_the_user_does_not_show_is_refused(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5")
    with pytest.raises(EngineLoadFailed, match="CUDA_VISIBLE_DEVICES=4,5 from 0, which has no number 2"):
        visibility(model("m"), (0, 2))


class ScriptedParent:
    """Sends the messages of a script, each once it is waited for or looked for, and then says to close."""

    def __init__(self, *messages):
        self._messages, self.replies = [*messages, {"close": True}], []

    def receive(self):
        return self._messages.pop(0)

    def receive_now(self):
        return self._messages.pop(0) if len(self._messages) > 1 else None

    def send(self, message):
        self.replies.append(message)


class ScriptedModel:
    """Writes a text of n letters in n steps; a number before the letters keeps others from joining."""

    def __init__(self):
        self.done, self.running = [], self
        self._written = {}

    def __bool__(self):
        return bool(self._written)

    def may_join(self, requests):
        return not any(each.prompt.isdigit() for each in requests)

    def join(self, number, requests):
        self._written[number] = max(len(each.prompt) for each in requests)

    def step(self):
        self._written = {number: left - 1 for number, left in self._written.items()}
        complete = [number for number, left in self._written.items() if left == 0]
        for number in complete:
            del self._written[number]
        return [(number, []) for number in complete]

    def generate(self, requests):
        self.done.append((requests[0].prompt, bool(self)))
        return []

    def sleep(self):
        self.done.append("sleep")

    def wake(self):
        self.done.append("wake")


def group(number, *prompts):
    asked = [Request(prompt=each, sampling=Sampling(), seed=0) for each in prompts]
    return {"number": number, **vllm_engine.as_message(asked)}


def test_the_process_does_what_a_message_says_and_answers_when_it_is_done():
    parent, model = ScriptedParent({"sleep": True}, {"wake": True}), ScriptedModel()
    vllm_worker._serve(parent, model)
    assert parent.replies == [{"sleep": True}, {"wake": True}]
    assert model.done == ["sleep", "wake"]


def test_groups_that_join_are_answered_as_they_are_done_and_others_wait_until_nothing_is_written():
    parent, model = (
        ScriptedParent(group(1, "abcde"), group(2, "ab"), group(3, "7"), group(4, "a")),
        ScriptedModel(),
    )
    vllm_worker._serve(parent, model)
    assert [reply["number"] for reply in parent.replies] == [2, 1, 3, 4]
    assert model.done == [("7", False)]


@pytest.mark.parametrize(
    "sampling",
    [
        Sampling(temperature=0.5, stop=("x",), choices=("A", "B")),
        Sampling(
            min_p=0.1,
            presence_penalty=1.0,
            frequency_penalty=-1.0,
            repetition_penalty=1.3,
            logit_bias=((3, -100.0), (5, 2.5)),
            stop_token_ids=(7, 8),
            structure=Structure("choice", '["a", "b"]'),
        ),
    ],
)
def test_requests_are_the_same_on_the_other_side(sampling):
    sent = Request(prompt="p", sampling=sampling, seed=3, adapter="folder")
    other = Request(prompt="q", sampling=Sampling(temperature=1.0), seed=4)
    message = json.loads(json.dumps(vllm_engine.as_message([sent, other, sent])))
    assert len(message["samplings"]) == 2
    assert vllm_worker._requests(message) == [sent, other, sent]
