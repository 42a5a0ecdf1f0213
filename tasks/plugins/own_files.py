"""Open files that Winnow writes by itself, such as logs and notes, following no link.

A folder from another person may contain links under the names of such files, which point to the user's own
files elsewhere. So files are opened by descriptors.
"""

import errno
import hashlib
import os
import secrets
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

_FOLDER = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_PATH", 0)
_FILE = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


def open_to_append(path: Path) -> BinaryIO:
    """Open a file for appending; create it and its folders if missing.

    Args:
        path: Relative to the working folder, or absolute; no part of it may be a link.

    Raises:
        OSError: If the file cannot be written; `strerror` is a sentence if a link or another kind of file has
            that path.
    """
    with _folder(path) as folder:
        handle = _open_file(path, folder, os.O_APPEND)
    found = os.fstat(handle)
    if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
        os.close(handle)
        what = "is not a plain file" if found.st_nlink <= 1 else "has a second name elsewhere (a hard link)"
        raise OSError(errno.EEXIST, f"{path} {what}, but Winnow writes only to its own files: remove it")
    return os.fdopen(handle, "ab")


def open_anew(path: Path) -> BinaryIO:
    """Open a new, empty file, which replaces an existing one.

    Paths and errors are as in `open_to_append`.
    """
    with _folder(path) as folder:
        beside = f".{path.name}.{secrets.token_hex(4)}"
        handle = _open_file(path.with_name(beside), folder, os.O_EXCL)
        try:
            os.rename(beside, path.name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            os.close(handle)
            os.unlink(beside, dir_fd=folder)
            raise
    return os.fdopen(handle, "wb")


def write_whole(path: Path, text: str) -> None:
    """Write a file atomically; paths and errors are as in `open_to_append`."""
    with _folder(path) as folder:
        beside = f".{path.name}.{secrets.token_hex(4)}"
        handle = _open_file(path.with_name(beside), folder, os.O_EXCL)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
            os.rename(beside, path.name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with suppress(OSError):
                os.unlink(beside, dir_fd=folder)
            raise


def state_folder() -> Path:
    """The user's folder for state of the working folder that must not be read from there.

    Raises:
        RuntimeError: If the user has no home folder.
    """
    named = os.environ.get("XDG_STATE_HOME", "")
    base = Path(named) if Path(named).is_absolute() else Path.home() / ".local" / "state"
    here = os.fsencode(Path.cwd().resolve())
    name = f"{Path(os.fsdecode(here)).name or 'root'}-{hashlib.sha256(here).hexdigest()[:16]}"
    return base.resolve() / "winnow" / name


def settled_folder(path: str) -> Path:
    """An allowed folder, named as in the permission, with the links in its own path resolved."""
    found, here = Path(path).resolve(), Path.cwd().resolve()
    return found.relative_to(here) if found.is_relative_to(here) else found


def link_below(folder: Path) -> Path | None:
    """First symbolic link among a folder, its content and its parents; None if it has no link.

    Args:
        folder: Relative to the working folder, or absolute; parents are checked only for a relative path.
    """
    above = [] if folder.is_absolute() else [each for each in folder.parents if each != Path()]
    inside = (Path(place) / name for place, folders, files in os.walk(folder) for name in (*folders, *files))
    return next((each for each in (*reversed(above), folder, *inside) if each.is_symlink()), None)


@contextmanager
def _folder(path: Path) -> Generator[int, None, None]:
    """Open a descriptor of a file's folder; missing folders are created."""
    if ".." in path.parts:
        raise ValueError(f"{path} leaves its folder")
    handle = os.open(path.anchor or ".", os.O_DIRECTORY | os.O_CLOEXEC | getattr(os, "O_PATH", 0))
    try:
        at = Path(path.anchor)
        for name in path.relative_to(at).parts[:-1]:
            at /= name
            try:
                below = _open_folder(name, handle)
            except OSError as error:
                raise _with_path(error, at, name, handle) from error
            os.close(handle)
            handle = below
        yield handle
    finally:
        os.close(handle)


def _open_folder(name: str, above: int) -> int:
    try:
        return os.open(name, _FOLDER, dir_fd=above)
    except FileNotFoundError:
        with suppress(FileExistsError):
            os.mkdir(name, dir_fd=above)
        return os.open(name, _FOLDER, dir_fd=above)


def _open_file(path: Path, folder: int, flags: int) -> int:
    try:
        return os.open(path.name, _FILE | flags, 0o666, dir_fd=folder)
    except OSError as error:
        raise _with_path(error, path, path.name, folder) from error


def _with_path(error: OSError, path: Path, name: str, folder: int) -> OSError:
    """The error with its path; for a symbolic link, with what to do."""
    with suppress(OSError):
        if stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            sentence = f"{path} is a link, but Winnow writes its own files through no link: remove it"
            return OSError(errno.ELOOP, sentence)
    return OSError(error.errno, error.strerror, str(path))
