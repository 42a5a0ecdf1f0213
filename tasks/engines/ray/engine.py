"""Engine in a Ray actor, from the campaign's side: placement, requests and supervision.

On its machine the actor runs the engine of the model's own provider, in one of Ray's processes.
"""

import dataclasses
import os
import socket
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol, TypeVar, cast

import ray
from ray.actor import ActorHandle
from ray.exceptions import GetTimeoutError, RayActorError, RayError, RayTaskError

from winnow.tasks.engines.errors import EngineDied, EngineError, EngineLoadFailed, EngineTimeout, one_sentence
from winnow.tasks.engines.protocol import Answer, Engine, ModelRef, Request
from winnow.tasks.engines.providers import EngineSettings, start_engine
from winnow.tasks.processes.child_process import log_file, open_log

POLITE_SECONDS = 10.0
"""Maximum seconds for closing; longer than an engine needs to kill its own process."""

FORCED_SECONDS = 10.0

LOOK_EVERY_S = 5.0
"""Seconds between two checks of the cluster while a model loads."""


Result = TypeVar("Result")


class _Remote(Protocol[Result]):
    """Type of a method of an actor handle."""

    def remote(self, *given: object) -> "ray.ObjectRef[Result]": ...


class _Handle(Protocol):
    """Type of a remote `EngineActor`, because Ray's own types do not describe its methods."""

    host: _Remote[str]
    load: _Remote[str]
    generate: _Remote[list[Answer]]
    close: _Remote[None]


class RayEngine:
    """Engine on any machine of the cluster with room; the constructor returns before loading.

    It occupies one CPU and `gpus` GPUs of the cluster until it is closed. Checkpoints in folders must have
    the same path on every machine, and logs are written on the engine's machine.

    Args:
        model: The model, which its own provider starts.
        settings: The settings of engines; `load_timeout` includes the wait for room.
        gpus: Number of GPUs for the engine: 0, a part of one, or a whole number.
        require_head: Raises if the cluster is unreachable. It is called repeatedly while the model loads,
            because loading would then never end.
    """

    def __init__(
        self, model: ModelRef, settings: EngineSettings, *, gpus: float, require_head: Callable[[], None]
    ) -> None:
        self._name = model.name
        self._settings = settings
        self._gpus = gpus
        self._require_head = require_head
        self._deadline = time.monotonic() + settings.load_timeout
        self._identity: str | None = None
        self._is_idle = False
        self._is_closed = False
        actor = (
            ray.remote(EngineActor)
            .options(num_cpus=1, num_gpus=gpus, max_restarts=0, scheduling_strategy="SPREAD")
            .remote()
        )
        self._actor = cast("_Handle", actor)
        self._host = self._actor.host.remote()
        self._loading = self._actor.load.remote(_at_its_path(model), settings_there(settings, gpus))

    @property
    def identity(self) -> str:
        """Software, version, device and precision; waits until the model is loaded."""
        return self._wait_until_loaded()

    def generate(self, requests: Sequence[Request]) -> list[Answer]:
        """Answer every request; see `Engine.generate`."""
        self._wait_until_loaded()
        self._is_idle = False
        limit = self._settings.batch_timeout
        try:
            asked = [_with_its_adapter(request) for request in requests]
            answers = self._result(self._actor.generate.remote(asked), limit)
        except GetTimeoutError as error:
            raise EngineTimeout(
                self._name, f"the Ray actor did not answer {len(requests)} requests within {limit} s"
            ) from error
        self._is_idle = True
        return answers

    def close(self) -> None:
        """Free the engine's resources, end the actor, and wait until it has ended."""
        if self._is_closed:
            return
        self._is_closed = True
        if self._is_idle:
            ray.wait([self._actor.close.remote()], timeout=POLITE_SECONDS)
        ray.kill(cast("ActorHandle[EngineActor]", self._actor))
        # This call fails as soon as the cluster has registered the end and freed the GPUs.
        ray.wait([self._actor.host.remote()], timeout=FORCED_SECONDS)

    def _wait_until_loaded(self) -> str:
        if self._identity is None:
            while not ray.wait([self._loading], timeout=max(0.0, min(LOOK_EVERY_S, self._left_s)))[0]:
                if self._left_s <= 0.0:
                    raise EngineTimeout(self._name, self._why_late())
                self._require_head()
            self._identity = self._result(self._loading, None)
            self._is_idle = True
        return self._identity

    @property
    def _left_s(self) -> float:
        """Seconds left for loading the model."""
        return self._deadline - time.monotonic()

    def _why_late(self) -> str:
        limit = f"within {self._settings.load_timeout:g} s"
        if ray.wait([self._host], timeout=0)[0]:
            return f"the Ray actor did not load the model {limit}"
        return (
            f"no machine of the Ray cluster had 1 CPU and {self._gpus:g} GPUs free {limit}; "
            f"lower execution.max_loaded, or wait for room"
        )

    def _result(self, answer: "ray.ObjectRef[Result]", timeout: float | None) -> Result:
        """Answer of the actor; raises `EngineError`, or `GetTimeoutError` after `timeout` seconds."""
        try:
            return ray.get(answer, timeout=timeout)
        except GetTimeoutError:
            raise
        except RayTaskError as error:
            if isinstance(error.cause, EngineError):
                raise error.cause from error
            raise self._unexpected(error.cause) from error
        except RayActorError as error:
            if error.actor_init_failed:
                raise EngineLoadFailed(
                    self._name,
                    f"its Ray actor cannot start: {_last_line(error)}; every machine of the cluster needs "
                    f"this version of Winnow and the provider's packages",
                ) from error
            raise EngineDied(self._name, f"the Ray actor has ended: {_last_line(error)}") from error
        except RayError as error:
            raise EngineDied(self._name, f"the Ray cluster failed: {one_sentence(error)}") from error

    def _unexpected(self, cause: BaseException) -> EngineError:
        why = f"in its Ray actor: {one_sentence(cause)}"
        return EngineLoadFailed(self._name, why) if self._identity is None else EngineDied(self._name, why)


def settings_there(settings: EngineSettings, gpus: float) -> EngineSettings:
    """Settings of an engine on its machine, where Ray assigns it `gpus` GPUs, or a part of one."""
    return dataclasses.replace(
        settings,
        log_folder=settings.log_folder.absolute(),
        adapters=tuple(_absolute(each) for each in settings.adapters),
        devices=(),
        memory_share=gpus if 0.0 < gpus < 1.0 else 1.0,
    )


def _at_its_path(model: ModelRef) -> ModelRef:
    """Reference with the absolute path of a folder, because actors run in other folders."""
    return dataclasses.replace(model, model=_absolute(model.model)) if Path(model.model).is_dir() else model


def _with_its_adapter(request: Request) -> Request:
    return (
        request
        if request.adapter is None
        else dataclasses.replace(request, adapter=_absolute(request.adapter))
    )


def _absolute(folder: str) -> str:
    return str(Path(folder).absolute())


def _last_line(error: RayError) -> str:
    """Last line of Ray's error message, which has the cause."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__


class EngineActor:
    """Actor with an engine that loads on request, so that its machine is known before loading.

    An engine with a separate process, such as vLLM's, ends with this process, for any reason.
    """

    def __init__(self) -> None:
        self._engine: Engine | None = None

    def host(self) -> str:
        """Name of the machine."""
        return socket.gethostname()

    def load(self, model: ModelRef, settings: EngineSettings) -> str:
        """Load the model and return the engine's identity; raises `EngineError`."""
        _print_to(log_file(settings.log_folder, model.name))
        self._engine = start_engine(model, settings)
        return self._engine.identity

    def generate(self, requests: Sequence[Request]) -> list[Answer]:
        """Answer every request; see `Engine.generate`."""
        assert self._engine is not None, "called only after loading"
        return self._engine.generate(requests)

    def close(self) -> None:
        """Release the engine's resources."""
        if self._engine is not None:
            self._engine.close()


def _print_to(log: Path) -> None:
    """Append all further output of this process to a file."""
    # The folder's path on this machine may contain links.
    with open_log(log.parent.resolve() / log.name) as output:
        for stream in (1, 2):
            os.dup2(output.fileno(), stream)
