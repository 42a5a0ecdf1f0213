"""The table: a description of the machine, and a row for each thing that was tried."""

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

FAILED = "failed: "
NAME = "gpu-check"
HEADS = ("provider", "row", "what", "measured")


class Row(NamedTuple):
    """What came of one thing that was tried."""

    provider: str
    name: str
    what: str
    measured: str

    @property
    def is_failure(self) -> bool:
        return self.measured.startswith(FAILED)

    def line(self) -> str:
        """For a terminal."""
        return f"{self.name}: {self.what}: {self.measured}"


class Table:
    """Rows in files, kept over processes as long as the machine is the same.

    Args:
        folder: Gets `gpu-check.md`, `.csv` and `.json`; made when needed.
        machine: Its description, as (what, value); the moment is not compared.
    """

    def __init__(self, folder: Path, machine: Sequence[tuple[str, str]]) -> None:
        self._folder, self._machine = folder, list(machine)
        self._rows: list[Row] = []
        folder.mkdir(parents=True, exist_ok=True)
        kept = folder / f"{NAME}.json"
        if kept.exists():
            stored = json.loads(kept.read_text(encoding="utf-8"))
            if _compared(stored["machine"]) == _compared(self._machine):
                self._rows = [Row(*row) for row in stored["rows"]]

    @property
    def path(self) -> Path:
        """Of the table for people."""
        return self._folder / f"{NAME}.md"

    @property
    def has_failures(self) -> bool:
        return any(row.is_failure for row in self._rows)

    def is_done(self, provider: str, name: str) -> bool:
        """Whether all rows of this name are there, and none of them failed."""
        rows = [row for row in self._rows if (row.provider, row.name) == (provider, name)]
        return bool(rows) and not any(row.is_failure for row in rows)

    def replace(self, provider: str, name: str, rows: Sequence[Row]) -> None:
        """Put rows in the place of those that the table has of this name, and write it."""
        self._rows = [row for row in self._rows if (row.provider, row.name) != (provider, name)] + list(rows)
        self._write()

    def _write(self) -> None:
        stored = {"machine": self._machine, "rows": self._rows}
        (self._folder / f"{NAME}.json").write_text(json.dumps(stored, indent=1), encoding="utf-8")
        with (self._folder / f"{NAME}.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerows([["machine", "", what, value] for what, value in self._machine])
            writer.writerow(HEADS)
            writer.writerows(self._rows)
        lines = [f"- {what}: {value}" for what, value in self._machine]
        lines += ["", f"| {' | '.join(HEADS)} |", "|---" * len(HEADS) + "|"]
        lines += [f"| {' | '.join(map(_cell, row))} |" for row in self._rows]
        self.path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _compared(machine: Sequence[Sequence[str]]) -> list[list[str]]:
    return [list(pair) for pair in machine if pair[0] != "date"]
