"""All faults: each a function that has a campaign meet one, by the name that the table shows."""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from importlib import import_module

from tests.faults.runs import Run
from tests.faults.scenes import Scene

MODULES = (
    "engines",
    "loading",
    "judges",
    "servers",
    "webhooks",
    "sqlite_files",
    "strangers",
    "flipped_bits",
    "postgresql_servers",
    "postgresql_settings",
    "clocks",
    "signals",
    "limits",
    "places",
    "rounds_ahead",
    "boundaries",
    "calls",
    "leases",
    "prunes",
    "inputs",
    "sizes",
    "outputs",
    "commands",
    "successors",
    "crowds",
    "group_sizes",
    "ray_actors",
    "prefect_servers",
)

Meeting = Callable[[Scene], Generator[Run, None, None]]
"""Has a campaign meet a fault, yields the process that met it when it has ended, then mends the cause."""


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One way in which things go wrong."""

    name: str
    kind: str
    """Which campaign meets it; a key of `KINDS`."""
    database: str
    """"sqlite" or "postgresql"."""
    codes: frozenset[int]
    """With which exit codes the process that meets it may end."""
    states: frozenset[str | None]
    """What `winnow status` may say right after."""
    meet: Meeting

    @property
    def key(self) -> str:
        """By which it is asked for: `--only`."""
        return f"{self.name} / {self.kind} / {self.database}"


_FAULTS: list[Fault] = []

STOPPED = ("interrupted", "new")
"""Begun, and nobody runs it; "new" where no round is finished."""
DONE = (0, 3)
"""It went on to its end."""


def fault(
    name: str,
    *kinds: str,
    codes: tuple[int, ...],
    states: tuple[str | None, ...] = STOPPED,
    databases: tuple[str, ...] = ("sqlite",),
) -> Callable[[Meeting], Meeting]:
    """Register a fault, once for each kind of campaign and each database."""

    def register(meet: Meeting) -> Meeting:
        _FAULTS.extend(
            Fault(
                name=name,
                kind=kind,
                database=database,
                codes=frozenset(codes),
                states=frozenset(states),
                meet=meet,
            )
            for kind in kinds
            for database in databases
        )
        return meet

    return register


def all_faults() -> list[Fault]:
    """Every fault, in the order of `MODULES`."""
    for module in MODULES:
        import_module(f"tests.faults.{module}")
    # Whoever imports one of them first has its faults come first.
    return sorted(_FAULTS, key=lambda fault: MODULES.index(fault.meet.__module__.rpartition(".")[2]))
