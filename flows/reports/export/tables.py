"""Rows as a table in a file: one line or one row group after the other, whatever their number."""

from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, Literal

from winnow.flows.reports.export.csv_files import write_csv, write_spreadsheet_csv
from winnow.flows.reports.export.jsonl_files import write_jsonl
from winnow.flows.reports.export.parquet_files import write_parquet
from winnow.tasks.queries.columns import Kind

Format = Literal["csv", "jsonl", "parquet"]
Row = Mapping[str, Any]
Writer = Callable[[Path, Mapping[str, Kind], Iterable[Row]], int]


def write_table(
    path: Path,
    rows: Iterable[Row],
    kinds_of: Callable[[Iterable[str]], Mapping[str, Kind]],
    format_: Format,
    *,
    spreadsheet: bool = False,
) -> int:
    """Write rows, all with the columns of the first; how many there are. Without any, no file is written.

    Args:
        path: The file.
        rows: Cells of the kinds that `kinds_of` says of their columns.
        kinds_of: What each column holds, by the names of the columns.
        format_: Of the file.
        spreadsheet: Write csv so that no spreadsheet takes a text for a formula.
    """
    found = iter(rows)
    first = next(found, None)
    if first is None:
        return 0
    return _writer(format_, spreadsheet)(path, kinds_of(first), chain([first], found))


def _writer(format_: Format, spreadsheet: bool) -> Writer:
    if format_ == "csv":
        return write_spreadsheet_csv if spreadsheet else write_csv
    return write_jsonl if format_ == "jsonl" else write_parquet
