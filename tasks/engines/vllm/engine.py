"""Client side of a vLLM engine: start, supervise and close its process.

This module does not import vLLM. Within a block of `fork_server`, the modules of its processes are imported
only once.
"""

import dataclasses
import math
import os
import threading
import time
from collections.abc import Callable, Sequence

from winnow.storage.json_types import JsonObject
from winnow.tasks.engines.checkpoints import both_readings, refuse_missing_checkpoint
from winnow.tasks.engines.errors import EngineDied, EngineLoadFailed, EngineTimeout, lacks_memory
from winnow.tasks.engines.openai.requests import bytes_for, bytes_for_batch
from winnow.tasks.engines.protocol import (
    Answer,
    Completion,
    Engine,
    GenerationFailure,
    ModelRef,
    Request,
)
from winnow.tasks.engines.providers import EngineSettings
from winnow.tasks.engines.vllm import WORKER, WORKER_ENVIRONMENT
from winnow.tasks.processes.child_process import log_file
from winnow.tasks.processes.replies import Replies
from winnow.tasks.processes.worker_process import WorkerEnded, WorkerProcess

VISIBLE = "CUDA_VISIBLE_DEVICES"
READY_KEYS = {"ready", "at", "waited", "can_sleep"}
"""Keys of a worker's message after its model is loaded."""


class VllmEngine:
    """Engine in its own vLLM process, which may still load after the constructor returned.

    Args:
        model: The model; its `model_args` are keyword arguments of `vllm.LLM`.
        settings: The settings of engines. The log is a file named after the model. `load_timeout` counts from
            now, and is also the limit for waking.

    Raises:
        EngineLoadFailed: If `model.model` is a path without a checkpoint, or a device is missing.
    """

    def __init__(self, model: ModelRef, settings: EngineSettings) -> None:
        refuse_missing_checkpoint(model)
        self._name = model.name
        self._readings = both_readings(model)
        self._settings = settings
        self._started_at = time.time()
        self._load_deadline = time.monotonic() + settings.load_timeout
        self._ready: JsonObject | None = None
        self._worker = WorkerProcess(
            WORKER,
            log=log_file(settings.log_folder, model.name),
            environment=WORKER_ENVIRONMENT,
            forced=visibility(model, settings.devices),
        )
        self._sending = threading.Lock()
        self._replies = Replies(lambda timeout, most_bytes: self._worker.receive(timeout, most_bytes))
        how = {name: getattr(settings, name) for name in ("adapters", "memory_share", "sleeps", "is_fresh")}
        try:
            self._send({"load": {**_fields(model), **how, "locks": str(settings.log_folder)}})
        except BaseException:
            self._worker.close()
            raise

    @property
    def joins(self) -> bool:
        """See `JoinsBatches`; True, because requests can begin when others end, from any thread."""
        return True

    @property
    def pid(self) -> int:
        """Process id of the worker."""
        return self._worker.pid

    @property
    def identity(self) -> str:
        """Software, version, device and precision; waits until the model is loaded."""
        return str(self._wait_until_loaded()["ready"])

    @property
    def load_seconds(self) -> float:
        """Wall seconds until the process was ready, without waits for a device."""
        loaded = self._wait_until_loaded()
        return max(0.0, float(loaded["at"]) - self._started_at - float(loaded["waited"]))

    @property
    def can_sleep(self) -> bool:
        """Whether the engine's device can free the memory of a model that stays loaded."""
        return bool(self._wait_until_loaded()["can_sleep"])

    def sleep(self) -> None:
        """Move the weights to main memory; see `Sleeper`."""
        self._change({"sleep": True}, "fall asleep")

    def wake(self) -> None:
        """Move the weights back to the device; see `Sleeper`."""
        self._change({"wake": True}, "wake")

    def generate(self, requests: Sequence[Request]) -> list[Answer]:
        """Answer every request; see `Engine.generate`."""
        self._wait_until_loaded()
        number = self._replies.expect(bytes_for_batch(requests))
        with self._sending:
            self._send({"number": number, **as_message(requests)})
        timeout = self._settings.batch_timeout
        overdue = f"did not answer {len(requests)} requests within {timeout} s"
        reply = self._taken(lambda: self._replies.wait(number, timeout), overdue)
        try:
            answers = [_answer(fields) for fields in reply["answers"]]
            if len(answers) != len(requests):
                raise ValueError(f"{len(answers)} answers to {len(requests)} requests")
            return answers
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise self._unreadable(error) from error

    def close(self) -> None:
        """End the process, and wait until it has ended."""
        self._worker.close()

    def _wait_until_loaded(self) -> JsonObject:
        if self._ready is None:
            left = max(0.0, self._load_deadline - time.monotonic())
            reply = self._receive(left, f"did not load within {self._settings.load_timeout:g} s")
            if "load_failed" in reply:
                why = f"{self._readings}vLLM cannot load it: {reply['load_failed']}{self._share_said(reply)}"
                raise (EngineDied if lacks_memory(why) else EngineLoadFailed)(self._name, why)
            if not reply.keys() >= READY_KEYS:
                raise self._unreadable("it did not report that it is ready")
            for said in (reply["at"], reply["waited"]):
                if not (isinstance(said, int | float) and math.isfinite(said)):
                    raise self._unreadable(f"{said!r} is not a valid time")
            self._ready = reply
        return self._ready

    def _share_said(self, reply: JsonObject) -> str:
        """Hint that the engine's share of device memory may be the cause; empty if it cannot be."""
        share = self._settings.memory_share
        if share >= 1.0 or "gpu_memory_utilization" not in str(reply["load_failed"]):
            return ""
        return (
            f" (execution lets several models be loaded at once, each with {share:.0%} of a device's memory; "
            "set model_args.gpu_memory_utilization, or lower execution.max_loaded)"
        )

    def _change(self, message: JsonObject, what: str) -> None:
        timeout = self._settings.load_timeout
        self._send(message)
        self._receive(timeout, f"did not {what} within {timeout:g} s")

    def _send(self, message: JsonObject) -> None:
        try:
            self._worker.send(message)
        except WorkerEnded as error:
            raise self._died(error) from error

    def _receive(self, timeout: float | None, overdue: str) -> JsonObject:
        return self._taken(lambda: self._worker.receive(timeout, lambda: bytes_for(0)), overdue)

    def _taken(self, take: Callable[[], JsonObject], overdue: str) -> JsonObject:
        """A valid message that arrives in time."""
        try:
            return take()
        except WorkerEnded as error:
            raise self._died(error) from error
        except TimeoutError as error:
            raise EngineTimeout(self._name, f"the vLLM process {overdue}") from error
        except ValueError as error:
            raise self._unreadable(error) from error
        except OSError as error:  # closed by another thread
            raise EngineDied(self._name, "the vLLM process was closed") from error

    def _unreadable(self, why: object) -> EngineDied:
        return EngineDied(self._name, f"the vLLM process sent an unreadable message: {why}")

    def _died(self, error: WorkerEnded) -> EngineDied:
        return EngineDied(self._name, f"the vLLM process has ended: {error}")


def start(model: ModelRef, settings: EngineSettings) -> Engine:
    """Start a vLLM process for the model; it may still be loading on return."""
    return VllmEngine(model, settings)


def visibility(model: ModelRef, devices: Sequence[int]) -> dict[str, str]:
    """Variable that restricts an engine to its devices; empty if it has no assigned devices.

    Raises:
        EngineLoadFailed: If the user's environment allows fewer devices.
    """
    if not devices:
        return {}
    ours = os.environ.get(VISIBLE)
    if not ours:  # unset: all devices; empty: none, on purpose
        return {VISIBLE: ",".join(map(str, devices)) if ours is None else ours}
    numbers = ours.split(",")
    if max(devices) >= len(numbers):
        raise EngineLoadFailed(
            model.name,
            f"execution.devices counts the devices of {VISIBLE}={ours} from 0, which has no number "
            f"{max(devices)}",
        )
    return {VISIBLE: ",".join(numbers[device] for device in devices)}


def _fields(model: ModelRef) -> JsonObject:
    fields = {field.name: getattr(model, field.name) for field in dataclasses.fields(model)}
    mappings = {name: dict(fields[name]) for name in ("model_args", "chat_template_args")}
    # Mappings become dicts, which JSON can write; reasoning is separated on this side.
    return {**fields, **mappings, "reasoning": None}


def as_message(requests: Sequence[Request]) -> JsonObject:
    """Requests as a message for the worker; each names its sampling settings by index in a list."""
    ways = {id(each.sampling): each.sampling for each in requests}
    places = {way: place for place, way in enumerate(ways)}
    return {
        "samplings": [way.as_json() for way in ways.values()],
        "requests": [
            {
                "prompt": each.prompt,
                "seed": each.seed,
                "sampling": places[id(each.sampling)],
                "adapter": each.adapter,
                "continuations": each.continuations,
                "is_greedy": each.is_greedy,
                "messages": each.messages,
                "images": [image.as_message() for image in each.images],
            }
            for each in requests
        ],
    }


def _answer(fields: JsonObject) -> Answer:
    return Completion(**fields) if "text" in fields else GenerationFailure(**fields)
