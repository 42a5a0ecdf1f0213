"""The three tables of what became of faults and kills, and the state of the code that met them."""

import subprocess
from collections import Counter
from functools import cache
from pathlib import Path

from tests.faults import ROOT
from tests.faults.killed import Killed
from tests.faults.ledger import Ledger, Row
from tests.faults.outcomes import Outcome
from tests.faults.strikes import CALL, ENGINE, MOMENT
from tests.faults.tables import ended

RANDOM, EVERY_CALL = "random", "every call"
"""How the moments of kills are chosen."""
PRODUCT = ("algorithms", "storage", "tasks", "flows")
WAYS = {MOMENT: "by clock", CALL: "at call", ENGINE: "engine alone"}
SUMS = ("lost", "doubled", "wrong links", "asked again", "same decision")
KILLS = ("campaigns", "kills", "most", *WAYS.values(), *SUMS, "whole", "wrong")


class Counts:
    """What `make faults` has found so far."""

    def __init__(self, folder: Path) -> None:
        """
        Args:
            folder: The folder of the tables.
        """
        self.faults = Ledger(
            folder / "faults.csv",
            ("fault", "campaign", "database"),
            ("code", "exit", "lost", "doubled", "same decision", "wrong"),
        )
        self._kills = Ledger(
            folder / "faults-kills.csv",
            ("moments", "engine", "objective", "database", "code"),
            KILLS,
            largest=("most", "whole"),
        )
        self._calls = Ledger(folder / "faults-calls.csv", ("moments", "what", "name", "code"), ("kills",))

    def add_fault(self, row: Outcome) -> None:
        """Note what became of a fault, in the place of what became of it before."""
        found = {"exit": ended(row.code), "lost": row.lost or 0, "doubled": row.doubled or 0}
        found |= {"same decision": int(row.same_decision), "wrong": _said(row.wrong)}
        names = {"fault": row.fault, "campaign": row.campaign, "database": row.database}
        self.faults.put({**names, "code": code_state(), **found})

    def add_kills(self, moments: str, row: Killed, *, is_whole: bool = False) -> None:
        """Add a campaign that was killed.

        Args:
            moments: `RANDOM` or `EVERY_CALL`.
            row: What became of it.
            is_whole: Whether it was killed at the last call of its round.
        """
        ways, code = Counter(WAYS[kill["how"]] for kill in row.kills), code_state()
        names = {
            "moments": moments,
            "engine": row.engine,
            "objective": row.objective,
            "database": row.database,
        }
        found = {name: getattr(row, name.replace(" ", "_")) for name in SUMS}
        found |= {"campaigns": 1, "kills": len(row.kills), "most": len(row.kills)}
        found |= {name: ways[name] for name in WAYS.values()}
        found |= {"same decision": int(row.same_decision), "whole": int(is_whole), "wrong": _said(row.wrong)}
        self._kills.add({**names, "code": code, **found})
        for what, column in (("call", "where"), ("stored", "phase")):
            for name, kills in Counter(kill[column] for kill in row.kills if kill[column]).items():
                self._calls.add(
                    {"moments": moments, "what": what, "name": name, "code": code, "kills": kills}
                )

    def kills(self, moments: str, **which: str) -> list[Row]:
        """Rows of campaigns that were killed: of an engine, an objective, a database, or of all."""
        rows = [row for row in self._kills.rows.values() if row["moments"] == moments]
        return [row for row in rows if which.items() <= row.items()]

    def tally(self, moments: str, what: str) -> Counter[str]:
        """How many kills came at each "call", or with what "stored"."""
        found: Counter[str] = Counter()
        for row in self._calls.rows.values():
            if (row["moments"], row["what"]) == (moments, what):
                found[row["name"]] += int(row["kills"])
        return found

    @property
    def wrong(self) -> list[str]:
        """What is not as it should be."""
        rows = [*self.faults.rows.items(), *self._kills.rows.items()]
        return [f"{' / '.join(key)}: {row['wrong']}" for key, row in rows if row["wrong"]]


def total(rows: list[Row], column: str) -> int:
    """The sum of a column."""
    return sum(int(row[column]) for row in rows)


@cache
def code_state() -> str:
    """The last commit that changed the product, and its day; whether the product has been changed since."""
    last = _git("log", "-1", "--abbrev=10", "--format=%h of %cs")
    return f"{last}, changed" if _git("status", "--porcelain") else last


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(ROOT), *arguments, "--", *PRODUCT]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def _said(wrong: list[str]) -> str:
    return " ".join("; ".join(wrong).split())
