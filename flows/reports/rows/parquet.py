"""Parquet, one row group at a time; a group ends after so many rows, or sooner where texts are long."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from winnow.tasks.queries.columns import Kind

if TYPE_CHECKING:
    import pyarrow as pa

MOST_ROWS = 10_000
MOST_CHARACTERS = 16 * 2**20
"""Of all texts in one row group, but for its last row: what is held in memory."""


def write_parquet(path: Path, kinds: Mapping[str, Kind], rows: Iterable[Mapping[str, object]]) -> int:
    """Write rows; how many they were."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([(name, _type_of(kind)) for name, kind in kinds.items()])
    count = 0
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for group in _groups(rows):
            writer.write_table(pa.Table.from_pylist(group, schema=schema))
            count += len(group)
    return count


def _groups(rows: Iterable[Mapping[str, object]]) -> Iterator[list[Mapping[str, object]]]:
    group: list[Mapping[str, object]] = []
    characters = 0
    for row in rows:
        group.append(row)
        characters += sum(_size(value) for value in row.values())
        if len(group) == MOST_ROWS or characters > MOST_CHARACTERS:
            yield group
            group, characters = [], 0
    if group:
        yield group


def _size(value: object) -> int:
    if isinstance(value, str):
        return len(value)
    return sum(len(each["content"]) for each in value) if isinstance(value, list) else 0


def _type_of(kind: Kind) -> "pa.DataType":
    import pyarrow as pa

    return {
        "integer": pa.int64(),
        "real": pa.float64(),
        "truth": pa.bool_(),
        "time": pa.timestamp("us", tz="UTC"),
        "text": pa.string(),
        "conversation": pa.list_(pa.struct([("content", pa.string()), ("role", pa.string())])),
    }[kind]
