"""Print or write rows, as a table for people or in a format for programs.

Every value is first converted to the type of its column, so missing values, booleans and times look the same
for every source of rows. `tasks.queries.views` declares the types of views' columns. Other columns, such as
those of a SQL statement, keep the types of their values.
"""

import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from itertools import chain
from pathlib import Path
from typing import Literal, TextIO

from winnow.flows.reports.output import atomic_replacement, escaped
from winnow.flows.reports.rows.formats import csv_lines, json_lines, json_list, spreadsheet_lines
from winnow.flows.reports.rows.text_table import A_PIPE, print_table
from winnow.storage.json_types import Row
from winnow.tasks.errors import WinnowError, unknown_name
from winnow.tasks.queries.views import Cell, Kind, cells, guessed_kind, kinds_of, untyped_cell
from winnow.tasks.text.printable import printable

FileFormat = Literal["csv", "jsonl", "parquet"]
Format = Literal["table", "csv", "json", "jsonl", "parquet"]
KindsOf = Callable[[Iterable[str]], Mapping[str, Kind]]


def print_rows(
    rows: Iterable[Row],
    format_: Format,
    output: Path | None = None,
    *,
    view: str | None = None,
    columns: Sequence[str] = (),
    heading: Sequence[str] = (),
    shown_by: str = A_PIPE,
) -> None:
    """Print rows, or write them to a file.

    Args:
        rows: Rows; all have the columns of the first row.
        format_: The format. A table is fitted to the terminal; all other formats are complete.
        output: File to write; None for standard output.
        view: Name of the view that the rows are from, which declares the columns; None for other rows.
        columns: Columns to write, in this order; empty for all columns.
        heading: All columns, if they are known without rows.
        shown_by: Options that show the columns omitted on a terminal, for the note below the table.

    Raises:
        WinnowError: If the format needs a file and `output` is None, the file cannot be written, or a column
            does not exist; an older file is then unchanged.
    """
    typed = _chosen(_typed(rows, view), columns)
    if heading:
        heading = list(_of_row(dict.fromkeys(heading), columns))
    if format_ == "parquet":
        _write_parquet(typed, output, view, heading)
    elif format_ == "table":
        with nullcontext(sys.stdout) if output is None else _new(output, heading) as file:
            if view == "comparisons" and not columns:
                typed = (_for_people(row) for row in typed)
            print_table(list(typed), file, all_columns=bool(columns), shown_by=shown_by)
    elif output is not None:
        with _new(output, heading) as file:
            file.writelines(_lines(typed, format_, heading))
    else:
        shown = _shown(format_)
        for line in _lines(typed, format_, heading):
            sys.stdout.write(shown(line))


def write_file(
    path: Path, rows: Iterable[Row], kinds: KindsOf, format_: FileFormat, *, spreadsheet: bool = False
) -> int:
    """Write rows to a file, and return their number; without rows, write no file.

    Args:
        path: The file.
        rows: Rows; all have the columns of the first row.
        kinds: Function from column names to the columns' types.
        format_: Format of the file.
        spreadsheet: Whether to protect CSV texts, so that spreadsheets do not read them as formulas.
    """
    counted = _CountingIterator(rows)
    first = next(counted, None)
    if first is None:
        return 0
    found = chain([first], counted)
    if format_ == "parquet":
        from winnow.flows.reports.rows.formats import write_parquet

        with atomic_replacement(path) as beside:
            write_parquet(beside, kinds(first), found)
    else:
        with _new(path) as file:
            file.writelines(spreadsheet_lines(first, found) if spreadsheet else _lines(found, format_))
    return counted.number


class _CountingIterator(Iterator[Row]):
    """Iterator over rows that counts the rows that were read."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._rows = iter(rows)
        self.number = 0

    def __next__(self) -> Row:
        row = next(self._rows)
        self.number += 1
        return row


def _typed(rows: Iterable[Row], view: str | None) -> Iterator[dict[str, Cell]]:
    if view is not None:
        return cells(rows, view)
    return ({name: untyped_cell(value) for name, value in row.items()} for row in rows)


def _chosen(rows: Iterator[dict[str, Cell]], columns: Sequence[str]) -> Iterator[dict[str, Cell]]:
    return (_of_row(row, columns) for row in rows)


def _of_row(row: dict[str, Cell], columns: Sequence[str]) -> dict[str, Cell]:
    for name in columns:
        if name not in row:
            raise WinnowError(unknown_name("column", name, list(row)))
    return {name: row[name] for name in columns} if columns else row


READ_FIRST = ("outcome", "candidate", "candidate_b", "input", "target", "text", "text_b", "reason", "example")
"""Columns of comparisons that come first in a table for people, because a narrow terminal cuts the rest."""


def _for_people(row: dict[str, Cell]) -> dict[str, Cell]:
    return {name: row[name] for name in READ_FIRST if name in row} | row


def _lines(rows: Iterator[Row], format_: Format, heading: Sequence[str] = ()) -> Iterator[str]:
    if format_ == "jsonl":
        return json_lines(rows)
    if format_ == "json":
        return json_list(rows)
    first = next(rows, None)
    if first is None:
        return csv_lines(heading, ()) if heading else iter(())
    return csv_lines(first, chain([first], rows))


def _write_parquet(
    rows: Iterator[dict[str, Cell]], output: Path | None, view: str | None, heading: Sequence[str]
) -> None:
    if output is None:
        raise WinnowError("parquet is not text: name a file with --output FILE.parquet")
    if view is not None:
        if write_file(output, rows, lambda names: kinds_of(view, names), "parquet") == 0:
            _write_nothing(output, kinds_of(view, heading))
        return
    found = list(rows)  # a column's type depends on all of its values
    if not found:
        _write_nothing(output, dict.fromkeys(heading, "text"))
        return
    kinds = {name: guessed_kind(row[name] for row in found) or "text" for name in found[0]}
    uniform = [
        {name: _as_text(value) if kinds[name] == "text" else value for name, value in row.items()}
        for row in found
    ]
    write_file(output, uniform, lambda _: kinds, "parquet")


def _write_nothing(path: Path, kinds: Mapping[str, Kind]) -> None:
    """Replace a file by a table without rows, with the columns of `kinds`."""
    from winnow.flows.reports.rows.formats import write_parquet

    with atomic_replacement(path) as beside:
        write_parquet(beside, kinds, ())


def _as_text(value: Cell) -> str | None:
    return value if value is None or isinstance(value, str) else str(value)


def _shown(format_: Format) -> Callable[[str], str]:
    """A function that formats a line for standard output; on a terminal it removes control characters."""
    if not sys.stdout.isatty():
        return str
    return printable if format_ == "csv" else escaped


@contextmanager
def _new(path: Path, columns: Sequence[str] = ()) -> Generator[TextIO]:
    with atomic_replacement(path, columns) as beside, beside.open("w", encoding="utf-8", newline="") as file:
        yield file
