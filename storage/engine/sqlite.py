"""Open SQLite with explicit transactions and the write-ahead log.

Readers are restricted.
"""

import fcntl
import os
import sqlite3
import struct
import sys
import time
from dataclasses import dataclass, field

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.dialects import registry
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool, QueuePool
from sqlalchemy.util import LRUCache

from winnow.storage.engine.raw_sql import undecodable
from winnow.storage.engine.sqlite_files import WatchedFiles, given_ids
from winnow.storage.errors import StorageUnavailable
from winnow.storage.plain_files import refuse_link_elsewhere, require_plain

WRITES = "winnow_writes"
"""Execution option of a connection whose transactions write."""

FILE = "winnow_file"
"""Execution option of an engine: the file that it opened."""

WRITER_CACHE_KIB = 64 * 1024
"""Page cache of a writer in KiB.
Keys of generations are random, so caching the pages of their index helps from round to round."""

WAL_PAGES = 8_000
"""Number of pages in the write-ahead log before a checkpoint.
A page changed by several rounds is then copied once."""

_READING_PRAGMAS = {
    "data_version",
    "foreign_key_check",
    "foreign_key_list",
    "index_info",
    "index_list",
    "index_xinfo",
    "integrity_check",
    "page_count",
    "page_size",
    "read_uncommitted",
    "table_info",
    "table_list",
    "table_xinfo",
}

_RUNS_CODE = ("fts3_tokenizer", "load_extension")
"""Functions that make SQLite call code.
The code is at an address in the statement, if SQLite was built with that option (Debian's is), or in a
file."""

STATEMENTS: LRUCache[object, object] = LRUCache(1_000)
"""Compiled statements, shared by all files of this process.
A run opens its file several times."""


class AnyFile(SQLiteDialect_pysqlite):
    """SQLite's dialect, equal for all files, so that compiled statements are shared."""

    supports_statement_cache = True

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)

    def __hash__(self) -> int:
        return hash(type(self))


registry.register("sqlite.anyfile", __name__, AnyFile.__name__)


@dataclass(slots=True)
class OneFile:
    """The file that an engine has opened, identified by device and inode.

    Synchronisation programs, editors and git replace a file by a copy. Connections then keep writing to the
    old file, which no path leads to.
    """

    path: str
    shown: str
    """Name of the database in errors."""
    _opened: tuple[int, int] | None = None
    _log: tuple[int, int] | None = None
    """Write-ahead log of the file, which stays the same file while a connection is open."""
    _connections: list[sqlite3.Connection] = field(default_factory=list)
    """Open connections that can write."""
    _watched: WatchedFiles = field(init=False)

    def __post_init__(self) -> None:
        self._watched = WatchedFiles(self.path)

    def add(self, connection: sqlite3.Connection) -> None:
        """Record a connection that can write, after the connection opened the log."""
        if not self._connections:
            self._log = _file_at(self._path_of_log())
            self._watched.begin(self._path_of_log())
        self._connections.append(connection)

    def forget(self, connection: sqlite3.Connection) -> None:
        """Remove a connection that is about to be closed."""
        if connection in self._connections:
            self._connections.remove(connection)
            if not self._connections:
                self._watched.end()

    def require(self, lost: str, connection: sqlite3.Connection | None = None) -> None:
        """Raise if the path leads to another file than at first.

        This also raises if the log is not the connections' log. `lost` describes what the other file lacks.
        `connection`, if not None, has just begun a transaction.

        Raises:
            StorageUnavailable: If the path of the file or of its log leads to another file or to no file, or
                if another program wrote into either.
        """
        there = _file_at(self.path)
        if self._opened is None:
            self._opened = there
        if there is None or there != self._opened:
            became = "was removed" if there is None else "was replaced by another file"
            raise StorageUnavailable(self.shown, f"it {became} while it was open: {lost}", KEEP_THEM_AWAY)
        if not self._connections:
            return
        self._require_log()
        if self._watched.are_overwritten(None if connection is None else given_ids(connection)):
            _keep_from_merging(self.path)
            why = f"another program wrote into its files while it was open: {LOST_WITH_THE_LOG}"
            raise StorageUnavailable(self.shown, why, KEEP_THEM_AWAY)

    def _require_log(self) -> None:
        path = self._path_of_log()
        there = _file_at(path)
        if self._log is None:  # the first transaction of a new file creates the log
            self._log = there
        if there == self._log:
            return
        if there is not None:  # if the log is gone, the last connection saves everything when it is closed
            _keep_from_merging(self.path)
        became = "was removed" if there is None else "was replaced"
        why = f"{os.path.basename(path)} beside it {became} while it was open: {LOST_WITH_THE_LOG}"
        raise StorageUnavailable(self.shown, why, KEEP_THEM_AWAY)

    def _path_of_log(self) -> str:
        return os.path.realpath(self.path) + WAL


SHARED_FIRST, SHARED_SIZE = 0x40000002, 510
"""First byte and number of bytes that each process with an open connection locks.
See SQLite's os.h."""


def _keep_from_merging(path: str) -> None:
    """Prevent this process from merging its log into the file.

    This also prevents it from removing the others' log. The process that closes a database last does both. So
    this process keeps an additional lock until it ends.
    """
    if sys.platform == "linux":
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        wanted = struct.pack("hhqqi", fcntl.F_RDLCK, os.SEEK_SET, SHARED_FIRST, SHARED_SIZE, 0)
        fcntl.fcntl(handle, fcntl.F_OFD_SETLK, wanted)


def _file_at(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


KEEP_THEM_AWAY = (
    "keep programs that replace files (rsync, Dropbox, git, editors) away from a database in use, then run "
    "the command again, which generates missing outputs"
)
LOST_SINCE_THE_COPY = "rows stored since that copy was made are not in it, and nothing more was stored"
LOST_AT_LAST = "the rows that were stored last are not in it"
LOST_WITH_THE_LOG = "rows that were stored last may be lost, and nothing more was stored"


class NoSuchDatabase(sqlite3.OperationalError):
    """The file to open does not exist."""


def sqlite_engine(path: str, *, shown: str, read_only: bool, creates: bool, wait_ms: int) -> Engine:
    """Create an engine on a file.

    `creates` allows a new file, and a writer waits `wait_ms` for another writer. Once a writing transaction
    has the lock, it compares the file at `path` with the opened file. `require_stored` checks again after its
    end.
    """
    given, path = path, os.path.abspath(path)
    file = OneFile(path, shown)
    mode = "ro" if read_only else "rwc" if creates else "rw"

    def connect() -> sqlite3.Connection:
        if mode != "rwc" and not os.path.exists(path):
            raise NoSuchDatabase("there is no such file")
        refuse_others(path)
        if mode == "rwc" and not os.path.exists(path):
            try:
                refuse_link_elsewhere(given)
            except OSError as error:
                raise sqlite3.OperationalError(error.strerror) from error
        if mode != "ro" and os.path.exists(path):
            file.require(LOST_SINCE_THE_COPY)  # before opening, and again in `configure` afterwards
        quoted = path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
        return sqlite3.connect(
            f"file:{quoted}?mode={mode}",
            uri=True,
            isolation_level=None,  # explicit transactions, not the driver's implicit ones
            check_same_thread=False,
            timeout=wait_ms / 1000,
        )

    # For a URL without a file, SQLAlchemy would choose a pool that closes connections in use.
    engine = create_engine(
        "sqlite+anyfile://",
        creator=connect,
        poolclass=NullPool if read_only else QueuePool,
        execution_options={"compiled_cache": STATEMENTS, FILE: file},
    )

    @event.listens_for(engine, "connect")
    def configure(connection: sqlite3.Connection, _: object) -> None:
        if read_only:
            connection.execute("PRAGMA query_only=ON")
            connection.set_authorizer(_refuse_dangers)
            return
        _enter_wal_mode(connection, wait_ms)
        file.require(LOST_SINCE_THE_COPY)
        # In WAL mode no commit is lost if the process is killed; only a power failure can lose the last
        # commits.
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.execute("PRAGMA foreign_keys=ON")
        connection.execute(f"PRAGMA cache_size=-{WRITER_CACHE_KIB}")
        connection.execute(f"PRAGMA wal_autocheckpoint={WAL_PAGES}")
        file.add(connection)

    @event.listens_for(engine, "close")
    def forget(connection: sqlite3.Connection, _: object) -> None:
        file.forget(connection)

    @event.listens_for(engine, "handle_error")
    def name_undecodable(context: ExceptionContext) -> DBAPIError | None:
        is_undecodable = isinstance(context.original_exception, UnicodeDecodeError)
        return undecodable(context.statement or "") if is_undecodable else None

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get(WRITES, False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
        if writes:
            driver = connection.connection.driver_connection
            file.require(LOST_SINCE_THE_COPY, driver)

    return engine


def require_stored(engine: Engine) -> None:
    """Raise if a transaction was committed to a file that had just been replaced.

    Raises:
        StorageUnavailable: If the file's path leads to another file.
    """
    file = engine.get_execution_options().get(FILE)
    if file is not None:
        file.require(LOST_AT_LAST)


WAL, JOURNAL = "-wal", "-journal"
SIDE_FILES = (WAL, "-shm", JOURNAL)
"""Suffixes of the files that SQLite keeps next to a database.
SQLite opens these files even through links."""

NAMES_A_FILE = bytes.fromhex("d9d505f920a163d7")
"""End of a journal that names a file.
SQLite deletes this file after rolling the journal back. If a stranger wrote the journal, it can name any
file of the user. Only journals of transactions that span several databases name one."""


def refuse_others(path: str) -> None:
    """Raise if SQLite could write to or delete a file outside this database.

    That is possible if the path or one of the files that SQLite keeps next to it is a special file, if one of
    the latter is a link, or if the journal names another file.

    Raises:
        sqlite3.OperationalError: If that is possible; the message names the file and the cause.
    """
    beside = os.path.realpath(path)
    if link := next((end for end in SIDE_FILES if os.path.islink(beside + end)), None):
        raise sqlite3.OperationalError(
            f"{beside}{link} is a link, and SQLite would write through it: remove it"
        )
    for each in (path, *(beside + end for end in SIDE_FILES)):
        try:
            require_plain(each)
        except FileNotFoundError:
            continue
        except OSError as error:
            why, _, _ = (error.strerror or str(error)).partition(";")
            raise sqlite3.OperationalError(f"{each} is not a database: {why}") from error
    if _names_a_file(beside + JOURNAL):
        raise sqlite3.OperationalError(
            f"{beside}{JOURNAL} names another file, which SQLite would delete: if another program was "
            "interrupted while it wrote to this database, open it with that program, otherwise remove "
            f"{os.path.basename(beside)}{JOURNAL}"
        )


def _names_a_file(journal: str) -> bool:
    try:
        with open(journal, "rb") as file:
            file.seek(-len(NAMES_A_FILE), os.SEEK_END)
            return file.read() == NAMES_A_FILE
    except OSError:  # missing or shorter; if it cannot be read, SQLite reports that
        return False


def is_busy(error: BaseException | None) -> bool:
    """Whether SQLite timed out waiting for another process's lock."""
    return _kind(error) == sqlite3.SQLITE_BUSY


def is_full(error: BaseException | None) -> bool:
    """Whether SQLite failed because the disk is full."""
    return _kind(error) == sqlite3.SQLITE_FULL


def is_interrupted(error: BaseException | None) -> bool:
    """Whether SQLite was interrupted."""
    return _kind(error) == sqlite3.SQLITE_INTERRUPT


def _kind(error: BaseException | None) -> int:
    # Errors that Python itself raises have no code; the lowest byte of a code is its kind.
    code: int = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_OK)
    return code & 0xFF


def _enter_wal_mode(connection: sqlite3.Connection, wait_ms: int) -> None:
    """Switch to the write-ahead log, once per file.

    SQLite does not wait for locks in this statement, so it is repeated.
    """
    give_up = time.monotonic() + wait_ms / 1000
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if not is_busy(error) or time.monotonic() > give_up:
                raise
        time.sleep(0.01)


def _refuse_dangers(action: int, subject: str | None, function: str | None, *_: str | None) -> int:
    """Deny statements that a read-only SQLite connection would still allow.

    ATTACH, and VACUUM INTO, which attaches too, would write other files. A PRAGMA could lift `query_only`,
    and `_RUNS_CODE` would run code.
    """
    refused = (
        action == sqlite3.SQLITE_ATTACH
        or (action == sqlite3.SQLITE_PRAGMA and subject not in _READING_PRAGMAS)
        or (action == sqlite3.SQLITE_FUNCTION and (function or "").lower() in _RUNS_CODE)
    )
    return sqlite3.SQLITE_DENY if refused else sqlite3.SQLITE_OK
