"""Print to standard output and standard error, and replace files atomically."""

import contextlib
import datetime as dt
import json
import os
import shutil
import sys
from collections.abc import Generator, Sequence
from decimal import Decimal
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TextIO

from winnow.storage.plain_files import refuse_link_elsewhere
from winnow.tasks.errors import WinnowError

BOLD, GREEN, YELLOW, PLAIN = "\x1b[1m", "\x1b[32m", "\x1b[33m", "\x1b[0m"


def terminal_width(file: TextIO) -> int | None:
    """Number of columns of a terminal; None for a file that is not a terminal."""
    return shutil.get_terminal_size().columns if file.isatty() else None


def can_ask(shown: TextIO | None) -> bool:
    """Whether the user can answer questions, because standard input and `shown` are terminals."""
    return bool(sys.stdin and sys.stdin.isatty() and shown and shown.isatty())


def wants_colours(file: TextIO) -> bool:
    """Whether a file is a terminal and NO_COLOR is not set."""
    return file.isatty() and not os.environ.get("NO_COLOR")


def coloured(text: str, *codes: str) -> str:
    """Wrap text in terminal codes for a colour or bold, and reset them after it."""
    return f"{''.join(codes)}{text}{PLAIN}"


def print_json(value: object) -> None:
    """Print a value as JSON, indented; on a terminal with unprintable characters escaped."""
    text = json.dumps(value, default=_jsonable, indent=2, ensure_ascii=False)
    print(escaped(text) if sys.stdout.isatty() else text)


def tell(sentence: str) -> None:
    """Print a sentence to standard error; ignore errors, such as a closed pipe or a full disk."""
    if sys.stderr is not None:
        with contextlib.suppress(OSError, ValueError):
            print(sentence, file=sys.stderr, flush=True)


MOST_READ = 2**20
"""Maximum number of bytes of an old file that are compared with the new one."""

PARQUET = b"PAR1"
"""The first bytes of a Parquet file."""

DATABASE = b"SQLite format 3\0"
"""The first bytes of a SQLite database."""


@contextlib.contextmanager
def atomic_replacement(path: Path, columns: Sequence[str] = ()) -> Generator[Path]:
    """Yield a temporary file to write, which replaces `path` atomically when the block ends.

    An existing file is replaced only if it begins like the new one, as after the same command. Data and
    campaign files do not. If `path` is a device, it is yielded itself.

    Args:
        path: The file.
        columns: Columns of a table; an existing file with these is replaced by a new one without rows, too.

    Raises:
        WinnowError: If the file cannot be written, is a database or begins differently, or its path goes
            through a link to another folder; the old file is then unchanged.
    """
    path = _resolve_link(path)
    if os.path.isdir(path):  # unlike `Path`'s, no error for a name that is too long
        raise WinnowError(f"{path} is a folder; name a file")
    if not os.path.isdir(path.parent):
        raise WinnowError(f"{path}: there is no folder {path.parent}; create it first")
    try:
        if os.path.exists(path) and not path.is_file():
            yield path
            return
        if os.path.exists(path):
            with path.open("rb") as there:
                if there.read(len(DATABASE)) == DATABASE:
                    raise WinnowError(f"{path} is a database; name another file")
        with NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
            beside = Path(file.name)
        try:
            yield beside
            alike = ("", _beginning(beside), ",".join(columns), *columns[:1])
            if os.path.exists(path) and _beginning(path) not in alike:
                raise WinnowError(
                    f"{path} exists, and contains something else than this command writes; name another "
                    "file, or remove it first"
                )
            # Temporary files are private; give this one the mode of the user's other new files.
            beside.chmod(0o666 & ~umask())
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        raise WinnowError(f"{path}: {error.strerror}; name a writable path") from error


def _beginning(path: Path) -> str:
    """What shows the kind of a file's contents: its columns, first keys or first word; "" if it is empty."""
    with path.open("rb") as file:
        head = file.read(MOST_READ)
    if head.startswith(PARQUET):
        from pyarrow import ArrowException, parquet

        with contextlib.suppress(ArrowException):
            return ",".join(parquet.read_schema(path).names)
    text = head.decode("utf-8-sig", errors="replace").lstrip()
    line = text.partition("\n")[0].rstrip()
    with contextlib.suppress(ValueError, RecursionError):
        if line.startswith("{"):
            return ",".join(json.loads(line))
    if text.startswith(("[", "{")):
        return text.lstrip("[{ \r\n").partition(":")[0].strip('"] \r\n')
    is_csv = "," in line and not line.startswith(("#", "<"))
    return line if is_csv else line.partition(" ")[0].casefold()


def _resolve_link(path: Path) -> Path:
    """The path, or its target if it is a link.

    Raises:
        WinnowError: If the path goes through a link to another folder, which a third party may have made.
    """
    target = path.resolve() if os.path.islink(path) else path
    is_device = os.path.exists(target) and not target.is_file() and not target.is_dir()
    try:
        refuse_link_elsewhere(path.parent if is_device else path)
    except OSError as error:
        raise WinnowError(error.strerror) from error
    return target


def umask() -> int:
    """Permission bits that new files of this process do not get."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


def escaped(text: str) -> str:
    """Escape unprintable characters of JSON text, except line ends."""
    return "".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text)


def _jsonable(value: object) -> object:
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, frozenset):
        return sorted(value)
    return value.hex() if isinstance(value, bytes) else str(value)
