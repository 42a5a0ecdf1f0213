"""Output of rows, as a table for people or in a format for programs, with the same cells in each.

Every value is first converted to the type of its column, which `tasks.queries.views` declares for views;
undeclared columns, such as those of an SQL statement, keep the types of their values. So missing values,
booleans and times are written equally for every source of rows.
"""

import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from itertools import chain
from pathlib import Path
from typing import Literal, TextIO

from winnow.flows.reports.output import escaped, in_place_of
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
        rows: Rows with the columns of the first one.
        format_: The format; only the table format is fitted to the terminal; all others are complete.
        output: The file; None for standard output.
        view: The view of the rows, whose columns are declared; None for other rows.
        columns: Columns to write, in this order; all if empty.
        heading: All columns, if they are known without a row.
        shown_by: Words for the command that shows columns omitted on a terminal.

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
        with nullcontext(sys.stdout) if output is None else _new(output) as file:
            if view == "comparisons" and not columns:
                typed = (_for_people(row) for row in typed)
            print_table(list(typed), file, all_columns=bool(columns), shown_by=shown_by)
    elif output is not None:
        with _new(output) as file:
            file.writelines(_lines(typed, format_, heading))
    else:
        shown = _shown(format_)
        for line in _lines(typed, format_, heading):
            sys.stdout.write(shown(line))


def write_file(
    path: Path, rows: Iterable[Row], kinds: KindsOf, format_: FileFormat, *, spreadsheet: bool = False
) -> int:
    """Write rows to a file, and return their number; if there are no rows, write no file.

    Args:
        path: The file.
        rows: Rows with the columns of the first one.
        kinds: Returns the type of each column by its name.
        format_: Format of the file.
        spreadsheet: Whether to protect CSV texts from being read as formulas by spreadsheets.
    """
    counted = _Counted(rows)
    first = next(counted, None)
    if first is None:
        return 0
    found = chain([first], counted)
    if format_ == "parquet":
        from winnow.flows.reports.rows.formats import write_parquet

        with in_place_of(path) as beside:
            write_parquet(beside, kinds(first), found)
    else:
        with _new(path) as file:
            file.writelines(spreadsheet_lines(first, found) if spreadsheet else _lines(found, format_))
    return counted.number


class _Counted(Iterator[Row]):
    """Iterator over rows that counts the rows read."""

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
"""Columns of comparisons that people read, and a narrow terminal has room for."""


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
    found = list(rows)  # what a column holds is known once all of it was seen
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
    """Replace an older file by a table without rows, and without columns if they are unknown."""
    from winnow.flows.reports.rows.formats import write_parquet

    with in_place_of(path) as beside:
        write_parquet(beside, kinds, ())


def _as_text(value: Cell) -> str | None:
    return value if value is None or isinstance(value, str) else str(value)


def _shown(format_: Format) -> Callable[[str], str]:
    """The function that formats a line for standard output: no control characters for terminals."""
    if not sys.stdout.isatty():
        return str
    return printable if format_ == "csv" else escaped


@contextmanager
def _new(path: Path) -> Generator[TextIO]:
    with in_place_of(path) as beside, beside.open("w", encoding="utf-8", newline="") as file:
        yield file
