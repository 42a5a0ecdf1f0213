"""Files and folders that appear whole or not at all, and know the settings they were made with."""

import hashlib
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FINGERPRINT = "fingerprint.txt"


def fingerprint_of(settings: object) -> str:
    """A short text that differs when `settings`, a JSON value, differ."""
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:16]


def is_current(path: Path, fingerprint: str) -> bool:
    """Whether `path` was made completely, with the settings of this fingerprint."""
    try:
        return path.exists() and _fingerprint_file(path).read_text() == fingerprint
    except FileNotFoundError:
        return False


@contextmanager
def replacing(path: Path, fingerprint: str) -> Iterator[Path]:
    """Give a temporary path beside `path` to write a file or fill a folder, then put that in its place.

    A process killed at any moment leaves `path` absent, or as it was, or complete; in the worst case it is
    made once more. What an earlier, killed process left at the temporary path is thrown away.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.partial")
    _remove(partial)
    yield partial
    if partial.is_dir():
        (partial / FINGERPRINT).write_text(fingerprint)
        _remove(path)
        partial.rename(path)
    else:
        partial.replace(path)
        _fingerprint_file(path).write_text(fingerprint)


def _fingerprint_file(path: Path) -> Path:
    return path / FINGERPRINT if path.is_dir() else path.with_name(f".{path.name}.{FINGERPRINT}")


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
