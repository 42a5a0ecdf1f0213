"""Placement of a campaign's engines, on this machine or a cluster, and how many run at once.

The number of simultaneous requests to them determines the number of rounds that keep them busy.
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
    """Resources for an engine pool's engines: the factory, devices and slots."""

    factory: EngineFactory
    max_loaded: int
    """Maximum number of engines in memory on each device."""
    devices: Sequence[int]
    """Device numbers; empty if engines choose their own and receive requests one engine at a time."""
    width: Callable[[ModelRef], int]
    """Number of the devices that the engine of a model takes."""


@contextmanager
def placed(execution: ExecutionSpec) -> Generator[DevicePlacement, None, None]:
    """Provide the place for engines that the spec asks for, until the block ends.

    A cluster itself finds the machine and GPUs for an engine. For the campaign it has as many slots as models
    may be in memory, and each is used in parallel.

    Raises:
        ClusterUnavailable: If engines should run on a cluster that cannot be reached.
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
    """Add the limits of requests to servers to the factory; a served model needs no slot in a cluster."""

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
"""Sequences that vLLM runs at once without `max_num_seqs`; 1 024 on GPUs of 70 GiB and more."""
FULL = 6.0
"""Requests in flight per request that engines run at once. A round is in flight until its longest output is
complete, and an average output of heavy-tailed length (log-normal with sigma 1.2, cut at 512 tokens) takes a
sixth of that: this factor keeps the engines full. `make bench-lookahead` measures it."""
SHARE_OF_GRID = 0.05
"""Maximum share of all pairs in flight: pairs in flight were chosen with less information."""


def auto_lookahead(models: Sequence[ModelRef], execution: ExecutionSpec, batch_size: int, grid: int) -> int:
    """Number of rounds in flight besides the first, so that engines are busy and little is wasted.

    Args:
        models: All models that will receive requests.
        execution: The settings of the execution.
        batch_size: Pairs of a round.
        grid: Total number of pairs.
    """
    return rounds_ahead(requests_at_once(models, execution), batch_size, grid)


def rounds_ahead(at_once: int, batch_size: int, grid: int) -> int:
    """`auto_lookahead` for engines that run `at_once` requests together."""
    return max(0, int(min(FULL * at_once, SHARE_OF_GRID * grid) / batch_size) - 1)


def requests_at_once(models: Sequence[ModelRef], execution: ExecutionSpec) -> int:
    """Total number of requests that all engines that can run together accept at once."""
    by_engine = {_shared_key(each): each for each in models}.values()
    sizes = [(_sequences(each, execution), devices_wanted(each)) for each in by_engine]
    left, total = max(1, len(execution.devices)), 0
    for size, width in sorted(sizes, reverse=True):
        if width <= left:
            left -= width
            total += size
    return total


def _shared_key(model: ModelRef) -> str:
    """Key of all models that share the number of requests at once."""
    return seats_key(model) if model.provider in AGENTS else engine_key(model)


def _sequences(model: ModelRef, execution: ExecutionSpec) -> int:
    """Number of requests that one engine runs at once; for one that answers batch by batch, a group."""
    if model.provider in REMOTE:
        return execution.max_connections
    if model.provider in AGENTS:
        return settings_of(model.provider, model.setup).concurrency
    if model.provider == "vllm":
        given = model.model_args.get("max_num_seqs")
        return given if isinstance(given, int) and not isinstance(given, bool) else VLLM_SEQUENCES
    return execution.group_size


LOG = "vllm-imports.log"
"""File name, in a campaign's log folder, for the output of the imports."""


def imports_once(spec: CampaignSpec, *, at_once: bool = False) -> AbstractContextManager[None]:
    """Fork vLLM's processes of a campaign from one that has imported it, until the block ends.

    On a Ray cluster this does nothing, because each engine is the only one of its actor. With `at_once`,
    import now if one of its models runs on vLLM, instead of with the first engine.
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
