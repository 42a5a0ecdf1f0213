"""Placement of a campaign's engines on machines, and their concurrency.

The number of concurrent requests of the engines determines how many rounds keep them busy.
"""

from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace

from winnow.algorithms.state.plugin_registry import object_at
from winnow.tasks.engines.agents.kit.engine import seats_key, settings_of
from winnow.tasks.engines.known_providers import AGENTS, ELSEWHERE, REMOTE
from winnow.tasks.engines.protocol import Engine, ModelRef
from winnow.tasks.engines.providers import (
    EngineFactory,
    EngineSettings,
    devices_wanted,
    engine_key,
    seats_wanted,
    start_engine,
)
from winnow.tasks.engines.vllm import WORKER, WORKER_ENVIRONMENT
from winnow.tasks.plugins.extras import missing_for
from winnow.tasks.plugins.own_files import settled_folder
from winnow.tasks.processes.fork_server import forking
from winnow.tasks.spec.campaign import CampaignSpec
from winnow.tasks.spec.sections.execution import ExecutionSpec

CLUSTERS = {"ray": "winnow.tasks.engines.ray.cluster:ray_engines"}
"""Import paths of the functions that start engines on a cluster, by kind of cluster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DevicePlacement:
    """Resources for the engines of a pool: factory, devices and slots."""

    factory: EngineFactory
    max_loaded: int
    """Maximum number of engines in memory on each device."""
    devices: Sequence[int]
    """Device numbers; empty if engines choose their own devices and receive requests one engine at a time."""
    width: Callable[[ModelRef], int]
    """Function that returns the number of devices of a model's engine."""


@contextmanager
def placed(execution: ExecutionSpec) -> Generator[DevicePlacement, None, None]:
    """Provide resources for engines, as the spec requests them, until the block ends.

    A cluster itself chooses machine and GPUs of an engine. For the campaign it has as many slots as models
    can be in memory, and all slots are used in parallel.

    Raises:
        ClusterUnavailable: The spec requests a cluster that cannot be reached.
    """
    if execution.cluster is None:
        yield DevicePlacement(
            factory=with_limits(start_engine, execution),
            max_loaded=execution.max_loaded,
            devices=execution.devices,
            width=seats_wanted,
        )
        return
    engines_of_cluster = object_at(CLUSTERS[execution.cluster])
    with engines_of_cluster(execution.ray_address, execution.ray_gpus, execution.max_loaded) as factory:
        yield DevicePlacement(
            factory=with_limits(factory, execution),
            max_loaded=1,
            devices=range(execution.max_loaded),
            width=lambda model: min(seats_wanted(model), 1),
        )


def with_limits(factory: EngineFactory, execution: ExecutionSpec) -> EngineFactory:
    """Add the limits of requests to servers to an engine factory.

    On a cluster, a served model is started on this machine, because it needs no slot.
    """

    def start(model: ModelRef, settings: EngineSettings) -> Engine:
        settings = replace(
            settings,
            max_connections=execution.max_connections,
            request_timeout=execution.request_timeout,
            max_retries=execution.max_retries,
        )
        return (start_engine if model.provider in ELSEWHERE else factory)(model, settings)

    return start


VLLM_SEQUENCES = 256
"""Maximum number of concurrent sequences in vLLM without `max_num_seqs`; 1,024 on GPUs with 70 GiB and
more.
"""
FULL = 6.0
"""Requests in flight per concurrent request of the engines.
A round is in flight until its longest output is complete, and an average output of heavy-tailed length
(log-normal with sigma 1.2, cut at 512 tokens) takes a sixth of that time. This factor keeps the engines busy;
`make bench-lookahead` measures it.
"""
SHARE_OF_GRID = 0.05
"""Maximum share of all pairs that is in flight, because these pairs were chosen with less information."""


def auto_lookahead(models: Sequence[ModelRef], execution: ExecutionSpec, batch_size: int, grid: int) -> int:
    """Number of rounds in flight besides the first that keeps engines busy.

    Args:
        models: All models that will receive requests.
        execution: Settings of the execution.
        batch_size: Number of pairs in a round.
        grid: Total number of pairs.
    """
    return rounds_ahead(requests_at_once(models, execution), batch_size, grid)


def rounds_ahead(at_once: int, batch_size: int, grid: int) -> int:
    """`auto_lookahead` for engines that process `at_once` requests concurrently."""
    return max(0, int(min(FULL * at_once, SHARE_OF_GRID * grid) / batch_size) - 1)


def requests_at_once(models: Sequence[ModelRef], execution: ExecutionSpec) -> int:
    """Maximum number of concurrent requests of all engines that can run together."""
    by_engine = {_shared_key(each): each for each in models}.values()
    sizes = [(_sequences(each, execution), devices_wanted(each)) for each in by_engine]
    left, total = max(1, len(execution.devices)), 0
    for size, width in sorted(sizes, reverse=True):
        if width <= left:
            left -= width
            total += size
    return total


def _shared_key(model: ModelRef) -> str:
    """Key that is equal for models that share one limit of concurrent requests."""
    return seats_key(model) if model.provider in AGENTS else engine_key(model)


def _sequences(model: ModelRef, execution: ExecutionSpec) -> int:
    """Number of concurrent requests of one engine.

    For an engine that answers batch by batch, the size of a group.
    """
    if model.provider in REMOTE:
        return execution.max_connections
    if model.provider in AGENTS:
        return settings_of(model.provider, model.setup).concurrency
    if model.provider == "vllm":
        given = model.model_args.get("max_num_seqs")
        return given if isinstance(given, int) and not isinstance(given, bool) else VLLM_SEQUENCES
    return execution.group_size


LOG = "vllm-imports.log"
"""Name of the log file of the imports, in a campaign's log folder."""


def imports_once(spec: CampaignSpec, *, at_once: bool = False) -> AbstractContextManager[None]:
    """Fork vLLM's processes from one that has imported vLLM, until the block ends.

    On a Ray cluster this does nothing, because each engine is the only one in its actor.

    Args:
        spec: The campaign.
        at_once: Whether to import now, if a model of the campaign runs on vLLM, instead of with the first
            engine.
    """
    if spec.execution.cluster is not None:
        return nullcontext()
    at_once = (
        at_once
        and any(model.provider == "vllm" for model in spec.models)
        and missing_for("vllm", "vLLM") is None
    )
    log = settled_folder(spec.execution.log_folder) / spec.name / LOG
    return forking(WORKER, log=log, environment=WORKER_ENVIRONMENT, at_once=at_once)
