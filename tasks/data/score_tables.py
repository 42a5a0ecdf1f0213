"""Score matrices from files.

`tasks.campaign.earlier_scores` reads those of stored campaigns.

* `FILE.npz`, `FILE.npz:KEY`  the array `scores`, or the array KEY; rows are candidates
* `FILE.csv`, `FILE.parquet`  one row per candidate: its name in the first column, then one column per
  example; in a Parquet file that pandas wrote, the index can contain the names
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from winnow.algorithms.errors import at_bound
from winnow.algorithms.state.arrays import FloatArray, IntArray, at_bounds
from winnow.storage.json_types import JsonView
from winnow.storage.plain_files import open_plain
from winnow.tasks.data.array_files import DAMAGED
from winnow.tasks.data.dataset_files import other_separator, read_rows
from winnow.tasks.errors import DatasetError, SpecError, did_you_mean, unknown_name

if TYPE_CHECKING:
    from pyarrow import Table

CAMPAIGN = "campaign:"
"""Prefix of a source that is a campaign instead of a file."""
NAMES = "candidates"
"""Optional array of a .npz file with the candidates' names."""
NAME_KEYS = ("models", "prompts", "names")
"""Other arrays that can contain the names."""
MISSING = ("", "na", "nan", "null", "none")
"""Contents of a cell without a score; case does not matter."""


class ScoreTableError(SpecError):
    """A score table cannot be read, or contains invalid scores."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ScoreTable:
    """Scores of all candidates on all examples."""

    source: str
    """The source as the user wrote it."""
    candidates: tuple[str, ...]
    """K different names."""
    examples: tuple[str, ...] | None
    """n names; None if the source names no examples."""
    scores: FloatArray
    """Shape (K, n), in [0, 1], NaN if missing; read-only."""
    is_partial: bool = False
    """Whether the campaign never evaluated some pairs.

    Which pairs those are depends on the other scores, so means of the observed scores are biased.
    """
    last_round: int | None = None
    """Last round of the campaign whose scores are included; None for a file."""

    @property
    def grid(self) -> int:
        """Number of pairs, K n."""
        return self.scores.size

    @property
    def missing(self) -> FloatArray:
        """Share of examples without a score, for each candidate; shape (K,)."""
        share: FloatArray = np.isnan(self.scores).mean(axis=1)
        return share

    @property
    def filled(self) -> float:
        """Share of all pairs with a score."""
        return float((~np.isnan(self.scores)).mean())

    def rows(self, positions: IntArray) -> "ScoreTable":
        """The table of the candidates at these positions, in this order."""
        names = tuple(self.candidates[position] for position in positions)
        return replace(self, candidates=names, scores=_frozen(self.scores[positions]))


def read_table(source: str, array: str) -> ScoreTable:
    """Read a table from a file; from a .npz file, by default the array `array`.

    Raises:
        ScoreTableError: The file cannot be read, is not a matrix of scores in [0, 1], or repeats a name.
    """
    path, _, key = source.rpartition(":") if ".npz:" in source.lower() else (source, "", array)
    reader = _READERS.get(Path(path).suffix.lower())
    if reader is None:
        suffix = unknown_name("suffix", Path(path).suffix, _READERS)
        raise ScoreTableError(
            f"{path}: {suffix}; convert the table, or name a stored campaign as {CAMPAIGN}NAME"
        )
    if not Path(path).exists():
        raise ScoreTableError(_no_file(Path(path)))
    try:
        table = reader(source, Path(path), key)
    except OSError as error:
        raise ScoreTableError(
            f"{path} cannot be read: {error.strerror or error}; correct the path"
        ) from error
    return checked_table(table)


def require_same_examples(table: ScoreTable, other: ScoreTable) -> None:
    """Refuse a table with different examples, because scores would not be comparable.

    Raises:
        ScoreTableError: The numbers of examples differ, or, if both tables name examples, the names differ.
    """
    mine, theirs = table.scores.shape[1], other.scores.shape[1]
    remedy = "give both tables the same examples in the same order"
    if mine != theirs:
        raise ScoreTableError(f"{other.source} has {theirs} examples, {table.source} has {mine}; {remedy}")
    for position, (name, its) in enumerate(zip(table.examples or (), other.examples or (), strict=False)):
        if name != its:
            where = f"example {position + 1} is {its!r} in {other.source} and {name!r} in {table.source}"
            raise ScoreTableError(f"{where}; {remedy}")


def _npz_table(source: str, path: Path, key: str) -> ScoreTable:
    try:
        with open_plain(path) as raw, np.load(raw, allow_pickle=False) as arrays:
            if not isinstance(arrays, np.lib.npyio.NpzFile):
                raise ScoreTableError(f"{path} contains a single array; save it with numpy.savez(scores=...)")
            scores = _npz_scores(path, arrays, key)
            return ScoreTable(
                source=source,
                candidates=_npz_names(path, arrays, len(scores)) or _numbered(len(scores)),
                examples=None,
                scores=scores,
            )
    except DAMAGED as error:
        raise ScoreTableError(
            f"{path} is not a .npz file of plain arrays ({error}); save it again"
        ) from error


def _npz_scores(path: Path, arrays: JsonView, key: str) -> FloatArray:
    if key not in arrays:
        matrices = [name for name in arrays if arrays[name].ndim == 2]
        there = did_you_mean(key, matrices) or f"its matrices: {', '.join(matrices) or 'none'}"
        raise ScoreTableError(f"{path} has no array {key!r}; name one as {path}:KEY; {there}")
    values = arrays[key]
    if values.ndim != 2 or values.dtype.kind not in "biuf":
        found = f"of shape {values.shape} and type {values.dtype}"
        raise ScoreTableError(
            f"{path}: array {key!r} is {found}; give a matrix of numbers, candidates x examples"
        )
    scores: FloatArray = values.astype(np.float64)
    return scores


def _npz_names(path: Path, arrays: JsonView, count: int) -> tuple[str, ...]:
    """The candidates' names, if an array contains as many different values.

    Prompts, for example, can repeat.
    """
    if NAMES in arrays:
        if (shape := arrays[NAMES].shape) != (count,):
            raise ScoreTableError(
                f"{path}: array {NAMES!r} has shape {shape}, but there are {count} rows of scores; give a "
                "name for each row, or remove the array"
            )
        return tuple(map(str, arrays[NAMES]))
    for key in NAME_KEYS:
        if key in arrays and arrays[key].shape == (count,) and len(set(arrays[key].tolist())) == count:
            return tuple(str(name) for name in arrays[key])
    return ()


def _csv_table(source: str, path: Path, _: str) -> ScoreTable:
    names: list[str] = []
    rows: list[FloatArray] = []
    examples: list[str] = []
    try:
        for place, row in read_rows(path):
            if not any(row.values()):  # spreadsheets write such rows at the end
                continue
            if remedy := other_separator(row):
                raise ScoreTableError(f"{path}, {place}: there are no scores after the name; {remedy}")
            (_, name), *cells = row.items()
            examples = examples or [example for example, _ in cells]
            names.append(name)
            rows.append(np.array([_number(f"{path}, {place}", example, cell) for example, cell in cells]))
    except DatasetError as error:
        raise ScoreTableError(error.message) from error
    if names:
        _require_names(path, next(iter(row)), names)
    scores = np.array(rows).reshape(len(names), len(examples))
    return ScoreTable(source=source, candidates=tuple(names), examples=tuple(examples), scores=scores)


def _number(place: str, column: str, cell: str) -> float:
    try:
        return np.nan if cell.strip().lower() in MISSING else float(cell)
    except ValueError:
        problem = f"{cell!r} is not a number; write a score in [0, 1], or leave the cell empty"
        raise ScoreTableError(f"{place}, column {column!r}: {problem}") from None


def _parquet_table(source: str, path: Path, _: str) -> ScoreTable:
    import pyarrow  # a quarter of a second that other formats need not pay

    try:
        return _of_columns(source, path)
    # The latter three: for names that are not UTF-8, and for time zones that Python does not know.
    except (pyarrow.ArrowException, ValueError, LookupError, OverflowError) as error:
        raise ScoreTableError(f"{path} is not a Parquet file ({error}); write it again") from error


def _of_columns(source: str, path: Path) -> ScoreTable:
    import pyarrow
    import pyarrow.parquet

    columns = _names_first(path, pyarrow.parquet.read_table(path))
    examples = columns.column_names[1:]
    scores = np.empty((columns.num_rows, len(examples)))
    for position, example in enumerate(examples):
        try:
            column = columns.column(position + 1).cast(pyarrow.float64())
        except pyarrow.ArrowException as error:
            problem = f"column {example!r} contains {columns.column(position + 1).type}, not numbers"
            raise ScoreTableError(
                f"{path}: {problem}; all columns except the names must contain scores"
            ) from error
        scores[:, position] = column.to_numpy(zero_copy_only=False)
    names = [str(name) for name in columns.column(0).to_pylist()] if columns.num_columns else []
    return ScoreTable(source=source, candidates=tuple(names), examples=tuple(examples), scores=scores)


def _names_first(path: Path, columns: "Table") -> "Table":
    """The columns, with the candidates' names first.

    pandas writes an index last. Selecting rows in pandas leaves an unnamed index of row numbers: if the first
    column is then text, it contains the names.
    """
    import pyarrow.types

    found = (columns.schema.pandas_metadata or {}).get("index_columns", [])
    index = [name for name in found if name in columns.column_names]  # a range index is no column
    if len(index) > 1:
        remedy = "join the levels into one column, and use it as the index"
        raise ScoreTableError(f"{path}: the index has {len(index)} levels; {remedy}")
    first = columns.schema.field(0).type if columns.num_columns else pyarrow.null()
    if not index:
        if pyarrow.types.is_floating(first):
            _require_names(path, columns.column_names[0], list(map(str, columns.column(0).to_pylist())))
        return columns
    (name,) = index
    others = [each for each in columns.column_names if each != name]
    is_text = pyarrow.types.is_string(first) or pyarrow.types.is_large_string(first)
    is_count = pyarrow.types.is_integer(columns.schema.field(name).type) and name.startswith("__index_level_")
    return columns.select(others if is_text and is_count else [name, *others])


def _require_names(path: Path, column: str, names: Sequence[str]) -> None:
    """Refuse fractions as names: such a table begins with scores.

    Whole numbers can be names of candidates, such as row numbers.
    """
    fractions = [
        name for name in names if not name.strip().isdecimal() and name.strip().lower() not in MISSING
    ]
    if fractions and all(map(_is_score, names)):
        raise ScoreTableError(
            f"{path}: the first column, {column!r}, contains {fractions[0]} instead of a candidate's name; "
            "write the names before the scores (with pandas: make them the index, and do not use "
            "index=False)"
        )


def _is_score(cell: str) -> bool:
    """Whether a cell can be a score or a missing score."""
    try:
        return cell.strip().lower() in MISSING or 0.0 <= at_bound(float(cell)) <= 1.0
    except ValueError:
        return False


_READERS: Mapping[str, Callable[[str, Path, str], ScoreTable]] = {
    ".csv": _csv_table,
    ".npz": _npz_table,
    ".parquet": _parquet_table,
}


def checked_table(table: ScoreTable) -> ScoreTable:
    """Check a table and make its scores read-only.

    Raises:
        ScoreTableError: The table has no score, a score is not in [0, 1], or two candidates have the same
            name.
    """
    scores, source = at_bounds(table.scores), table.source
    if scores.size == 0:
        shape = f"{scores.shape[0]} candidates x {scores.shape[1]} examples"
        raise ScoreTableError(f"{source} has {shape}; give at least one of each")
    repeated = [name for name in set(table.candidates) if table.candidates.count(name) > 1]
    if repeated:
        raise ScoreTableError(f"{source} has two candidates called {min(repeated)!r}; rename one")
    outside = (scores < 0.0) | (scores > 1.0)
    if outside.any():
        row, column = np.unravel_index(outside.argmax(), scores.shape)
        example = repr(table.examples[column]) if table.examples else str(column + 1)
        where = f"candidate {table.candidates[row]!r}, example {example}"
        raise ScoreTableError(
            f"{source}: {where}: the score is {scores[row, column]:g}; scale all scores to [0, 1]"
        )
    return replace(table, scores=_frozen(scores))


def _frozen(scores: FloatArray) -> FloatArray:
    scores.setflags(write=False)
    return scores


def _numbered(count: int) -> tuple[str, ...]:
    return tuple(f"candidate-{number}" for number in range(1, count + 1))


def _no_file(path: Path) -> str:
    siblings: Sequence[str] = []
    if path.parent.is_dir():
        siblings = [entry.name for entry in path.parent.iterdir()]
    remedy = did_you_mean(path.name, siblings) or "correct the path"
    return f"there is no file {path} (working directory {Path.cwd()}); {remedy}"
