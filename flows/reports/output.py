"""Printing rows: a table for people, and formats for programs."""

import contextlib
import csv
import datetime as dt
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from itertools import chain
from pathlib import Path
from typing import Any, Literal

from winnow.tasks.errors import WinnowError
from winnow.tasks.queries.printable import printable

Format = Literal["table", "csv", "json", "jsonl", "parquet"]
Row = Mapping[str, Any]

CELL_WIDTH = 60
"""Longest cell in a table for people; other formats are not cut."""


def print_rows(rows: Iterable[Row], format_: Format, output: Path | None = None) -> None:
    """Print rows, or write them to a file.

    Raises:
        WinnowError: If the format needs a file and none is given.
    """
    if format_ == "parquet":
        if output is None:
            raise WinnowError("parquet is not text: name a file with --output FILE.parquet")
        import pandas as pd

        pd.DataFrame(rows).to_parquet(output, index=False)
        return
    if output is None:
        _write(rows, format_, _stdout(format_))
        return
    with output.open("w", encoding="utf-8", newline="") as file:
        _write(rows, format_, file)


def print_json(value: Any) -> None:  # noqa: ANN401 -- any JSON value
    """Print one JSON value."""
    text = json.dumps(value, default=_jsonable, indent=2, ensure_ascii=False)
    print(escaped(text) if sys.stdout.isatty() else text)


def _stdout(format_: Format) -> Any:  # noqa: ANN401
    # A table for people is made of printable characters, and of colours.
    return _OnTerminal(format_) if format_ != "table" and sys.stdout.isatty() else sys.stdout


class _OnTerminal:
    """Standard output as a terminal, which obeys what it is shown; files and pipes get every byte."""

    def __init__(self, format_: Format) -> None:
        self._shown = printable if format_ == "csv" else escaped

    def write(self, text: str) -> int:
        """Write what cannot be printed as a dot (csv), or as JSON's own escapes, which are the same value."""
        return sys.stdout.write(self._shown(text))


def _write(rows: Iterable[Row], format_: Format, file: Any) -> None:  # noqa: ANN401
    if format_ == "json":
        json.dump(list(rows), file, default=_jsonable, indent=2, ensure_ascii=False)
        file.write("\n")
    elif format_ == "jsonl":
        for row in rows:
            file.write(json.dumps(row, default=_jsonable, ensure_ascii=False) + "\n")
    elif format_ == "csv":
        _write_csv(iter(rows), file)
    else:
        _write_table(list(rows), file)


def _write_csv(rows: Iterable[Row], file: Any) -> None:  # noqa: ANN401
    rows = iter(rows)
    first = next(rows, None)
    if first is None:
        return
    # Texts in quotes: a carriage return without them ends the row for every reader, and Python adds none.
    writer = csv.DictWriter(file, fieldnames=list(first), lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
    writer.writeheader()
    writer.writerows(chain([first], rows))


def _write_table(rows: Sequence[Row], file: Any) -> None:  # noqa: ANN401
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    if not rows:
        file.write("no rows\n")
        return
    columns = [name for name in rows[0] if any(row[name] is not None for row in rows)]
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in columns:
        numeric = all(isinstance(row[name], (int, float, type(None))) for row in rows)
        table.add_column(name, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        # Model output is untrusted: as Text it can neither style the table nor move the cursor.
        table.add_row(*(Text(_cell(row[name])) for name in columns))
    terminal = file.isatty()
    Console(file=file, width=None if terminal else 240, soft_wrap=not terminal).print(table)


def _cell(value: Any) -> str:  # noqa: ANN401
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else ""
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, dt.datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}"
    text = printable(str(value)).replace("\n", "\N{MIDDLE DOT}")
    return text if len(text) <= CELL_WIDTH else text[: CELL_WIDTH - 1] + "…"


def tell(sentence: str) -> None:
    """Print to standard error what a run goes on without where nobody reads it, or its disk is full."""
    if sys.stderr is not None:
        with contextlib.suppress(OSError, ValueError):
            print(sentence, file=sys.stderr, flush=True)


def escaped(text: str) -> str:
    """JSON in which what is not printable stands as JSON escapes it, but for the ends of its lines."""
    return "".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text)


def _jsonable(value: Any) -> Any:  # noqa: ANN401 -- whatever a database holds
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return value.hex() if isinstance(value, bytes) else str(value)
