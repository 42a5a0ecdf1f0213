"""Provide a Prefect server for flow runs: the user's own, or a temporary one.

Prefect can start a temporary server itself. But that child process receives a terminal's Ctrl-C while a
campaign still finishes its round, and it survives a killed campaign. Winnow's temporary server has its own
session, and ends when the pipe from its parent closes.

Concurrent runs of one process, for example in threads, share a server. Servers of several processes use
separate databases, because writers to one file would block each other for minutes: the first server uses the
file in Prefect's folder, the others use temporary files.
"""

import fcntl
import gc
import os
import runpy
import secrets
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO
from urllib.parse import quote
from urllib.request import getproxies_environment

from winnow.flows.prefect_support.clock_changes import fire_after_skipped_hours
from winnow.flows.prefect_support.environment import settle_environment
from winnow.flows.reports.http_access import Gate, behind
from winnow.flows.reports.output import tell
from winnow.tasks.data.garbage_collection import not_collecting
from winnow.tasks.errors import WinnowError
from winnow.tasks.plugins.library_settings import settle_libraries
from winnow.tasks.plugins.own_files import open_anew, open_to_append, state_folder
from winnow.tasks.processes.child_process import end_process, module_command, start_process
from winnow.tasks.processes.parent_watchdog import exit_with_parent

if TYPE_CHECKING:
    from prefect.settings.legacy import Setting

WORK_FOLDER = Path(".winnow")
"""Folder for logs and the demo, in the working folder."""

LOG = WORK_FOLDER / "logs" / "prefect-server.log"
"""Log file of a command's temporary server."""

DATABASE = "prefect.db"
"""File name of the Prefect server's database in PREFECT_HOME."""

LOCK = "temporary-server.lock"
"""Lock file in PREFECT_HOME, held by the temporary server that uses its database."""

DRAIN_TIMEOUT = 10.0
"""Maximum seconds for sending remaining events, which only affect how Prefect shows a run."""

START_TIMEOUT = 180.0
"""Maximum seconds for a server's start, which takes about 12 s on two idle cores, minutes on busy ones."""

END_TIMEOUT = 5.0
"""Seconds after which a server that does not end is killed."""

THIS_MACHINE = ("127.0.0.1", "localhost")

RECORDS_ONLY = {"PREFECT__SERVER_EPHEMERAL": "1"}
"""Environment of a server that only records runs, without services for schedules and automations."""

SECRET = "PREFECT_SERVER_API_AUTH_STRING"
"""Environment variable with the server's credentials; every user could read them on a command line."""

NO_ORIGINS = {"PREFECT_SERVER_CORS_ALLOWED_ORIGINS": "", "PREFECT_SERVER_API_CORS_ALLOWED_ORIGINS": ""}
"""Environment that prevents pages of other origins from reading responses; Prefect allows it by default."""

FREE = frozenset({"/api/health", "/api/ready"})
"""Paths that need no token, because they only show that the server is available."""

WAITING = 128
"""Maximum number of connections that wait to be accepted."""

CONNECTION_URL = ("PREFECT_SERVER_DATABASE_CONNECTION_URL", "PREFECT_API_DATABASE_CONNECTION_URL")
"""Environment variables by which users set the Prefect server's database."""


class PrefectServerFailed(WinnowError):
    """The user's Prefect server does not answer, or the temporary one cannot start."""


def require_answer(url: str) -> None:
    """Check that a user's server answers.

    Raises:
        PrefectServerFailed: If the server does not answer.
    """
    from prefect.client.orchestration import get_client
    from prefect.exceptions import PrefectHTTPStatusError

    with get_client(sync_client=True) as client:
        error = client.api_healthcheck()
    # An HTTP error also is an answer: Prefect Cloud has no page for this check.
    if error is not None and not isinstance(error, PrefectHTTPStatusError):
        raise PrefectServerFailed(
            f"the Prefect server {url} does not answer ({error}); start it with prefect server start, "
            "or correct PREFECT_API_URL"
        )


def reach_this_machine_directly() -> None:
    """Set NO_PROXY for this machine if a proxy is set, so that libraries and child processes use none."""
    if not {"http", "https", "all"} & getproxies_environment().keys():
        return
    for name in ("no_proxy", "NO_PROXY"):
        known = os.environ.get(name) or os.environ.get(name.swapcase(), "")
        hosts = [host for each in known.split(",") if (host := each.strip())]
        os.environ[name] = ",".join([*hosts, *(each for each in THIS_MACHINE if each not in hosts)])


@contextmanager
def early_server() -> Generator[None, None, None]:
    """Start a temporary server in the background; `prefect_server` inside the block uses it."""
    with _early_or_new(LOG, schedules=False) as server:
        token = _started.set(server)
        try:
            yield
        finally:
            _started.reset(token)


@contextmanager
def prefect_server(log: Path = LOG, *, schedules: bool = False) -> Generator[None, None, None]:
    """Provide a Prefect server until the block ends: the user's own if there is one, else a temporary one.

    Args:
        log: File for the output of a temporary server that starts now.
        schedules: Whether a temporary server starts scheduled runs; if False, it only records runs, which is
            less work.

    Raises:
        PrefectServerFailed: If the user's server does not answer, or the temporary one does not start.
    """
    reach_this_machine_directly()
    with ExitStack() as stack:
        server = stack.enter_context(_early_or_new(log, schedules=schedules))
        with not_collecting():  # the import takes seconds, during which the server starts
            from prefect.settings import PREFECT_API_AUTH_STRING, PREFECT_API_URL, temporary_settings

        if url := PREFECT_API_URL.value():
            require_answer(url)
            yield
            return
        server = server or stack.enter_context(_temporary(log, schedules=schedules))
        _wait_until_healthy(server)
        _give_up_on_ended_servers()
        own = {PREFECT_API_URL: server.url, PREFECT_API_AUTH_STRING: server.secret}
        stack.enter_context(temporary_settings(own))
        yield


@dataclass(frozen=True)
class _Temporary:
    """A temporary server, which may still be starting."""

    process: subprocess.Popen[bytes]
    url: str
    log: Path
    secret: str
    """Credentials for Prefect's basic authentication; with them, any code can be run."""


_started: ContextVar[_Temporary | None] = ContextVar("_started", default=None)
"""The server that was started early in this thread, or None."""


@contextmanager
def _early_or_new(log: Path, *, schedules: bool) -> Generator[_Temporary | None, None, None]:
    """Yield the early server, or one that starts now; None if the user has a server.

    If the user's server is only found by importing Prefect, the temporary server is started needlessly.
    """
    if not schedules and (early := _started.get()):
        yield early
    elif has_own_server():
        yield None
    else:
        with _temporary(log, schedules=schedules) as server:
            yield server


class _SharedServer:
    """One temporary server for all concurrent runs of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._server: _Temporary | None = None
        self._ending = ExitStack()

    @contextmanager
    def server(self, log: Path) -> Generator[_Temporary, None, None]:
        """Yield the server, which may still be starting; its output goes to the first run's log."""
        with self._lock:
            if self._server is None:
                self._server = self._ending.enter_context(_starting(log, schedules=False))
            self._users += 1
            server = self._server
        try:
            yield server
        finally:
            with self._lock:
                self._users -= 1
                if not self._users:
                    self._server = None
                    self._ending.close()


_SHARED = _SharedServer()


def _temporary(log: Path, *, schedules: bool) -> AbstractContextManager[_Temporary]:
    return _starting(log, schedules=True) if schedules else _SHARED.server(log)


@contextmanager
def _starting(log: Path, *, schedules: bool) -> Generator[_Temporary, None, None]:
    _make_home()
    secret = new_secret()
    with ExitStack() as stack:
        # Bind the port here, so that no other process can take it before the server listens.
        listening = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=WAITING))
        port = listening.getsockname()[1]
        with _open_file(open_anew, log) as output, _open_file(open_to_append, _home(log) / LOCK) as lock:
            environment = os.environ | {"PREFECT_UI_ENABLED": "0"} | ({} if schedules else RECORDS_ONLY)
            environment |= {SECRET: secret, **NO_ORIGINS}
            process = start_process(
                module_command("winnow.flows.prefect_support.server", listening.fileno()),
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                environment=environment | stack.enter_context(own_database(lock, _home(log) / DATABASE)),
                # The server inherits the lock, which is released when the server ends.
                descriptors=(lock.fileno(), listening.fileno()),
            )
        listening.close()  # else clients would wait for a server that has ended
        url = f"http://127.0.0.1:{port}/api"
        _PROCESSES[url] = process
        stack.callback(_PROCESSES.pop, url)
        stack.callback(end_process, process, END_TIMEOUT)
        stack.callback(_hand_over_events)
        yield _Temporary(process, url, log, secret)


_PROCESSES: dict[str, "subprocess.Popen[bytes]"] = {}
"""URL -> process of each temporary server that this process has started."""


def _has_ended(url: str | None) -> bool:
    """Whether a URL belongs to a temporary server of this process that has ended."""
    process = None if url is None else _PROCESSES.get(url)
    return process is not None and process.poll() is not None


class _Retries:
    """Replacement for Prefect's setting of client retries: 0 if the temporary server has ended."""

    def __init__(self, setting: "Setting") -> None:
        self._setting = setting

    def value(self) -> int:
        """See Prefect's `Setting`."""
        from prefect.settings import PREFECT_API_URL

        return 0 if _has_ended(PREFECT_API_URL.value()) else int(self._setting.value())


def _give_up_on_ended_servers() -> None:
    """Prevent Prefect's clients from retrying each request to an ended temporary server for a minute."""
    from prefect.client import base

    setting = vars(base)["PREFECT_CLIENT_MAX_RETRIES"]
    if not isinstance(setting, _Retries):
        vars(base)["PREFECT_CLIENT_MAX_RETRIES"] = _Retries(setting)


def new_secret() -> str:
    """A user name and a random password for HTTP basic authentication, separated by a colon."""
    return f"winnow:{secrets.token_urlsafe(32)}"


def _make_home() -> None:
    """Create the default folder of Prefect's files; report that an older Winnow's folder is not used."""
    old, home = WORK_FOLDER / "prefect", state_folder() / "prefect"
    if os.environ.get("PREFECT_HOME") != str(home) or home.exists():
        return
    if old.exists():
        tell(f"{old} is no longer used: Prefect's data for this folder is in {home}")
    with suppress(OSError):  # the error is reported when a file is opened there
        home.mkdir(mode=0o700, parents=True)


@contextmanager
def own_database(lock: BinaryIO, file: Path) -> Generator[dict[str, str], None, None]:
    """Yield environment variables that give a server a database that no other server uses.

    Args:
        lock: Lock file; the server that holds the lock uses the database `file`. It is not used if the user
            sets a database.
        file: The common database of temporary servers. If this release of Prefect cannot use it, it is
            renamed if it belongs to Winnow, and left unchanged if it may be the user's.
    """
    if any(name in os.environ for name in CONNECTION_URL):
        yield {}
        return
    if not (_is_locked(lock) and _is_usable(file)):
        with tempfile.TemporaryDirectory(prefix="winnow-prefect-") as folder:
            yield {CONNECTION_URL[0]: f"sqlite+aiosqlite:///{folder}/{DATABASE}"}
    else:
        yield {}


def _is_locked(lock: BinaryIO) -> bool:
    """Try to take a lock; return whether it worked. False if the file system does not support locks."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _is_usable(file: Path) -> bool:
    """Whether Prefect can use a path for its database; an unusable database of Winnow is renamed first."""
    if not file.exists() or _is_of_this_release(file):
        return True
    if file.parent != state_folder() / "prefect":
        return False
    aside = file.with_name(f"{file.name}.{time.strftime('%Y%m%dT%H%M%S')}")
    for end in ("", "-wal", "-shm"):
        with suppress(OSError):
            file.with_name(file.name + end).rename(aside.with_name(aside.name + end))
    tell(
        f"{file} is from another release of Prefect, or damaged: it is renamed to {aside.name} and "
        "created again"
    )
    return not file.exists()


def _is_of_this_release(file: Path) -> bool:
    """Whether this Prefect has all migrations that a server's database names."""
    try:
        with closing(sqlite3.connect(f"file:{quote(str(file))}?mode=ro", uri=True)) as database:
            if not database.execute("SELECT 1 FROM sqlite_master WHERE name = 'alembic_version'").fetchone():
                return True
            revisions = database.execute("SELECT version_num FROM alembic_version").fetchall()
    except sqlite3.OperationalError:  # locked or unreadable; the server reports it
        return True
    except sqlite3.DatabaseError:
        return False
    found = find_spec("prefect")
    assert found is not None, "Winnow requires Prefect"
    assert found.origin is not None, "the package has a file"
    migrations = Path(found.origin).parent / "server" / "database" / "_migrations" / "versions" / "sqlite"
    names = [path.name for path in migrations.glob("*.py")]
    return not names or all(any(f"_{revision}_" in name for name in names) for (revision,) in revisions)


def _home(log: Path) -> Path:
    return Path(os.environ["PREFECT_HOME"]).resolve() if "PREFECT_HOME" in os.environ else log.parent


def _open_file(how: Callable[[Path], BinaryIO], file: Path) -> BinaryIO:
    """Open a file of a temporary server; its folder is created if necessary.

    Raises:
        PrefectServerFailed: If the file cannot be opened.
    """
    try:
        return how(file)
    except OSError as error:
        raise PrefectServerFailed(
            f"Prefect's temporary server cannot write its files ({error}); run winnow in a writable folder; "
            "if PREFECT_HOME is set, it must be writable, too"
        ) from error


def has_own_server() -> bool:
    """Whether the user has a Prefect server, as far as the environment shows it without importing Prefect."""
    if "prefect.settings" in sys.modules:
        from prefect.settings import PREFECT_API_URL

        return bool(PREFECT_API_URL.value())
    return "PREFECT_API_URL" in os.environ or _has_profiles()


def _has_profiles() -> bool:
    home = Path(os.environ.get("PREFECT_HOME", Path.home() / ".prefect"))
    return "PREFECT_PROFILE" in os.environ or (home / "profiles.toml").exists()


def _hand_over_events() -> None:
    """Let Prefect's thread send its remaining events; after the server's end it would block the exit.

    Afterwards, the thread accepts no events of any run of this process.
    """
    if "prefect.events.worker" in sys.modules:
        from prefect.events.worker import EventsWorker

        if all(map(_has_ended, _PROCESSES)):
            # Cancel, because each event would be retried for seconds. mypy cannot read this class variable.
            for worker in tuple(EventsWorker._instances.values()):  # type: ignore[misc]
                if worker._loop is not None and worker._task is not None:
                    worker._loop.call_soon_threadsafe(worker._task.cancel)
        EventsWorker.drain_all(timeout=DRAIN_TIMEOUT)


def _wait_until_healthy(server: _Temporary) -> None:
    from urllib.request import urlopen

    deadline = time.monotonic() + START_TIMEOUT
    while time.monotonic() < deadline:
        if server.process.poll() is not None:
            break
        try:
            with urlopen(f"{server.url}/health", timeout=5):
                return
        except OSError:
            time.sleep(0.1)
    raise PrefectServerFailed(
        f"Prefect's temporary server did not start; see {server.log}, or set PREFECT_API_URL to your own "
        "server"
    )


def _serve(listening: socket.socket, gate: Gate) -> None:
    """Run Prefect's server behind a gate, until a signal ends it."""
    settle_libraries()
    with not_collecting():
        import uvicorn
        from prefect.server.api.server import create_app

        app = create_app()
        fire_after_skipped_hours()
    gc.freeze()  # later collections skip the imported objects
    server = uvicorn.Server(uvicorn.Config(behind(gate, app, free=FREE), log_level="error"))
    server.run(sockets=[listening])


def _serve_a_command(descriptor: int) -> None:
    """Run as the temporary server of a command, until standard input closes."""
    exit_with_parent()
    secret = os.environ[SECRET]
    _serve(socket.socket(fileno=descriptor), Gate.at("127.0.0.1", allowed=(), token=secret))


def serve_others(host: str, port: int, allowed: Sequence[str]) -> None:
    """Run as a server with Prefect's pages for other machines, as in infra/compose.yaml.

    Prefect itself checks the credentials. Its pages can be loaded without them, and ask the user.
    """
    if not os.environ.get(SECRET):
        sys.exit(
            f"winnow: set {SECRET} to USER:PASSWORD, and PREFECT_API_AUTH_STRING to the same for clients"
        )
    os.environ.update(NO_ORIGINS)
    gate = Gate.at(host, allowed=allowed, token=None)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    _serve(socket.create_server((host, port), family=family, backlog=WAITING), gate)


def _run_engine() -> None:
    """Run Prefect's engine, which reads its flow run from the environment, with Winnow's settings."""
    settle_environment()
    sys.argv = sys.argv[:1]
    runpy.run_module(PREFECTS, run_name="__main__", alter_sys=True)


PREFECTS = "prefect.engine"

ENGINE = module_command("winnow.flows.prefect_support.server", PREFECTS)
"""Replacement for Prefect's command that starts a flow run, which reads settings of the working folder."""


if __name__ == "__main__":
    if sys.argv[1:] == [PREFECTS]:
        _run_engine()
    elif len(sys.argv) == 2:
        _serve_a_command(int(sys.argv[1]))
    else:
        serve_others(sys.argv[1], int(sys.argv[2]), sys.argv[3:])
