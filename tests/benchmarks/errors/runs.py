"""Runs of cells, kept in a file a part at a time, so that a stopped benchmark goes on.

Runs count for the code that played them; and those of other code too where both have played the first part
of a cell on processors of one kind, and every campaign of it alike to the last bit: what was asked, told and
decided, right or wrong. On another kind the last bits may be others.
"""

import csv
import multiprocessing
import shutil
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from inspect import signature
from pathlib import Path
from typing import NamedTuple

from tests.benchmarks.errors.cells import Cell, play
from tests.benchmarks.errors.sources import DIGITS, code_of
from tests.benchmarks.measurements import cpu_name

RUNS_AT_ONCE = 100
PARTS_AT_ONCE = 8  # for each process; between them it is seen what is missing
COLUMNS = ("cell", "code", "cpu", "first", "runs", "claimed", "wrong", "trace", "whole")
WHOLE = "whole"  # in the last column of a row that was not cut off


Row = dict[str, str]


class Part(NamedTuple):
    """Some runs of a cell, by their seeds."""

    cell: Cell
    first: int
    runs: int


@dataclass(frozen=True, slots=True)
class Total:
    """All runs of a cell so far."""

    firsts: set[int] = field(default_factory=set)
    """The first seed of each part."""
    counts: Counter[str] = field(default_factory=Counter)
    """How many are "runs", how many are "claimed", and how many runs are of "other code" that plays alike."""
    wrong: Counter[float] = field(default_factory=Counter)
    """How many were wrong, by the probability of an error that they stated."""


def fill(file: Path, cells: Sequence[Cell], *, minutes: float, jobs: int) -> None:
    """Run what is missing, a part of each cell at a time, so that all cells grow alike."""
    end = time.monotonic() + 60.0 * minutes
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
        while time.monotonic() < end and (parts := _missing(cells, totals(file, cells))):
            for row in pool.map(_played, parts[: PARTS_AT_ONCE * jobs]):
                _append(file, row)


def totals(file: Path, cells: Sequence[Cell]) -> dict[str, Total]:
    """What the file holds of each cell that counts for its code as it is now.

    Each part counts once, one that was cut off not at all, nor one with fewer runs than are wanted of it now.
    """
    rows: dict[str, list[Row]] = {cell.name: [] for cell in cells}
    for row in _rows(file):
        if row["cell"] in rows:
            rows[row["cell"]].append(row)
    return {cell.name: _total(cell, rows[cell.name]) for cell in cells}


def _total(cell: Cell, rows: Sequence[Row]) -> Total:
    code, total = code_of(cell), Total()
    whole = [row for row in rows if int(row["runs"]) >= _size(cell, int(row["first"]))]
    alike = _codes_alike(code, whole)
    for row in _most_runs([row for row in whole if row["code"] in alike], code):
        total.firsts.update(_firsts(row))
        total.counts.update({name: int(row[name]) for name in ("runs", "claimed")})
        total.counts["other code"] += int(row["runs"]) if row["code"] != code else 0
        total.wrong.update(_read(row["wrong"]))
    return total


class _Chosen(NamedTuple):
    """Rows that have no seed in common; of two choices the greater one counts."""

    runs: int
    of_code: int
    """How many of the rows are of the code as it is now."""
    rows: tuple[Row, ...]


def _most_runs(rows: Sequence[Row], code: str) -> tuple[Row, ...]:
    """Of rows that may overlap, as a row of many parts counts as a whole or not, those with the most runs."""
    by_end = sorted(rows, key=_end)
    ends = [_end(row) for row in by_end]
    best = [_Chosen(0, 0, ())]  # of the first rows, up to each
    for number, row in enumerate(by_end):
        before = best[bisect_right(ends, int(row["first"]), hi=number)]
        runs, of_code = before.runs + int(row["runs"]), before.of_code + (row["code"] == code)
        best.append(max(best[-1], _Chosen(runs, of_code, (*before.rows, row)), key=lambda each: each[:2]))
    return best[-1].rows


def _codes_alike(code: str, rows: Sequence[Row]) -> set[str]:
    """Codes that play the first part as this one does, or as one does that does."""
    traces: dict[str, dict[str, str]] = {}  # by code and kind of processor
    for row in rows:
        if row["first"] == "0":
            traces.setdefault(row["code"], {})[row["cpu"]] = row["trace"]
    found, pending = {code}, [code]
    while pending:
        mine = traces.get(pending.pop(), {})
        more = {other for other, theirs in traces.items() if other not in found and _agree(mine, theirs)}
        found |= more
        pending += more
    return found


def _agree(mine: Mapping[str, str], theirs: Mapping[str, str]) -> bool:
    shared = mine.keys() & theirs.keys()
    return bool(shared) and all(mine[cpu] == theirs[cpu] for cpu in shared)


def begin_with(file: Path, kept: Path) -> None:
    """Take up the runs that `keep` wrote, if there are any and the file is not there yet."""
    if kept.exists() and not file.exists():
        shutil.copyfile(kept, file)


def keep(file: Path, kept: Path) -> None:
    """Write the runs of a file in a few rows for each cell, code and kind of processor, to keep by the page.

    The first part of a cell keeps its row, whose trace is what tells whether codes play alike; the parts
    behind it that follow on each other have one.
    """
    rows: list[Row] = []
    whole = [row for row in _rows(file) if int(row["runs"]) >= RUNS_AT_ONCE]
    for row in sorted(whole, key=lambda row: (*_played_by(row), int(row["first"]))):
        last = rows[-1] if rows else row
        is_next = _played_by(last) == _played_by(row) and _end(last) == int(row["first"])
        if is_next and last["first"] != "0":
            rows[-1] = _joined(last, row)
        elif rows == [] or not _holds(last, row):
            rows.append({**row, "trace": row["trace"] if row["first"] == "0" else ""})
    kept.unlink(missing_ok=True)
    for row in rows:
        _append(kept, tuple(row[name] for name in COLUMNS))


def _played_by(row: Row) -> tuple[str, str, str]:
    """The cell, the code and the kind of processor."""
    return row["cell"], row["code"], row["cpu"]


def _joined(row: Row, behind: Row) -> Row:
    sums = {name: str(int(row[name]) + int(behind[name])) for name in ("runs", "claimed")}
    return {**row, **sums, "wrong": _written(Counter(_read(row["wrong"])) + Counter(_read(behind["wrong"])))}


def _holds(row: Row, other: Row) -> bool:
    """Whether all runs of another row are among those of a row."""
    return _played_by(row) == _played_by(other) and set(_firsts(other)) <= set(_firsts(row))


def _firsts(row: Row) -> range:
    """The first seeds of the parts in a row."""
    return range(int(row["first"]), _end(row), RUNS_AT_ONCE)


def _end(row: Row) -> int:
    """The seed behind the last run of a row."""
    return int(row["first"]) + int(row["runs"])


def _missing(cells: Sequence[Cell], found: Mapping[str, Total]) -> list[Part]:
    """The next part of each cell that is not done, the least complete cells first."""
    parts = []
    for cell in sorted(cells, key=lambda each: found[each.name].counts["runs"] / each.runs):
        for first in range(0, cell.runs, RUNS_AT_ONCE):
            if first not in found[cell.name].firsts:
                parts.append(Part(cell, first, _size(cell, first)))
                break
    return parts


def _size(cell: Cell, first: int) -> int:
    """How many runs the part has that begins with a seed."""
    return min(RUNS_AT_ONCE, cell.runs - first)


def _played(part: Part) -> tuple[str, ...]:
    """A row of the file."""
    cell, first, count = part
    played = cell if first == 0 else _unshown(cell)
    runs = [play(played, seed) for seed in range(first, first + count)]
    wrong = Counter(run.bound for run in runs if run.is_wrong)
    claimed = sum(run.is_claimed for run in runs)
    trace = sha256(repr(runs).encode()).hexdigest()[:DIGITS]
    counts = str(first), str(count), str(claimed), _written(wrong)
    return cell.name, code_of(cell), cpu_name(), *counts, trace, WHOLE


def _unshown(cell: Cell) -> Cell:
    """The same without intervals, where its world has them only to show: its answers claim the same.

    The first part has them, as its trace tells whether codes play alike, and show alike.
    """
    if "is_shown" not in signature(cell.build.func).parameters:
        return cell
    return replace(cell, build=partial(cell.build, is_shown=False))


def _written(wrong: Mapping[float, int]) -> str:
    return " ".join(f"{bound!r}:{count}" for bound, count in sorted(wrong.items()))


def _read(written: str) -> dict[float, int]:
    pairs = (each.split(":") for each in written.split())
    return {float(bound): int(count) for bound, count in pairs}


def _rows(file: Path) -> Iterator[Row]:
    if file.exists():
        with file.open(newline="", encoding="utf-8") as opened:
            yield from (row for row in csv.DictReader(opened) if row["whole"] == WHOLE)


def _append(file: Path, row: tuple[str, ...]) -> None:
    is_new = not file.exists()
    with file.open("a", newline="", encoding="utf-8") as opened:
        writer = csv.writer(opened, lineterminator="\n")
        if is_new:
            writer.writerow(COLUMNS)
        elif not _ends_a_line(file):
            opened.write("\n")
        writer.writerow(row)


def _ends_a_line(file: Path) -> bool:
    with file.open("rb") as opened:
        opened.seek(-1, 2)
        return opened.read() == b"\n"
