"""Write files and folders atomically, with a fingerprint of the settings they were made with."""

import hashlib
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FINGERPRINT = "fingerprint.txt"


def fingerprint_of(settings: object) -> str:
    """A short digest of `settings`, which is a JSON value."""
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:16]


def is_current(path: Path, fingerprint: str) -> bool:
    """Whether `path` exists, is complete, and was made with the settings of this fingerprint."""
    try:
        return path.exists() and _fingerprint_file(path).read_text() == fingerprint
    except FileNotFoundError:
        return False


@contextmanager
def replacing(path: Path, fingerprint: str) -> Iterator[Path]:
    """Yield a temporary path next to `path`, for a file or a folder, which then replaces `path`.

    If the process is killed, `path` is missing, unchanged or complete; at worst it is made again. Remains of
    an earlier, killed process at the temporary path are deleted.
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
