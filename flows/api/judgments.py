"""Judgments and labels given by a program, as rows; stores judgments of outputs."""

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
"""Labels by id, rows with the columns of a file, the path of a file, or none."""

IN_PROGRAM = "labels"
"""The origin of labels without a file."""


def store_judgments(
    database: Database,
    campaign: CampaignRecord,
    given: GivenLabels,
    annotator: str | None,
    *,
    correct: bool,
) -> Taken:
    """Store judgments of outputs, all or none; see `winnow.label`."""
    who = login() if annotator is None else annotator
    require_name(who)
    if isinstance(given, str | Path):
        rows, source = read_annotations(Path(given)), Path(given).name
    else:
        rows, source = annotations_in(rows_of(given, (ID, VERDICT)), IN_PROGRAM), IN_PROGRAM
    return store_annotations(database, campaign, rows, source, annotator=who, correct=correct)


def login() -> str:
    """The name of the user who is logged in.

    Raises:
        WinnowError: If the system reports no login name.
    """
    try:
        return getpass.getuser()
    except (KeyError, OSError) as error:
        raise WinnowError("the system reports no login name; give one: --as NAME") from error


def rows_of(given: GivenLabels, columns: tuple[str, str]) -> Iterable[PlacedRow]:
    """Rows given by a program, each with its place for errors; a frame's missing values become None."""
    key, value = columns
    rows: object = given
    if isinstance(given, Mapping):
        rows = [{key: each, value: said} for each, said in given.items()]
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
