"""A Ray cluster on this machine for tests, and campaigns whose engines run in it."""

import os
import secrets
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

ROOT = Path(__file__).parents[2]
ACTOR = "ray::EngineActor"
"""How Ray calls the process of an actor, whatever it does."""

AGENTS = ("ray::DashboardAgent", "ray::RuntimeEnvAgent")
"""Processes of a cluster that try for a minute to tell it of its own end before they end too."""

ATTEMPTS = 3

IN_TURN = {"RAY_worker_niceness": "0"}
"""Ray has actors give way to all else of their session. The suite's other processes are in it: beside three
that compute, an actor got an eleventh of what each of them did, and took minutes for its imports."""

SERVE = """
import sys, tempfile, ray
with tempfile.TemporaryDirectory(prefix="ray-") as folder:
    context = ray.init(address="local", num_cpus=4, object_store_memory=100 * 2**20, include_dashboard=False,
                       log_to_driver=False, logging_level="ERROR", _temp_dir=folder)
    print(context.address_info["gcs_address"], flush=True)
    sys.stdin.read()
    ray.shutdown()
"""


@contextmanager
def ray_cluster(*found_in: Path) -> Generator[str, None, None]:
    """A cluster with room for four engines, until the block ends; its address.

    Ray reads the token when it is imported, which this process has to leave for later.

    Args:
        found_in: Folders in which its processes find packages beside those that are installed.
    """
    with pytest.MonkeyPatch.context() as patch:
        for name, value in IN_TURN.items():
            patch.setenv(name, value)
        patch.setenv("RAY_AUTH_MODE", "token")
        patch.setenv("RAY_AUTH_TOKEN", secrets.token_hex(32))
        # Ray gives its own processes 30 seconds to start, which a busy machine may not keep to at once.
        for _ in range(ATTEMPTS):
            with _server(found_in) as server:
                if address := server.stdout.readline().decode().strip():
                    yield address
                    server.stdin.close()
                    return
        raise RuntimeError("Ray did not start")


def _server(found_in: Sequence[Path]) -> subprocess.Popen[bytes]:
    path = os.pathsep.join(map(str, (ROOT, *found_in)))
    environment = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0", "PYTHONPATH": path}
    command = [sys.executable, "-P", "-c", SERVE]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)


def tokens() -> dict[str, str]:
    """What a process needs to join the cluster."""
    return {name: value for name, value in os.environ.items() if name.startswith("RAY_AUTH_")}


def on_ray(spec: Path, address: str) -> Path:
    """Have the engines of a campaign file run in a cluster."""
    text = spec.read_text().replace("execution: {", f'execution: {{cluster: ray, ray_address: "{address}", ')
    spec.write_text(text)
    return spec


def resume_in(folder: str, storage: str, name: str, environment: dict[str, str], prefect_api: str) -> None:
    """Run a stored campaign from its own folder, in which Ray then keeps its files."""
    from prefect.settings import PREFECT_API_URL, temporary_settings

    from winnow.flows.run.flow import run_campaign

    os.environ.update(environment)
    sys.path[:0] = environment.get("PYTHONPATH", "").split(os.pathsep)
    os.chdir(folder)
    with temporary_settings({PREFECT_API_URL: prefect_api}):
        run_campaign(storage, name)


def actors() -> list[psutil.Process]:
    """The processes of all actors on this machine that hold an engine."""
    return [each for each in psutil.process_iter() if title(each).startswith(ACTOR) and alive(each)]


def vllm_of(actor: psutil.Process) -> list[psutil.Process]:
    """The processes of vLLM that an actor has; what else it starts is gone soon."""
    try:
        return [each for each in actor.children() if "vllm" in title(each).lower()]
    except psutil.Error:
        return []


def alive(process: psutil.Process) -> bool:
    """Whether a process is more than an entry in the table of processes."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def title(process: psutil.Process) -> str:
    """How a process calls itself."""
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""
