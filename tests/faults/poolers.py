"""PgBouncer between a campaign and its PostgreSQL server: each transaction gets any of a few sessions."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
from free_ports import free_port
from postgres_server import as_plain_user
from waiting import until

PATIENCE = 60.0
"""Seconds in which it ends."""

SETTINGS = """\
[databases]
* = host=127.0.0.1 port={server} user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
auth_file = {folder}/users
pool_mode = transaction
default_pool_size = 4
server_round_robin = 1
logfile = {folder}/log
"""


class Pooler:
    """PgBouncer that pools the transactions of a server's databases in four sessions each."""

    def __init__(self, server: Any, folder: Path) -> None:
        """
        Args:
            server: A `PostgresServer`.
            folder: Where its settings and its log are.

        Raises:
            RuntimeError: If there is no PgBouncer, with the remedy.
        """
        program = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")
        if program is None:
            raise RuntimeError("this fault needs PgBouncer: apt-get install pgbouncer")
        self._port = free_port()
        settings = SETTINGS.format(server=server.port, port=self._port, folder=folder)
        (folder / "ini").write_text(settings)
        (folder / "users").write_text('"postgres" ""\n')
        self._command = [program, str(folder / "ini")]
        self.start()

    def start(self) -> None:
        """Start, or start again after `kill`."""
        self._process = subprocess.Popen(
            self._command,
            **as_plain_user(),
            cwd="/",
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        until(self._answers)

    def kill(self) -> None:
        """Cut every connection through it."""
        self._process.kill()
        self._process.wait(PATIENCE)

    def url(self, database: str) -> str:
        return f"postgresql+psycopg://postgres@127.0.0.1:{self._port}/{database}"

    def _answers(self) -> bool:
        with (
            suppress(psycopg.OperationalError),
            psycopg.connect(self.url("postgres").replace("+psycopg", "")),
        ):
            return True
        return False


@contextmanager
def pooler(server: Any) -> Generator[Pooler, None, None]:
    """PgBouncer before a server, gone when the block ends."""
    folder = Path(tempfile.mkdtemp(prefix="winnow-pooler-"))
    if user := as_plain_user():
        os.chown(folder, user["user"], user["group"])
    try:
        own = Pooler(server, folder)
        try:
            yield own
        finally:
            own.kill()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
