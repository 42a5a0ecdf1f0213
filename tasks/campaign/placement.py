"""Placement of a campaign's engines, on this machine or on those of a cluster, and how many run at once.

From how many requests they take at once follows how many rounds keep them busy.
"""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from winnow.algorithms.state.plugin_registry import object_at
from winnow.tasks.engines.known_providers import REMOTE
from winnow.tasks.engines.protocol import Engine, ModelRef
from winnow.tasks.engines.providers import (
    EngineFactory,
    EngineSettings,
    devices_wanted,
    engine_key,
    start_engine,
)
from winnow.tasks.spec.sections.execution import ExecutionSpec

CLUSTERS = {"ray": "winnow.tasks.engines.ray.cluster:ray_engines"}
"""Addresses of what starts engines on a cluster, by the cluster's kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DevicePlacement:
    """The surroundings of an engine pool: how engines are started, and the devices and places there are."""

    factory: EngineFactory
    max_loaded: int
    """Engines in memory at once on each device."""
    devices: Sequence[int]
    """Numbers of the devices; empty if engines find their own and are asked one at a time."""
    width: Callable[[ModelRef], int]
    """Number of the devices that the engine of a model takes."""


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
            factory=with_limits(start_engine, execution),
            max_loaded=execution.max_loaded,
            devices=execution.devices,
            width=devices_wanted,
        )
        return
    engines_of_cluster = object_at(CLUSTERS[execution.cluster])
    with engines_of_cluster(execution.ray_address, execution.ray_gpus, execution.max_loaded) as factory:
        yield DevicePlacement(
            factory=with_limits(factory, execution),
            max_loaded=1,
            devices=range(execution.max_loaded),
            width=lambda model: min(devices_wanted(model), 1),
        )


def with_limits(factory: EngineFactory, execution: ExecutionSpec) -> EngineFactory:
    """The factory with the limits of requests to servers; a served model needs no place in any cluster."""

    def start(model: ModelRef, settings: EngineSettings) -> Engine:
        settings = replace(
            settings,
            max_connections=execution.max_connections,
            request_timeout=execution.request_timeout,
            max_retries=execution.max_retries,
        )
        return (start_engine if model.provider in REMOTE else factory)(model, settings)

    return start


VLLM_SEQUENCES = 256
"""Sequences that vLLM runs at once where `max_num_seqs` is not given; 1 024 on GPUs of 70 GiB and more."""
FULL = 6.0
"""Requests in flight over those that engines take at once. A round is in flight for as long as its longest
text is written, and a text of heavy-tailed length (log-normal with sigma 1.2, cut at 512 tokens) takes a
sixth of that on average: it takes so many to keep the engines full. `make bench-lookahead` measures it."""
SHARE_OF_GRID = 0.05
"""Most of all pairs that are in flight, as a share: pairs in flight were planned on less than is known."""


def auto_lookahead(models: Sequence[ModelRef], execution: ExecutionSpec, batch_size: int, grid: int) -> int:
    """The number of rounds in flight beside the first, so that engines are busy and little is wasted.

    Args:
        models: All that will be asked.
        execution: The settings by which they are run.
        batch_size: Pairs of a round.
        grid: Pairs in all.
    """
    return rounds_ahead(requests_at_once(models, execution), batch_size, grid)


def rounds_ahead(at_once: int, batch_size: int, grid: int) -> int:
    """The same number for engines that take `at_once` requests together."""
    return max(0, int(min(FULL * at_once, SHARE_OF_GRID * grid) / batch_size) - 1)


def requests_at_once(models: Sequence[ModelRef], execution: ExecutionSpec) -> int:
    """The number of requests that all engines that can be at work together take at the same time."""
    by_engine = {engine_key(each): each for each in models}.values()
    sizes = [(_sequences(each, execution), devices_wanted(each)) for each in by_engine]
    left, total = max(1, len(execution.devices)), 0
    for size, width in sorted(sizes, reverse=True):
        if width <= left:
            left -= width
            total += size
    return total


def _sequences(model: ModelRef, execution: ExecutionSpec) -> int:
    """The number of requests that one engine takes at once; one that answers batch by batch takes a group."""
    if model.provider in REMOTE:
        return execution.max_connections
    if model.provider == "vllm":
        given = model.model_args.get("max_num_seqs")
        return given if isinstance(given, int) and not isinstance(given, bool) else VLLM_SEQUENCES
    return execution.group_size
