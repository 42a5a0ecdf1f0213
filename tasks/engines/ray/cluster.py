"""Join or start a Ray cluster for a campaign, and leave or stop it afterwards.

Ray is used directly, not through Prefect's Ray task runner, which would run whole tasks on other machines.
The lease, the commits and the count of restarts belong to one process; only engines run elsewhere.
"""

import logging
import os
import secrets
import shutil
import socket
import tempfile
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

import psutil

from winnow.tasks.engines.errors import ClusterUnavailable, one_sentence
from winnow.tasks.engines.protocol import Engine, ModelRef
from winnow.tasks.engines.providers import EngineFactory, EngineSettings, devices_wanted
from winnow.tasks.plugins.allowed_code import require_code_allowed
from winnow.tasks.plugins.extras import require
from winnow.tasks.plugins.own_files import state_folder

if TYPE_CHECKING:
    from ray._private.worker import RayContext
    from ray.job_config import JobConfig

LONGEST_SESSIONS_PATH = 40
"""Maximum characters of a folder's path: Ray adds up to 64 to the paths of its sockets, which Linux limits to
107."""

OPEN_TO_ALL = "s"
"""Name of the folder given to Ray. Ray lets every user of the machine write into it, so it is inside a folder
that only this user can enter."""

OBJECT_STORE = 100 * 2**20
"""Bytes of Ray's object store, which holds only prompts and answers; Ray's default is a third of the memory.
"""

REMEDY = (
    "start one with `ray start --head`, or set execution.ray_address to local or to another "
    "ray://host:port; if it requires a token, set RAY_AUTH_MODE=token as described by Ray"
)

AWAY_S = 30.0
"""Seconds for which the head of a cluster may be unreachable, for example during a restart."""

LOOK_S = 5.0
"""Maximum seconds of one check whether the head answers."""

RAYS_PATIENCE_S = 3600
"""Seconds after which Ray ends a process whose cluster's head is unreachable, with Ray's own message. Ray's
default is a minute, even during a batch that needs no head; here the head is checked before it is needed."""


@contextmanager
def ray_engines(
    address: str, gpus: float | Literal["auto"], engines: int
) -> Generator[EngineFactory, None, None]:
    """Join or start a Ray cluster until the block ends.

    A process that already is in a cluster stays there. The entering thread must outlive the block, because
    Ray's processes on this machine end with it.

    Args:
        address: "auto", "local", or any other address of `ray.init`.
        gpus: GPUs of one engine; "auto": the number that its model is distributed over, or 0 if the cluster
            has no GPU.
        engines: Number of engines that may be loaded at once; a local cluster has room for them.

    Raises:
        ClusterUnavailable: If no cluster can be joined or started.
        ExtraMissing: If Ray is not installed.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if address == "local":
        _settle_token()
    require("ray", "execution.cluster: ray")
    import ray

    from winnow.tasks.engines.ray.engine import RayEngine

    def start(model: ModelRef, settings: EngineSettings) -> Engine:
        require_code_allowed(model.model, model.revision, model.model_args)
        is_there = partial(require_head, address)
        is_there()
        return RayEngine(
            model, settings, gpus=_gpus(model) if gpus == "auto" else gpus, require_head=is_there
        )

    if ray.is_initialized():
        yield start
        return
    with _local_cluster(engines) if address == "local" else _cluster(address):
        yield start


@contextmanager
def _rays_patience() -> Generator[None, None, None]:
    """Set the variables that Ray reads when a process first joins a cluster."""
    name = "RAY_gcs_rpc_server_reconnect_timeout_s"
    if name in os.environ:
        yield
        return
    os.environ[name] = str(RAYS_PATIENCE_S)
    try:
        yield
    finally:
        del os.environ[name]


def require_head(address: str) -> None:
    """Wait up to `AWAY_S` seconds for the head of this process's cluster.

    Raises:
        ClusterUnavailable: If the head does not answer; any request to the cluster would wait for it.
    """
    head = _head(address)
    deadline = time.monotonic() + AWAY_S
    while not _answers(head):
        if time.monotonic() > deadline:
            raise ClusterUnavailable(
                f"the head of the Ray cluster, {head}, does not answer; stored results are safe: {REMEDY}; "
                "then resume"
            )
        time.sleep(0.5)


class _NoFolders(list[str]):
    def extend(self, _: object) -> None:
        """Ignore the argument, because Ray would add the working folder."""


def _job() -> "JobConfig":
    """Job settings for Ray's workers, which must not import modules from the working folder."""
    from ray.job_config import JobConfig

    job = JobConfig()
    job._py_driver_sys_path = _NoFolders()
    return job


def _head(address: str) -> str:
    """Host and port of a cluster's head; for a ray:// address, those in the address."""
    import ray

    if address.startswith("ray://"):
        return address.removeprefix("ray://")
    return str(ray.get_runtime_context().gcs_address)


def _answers(head: str) -> bool:
    host, _, port = head.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=LOOK_S):
            return True
    except OSError:
        return False


@contextmanager
def _cluster(address: str) -> Generator[None, None, None]:
    import ray

    try:
        with _rays_patience():
            where = _own_address() if address == "auto" else address
            ray.init(address=where, job_config=_job(), log_to_driver=False, logging_level=logging.ERROR)
    except Exception as error:  # Ray has no common exception class for an invalid address
        why = one_sentence(error, limit=200)
        raise ClusterUnavailable(f"there is no Ray cluster at {address!r} ({why}); {REMEDY}") from error
    try:
        yield
    finally:
        ray.shutdown()


def _own_address() -> str:
    """Address in RAY_ADDRESS, or of the cluster of this user or root on this machine.

    Ray itself would take the address from a file in /tmp, or from a command line, of any user.

    Raises:
        ConnectionError: If no such cluster is found.
    """
    if address := os.environ.get("RAY_ADDRESS"):
        return address
    from ray._common.utils import get_ray_address_file

    file = str(get_ray_address_file(None))
    noted, running = _noted(file), sorted(_running())
    if noted is not None and len(running) != 1:
        return noted
    if not running:
        why = f"{file} belongs to another user" if os.path.lexists(file) else "none runs on this machine"
        raise ConnectionError(f"you have no cluster: {why}")
    return running[0]


def _noted(file: str) -> str | None:
    """Address in a file that `ray start` wrote; None if it is missing or another user's."""
    try:
        handle = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with open(handle, encoding="utf-8", errors="replace") as opened:
        return opened.read().strip() or None if os.fstat(handle).st_uid in _trusted() else None


def _running() -> Iterator[str]:
    """Addresses of the clusters to which trusted Ray processes on this machine belong."""
    flag = "--gcs-address="
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            command = process.cmdline()
            if command and Path(command[0]).name == "raylet" and process.uids().real in _trusted():
                yield from (each.removeprefix(flag) for each in command if each.startswith(flag))


def _trusted() -> tuple[int, int]:
    return 0, os.getuid()


@contextmanager
def _local_cluster(engines: int) -> Generator[None, None, None]:
    import ray

    with _sessions_folder() as folder, _on_this_machine():
        try:
            started = ray.init(
                address="local",
                job_config=_job(),
                num_cpus=max(engines, os.cpu_count() or 1),
                object_store_memory=OBJECT_STORE,
                include_dashboard=False,
                log_to_driver=False,
                logging_level=logging.ERROR,
                _temp_dir=str(folder),
            )
        except Exception as error:
            raise ClusterUnavailable(
                f"Ray cannot be started on this machine: {one_sentence(error)}; "
                f"see {folder}/session_latest/logs"
            ) from error
        try:
            yield
        finally:
            ray.shutdown()
            # Ray declares the type that it returns to remote clients.
            session = cast("RayContext", started).address_info["session_dir"]
            shutil.rmtree(str(session), ignore_errors=True)


@contextmanager
def _sessions_folder() -> Generator[Path, None, None]:
    folder = state_folder() / "ray"
    if len(os.fsencode(folder / OPEN_TO_ALL)) <= LONGEST_SESSIONS_PATH:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.chmod(0o700)  # an earlier version of Winnow let Ray open it to all users
        yield folder / OPEN_TO_ALL
        return
    short = Path(tempfile.mkdtemp(prefix="winnow-ray-"))  # only this user can enter it
    yield short / OPEN_TO_ALL
    shutil.rmtree(short, ignore_errors=True)  # kept after an error, whose message names it


@contextmanager
def _on_this_machine() -> Generator[None, None, None]:
    """Make all processes of a cluster that starts in the block listen only on 127.0.0.1.

    Ray listens on all interfaces, metrics without a token, unless the node's address is the loopback address.
    Ray accepts that address only if it expects no nodes on other machines, as on macOS; it replaces that
    address if passed as an argument. Its processes inherit the variable.
    """
    from ray._private import ray_constants

    name, before = ray_constants.ENABLE_RAY_CLUSTERS_ENV_VAR, ray_constants.ENABLE_RAY_CLUSTER
    in_environment = os.environ.get(name)
    os.environ[name], ray_constants.ENABLE_RAY_CLUSTER = "0", False
    try:
        yield
    finally:
        ray_constants.ENABLE_RAY_CLUSTER = before
        del os.environ[name]
        if in_environment is not None:
            os.environ[name] = in_environment


def _settle_token() -> None:
    """Set a token for this cluster only, unless the user has set one.

    Ray would store a token in the home folder. This must happen before Ray is imported.
    """
    if not {"RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"} & os.environ.keys():
        os.environ.update(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=secrets.token_hex(32))


def _gpus(model: ModelRef) -> float:
    import ray

    if not ray.cluster_resources().get("GPU"):
        return 0.0
    if model.provider == "vllm":
        return float(devices_wanted(model))
    return 0.0 if model.model_args.get("device") == "cpu" else 1.0
