"""How a module of ours is run as a process."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[4]  # the folder that holds the package `winnow`; a checkout has links in it


def module_command(module: str, *arguments: object) -> list[str]:
    """The command line that runs a module."""
    # -P: a folder named `tasks` where the user stands must not shadow ours.
    return [sys.executable, "-P", "-m", module, *map(str, arguments)]


def worker_environment(environment: Mapping[str, str], forced: Mapping[str, str]) -> dict[str, str]:
    """All variables of a worker.

    Args:
        environment: Variables on top of ours; what the user has set already wins.
        forced: Variables that win over the user's.
    """
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    return {**environment, **os.environ, **forced, "PYTHONPATH": path}
