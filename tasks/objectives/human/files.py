"""Judgments in files: export tasks as rows to fill in, and import the filled rows."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from winnow.storage.engine.database import Database, shown_url, storage_option
from winnow.storage.json_types import Row
from winnow.storage.records import annotations
from winnow.storage.records.annotations import GivenTask
from winnow.storage.records.record_types import CampaignRecord
from winnow.tasks.campaign.lease import now, watch
from winnow.tasks.campaign.look import Look
from winnow.tasks.data.dataset_files import PlacedRow, rows_given
from winnow.tasks.errors import DatasetError, WinnowError
from winnow.tasks.objectives.human.annotating import (
    Choice,
    annotation_of,
    choices_of,
    require_answerable,
    require_name,
    said_of,
)
from winnow.tasks.spec.judge_tree import is_human

REPLACING = "remove the row, or use --correct if the new judgment is right"
ID, VERDICT, ANNOTATOR = "id", "verdict", "annotator"
ID_LENGTH = 16
"""Number of characters of a task's key that files contain: the first ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenRow:
    """A row of a file with a judgment."""

    place: str
    """The file and the row's position in it, for error messages."""
    id: str
    verdict: str
    """The verdict; empty if the task is unanswered."""
    annotator: str
    """The annotator; empty if the row names no annotator."""


@dataclass(slots=True, kw_only=True)
class Taken:
    """Number of a file's judgments, by what was done with them."""

    new: int = 0
    same: int = 0
    """Number of judgments that were already stored."""
    changed: int = 0
    empty: int = 0
    """Number of rows without a judgment."""


def label_rows(look: Look) -> list[Row]:
    """One row per annotation task of a campaign; those that it waits for are first.

    Rows do not name candidates. `state` is "wanted" (the planned round waits for it), "given", or "used"
    (final). Empty without a human judge.
    """
    if not is_human(look.record.spec):
        return []
    choices = choices_of(look.record)
    rows = [_row(look, given, choices) for given in annotations.tasks(look.session, look.record.id)]
    return sorted(rows, key=lambda row: row["state"] != "wanted")


def _row(look: Look, given: GivenTask, choices: Sequence[Choice]) -> Row:
    task, judge = given.task, look.record.spec["judge"]
    shown = annotations.shown(look.session, task, with_targets=bool(judge.get("reference")))
    said = task.annotation
    texts = dict(zip(("first", "second") if len(shown.texts) == 2 else ("output",), shown.texts, strict=True))
    return {
        ID: task.key[:ID_LENGTH],
        VERDICT: said_of(task, choices),
        "state": "used" if given.is_used else "wanted" if said is None else "given",
        ANNOTATOR: None if said is None else said.annotator,
        "source": None if said is None else said.source,
        "labelled_at": None if said is None else said.annotated_at,
        "example": shown.example,
        "input": shown.question,
        **({"targets": list(shown.targets)} if judge.get("reference") else {}),
        **texts,
    }


def read_annotations(path: Path) -> list[GivenRow]:
    """Read judgments from a .jsonl, .json, .csv or .parquet file.

    Its columns are id, verdict and, optionally, annotator. Empty rows are skipped.

    Raises:
        DatasetError: The file cannot be read, a row lacks a column, or an id is repeated.
    """
    return annotations_in(rows_given(path, (ID, VERDICT)), str(path))


def annotations_in(rows: Iterable[PlacedRow], source: str) -> list[GivenRow]:
    """Read judgments from rows; the result is that of `read_annotations`.

    Args:
        rows: The rows, each with its place.
        source: Name of their origin, for error messages.
    """
    found: dict[str, GivenRow] = {}
    for line, row in rows:
        place = f"{source}, {line}"
        told = (row.get(name) for name in (ID, VERDICT, ANNOTATOR))
        id_, verdict, annotator = ("" if each is None else str(each).strip() for each in told)
        if id_ in found:
            raise DatasetError(f"{found[id_].place} and {line}: the id {id_!r} occurs twice; keep one")
        if len(id_) < ID_LENGTH:
            raise DatasetError(f"{place}: {id_!r} is not the id of a task; copy the id from the labels' file")
        found[id_] = GivenRow(place=place, id=id_, verdict=verdict, annotator=annotator)
    return list(found.values())


def store_annotations(
    database: Database,
    campaign: CampaignRecord,
    rows: Sequence[GivenRow],
    source: str,
    *,
    annotator: str,
    correct: bool = False,
) -> Taken:
    """Store the judgments of a file, all or none.

    Args:
        database: The database of the campaign.
        campaign: A campaign with a human judge.
        rows: As `read_annotations` returns them.
        source: The file's name.
        annotator: Annotator for rows that name no annotator.
        correct: Whether a judgment can replace another one that is not used yet.

    Raises:
        WinnowError: A row names no task, has an invalid choice, or differs from a judgment that cannot be
            replaced.
    """
    taken, choices = Taken(), choices_of(campaign)
    watch(database, campaign.id, now=now())
    with database.writing() as session:
        for row in rows:
            if not row.verdict:
                taken.empty += 1
                continue
            given = _named(Look(session, campaign), row, shown_url(database.url))
            choice, who = _choice_of(row, choices), row.annotator or annotator
            require_name(who, f"{row.place}: ")
            if said_of(given.task, choices) == choice.name:
                taken.same += 1
                continue
            what = f"{row.place}: the judgment of {row.id}"
            require_answerable(Look(session, campaign), given, what, correct, REPLACING)
            annotations.set_annotation(
                session, given.task.id, annotation_of(given.task, choice, annotator=who, source=source)
            )
            taken.changed += given.task.annotation is not None
            taken.new += given.task.annotation is None
    return taken


def _named(look: Look, row: GivenRow, storage: str) -> GivenTask:
    given = annotations.task(look.session, look.record.id, row.id)
    if given is None:
        raise WinnowError(
            f"{row.place}: {look.record.name!r} has no task with the id {row.id!r}; copy the id from "
            f"winnow query {look.record.name} labels {storage_option(storage)}"
        )
    annotations.lock(look.session, given.task.id)
    return given


def _choice_of(row: GivenRow, choices: Sequence[Choice]) -> Choice:
    for choice in choices:
        if choice.name.strip().lower() == row.verdict.lower():
            return choice
    names = ", ".join(each.name for each in choices)
    raise WinnowError(f"{row.place}: {row.verdict!r} is not a verdict; write one of {names}")
