"""A folder that is there with all of its files, or not at all."""

import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp

from winnow.tasks.errors import WinnowError


@contextmanager
def whole_folder(folder: Path) -> Generator[Path, None, None]:
    """A folder beside its place to write into, which is put there at the end, and deleted on any error.

    Raises:
        WinnowError: If there are files there already, or it cannot be written.
    """
    try:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise WinnowError(f"{folder} is not an empty folder; name a new one, or delete it first")
        folder.parent.mkdir(parents=True, exist_ok=True)
        beside = Path(mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
        try:
            # What mkdtemp makes is private; an export is as public as the user's other folders are.
            beside.chmod(0o777 & ~_umask())
            yield beside
            os.replace(beside, folder)
        except BaseException:
            shutil.rmtree(beside, ignore_errors=True)
            raise
    except OSError as error:
        raise WinnowError(
            f"{error.filename or folder}: {error.strerror}; nothing was exported; "
            "name a place with room that can be written to"
        ) from error


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
