"""Print rows as a table for people; numbers and words are not broken.

On a narrow terminal, texts are first shortened in the middle, because names often differ at their ends. Then
the last columns are omitted, and named below the table. If less than half of the columns fit, up to
`MOST_RECORDS` rows are shown as blocks of lines instead, unless all texts that people compare fit.
"""

import datetime as dt
import math
import os
import pydoc
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context
from textwrap import wrap
from typing import TextIO

from rich.cells import cell_len

from winnow.flows.reports.output import BOLD, GREEN, coloured, terminal_width, wants_colours
from winnow.tasks.queries.views import Cell
from winnow.tasks.text.phrases import with_decimals
from winnow.tasks.text.printable import printable


def shortened(text: str, most: int) -> str:
    """Shorten a text in the middle to at most `most` terminal columns."""
    kept = most
    short = text
    while cell_len(short) > most:  # some characters are two columns wide
        kept -= 1
        short = f"{text[: (kept + 1) // 2]}…{text[len(text) - kept // 2 :]}"
    return short


def beginning(text: str, most: int) -> str:
    """Shorten a text at its end to at most `most` terminal columns."""
    kept = most
    short = text
    while cell_len(short) > most:
        kept -= 1
        short = f"{text[:kept]}…"
    return short


def shortened_apart(names: Sequence[str], most: int) -> list[str]:
    """Shorten names in the middle so that different names stay different; see `distinguishable`."""
    return [shortened(name, most) for name in distinguishable(names, most)]


def distinguishable(names: Sequence[str], most: int) -> Sequence[str]:
    """Remove the common beginning and end of names if two names would be shortened to the same text."""
    different = set(names)
    if len({shortened(name, most) for name in different}) == len(different):
        return names
    return without_shared(names)


def without_shared(names: Sequence[str]) -> list[str]:
    """Replace the common beginning and the common end of different names by "…"."""
    start = _shared(names)
    end = _shared([name[start:][::-1] for name in names])
    before, after = "…" * (start > 0), "…" * (end > 0)
    return [f"{before}{name[start : len(name) - end]}{after}" for name in names]


def _shared(names: Sequence[str]) -> int:
    """Length of the common beginning of all names."""
    first, last = min(names), max(names)
    return next((n for n, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))


LONGEST_CELL = 60
"""Maximum length of a text in a table; other formats have no limit."""
SENTENCES = ("detail",)
"""Columns of sentences, which are shortened at the end instead of the middle."""
LONGEST_SENTENCE = 160
SHORTEST_CELL = 14
"""Minimum length to which a text is shortened to make room for further columns."""
SIDE_BY_SIDE = ("input", "target", "text", "text_b")
"""Columns of texts that people compare; a narrow terminal shortens them more than other texts."""
LEAST_SIDE = 8
"""Minimum width to which a text in a `SIDE_BY_SIDE` column is shortened."""
MOST_DECIMALS = 6
"""Maximum number of decimals in a column whose numbers are all below 100."""
NAMING = ("candidate", "candidate_b", "opponent")
"""Columns of names, in all views."""
OUTWARD = {"lower": ROUND_FLOOR, "upper": ROUND_CEILING}
"""Columns of interval ends, in all views -> directions in which they are rounded."""
MOST_NAMES = 200
"""Maximum number of rows whose shortened names in the first column are kept different."""
GAP = "  "
MOST_RECORDS = 20
"""Maximum number of rows shown as blocks of lines; for more rows, only the first columns are shown."""

A_PIPE = "a wider terminal or a pipe, such as | less -S,"
"""Ways to see every column, for commands without an option for it."""

PAGER_OPTIONS = "FRX"
"""Options for `less` unless the user has set some: exit on one screen, show colours, do not clear."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the printed table."""

    name: str
    texts: Sequence[str]
    """Texts of the cells, by row."""
    is_text: bool
    """Whether cells may be shortened; numbers and times may not."""
    is_number: bool
    """Whether the column holds numbers, which are aligned right."""
    names_rows: bool = False
    """Whether the column identifies rows, so that different cells must stay different when shortened."""

    @property
    def width(self) -> int:
        """Width of the column without further shortening, in terminal columns."""
        widest = max(map(cell_len, self.texts))
        longest = LONGEST_SENTENCE if self.name in SENTENCES else LONGEST_CELL
        return max(cell_len(self.name), min(widest, longest) if self.is_text else widest)

    @property
    def least_width(self) -> int:
        """Minimum width of the column, in terminal columns."""
        if not self.is_text:
            return self.width
        shortest = LEAST_SIDE if self.name in SIDE_BY_SIDE else SHORTEST_CELL
        least = min(self.width, max(cell_len(self.name), shortest))
        return self._apart_from(least) if self.names_rows else least

    def _apart_from(self, least: int) -> int:
        """The smallest width, at least `least`, at which different texts stay different when shortened."""
        different = set(self.texts)
        if len(different) > MOST_NAMES:
            return least
        for width in range(least, self.width):
            if len({shortened(text, width) for text in different}) == len(different):
                return width
        return self.width

    def cell(self, row: int, width: int) -> str:
        """The cell of a row, padded or shortened to the width; the heading for row -1."""
        text = self.name if row < 0 else self.texts[row]
        text = beginning(text, width) if self.name in SENTENCES else shortened(text, width)
        room = " " * (width - cell_len(text))
        return room + text if self.is_number else text + room


def print_table(
    rows: Sequence[Mapping[str, Cell]], file: TextIO, *, all_columns: bool = False, shown_by: str = A_PIPE
) -> None:
    """Print rows as a table, through a pager if it needs more than one screen.

    Args:
        rows: Rows; all have the columns of the first row. Empty columns are omitted.
        file: Output file. A terminal gets a table of its width, coloured unless NO_COLOR is set; other files
            get all columns.
        all_columns: Whether no column may be omitted, because the user named each one.
        shown_by: Options that show omitted columns, for the note below the table.
    """
    width, has_colours = terminal_width(file), wants_colours(file)
    lines = table_lines(rows, width, has_colours=has_colours, all_columns=all_columns, shown_by=shown_by)
    if width is None or len(lines) < shutil.get_terminal_size().lines:
        file.writelines(f"{line}\n" for line in lines)
    else:
        os.environ.setdefault("LESS", PAGER_OPTIONS)
        pydoc.pager("".join(f"{line}\n" for line in lines))


def table_lines(
    rows: Sequence[Mapping[str, Cell]],
    width: int | None,
    *,
    has_colours: bool = False,
    all_columns: bool = False,
    shown_by: str = A_PIPE,
) -> list[str]:
    """The lines of a table.

    Args:
        rows: See `print_table`.
        width: Columns of the terminal; None for no limit.
        has_colours: Whether the heading is bold and the best row green.
        all_columns: Whether no column may be omitted. If not all columns fit, rows are shown as blocks of
            lines.
        shown_by: See `print_table`.
    """
    if not rows:
        return ["no rows"]
    names = [name for name in rows[0] if any(row[name] is not None for row in rows)]
    columns = [
        column_of(name, rows, names_rows=not number or name in NAMING) for number, name in enumerate(names)
    ]
    shown = columns if width is None else _fitting(columns, width)
    texts = {name for name in names if name in SIDE_BY_SIDE}
    shows_texts = texts and texts <= {column.name for column in shown}
    is_too_wide = 2 * len(shown) < len(columns) and len(rows) <= MOST_RECORDS and not shows_texts
    if len(shown) < len(columns) and (is_too_wide or all_columns):
        return _records(columns, width or 0)
    widths = _widths(shown, width)
    lines = [
        GAP.join(column.cell(row, widths[column.name]) for column in shown).rstrip()
        for row in range(-1, len(rows))
    ]
    if has_colours:
        lines[0] = coloured(lines[0], BOLD)
        for number, row in enumerate(rows, 1):
            if row.get("best") is True:
                lines[number] = coloured(lines[number], GREEN)
    if omitted := ", ".join(column.name for column in columns[len(shown) :]):
        lines += unfolded(f"not shown: {omitted}; {shown_by} shows them", width, indent="  ")
    return lines


def unfolded(sentence: str, width: int | None, *, indent: str = "") -> list[str]:
    """Break a sentence into lines between words; all lines except the first begin with `indent`.

    Args:
        sentence: The sentence, without line breaks.
        width: Columns of the terminal; None for one line.
        indent: Spaces before each further line.
    """
    if width is None:
        return [sentence]
    return wrap(sentence, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def column_of(name: str, rows: Sequence[Mapping[str, Cell]], *, names_rows: bool) -> Column:
    """Build a column from rows; all its numbers have the same number of decimals."""
    values = [row[name] for row in rows]
    known = [value for value in values if value is not None]
    is_number = all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in known)
    decimals = decimals_of([value for value in known if isinstance(value, float) and math.isfinite(value)])
    texts = [_text(row[name], decimals, _outward(name, row)) for row in rows]
    return Column(
        name=_text(name, None, ROUND_HALF_EVEN),  # of a statement or a stranger's view, it may be anything
        texts=distinguishable(texts, LONGEST_CELL) if names_rows else texts,
        is_text=any(isinstance(value, str) for value in known),
        is_number=is_number,
        names_rows=names_rows,
    )


def _outward(name: str, row: Mapping[str, Cell]) -> str:
    """Rounding mode of a column: outward for the ends of an interval, otherwise to the nearest.

    Equal ends of an interval are also rounded to the nearest.
    """
    if name not in OUTWARD or row.get("lower") == row.get("upper"):
        return ROUND_HALF_EVEN
    return OUTWARD[name]


def _text(value: Cell, decimals: int | None, rounding: str) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else ""
    if isinstance(value, float) and math.isfinite(value):
        if decimals is None:
            short = float(Context(prec=3, rounding=rounding).create_decimal(f"{value:.9g}"))
            return f"{short:#.3g}".rstrip(".") if short else "0"
        return f"{with_decimals(value, decimals, rounding):,f}"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, dt.datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}"
    return printable(str(value)).replace("\n", "\N{MIDDLE DOT}")


def decimals_of(values: Sequence[float]) -> int | None:
    """Number of decimals of a column; None if a number is too large or too small for fixed decimals.

    Larger numbers get fewer decimals, but only 0 is written as 0.
    """
    sizes = [abs(value) for value in values if value]
    if not sizes:
        return 3
    enough, most = (3, MOST_DECIMALS) if max(sizes) < 100.0 else (1 if max(sizes) < 10_000.0 else 0, 3)
    if max(sizes) >= 1e7 or min(sizes) < 0.5 / 10**most:
        return None
    return next(decimals for decimals in range(enough, most + 1) if min(sizes) >= 0.5 / 10**decimals)


def _fitting(columns: Sequence[Column], width: int) -> Sequence[Column]:
    """The first columns, at least one, that fit if texts are shortened as far as permitted."""
    taken = 0
    for number, column in enumerate(columns):
        taken += column.least_width + (len(GAP) if number else 0)
        if number and taken > width:
            return columns[:number]
    return columns


def _widths(columns: Sequence[Column], width: int | None) -> dict[str, int]:
    """Width of each column; if the table is too wide, the text with most spare width is narrowed first."""
    widths = {column.name: column.width for column in columns}
    spare = {column.name: column.width - column.least_width for column in columns}
    taken = sum(widths.values()) + len(GAP) * (len(widths) - 1)
    while width is not None and taken > width and any(spare.values()):
        name = max(spare, key=lambda each: spare[each])
        widths[name] -= 1
        spare[name] -= 1
        taken -= 1
    return widths


def _records(columns: Sequence[Column], width: int) -> list[str]:
    """Each row as a block of lines, one line per value that is not empty."""
    longest = max(cell_len(column.name) for column in columns)
    room = max(width - longest - len(GAP), SHORTEST_CELL)
    lines: list[str] = []
    for row in range(len(columns[0].texts)):
        lines += [""] if lines else []
        lines += [
            f"{column.name:<{longest}}{GAP}{column.cell(row, room).strip()}"
            for column in columns
            if column.texts[row]
        ]
    return lines
