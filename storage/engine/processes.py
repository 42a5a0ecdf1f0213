"""What Linux tells of the processes of this machine, as far as they can be seen from here."""

from dataclasses import dataclass
from pathlib import Path

DEAD = ("Z", "X", "x")
"""States of a process that has ended and was perhaps not waited for."""

STOPPED = ("T", "t")
"""States of a process that a signal or a debugger has stopped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A process at the moment it was looked at."""

    state: str
    """One letter; see proc(5)."""
    started_ticks: int
    """When it began, in clock ticks since the system did: no setting of the clock changes that."""


def look_up(pid: int) -> Process | None:
    """A process by its number; None where there is none, or where it may not be seen."""
    try:
        line = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    # The name, in parentheses, may hold anything; the state is the third field and the start the 22nd.
    fields = line.rpartition(b")")[2].split()
    return Process(state=fields[0].decode(), started_ticks=int(fields[19]))
