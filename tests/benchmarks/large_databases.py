"""Benchmarks of databases of millions of comparisons: where they are, and who asks them what."""

import argparse
import multiprocessing
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.benchmarks.tables import Row, told, write
from tests.postgres_server import postgres_server
from winnow.storage.admin.schema import ensure_schema
from winnow.storage.engine.database import Database, open_database


def measure(
    name: str, description: str, title: str, measured: Callable[[str, Path, int], Iterator[Row]]
) -> None:
    """Measure each kind of database and write the table, as the command line asks for it.

    Args:
        name: Of the table's file.
        description: For --help.
        title: Of the table.
        measured: Rows of a kind of database, given a folder and how many comparisons there are to be.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--out", type=Path, default=Path(".winnow/bench"))
    parser.add_argument("--comparisons", type=int, default=10_000_000)
    parser.add_argument("--databases", nargs="+", default=["sqlite", "postgresql"])
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    rows = told(row for kind in options.databases for row in measured(kind, options.out, options.comparisons))
    write(name, {name: title}, {name: rows}, options.out)


@contextmanager
def place(kind: str, folder: Path) -> Iterator[Callable[[], str]]:
    """Where databases of a kind come from: a function that gives the URL of a new one."""
    if kind == "sqlite":
        with tempfile.TemporaryDirectory(dir=folder) as files:
            numbers = iter(range(100))
            yield lambda: f"sqlite:///{files}/{next(numbers)}.db"
        return
    # As an administrator would have it, but for the memory: commits reach the disk.
    durable = {"fsync": "on", "full_page_writes": "on", "shared_buffers": "512MB", "max_wal_size": "4GB"}
    with postgres_server(parent=tempfile.gettempdir(), **durable) as server:
        yield server.new_database


@contextmanager
def opened(url: str) -> Iterator[Database]:
    database = open_database(url)
    try:
        ensure_schema(database)
        yield database
    finally:
        database.close()


def row(kind: str, what: str, measured: str, target: str) -> Row:
    return {"database": kind, "what": what, "measured": measured, "target": target}


def in_its_own_process(ask: Callable[[Database, int], float], url: str, campaign: int) -> tuple[float, float]:
    """Seconds that a question takes, and the most memory (MiB) of a process that only asks it."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        return pool.apply(_asked, (ask, url, campaign))


def _asked(ask: Callable[[Database, int], float], url: str, campaign: int) -> tuple[float, float]:
    database = open_database(url, read_only=True)
    seconds = ask(database, campaign)
    database.close()
    status = Path("/proc/self/status").read_text()
    return seconds, int(status.partition("VmHWM:")[2].split()[0]) / 1024
