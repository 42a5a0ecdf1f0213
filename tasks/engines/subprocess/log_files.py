"""Where an engine in a process of its own writes what it would print."""

import re
from pathlib import Path
from typing import BinaryIO

from winnow.tasks.errors import WinnowError


def log_file(folder: Path, model: str) -> Path:
    """The file of a model, whose name may hold any characters."""
    return folder / f"{re.sub(r'[^A-Za-z0-9._-]', '_', model)}.log"


def open_log(log: Path) -> BinaryIO:
    """The file, to append to; its folders are made.

    Raises:
        WinnowError: If it cannot be written.
    """
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        return log.open("ab")
    except OSError as error:
        raise WinnowError(
            f"the log {log} of an engine cannot be written ({error.strerror}); make room for it, "
            "or name another folder in execution.log_folder"
        ) from error
