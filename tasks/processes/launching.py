"""Command, environment and log file of a module of ours that is run as a process."""

import os
import re
import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import BinaryIO

from winnow.tasks.errors import WinnowError
from winnow.tasks.plugins.own_files import open_to_append

ROOT = Path(__file__).parents[3]  # the folder that holds the package `winnow`; a checkout has links in it


def module_command(module: str, *arguments: object) -> list[str]:
    """The command line that runs a module."""
    # -P: a folder named `tasks` where the user stands must not shadow ours.
    return [sys.executable, "-P", "-m", module, *map(str, arguments)]


def worker_environment(
    environment: Mapping[str, str], forced: Mapping[str, str], inherited: Collection[str] | None = None
) -> dict[str, str]:
    """All variables of a worker.

    Args:
        environment: Variables on top of ours; what the user has set already wins.
        forced: Variables that win over the user's.
        inherited: Those of the user's that it may see at all; None means every one.
    """
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    users = {name: value for name, value in os.environ.items() if inherited is None or name in inherited}
    return {**environment, **users, **forced, "PYTHONPATH": path}


def log_file(folder: Path, model: str) -> Path:
    """The file of a model, whose name may hold any characters."""
    return folder / f"{re.sub(r'[^A-Za-z0-9._-]', '_', model)}.log"


def open_log(log: Path) -> BinaryIO:
    """The file, to append to; its folders are made.

    Raises:
        WinnowError: If it cannot be written.
    """
    try:
        return open_to_append(log)
    except OSError as error:
        raise WinnowError(
            f"the log {log} of an engine cannot be written ({error.strerror}); make room for it, "
            "or name another folder in execution.log_folder"
        ) from error
