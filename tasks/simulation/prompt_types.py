"""The type of each example of a score table, for metrics of routing selectors.

Sources:

* `FILE.csv`, `FILE.jsonl`, `FILE.json`, `FILE.parquet`  the columns id and type
* `FILE.npy`, `FILE.npz`, `FILE.npz:KEY`                 an array of shape (n,) in the order of the table
* a name                                                 a field of the examples of the table's campaign
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from winnow.algorithms.state.arrays import IntArray
from winnow.storage.admin.schema import reading
from winnow.storage.records import campaigns as campaign_records
from winnow.storage.records import datasets as dataset_records
from winnow.tasks.data.dataset_files import no_column, read_rows
from winnow.tasks.data.score_tables import CAMPAIGN, ScoreTable
from winnow.tasks.data.table_examples import array_of, in_order, is_array, require_campaign
from winnow.tasks.dotted_names import MISSING, unknown_field, value_of
from winnow.tasks.errors import DatasetError, SpecError

ROWS = (".csv", ".json", ".jsonl", ".parquet")


class PromptTypes(NamedTuple):
    """The type of each example."""

    names: tuple[str, ...]
    """G different ones."""
    of_examples: IntArray
    """Shape (n,), 0..G-1."""


def read_types(source: str, table: ScoreTable, storage: str) -> PromptTypes:
    """The type of each example of a table.

    Args:
        source: A file, or a field of the examples, as above.
        table: Its examples have names unless the source is an array.
        storage: URL of the results database with the table's campaign.

    Raises:
        WinnowError: One sentence: the source cannot be read, or an example has no type.
    """
    place = f"--types {source}"
    if is_array(source):
        values: Sequence[object] = array_of(place, source, table, 1).tolist()
    elif Path(source).suffix.lower() in ROWS:
        values = in_order(_typed_rows(source), table, place, "type")
    else:
        values = _field(source, table, storage)
    names, of_examples = np.unique([str(value) for value in values], return_inverse=True)
    return PromptTypes(names=tuple(names.tolist()), of_examples=of_examples)


def _typed_rows(source: str) -> dict[str, object]:
    found: dict[str, object] = {}
    try:
        for place, row in read_rows(Path(source)):
            for column in ("id", "type"):
                if column not in row:
                    raise SpecError(f"--types {source}, {place}: {no_column(column, row)}")
            if str(row["id"]) in found:
                problem = f"the id {row['id']!r} occurs twice; keep one type"
                raise SpecError(f"--types {source}, {place}: {problem}")
            found[str(row["id"])] = row["type"]
    except DatasetError as error:
        raise SpecError(f"--types: {error.message}") from error
    return found


def _field(name: str, table: ScoreTable, storage: str) -> list[object]:
    require_campaign(table, f"--types {name}", "give a file with the columns id and type")
    with reading(storage) as session:
        campaign = campaign_records.get_campaign(session, table.source.removeprefix(CAMPAIGN))
        examples = dataset_records.examples(session, campaign.dataset_id)
    values = [value_of(example.fields, name) for example in examples]
    for example, value in zip(examples, values, strict=True):
        if value is MISSING:
            unknown = unknown_field("field", name, [example.fields])
            raise SpecError(f"--types: example {example.key!r}: {unknown}")
    return values
