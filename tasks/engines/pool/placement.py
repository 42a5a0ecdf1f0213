"""Where a campaign's engines run, on this machine or on those of a cluster, and how many of them at once."""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from winnow.tasks.engines.protocol import Engine, ModelRef
from winnow.tasks.engines.providers import REMOTE, EngineFactory, EngineSettings, devices_wanted, start_engine
from winnow.tasks.spec.sections.execution import ExecutionSpec


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
