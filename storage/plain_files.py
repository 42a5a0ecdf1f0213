"""Open files that a user or a campaign's file names: only plain files, and without waiting.

Opening a named pipe waits for a writer, reading a terminal or a device may never end, and a folder or a
socket has no content. The kind is looked at before the file is opened, and again by its descriptor.
"""

import errno
import os
import stat
from io import BufferedReader
from pathlib import Path

_KINDS = (
    (stat.S_ISDIR, "it is a folder; name a file", errno.EISDIR),
    (
        stat.S_ISFIFO,
        "it is a named pipe; write what comes from it into a file",
        errno.EINVAL,
    ),
    (stat.S_ISSOCK, "it is a socket; name a file", errno.EINVAL),
    (stat.S_ISCHR, "it is a device; name a file", errno.EINVAL),
    (stat.S_ISBLK, "it is a device; name a file", errno.EINVAL),
)


def open_plain(path: str | Path) -> BufferedReader:
    """Open a plain file to read its bytes.

    Raises:
        OSError: If it cannot be read, or is none; the `strerror` is then a sentence with a remedy.
        ValueError: If its name holds NUL.
    """
    require_plain(path)
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        _require(os.fstat(handle), path)
    except OSError:
        os.close(handle)
        raise
    return os.fdopen(handle, "rb")


def read_text(path: str | Path) -> str:
    """Read a plain file of UTF-8, with line ends as Python's text files have them; raises as `open_plain`.

    Raises:
        UnicodeDecodeError: If it is not UTF-8.
    """
    with open_plain(path) as file:
        return file.read().decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")


def require_plain(path: str | Path) -> None:
    """Raise like `open_plain`, without opening the file: it is for another library, which does."""
    _require(os.stat(path), path)


def led_elsewhere(path: Path) -> Path | None:
    """Target of a link to another folder than the link's, whether it exists or not; None of all other paths.

    Whoever filled the folder may have made the link, so nothing is written through it.
    """
    if not path.is_symlink():
        return None
    target = path.resolve()
    return None if target.is_relative_to(path.parent.resolve()) else target


def make_folder(folder: Path) -> None:
    """Make a folder to write into, with those that it is in, if it is missing.

    Raises:
        OSError: If it cannot be made, or is a link to another folder; the `strerror` is then a sentence.
    """
    if (target := led_elsewhere(folder)) is not None:
        sentence = f"it is a link to {target}, which is in another folder; name that folder itself"
        raise OSError(errno.ELOOP, sentence, str(folder))
    folder.mkdir(parents=True, exist_ok=True)


def _require(found: os.stat_result, path: str | Path) -> None:
    for is_kind, sentence, code in _KINDS:
        if is_kind(found.st_mode):
            raise OSError(code, sentence, str(path))
