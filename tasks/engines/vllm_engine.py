"""Our side of a vLLM engine: a process that is started, asked, watched and closed. vLLM is not imported."""

import dataclasses
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tasks.engines.checkpoints import refuse_missing_checkpoint
from tasks.engines.errors import EngineDied, EngineLoadFailed, EngineTimeout
from tasks.engines.protocol import Answer, Completion, Engine, GenerationFailure, ModelRef, Request, Sampling
from tasks.engines.providers import EngineSettings
from tasks.engines.worker_process import WorkerEnded, WorkerProcess

WORKER_ENVIRONMENT = {
    # The engine core runs in the worker itself: one process less to start, which takes half the time.
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB; by default vLLM takes half of the machine
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
}


class VllmEngine:
    """A model in a vLLM process of its own, which loads while the constructor has already returned.

    Args:
        model: `model_args` are keyword arguments of `vllm.LLM`.
        log_folder: Where the process writes what it prints, in a file named after the model.
        load_timeout: Seconds to wait for the model at its first use.
        batch_timeout: Seconds a batch may take; None waits for ever.

    Raises:
        EngineLoadFailed: If `model.model` is a path without a checkpoint.
    """

    def __init__(
        self,
        model: ModelRef,
        *,
        log_folder: Path,
        load_timeout: float = 600.0,
        batch_timeout: float | None = 600.0,
    ) -> None:
        refuse_missing_checkpoint(model)
        self._name = model.name
        self._batch_timeout = batch_timeout
        self._load_deadline = time.monotonic() + load_timeout
        self._load_timeout = load_timeout
        self._identity: str | None = None
        self._worker = WorkerProcess(
            "tasks.engines.vllm_worker",
            log=log_folder / f"{re.sub(r'[^A-Za-z0-9._-]', '_', model.name)}.log",
            environment=WORKER_ENVIRONMENT,
        )
        try:
            self._send({"load": _fields(model)})
        except BaseException:
            self._worker.close()
            raise

    @property
    def pid(self) -> int:
        """Process id of the worker."""
        return self._worker.pid

    @property
    def identity(self) -> str:
        """Software, version, device and precision; waits until the model is loaded."""
        return self._wait_until_loaded()

    def generate(self, requests: Sequence[Request]) -> list[Answer]:
        """Answer every request; see `Engine.generate`."""
        self._wait_until_loaded()
        self._send({"requests": [_request_fields(request) for request in requests]})
        overdue = f"did not answer {len(requests)} requests within {self._batch_timeout} s"
        reply = self._receive(self._batch_timeout, overdue)
        return [_answer(fields) for fields in reply["answers"]]

    def close(self) -> None:
        """End the process, and wait until it is gone."""
        self._worker.close()

    def _wait_until_loaded(self) -> str:
        if self._identity is None:
            left = max(0.0, self._load_deadline - time.monotonic())
            reply = self._receive(left, f"did not load within {self._load_timeout:g} s")
            if "load_failed" in reply:
                raise EngineLoadFailed(self._name, f"vLLM cannot load it: {reply['load_failed']}")
            self._identity = str(reply["ready"])
        return self._identity

    def _send(self, message: dict[str, Any]) -> None:
        try:
            self._worker.send(message)
        except WorkerEnded as error:
            raise self._died(error) from error

    def _receive(self, timeout: float | None, overdue: str) -> dict[str, Any]:
        try:
            return self._worker.receive(timeout)
        except WorkerEnded as error:
            raise self._died(error) from error
        except TimeoutError as error:
            raise EngineTimeout(self._name, f"the vLLM process {overdue}") from error

    def _died(self, error: WorkerEnded) -> EngineDied:
        return EngineDied(self._name, f"the vLLM process is gone: {error}")


def start(model: ModelRef, settings: EngineSettings) -> Engine:
    """Start a vLLM process for the model, which goes on loading after this returns."""
    return VllmEngine(
        model,
        log_folder=settings.log_folder,
        load_timeout=settings.load_timeout,
        batch_timeout=settings.batch_timeout,
    )


def _fields(model: ModelRef) -> dict[str, Any]:
    fields = {field.name: getattr(model, field.name) for field in dataclasses.fields(model)}
    mappings = {name: dict(fields[name]) for name in ("model_args", "chat_template_args")}
    return {**fields, **mappings}  # any kind of mapping becomes one that JSON can write


def _request_fields(request: Request) -> dict[str, Any]:
    sampling = {field.name: getattr(request.sampling, field.name) for field in dataclasses.fields(Sampling)}
    return {"prompt": request.prompt, "seed": request.seed, "sampling": sampling}


def _answer(fields: dict[str, Any]) -> Answer:
    return Completion(**fields) if "text" in fields else GenerationFailure(**fields)
