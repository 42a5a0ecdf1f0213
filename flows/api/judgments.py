"""Read labels and judgments that a program passes, and store judgments of outputs."""

import getpass
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from winnow.storage.engine.database import Database
from winnow.storage.json_types import JsonView
from winnow.storage.records.record_types import CampaignRecord
from winnow.tasks.data.dataset_files import PlacedRow, no_column
from winnow.tasks.errors import DatasetError, SpecError, WinnowError
from winnow.tasks.objectives.human.annotating import require_name
from winnow.tasks.objectives.human.files import (
    ID,
    VERDICT,
    Taken,
    annotations_in,
    read_annotations,
    store_annotations,
)

if TYPE_CHECKING:
    import pandas as pd

GivenLabels: TypeAlias = "Mapping[str, object] | Sequence[JsonView] | pd.DataFrame | str | Path | None"
"""A mapping from id to label, rows or a frame with a file's columns, the path of a file, or None."""

IN_PROGRAM = "labels"
"""Source of labels that are passed as values, in errors and in the database."""


def store_judgments(
    database: Database,
    campaign: CampaignRecord,
    given: GivenLabels,
    annotator: str | None,
    *,
    correct: bool,
) -> Taken:
    """Store judgments of outputs; if one is invalid, none is stored. See `winnow.label`."""
    who = login() if annotator is None else annotator
    require_name(who)
    if isinstance(given, str | Path):
        rows, source = read_annotations(Path(given)), Path(given).name
    else:
        rows, source = annotations_in(rows_of(given, (ID, VERDICT)), IN_PROGRAM), IN_PROGRAM
    return store_annotations(database, campaign, rows, source, annotator=who, correct=correct)


def login() -> str:
    """Login name of the current user.

    Raises:
        WinnowError: If the system reports no login name.
    """
    try:
        return getpass.getuser()
    except (KeyError, OSError) as error:
        raise WinnowError("the system reports no login name; give one: --as NAME") from error


def rows_of(given: GivenLabels, columns: tuple[str, str]) -> Iterable[PlacedRow]:
    """Yield each row with its place, such as "row 3", for errors; NaN values become None.

    Raises:
        SpecError: If the labels are of no accepted type.
        DatasetError: If a row lacks one of the two columns.
    """
    key, value = columns
    rows: object = given
    if isinstance(given, Mapping):
        rows = [{key: id_, value: answer} for id_, answer in given.items()]
    elif given is not None and hasattr(given, "to_dict"):
        rows = given.to_dict("records")
    if not isinstance(rows, Sequence) or not all(isinstance(each, Mapping) for each in rows):
        raise SpecError(
            f"labels is a {type(given).__name__}; give a mapping from id to {value}, rows, a frame or a file"
        )
    for number, each in enumerate(rows):
        place, row = f"row {number}", {name: None if _is_nan(cell) else cell for name, cell in each.items()}
        for column in columns:
            if column not in row:
                raise DatasetError(f"{IN_PROGRAM}, {place}: {no_column(column, row)}")
        yield place, row


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)
