"""The Prefect server for flow runs: the user's own, or a temporary one.

Prefect would start a temporary server itself, but as a child that receives a terminal's Ctrl-C while a
campaign still finishes its round, and that survives a killed campaign. Winnow's leads its own session, and
always ends when the pipe from its parent closes.

Concurrent runs of one process, for example in threads, share a server. Servers of several processes have
separate databases: writers to one file would block each other for minutes. The first one uses the folder's
file, the others a temporary one.
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
"""File name of Prefect's server database in PREFECT_HOME."""

LOCK = "temporary-server.lock"
"""Lock file in PREFECT_HOME, held by the temporary server that uses its database."""

DRAIN_TIMEOUT = 10.0
"""Maximum seconds for sending events, which only affect Prefect's display of a run."""

START_TIMEOUT = 180.0
"""Maximum seconds of a start. A cold start takes about 12 s on two cores, minutes on busy ones."""

END_TIMEOUT = 5.0
"""Seconds for a server to end."""

THIS_MACHINE = ("127.0.0.1", "localhost")

RECORDS_ONLY = {"PREFECT__SERVER_EPHEMERAL": "1"}
"""Environment of a server without services for schedules and automations."""

SECRET = "PREFECT_SERVER_API_AUTH_STRING"
"""Variable with the credentials for Prefect's server: on a command line every user could read them."""

NO_ORIGINS = {"PREFECT_SERVER_CORS_ALLOWED_ORIGINS": "", "PREFECT_SERVER_API_CORS_ALLOWED_ORIGINS": ""}
"""Environment that stops pages of other origins from reading a server's answers; Prefect allows all by
default."""

FREE = frozenset({"/api/health", "/api/ready"})
"""Paths for availability checks, which reveal nothing else."""

WAITING = 128
"""Maximum connections waiting to be accepted."""

CONNECTION_URL = ("PREFECT_SERVER_DATABASE_CONNECTION_URL", "PREFECT_API_DATABASE_CONNECTION_URL")
"""Variables with which users set Prefect's database."""


class PrefectServerFailed(WinnowError):
    """No Prefect server answers."""


def require_answer(url: str) -> None:
    """Refuse a user's server that does not answer, before a round is run.

    Raises:
        PrefectServerFailed: If the server does not answer.
    """
    from prefect.client.orchestration import get_client
    from prefect.exceptions import PrefectHTTPStatusError

    with get_client(sync_client=True) as client:
        error = client.api_healthcheck()
    # Who answers anything is there: Prefect's cloud has no such page.
    if error is not None and not isinstance(error, PrefectHTTPStatusError):
        raise PrefectServerFailed(
            f"the Prefect server {url} does not answer ({error}); start it with prefect server start, "
            "or correct PREFECT_API_URL"
        )


def reach_this_machine_directly() -> None:
    """Bypass the environment's proxies for this machine, also in libraries and children."""
    if not {"http", "https", "all"} & getproxies_environment().keys():
        return
    for name in ("no_proxy", "NO_PROXY"):
        known = os.environ.get(name) or os.environ.get(name.swapcase(), "")
        hosts = [host for each in known.split(",") if (host := each.strip())]
        os.environ[name] = ",".join([*hosts, *(each for each in THIS_MACHINE if each not in hosts)])


@contextmanager
def early_server() -> Generator[None, None, None]:
    """Start a temporary server in the background; `prefect_server` within the block then uses it."""
    with _begun(LOG, schedules=False) as server:
        token = _started.set(server)
        try:
            yield
        finally:
            _started.reset(token)


@contextmanager
def prefect_server(log: Path = LOG, *, schedules: bool = False) -> Generator[None, None, None]:
    """Provide a Prefect server until the block ends: the user's own one if it exists, else a temporary one.

    `log` is the file for the output of a temporary server, unless that is an early one; `schedules` says
    whether it starts scheduled runs: only recording runs is less work.

    Raises:
        PrefectServerFailed: If the user's server does not answer, or the temporary one does not start.
    """
    reach_this_machine_directly()
    with ExitStack() as stack:
        server = stack.enter_context(_begun(log, schedules=schedules))
        with not_collecting():  # it takes seconds to import, in which the server comes up
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
    """Credentials of Prefect's basic authentication, which allow running any code."""


_started: ContextVar[_Temporary | None] = ContextVar("_started", default=None)
"""This thread's server that was started early; None without one."""


@contextmanager
def _begun(log: Path, *, schedules: bool) -> Generator[_Temporary | None, None, None]:
    """The early server, or one that starts now; None if the user is known to have a server.

    If only Prefect's import would find the user's server, a temporary one is started in vain.
    """
    if not schedules and (early := _started.get()):
        yield early
    elif has_own_server():
        yield None
    else:
        with _temporary(log, schedules=schedules) as server:
            yield server


class _Sharing:
    """One temporary server for all runs of this process, from the first to the last."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._server: _Temporary | None = None
        self._ending = ExitStack()

    @contextmanager
    def server(self, log: Path) -> Generator[_Temporary, None, None]:
        """The server, possibly still starting; its output goes to the log of the run that started it."""
        with self._lock:
            if self._server is None:
                self._server = self._ending.enter_context(_coming_up(log, schedules=False))
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


_SHARED = _Sharing()


def _temporary(log: Path, *, schedules: bool) -> AbstractContextManager[_Temporary]:
    return _coming_up(log, schedules=True) if schedules else _SHARED.server(log)


@contextmanager
def _coming_up(log: Path, *, schedules: bool) -> Generator[_Temporary, None, None]:
    _make_home()
    secret = new_secret()
    with ExitStack() as stack:
        # Bound here: nobody else can take the port before the server listens, and get what it is sent.
        listening = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=WAITING))
        port = listening.getsockname()[1]
        with _opened(open_anew, log) as output, _opened(open_to_append, _home(log) / LOCK) as lock:
            environment = os.environ | {"PREFECT_UI_ENABLED": "0"} | ({} if schedules else RECORDS_ONLY)
            environment |= {SECRET: secret, **NO_ORIGINS}
            process = start_process(
                module_command("winnow.flows.prefect_support.server", listening.fileno()),
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                environment=environment | stack.enter_context(own_database(lock, _home(log) / DATABASE)),
                # What the lock holds is given up when the server ends.
                descriptors=(lock.fileno(), listening.fileno()),
            )
        listening.close()  # so that nobody waits for a server that has ended
        url = f"http://127.0.0.1:{port}/api"
        _PROCESSES[url] = process
        stack.callback(_PROCESSES.pop, url)
        stack.callback(end_process, process, END_TIMEOUT)
        stack.callback(_hand_over_events)
        yield _Temporary(process, url, log, secret)


_PROCESSES: dict[str, "subprocess.Popen[bytes]"] = {}
"""Temporary servers of this process, by URL."""


def _has_ended(url: str | None) -> bool:
    """Whether a URL belongs to a temporary server that was killed."""
    process = None if url is None else _PROCESSES.get(url)
    return process is not None and process.poll() is not None


class _Retries:
    """Prefect's setting of client retries: none if no server can answer."""

    def __init__(self, setting: "Setting") -> None:
        self._setting = setting

    def value(self) -> int:
        """See Prefect's `Setting`."""
        from prefect.settings import PREFECT_API_URL

        return 0 if _has_ended(PREFECT_API_URL.value()) else int(self._setting.value())


def _give_up_on_ended_servers() -> None:
    """Stop Prefect's clients from retrying a killed temporary server for a minute per request."""
    from prefect.client import base

    setting = vars(base)["PREFECT_CLIENT_MAX_RETRIES"]
    if not isinstance(setting, _Retries):
        vars(base)["PREFECT_CLIENT_MAX_RETRIES"] = _Retries(setting)


def new_secret() -> str:
    """A random name and password for HTTP basic authentication."""
    return f"winnow:{secrets.token_urlsafe(32)}"


def _make_home() -> None:
    """Create the folder of Prefect's files; then report that an earlier folder is no longer used."""
    old, home = WORK_FOLDER / "prefect", state_folder() / "prefect"
    if os.environ.get("PREFECT_HOME") != str(home) or home.exists():
        return
    if old.exists():
        tell(f"{old} is no longer used: Prefect's data for this folder is in {home}")
    with suppress(OSError):  # what is opened there says so
        home.mkdir(mode=0o700, parents=True)


@contextmanager
def own_database(lock: BinaryIO, file: Path) -> Generator[dict[str, str], None, None]:
    """Environment variables for a server's exclusive database.

    Args:
        lock: Lock file in the folder of temporary servers' database; its holder uses that database. It is not
            used if the user names a database.
        file: The database there. If this release of Prefect cannot use it, it is renamed if it is Winnow's
            own, and unchanged if it may be the user's.
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
    """Whether this process got the lock; False also if the file system does not support locks."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _is_usable(file: Path) -> bool:
    """Whether Prefect can use a database, after renaming one of Winnow's own that it cannot use."""
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
    """Whether this Prefect has the migration of a server database, if it has any."""
    try:
        with closing(sqlite3.connect(f"file:{quote(str(file))}?mode=ro", uri=True)) as database:
            if not database.execute("SELECT 1 FROM sqlite_master WHERE name = 'alembic_version'").fetchone():
                return True
            revisions = database.execute("SELECT version_num FROM alembic_version").fetchall()
    except sqlite3.OperationalError:  # locked, or in the way of an older program: its server says so
        return True
    except sqlite3.DatabaseError:
        return False
    found = find_spec("prefect")
    assert found is not None, "Winnow needs it"
    assert found.origin is not None, "it has a file"
    migrations = Path(found.origin).parent / "server" / "database" / "_migrations" / "versions" / "sqlite"
    names = [path.name for path in migrations.glob("*.py")]
    return not names or all(any(f"_{revision}_" in name for name in names) for (revision,) in revisions)


def _home(log: Path) -> Path:
    return Path(os.environ["PREFECT_HOME"]).resolve() if "PREFECT_HOME" in os.environ else log.parent


def _opened(how: Callable[[Path], BinaryIO], file: Path) -> BinaryIO:
    """Open a file of a temporary server; its folder is created if necessary."""
    try:
        return how(file)
    except OSError as error:
        raise PrefectServerFailed(
            f"Prefect's temporary server has no room for its files ({error}); run winnow in a writable "
            "folder; if PREFECT_HOME is set, it must name one, too"
        ) from error


def has_own_server() -> bool:
    """Whether the user has a server, as far as known without the slow import of Prefect."""
    if "prefect.settings" in sys.modules:
        from prefect.settings import PREFECT_API_URL

        return bool(PREFECT_API_URL.value())
    return "PREFECT_API_URL" in os.environ or _has_profiles()


def _has_profiles() -> bool:
    home = Path(os.environ.get("PREFECT_HOME", Path.home() / ".prefect"))
    return "PREFECT_PROFILE" in os.environ or (home / "profiles.toml").exists()


def _hand_over_events() -> None:
    """Let Prefect's thread send its remaining events: without a server it would wait forever at exit.

    After that the thread accepts no events, for any run of this process.
    """
    if "prefect.events.worker" in sys.modules:
        from prefect.events.worker import EventsWorker

        if all(map(_has_ended, _PROCESSES)):
            # Each event would be tried for seconds. A variable of a generic class, which mypy does not read.
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
    """Serve Prefect's server behind a gate, until a signal ends it."""
    settle_libraries()
    with not_collecting():
        import uvicorn
        from prefect.server.api.server import create_app

        app = create_app()
        fire_after_skipped_hours()
    gc.freeze()  # no later collection goes through what was imported
    server = uvicorn.Server(uvicorn.Config(behind(gate, app, free=FREE), log_level="error"))
    server.run(sockets=[listening])


def _serve_a_command(descriptor: int) -> None:
    """Run as a command's temporary server, until standard input is closed."""
    exit_with_parent()
    secret = os.environ[SECRET]
    _serve(socket.socket(fileno=descriptor), Gate.at("127.0.0.1", allowed=(), token=secret))


def serve_others(host: str, port: int, allowed: Sequence[str]) -> None:
    """Run as a server for other machines, such as those of infra/compose.yaml, with Prefect's pages.

    Prefect itself checks the secret: its pages, which ask the user for it, can be loaded without.
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
    """Run a flow run like Prefect's own engine, which finds its run in the environment."""
    settle_environment()
    sys.argv = sys.argv[:1]
    runpy.run_module(PREFECTS, run_name="__main__", alter_sys=True)


PREFECTS = "prefect.engine"

ENGINE = module_command("winnow.flows.prefect_support.server", PREFECTS)
"""Replacement for Prefect's own command, which would read settings of the working folder."""


if __name__ == "__main__":
    if sys.argv[1:] == [PREFECTS]:
        _run_engine()
    elif len(sys.argv) == 2:
        _serve_a_command(int(sys.argv[1]))
    else:
        serve_others(sys.argv[1], int(sys.argv[2]), sys.argv[3:])
