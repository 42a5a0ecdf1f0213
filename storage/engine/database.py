"""Open a results database; transactions begin, end and fail only here.

A reading session sees one snapshot, so answers to repeated questions are cached.
"""

import os
import re
import shlex
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from sqlalchemy import Engine, event
from sqlalchemy.engine import URL, ExceptionContext, make_url
from sqlalchemy.exc import ArgumentError, DataError, DBAPIError, IntegrityError, NoSuchModuleError
from sqlalchemy.orm import Session

from winnow.storage.engine import sqlite
from winnow.storage.engine.postgresql import READS, postgresql_engine
from winnow.storage.engine.sqlite import (
    WRITES,
    NoSuchDatabase,
    is_busy,
    is_full,
    is_interrupted,
    sqlite_engine,
)
from winnow.storage.engine.sqlite_files import require_one_writer
from winnow.storage.engine.write_lock import why_file_is_locked, why_server_is_locked
from winnow.storage.errors import (
    CHECK_THE_PLACE,
    OF_BROKEN_FILES,
    ConflictingRecord,
    NotPermitted,
    NotStorable,
    StorageLocked,
    StorageUnavailable,
    TookTooLong,
)
from winnow.storage.text import url_in_home

BUSY_TIMEOUT_MS = 30_000
"""Milliseconds that a writer waits for another writer."""

LONGEST = 1_000
"""Maximum number of characters of a driver's message."""

NO_SCHEMA = (
    "its search_path names no existing schema that its role can use: "
    "create one, or correct the URL, then run the command again"
)
NAME_ANOTHER = "check its path, name another by --storage sqlite:///FILE, or run a campaign, which creates it"
MAKE_ROOM = "free space on its disk, then run the command again"
TOO_MANY = re.compile("connection slots|too many clients|too many connections")
"""Matches a server's message that it accepts no further connection.
The driver has no code for it."""
FEWER = "close some, wait, or raise max_connections or the role's limit, then run the command again"
MORE_TIME = "; if the role or database has a statement_timeout, raise it"

STRAY_AT = re.compile(r"[^:]*://[^:/]*:[^@]*@.*@", re.DOTALL)
"""Matches a URL with an @ in the text after a password's @.
The usual cause is a password that contains an @."""


@dataclass(frozen=True, slots=True)
class Database:
    """An open results database.

    Reading and writing are separate, because a writer must take the write lock at the beginning of its
    transaction. Otherwise a transaction that first reads and then writes could fail half-way, or lose another
    process's changes.
    """

    url: str
    """The URL with the password hidden, safe to print."""
    engine: Engine
    _reader: Engine = field(init=False, repr=False)
    _writer: Engine = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_reader", self.engine.execution_options(**{READS: True}))
        object.__setattr__(self, "_writer", self.engine.execution_options(**{WRITES: True}))

    @property
    def is_postgresql(self) -> bool:
        """Whether the database is on a PostgreSQL server; otherwise it is a SQLite file."""
        return self.engine.dialect.name == "postgresql"

    @contextmanager
    def reading(self) -> Generator[Session, None, None]:
        """Open a session that reads one consistent snapshot and writes nothing."""
        with self.named_errors(), Session(self._reader, info={ANSWERS: {}}) as session:
            yield session
            session.rollback()

    @contextmanager
    def writing(self) -> Generator[Session, None, None]:
        """Open a unit of work: commits on success, rolls back on any error.

        Raises:
            ConflictingRecord: If a row breaks a constraint.
            StorageLocked: If another process writes for longer than a writer waits.
            StorageUnavailable: If the database cannot be reached or written.
        """
        with self.named_errors(), Session(self._writer) as session, session.begin():
            yield session
        if not self.is_postgresql:
            sqlite.require_stored(self.engine)

    @contextmanager
    def outside_transactions(self) -> Generator[Callable[[str], None], None, None]:
        """Yield a function that runs statements outside transactions.

        Some statements, such as VACUUM, are forbidden in transactions.
        """
        with self.named_errors():
            connection = self.engine.raw_connection()
            try:
                driver = connection.driver_connection
                assert driver is not None
                try:
                    yield lambda statement: driver.execute(statement)
                except self.engine.dialect.loaded_dbapi.Error as error:
                    raise self.unavailable(error) from error
            finally:
                connection.invalidate()

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()

    @contextmanager
    def named_errors(self) -> Generator[None, None, None]:
        """Translate the driver's errors, and keep them as the cause."""
        try:
            yield
        except (IntegrityError, DataError) as error:
            raise ConflictingRecord(cause(error)) from error
        except DBAPIError as error:
            raise self.unavailable(error.orig) from error

    def unavailable(self, error: BaseException | None) -> StorageUnavailable:
        """The exception for a driver's error."""
        waited_s = BUSY_TIMEOUT_MS / 1000
        if type(error).__name__ == "LockNotAvailable":
            return StorageLocked(self.url, why_server_is_locked(self.engine, waited_s))
        if type(error).__name__ == "InsufficientPrivilege":
            return NotPermitted(self.url, _server_message(error))
        if type(error).__name__ == "InvalidSchemaName":
            return StorageUnavailable(self.url, _server_message(error), NO_SCHEMA)
        if is_broken_off(error):
            return TookTooLong(self.url, MORE_TIME if self.is_postgresql else "")
        if is_busy(error):
            return StorageLocked(self.url, why_file_is_locked(str(make_url(self.url).database), waited_s))
        said = one_line(error)
        if type(error).__name__ == "DiskFull" or is_full(error):
            return StorageUnavailable(self.url, said, MAKE_ROOM)
        if self.is_postgresql and TOO_MANY.search(said):
            return StorageUnavailable(self.url, said, FEWER)
        if isinstance(error, NoSuchDatabase):
            return StorageUnavailable(self.url, said, NAME_ANOTHER)
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        return StorageUnavailable(self.url, said, OF_BROKEN_FILES.get(code, CHECK_THE_PLACE))


def open_database(url: str, *, read_only: bool = False, creates: bool = True) -> Database:
    """Open a database by its SQLAlchemy URL.

    `read_only` forbids writes; otherwise `creates` determines whether to create a missing SQLite file.

    Raises:
        StorageUnavailable: If the URL is invalid or names no persistent place, its driver is not installed,
            or the URL is a SQLite file, opened for writing, that others can write to undetected.
    """
    url = url_in_home(url)
    shown = shown_url(url)
    _require_readable(url, shown)
    try:
        parsed = make_url(url)
        backend = parsed.get_backend_name()
        if backend == "sqlite":
            if parsed.database in (None, "", ":memory:"):
                raise StorageUnavailable(
                    shown, "results in memory would be lost; name a file: sqlite:///FILE"
                )
            if not read_only:
                require_one_writer(str(parsed.database), shown)
            engine = sqlite_engine(
                str(parsed.database),
                shown=shown,
                read_only=read_only,
                creates=creates,
                wait_ms=BUSY_TIMEOUT_MS,
            )
        elif parsed.drivername in ("postgresql", "postgresql+psycopg"):
            engine = postgresql_engine(parsed, shown=shown, read_only=read_only, wait_ms=BUSY_TIMEOUT_MS)
        else:
            raise ArgumentError(f"unknown kind {parsed.drivername!r}")
    except (ArgumentError, NoSuchModuleError, ModuleNotFoundError, ValueError) as error:
        raise StorageUnavailable(
            shown, f"its URL cannot be read ({error})", f"{URL_FORMS}{_file_url(url)}"
        ) from error

    @event.listens_for(engine, "handle_error")
    def name_unstorable(context: ExceptionContext) -> None:
        if isinstance(context.original_exception, UnicodeEncodeError):
            raise NotStorable("a name or value contains half a surrogate pair, no character; remove it")
        if isinstance(context.original_exception, OverflowError):
            raise NotStorable("a number does not fit into 64 bits; give a smaller one")

    return Database(shown, engine)


URL_FORMS = (
    "write sqlite:///FILE for a file (sqlite:////FOLDER/FILE from the root), or "
    "postgresql://USER@HOST/DATABASE"
)


def _file_url(url: str) -> str:
    """Clause with the probable URL if only the number of slashes is wrong.

    Otherwise empty.
    """
    wrong = re.fullmatch(r"sqlite:/{0,2}([^/].*)", url)
    return f"; here: sqlite:///{wrong[1]}" if wrong else ""


def _require_readable(url: str, shown: str) -> None:
    """Raise if a URL is malformed or incomplete; the message has the correct form."""
    if ":" not in url:
        raise StorageUnavailable(
            shown, "it is not a URL", f"for a file write sqlite:///{shown or 'winnow.db'}"
        )
    if ":***@" in url:
        raise StorageUnavailable(
            shown,
            "it contains ***, which Winnow shows in place of a password",
            "write the password there, or set WINNOW_STORAGE to the whole URL and omit --storage",
        )
    if STRAY_AT.match(url):
        raise StorageUnavailable(
            shown,
            "it contains an unescaped @",
            "write each @ of a name or a password as %40 (and % as %25), then run the command again",
        )


def is_broken_off(error: BaseException | None) -> bool:
    """Whether a driver's error reports that a statement exceeded its time limit."""
    return type(error).__name__ == "QueryCanceled" or is_interrupted(error)


def cause(error: DBAPIError) -> str:
    """Message of the driver, as one line."""
    return one_line(error.orig)


def _server_message(error: BaseException | None) -> str:
    """Message of a server about one of Winnow's statements, without the statement."""
    return str(error.diag.message_primary)  # type: ignore[union-attr]


def one_line(error: BaseException | None) -> str:
    """Message of a driver as one printable line; it can quote any statement."""
    text = " ".join(str(error).split())
    text = text if len(text) <= LONGEST else f"{text[:LONGEST]} …"
    return "".join(each if each.isprintable() else "\N{MIDDLE DOT}" for each in text)


P = ParamSpec("P")
T = TypeVar("T")

ANSWERS = "answers of this look"
"""Key in a session's `info` for cached answers.
Only sessions of `Database.reading` have it."""


def once_a_look(ask: Callable[Concatenate[Session, P], T]) -> Callable[Concatenate[Session, P], T]:
    """Cache a query's answer within a reading session.

    A writing session runs it every time. Callers must not modify the answer, because later callers receive
    the same object. `ask` takes a session and hashable values.
    """

    @wraps(ask)
    def answered(session: Session, /, *args: P.args, **kwargs: P.kwargs) -> T:
        known: dict[object, T] | None = session.info.get(ANSWERS)
        if known is None:
            return ask(session, *args, **kwargs)
        question = (ask, args, tuple(sorted(kwargs.items())))
        if question not in known:
            known[question] = ask(session, *args, **kwargs)
        return known[question]

    return answered


def shown_url(url: str) -> str:
    """A URL, of a database or not, with every password hidden."""
    if not STRAY_AT.match(url):
        with suppress(ArgumentError, ValueError):
            return without_password(make_url(url))
    shown = re.sub(r"(://[^:/]*):.*@", r"\1:***@", url, flags=re.DOTALL)
    return re.sub(r"(password\s*=).*", r"\1***", shown, flags=re.DOTALL)


def absolute_url(url: str) -> str:
    """Make the URL of a SQLite file absolute.

    Processes with another working folder can then use it. Other URLs are unchanged.
    """
    with suppress(ArgumentError, ValueError):
        read = make_url(url)
        file = read.database or ""
        if (
            read.get_backend_name() == "sqlite"
            and file
            and file != ":memory:"
            and not file.startswith("file:")
        ):
            return read.set(database=os.path.abspath(file)).render_as_string(hide_password=False)
    return url


def storage_option(url: str) -> str:
    """The `--storage` option for a printed command, shell-quoted.

    URLs can contain ? and &.
    """
    return f"--storage {shlex.quote(shown_url(url))}"


def without_password(url: URL) -> str:
    """A parsed URL with its passwords hidden.

    Libpq also accepts a password in the query.
    """
    secret = {name: "hidden" for name in url.query if "password" in name}
    return url.update_query_dict(secret).render_as_string(hide_password=True)
