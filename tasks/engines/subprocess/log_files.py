"""Where an engine in a process of its own writes what it would print."""

import re
from pathlib import Path


def log_file(folder: Path, model: str) -> Path:
    """The file of a model, whose name may hold any characters."""
    return folder / f"{re.sub(r'[^A-Za-z0-9._-]', '_', model)}.log"
