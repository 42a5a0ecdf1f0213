"""A second PostgreSQL server that follows a first one, and takes its place."""

import shutil
import signal
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import psycopg
from free_ports import free_port
from postgres_server import as_plain_user
from waiting import until

PATIENCE = 60.0
"""Seconds in which a server ends."""


class Standby:
    """Every commit of the first server is with it before it is answered."""

    def __init__(self, server: Any) -> None:
        """
        Args:
            server: The first one, a `PostgresServer`, which is to listen at its address after a takeover too.
        """
        self._server, self._port, self._folder = server, free_port(), server.folder / "standby"
        self._let_in()
        source = ["-h", "127.0.0.1", "-p", str(server.port), "-U", "postgres"]
        self._run("pg_basebackup", "-D", self._folder, *source, "-R", "-c", "fast", "--no-sync")
        options = ["-c", "listen_addresses=127.0.0.1", "-c", f"unix_socket_directories={server.folder}"]
        self._process = subprocess.Popen(
            [server.binaries / "postgres", "-D", self._folder, "-p", str(self._port), *options],
            **as_plain_user(), cwd="/", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self._demand_its_assent("'*'")
        until(lambda: server.execute("SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'"))

    def take_over(self) -> None:
        """Kill the first server, and have this one listen at its address in its place."""
        self._server.kill()
        with psycopg.connect(host="127.0.0.1", port=self._port, user="postgres", autocommit=True) as own:
            own.execute("SELECT pg_promote(true)")
        self._stop()
        data = self._server.folder / "data"
        shutil.rmtree(data)
        self._folder.rename(data)
        self._server.start()

    def leave(self) -> None:
        """Have whoever is the first server by now be by itself."""
        self._demand_its_assent("''")
        self._stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _stop(self) -> None:
        self._process.send_signal(signal.SIGINT)
        self._process.wait(PATIENCE)

    def _let_in(self) -> None:
        hosts = self._server.folder / "data" / "pg_hba.conf"
        line = "host replication all 127.0.0.1/32 trust\n"
        if line not in hosts.read_text():
            hosts.write_text(line + hosts.read_text())
        self._server.execute("SELECT pg_reload_conf()")

    def _demand_its_assent(self, names: str) -> None:
        self._server.execute(f"ALTER SYSTEM SET synchronous_standby_names = {names}")
        self._server.execute("SELECT pg_reload_conf()")

    def _run(self, program: str, *arguments: object) -> None:
        command = [self._server.binaries / program, *arguments]
        subprocess.run(
            [str(each) for each in command], **as_plain_user(), cwd="/", check=True, capture_output=True
        )


@contextmanager
def standby(server: Any) -> Generator[Standby, None, None]:
    """A standby of a server, gone when the block ends, unless it has taken over."""
    other = Standby(server)
    try:
        yield other
    finally:
        other.leave()
