"""Open files that a user or a campaign's file names.

Only plain files are opened, and without waiting. Opening a named pipe waits for a writer, reading a terminal
or a device may never end, and a folder or a socket has no content. The kind is checked before the file is
opened, and again by its descriptor.
"""

import errno
import os
import stat
from io import BufferedReader
from pathlib import Path

_KINDS = (
    (stat.S_ISDIR, "it is a folder; name a file", errno.EISDIR),
    (stat.S_ISFIFO, "it is a named pipe; write its output to a file", errno.EINVAL),
    (stat.S_ISSOCK, "it is a socket; name a file", errno.EINVAL),
    (stat.S_ISCHR, "it is a device; name a file", errno.EINVAL),
    (stat.S_ISBLK, "it is a device; name a file", errno.EINVAL),
)


def open_plain(path: str | Path) -> BufferedReader:
    """Open a plain file to read its bytes.

    Raises:
        OSError: If the file cannot be read, or is not a plain file; `strerror` is then a sentence with a
            remedy.
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
    r"""Read a plain file of UTF-8 text, with line ends converted to \n.

    Raises like `open_plain`.

    Raises:
        UnicodeDecodeError: If the content is not UTF-8.
    """
    with open_plain(path) as file:
        return file.read().decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")


def require_plain(path: str | Path) -> None:
    """Raise like `open_plain`, without opening the file.

    It is for files that another library opens.
    """
    if "\0" in str(path):
        raise OSError(errno.EINVAL, "its name contains the character NUL; correct it", str(path))
    _require(os.stat(path), path)


def refuse_link_elsewhere(path: str | Path) -> None:
    """Refuse to write through a link to another folder.

    The function raises if writing to the path would follow a link to another folder than the link's own. A
    third party who provided the working folder may have made such a link. The last part of the path is
    checked; in a relative path, also all parts below the working folder. Links above that, and the folders of
    an absolute path, are the user's own.

    Raises:
        OSError: If the path has such a link; `strerror` is then a sentence with a remedy.
    """
    path = Path(path)
    written = dict.fromkeys((path, Path(os.path.normpath(path))))  # SQLite gets the latter
    for link in (part for each in written for part in (*_folders_below_here(each), each)):
        if not os.path.islink(link):
            continue
        target = Path(os.path.realpath(link))  # unlike `Path.resolve`, it accepts a link to itself
        if not target.is_relative_to(os.path.realpath(link.parent)):
            sentence = f"{link} is a link to {target} in another folder; use that path instead"
            raise OSError(errno.ELOOP, sentence, str(path))


def _folders_below_here(path: Path) -> list[Path]:
    """Folders below the working folder on a relative path, outermost first."""
    if path.is_absolute():
        return []
    here = Path.cwd()
    folders = [each for each in reversed(path.parents) if each.name not in ("", "..")]
    return [each for each in folders if here in Path(os.path.abspath(each)).parents]


def make_folder(folder: Path) -> None:
    """Create a folder to write into, and its parents, if it does not exist.

    Raises:
        OSError: If the folder cannot be created, or its path goes through a link to another folder; see
            `refuse_link_elsewhere`.
    """
    refuse_link_elsewhere(folder)
    folder.mkdir(parents=True, exist_ok=True)


def _require(found: os.stat_result, path: str | Path) -> None:
    for is_kind, sentence, code in _KINDS:
        if is_kind(found.st_mode):
            raise OSError(code, sentence, str(path))
