"""Results in a file, a line each, so that whoever is stopped goes on where it was."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

Row = dict[str, Any]


class BudgetTracker:
    """The rows of a file, the last one of each case; a row that a crash cut off does not count."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.rows: dict[str, Row] = {}
        """By case, in the order of their first appearance."""
        if path.exists():
            self._read()

    def add(self, case: str, row: Row) -> None:
        """Append what became of a case; it is on the disk when this returns."""
        row = {"case": case, **row}
        with self._path.open("a") as file:
            file.write(json.dumps(row) + "\n")
            file.flush()
            os.fsync(file.fileno())
        self.rows[case] = row

    @property
    def wrong(self) -> list[str]:
        """Cases in which something is not as it should be."""
        return [case for case, row in self.rows.items() if row["wrong"]]

    def keep(self, folder: Path) -> Path:
        """Copy a folder to beside the results, for whoever wants to see what went wrong in it."""
        kept = self._path.parent / "left" / folder.name
        shutil.copytree(folder, kept, dirs_exist_ok=True)
        return kept

    def _read(self) -> None:
        text = self._path.read_text()
        whole, _, torn = text.rpartition("\n")
        for line in whole.splitlines():
            row = json.loads(line)
            self.rows[row["case"]] = row
        if torn:
            self._path.write_text(whole + "\n" if whole else "")
