"""Find the holder of the write lock and a remedy, for writers that time out.

A process that is frozen within a transaction keeps the lock of a SQLite file as long as it is frozen. SQLite
cannot revoke the lock, so the message names the process.
"""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError

DEAD = ("Z", "X", "x")
"""States of a process that has ended, even if it was not reaped."""

STOPPED = ("T", "t")
"""States of a process stopped by a signal or a debugger."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """Snapshot of a process."""

    state: str
    """State as one letter; see proc(5)."""
    started_ticks: int
    """Start of the process in clock ticks since boot.
    This time does not depend on the clock's setting."""


def look_up(pid: int) -> Process | None:
    """The process with this id; None if it does not exist or is not visible."""
    try:
        line = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    # The name, in parentheses, can contain anything; the state is the third field and the start the 22nd.
    fields = line.rpartition(b")")[2].split()
    return Process(state=fields[0].decode(), started_ticks=int(fields[19]))


LOCKED_BY_WRITERS = "alembic_version"
"""Table that writers lock in PostgreSQL.
Every Winnow database has it, and only migrations write to it. So autovacuum, which would take the same
lock, has no reason to process it."""

UNSEEN = 0
"""Process id that represents a lock holder in another process namespace."""

# Closing a file releases all locks that its process has on it, so another process opens the files and queries
# the locks. The first byte is locked by writers in WAL mode, the others by writers in the older modes.
_ASK = """
import fcntl, struct, sys
FLOCK = "hhqqi"
for name, start, length in ((sys.argv[1] + "-shm", 120, 1), (sys.argv[1], 0x40000000, 2)):
    try:
        with open(name, "rb") as file:
            asked = struct.pack(FLOCK, fcntl.F_RDLCK, 0, start, length, 0)
            kind, _, _, _, pid = struct.unpack(FLOCK, fcntl.fcntl(file, fcntl.F_GETLK, asked))
    except OSError:
        continue
    if kind != fcntl.F_UNLCK:
        print(pid)
        break
"""
ASK_WITHIN_S = 10.0


def writer_of(path: str) -> int | None:
    """Id of the process that holds the write lock of a SQLite file now.

    `UNSEEN` if the process is in another process namespace, None if no process
    holds the lock.
    """
    if not sys.platform.startswith("linux"):
        return None
    command = [sys.executable, "-I", "-S", "-c", _ASK, path]
    try:
        asked = subprocess.run(command, capture_output=True, text=True, timeout=ASK_WITHIN_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return max(int(asked.stdout), UNSEEN) if asked.stdout.strip() else None


def why_file_is_locked(path: str, waited_s: float) -> str:
    """Why writers of a SQLite file are blocked, with a remedy.

    The text is the rest of a sentence.
    """
    pid, waited = writer_of(path), f"in {waited_s:g} s its write lock was not released"
    if pid is None:
        return f"{waited}, and no visible process holds it now; run the command again"
    if pid == UNSEEN:
        return (
            f"{waited}; a process that is not visible here holds it, such as one in another container: "
            "wake or end that process, then run the command again"
        )
    if pid == os.getpid():
        return f"{waited}, because another thread of this process ({pid}) is writing; run the command again"
    process = look_up(pid)
    if process is not None and process.state in STOPPED:
        return (
            f"process {pid} holds its write lock and is frozen within a transaction; let it continue with "
            f"kill -CONT {pid}, or end it with kill -KILL {pid}, which undoes that transaction and nothing "
            "else; then run the command again"
        )
    return (
        f"{waited}, and process {pid} holds it; wait until it has written, or end it with kill {pid} "
        f"(kill -KILL {pid} if it does not react), then run the command again"
    )


def why_server_is_locked(engine: Engine, waited_s: float) -> str:
    """Which session holds PostgreSQL's write lock, with a remedy.

    The text is a clause, also if no session holds the lock.
    """
    waited = f"in {waited_s:g} s a lock was not released"
    try:
        with engine.connect() as connection:
            found = connection.exec_driver_sql(_HOLDER).first()
    except DBAPIError:
        found = None
    if found is None:
        return f"{waited}, and no session holds the write lock now; run the command again"
    pid, name = found
    return (
        f"{waited}, and session {pid} ({name or 'without a name'}) holds the write lock; wait until "
        f"it has written, or end it with SELECT pg_terminate_backend({pid}), then run the command again"
    )


_HOLDER = f"""
SELECT a.pid, a.application_name FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
WHERE l.relation = '{LOCKED_BY_WRITERS}'::regclass AND l.mode = 'ShareUpdateExclusiveLock' AND l.granted
AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""
