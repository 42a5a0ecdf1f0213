"""Which models share an engine, and where engines run: here or on a cluster, and how many at once."""

import json
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from winnow.tasks.engines.protocol import Engine, ModelRef
from winnow.tasks.engines.providers import REMOTE, EngineFactory, EngineSettings, start_engine
from winnow.tasks.spec.sections.execution import ExecutionSpec

WIDTH_ARGS = ("tensor_parallel_size", "pipeline_parallel_size")
"""Arguments of vLLM whose product is the number of devices of an engine."""


def engine_key(model: ModelRef) -> str:
    """All of a reference that decides what an engine loads, in one spelling; adapters share an engine."""
    parts = (model.provider, model.model, model.revision, model.chat, model.model_base_url, model.api_key)
    args = (dict(model.model_args), dict(model.chat_template_args), model.chat_template)
    return json.dumps([*parts, *args], sort_keys=True)


def adapters_for(model: ModelRef, models: Sequence[ModelRef]) -> tuple[str, ...]:
    """The adapters that the engine of a model has to serve: those of all models that share it."""
    key = engine_key(model)
    sharing = (each.lora for each in (model, *models) if engine_key(each) == key)
    return tuple(sorted({adapter for adapter in sharing if adapter is not None}))


def devices_wanted(model: ModelRef) -> int:
    """Devices of this machine that the model's engine takes; 0 if it runs elsewhere.

    Raises:
        ValueError: If one of the arguments that say so is not a whole number from 1 on.
    """
    if model.provider in REMOTE:
        return 0
    width = 1
    for name in WIDTH_ARGS:
        size = model.model_args.get(name, 1)
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise ValueError(f"model_args.{name} must be a whole number from 1 on, got {size!r}")
        width *= size
    return width


@dataclass(frozen=True, slots=True, kw_only=True)
class DevicePlacement:
    """What an engine pool has to know of its surroundings."""

    factory: EngineFactory
    max_loaded: int
    """Engines in memory at once on each device."""
    devices: Sequence[int]
    """Numbers of the devices; empty where engines find their own and are asked one at a time."""
    width: Callable[[ModelRef], int]
    """How many of the devices the engine of a model takes."""


@contextmanager
def placed(execution: ExecutionSpec) -> Generator[DevicePlacement, None, None]:
    """Have a place for engines where the spec wants them, until the block ends.

    A cluster looks itself for the machine and the GPUs of an engine. To a campaign it is as many places as
    there may be models in memory, each of which is asked while the others are.

    Raises:
        ClusterUnavailable: If they are to run on a cluster that cannot be reached.
    """
    if execution.cluster is None:
        yield DevicePlacement(
            factory=_with_limits(start_engine, execution),
            max_loaded=execution.max_loaded,
            devices=execution.devices,
            width=devices_wanted,
        )
        return
    from winnow.tasks.engines.ray.cluster import ray_engines

    with ray_engines(execution.ray_address, execution.ray_gpus, execution.max_loaded) as factory:
        yield DevicePlacement(
            factory=_with_limits(factory, execution),
            max_loaded=1,
            devices=range(execution.max_loaded),
            width=lambda model: min(devices_wanted(model), 1),
        )


def _with_limits(factory: EngineFactory, execution: ExecutionSpec) -> EngineFactory:
    """The factory, told the limits of requests to servers; a served model needs no place in any cluster."""

    def start(model: ModelRef, settings: EngineSettings) -> Engine:
        settings = replace(
            settings,
            max_connections=execution.max_connections,
            request_timeout=execution.request_timeout,
            max_retries=execution.max_retries,
        )
        return (start_engine if model.provider in REMOTE else factory)(model, settings)

    return start
