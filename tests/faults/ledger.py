"""What became of faults and kills, in tables beside the page, small enough to be kept there.

Whoever begins again, on whatever machine, goes on from them. A row is on the disk when it is added, and
several processes may add to the same table.
"""

import csv
import fcntl
import os
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

Row = dict[str, str]
Key = tuple[str, ...]


class Ledger:
    """A CSV file whose first columns tell its rows apart."""

    def __init__(
        self, path: Path, key: Sequence[str], rest: Sequence[str], largest: Sequence[str] = ()
    ) -> None:
        """
        Args:
            path: Of the file.
            key: Columns that tell rows apart.
            rest: All other columns.
            largest: Those of them of which `add` keeps the larger number, and not the sum.
        """
        self._path, self._key, self._rest, self._largest = path, key, rest, largest
        self.rows: dict[Key, Row] = {}
        """By key, in the order of their first appearance."""
        self._read()

    def put(self, row: Mapping[str, object]) -> None:
        """Store a row, in the place of the one with its key."""
        self._change(row, lambda known, new: new)

    def add(self, row: Mapping[str, object]) -> None:
        """Add a row's numbers to those of the row with its key, and put its other texts in their place."""
        self._change(row, self._sum)

    def _change(self, row: Mapping[str, object], join: Callable[[Row, Row], Row]) -> None:
        new = {name: str(row[name]) for name in (*self._key, *self._rest)}
        key = tuple(new[name] for name in self._key)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._alone():
            self._read()
            known = self.rows.get(key)
            self.rows[key] = new if known is None else join(known, new)
            self._write()

    def _sum(self, known: Row, new: Row) -> Row:
        return known | {name: self._joined(name, known[name], new[name]) for name in self._rest}

    def _joined(self, name: str, known: str, new: str) -> str:
        if not (known.isdigit() and new.isdigit()):
            return new or known
        join = max if name in self._largest else int.__add__
        return str(join(int(known), int(new)))

    @contextmanager
    def _alone(self) -> Generator[None, None, None]:
        """Have no other process change a table of this folder."""
        folder = os.open(self._path.parent, os.O_RDONLY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            yield
        finally:
            os.close(folder)

    def _read(self) -> None:
        if self._path.exists():
            with self._path.open(newline="", encoding="utf-8") as file:
                rows = list(csv.DictReader(file))
            self.rows = {tuple(row[name] for name in self._key): row for row in rows}

    def _write(self) -> None:
        """Put a whole new file in the place of the old one."""
        part = self._path.with_suffix(".part")
        with part.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, (*self._key, *self._rest), lineterminator="\n")
            writer.writeheader()
            writer.writerows(self.rows.values())
            file.flush()
            os.fsync(file.fileno())
        part.replace(self._path)
