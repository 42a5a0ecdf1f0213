"""Notes and stars of readers on compared outputs.

They are annotations that no round requires. A note is the annotation of a task of its own, whose key begins
with `PREFIX`. It has no verdict: `reason` is `STARRED` or `NOTED`, and `source` holds the text. Queries on
the judgments of annotators leave these tasks out.
"""

import datetime as dt
import hashlib
from dataclasses import dataclass

from sqlalchemy import ColumnElement, ScalarSelect, Select, and_, delete, exists, select
from sqlalchemy.orm import InstrumentedAttribute, Session

from winnow.storage.models import Annotation, AnnotationTask, Campaign, Comparison, Round
from winnow.storage.records.row_counts import add_to_count
from winnow.storage.text import storable

PREFIX = "note:"
"""Prefix of the keys of these tasks.
Keys of other tasks have hexadecimal digits only."""
KEY_LENGTH = 64
STARRED, NOTED = "starred", "noted"


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteRecord:
    """A reader's note on an output, or on the two outputs of a duel."""

    is_starred: bool
    text: str
    annotator: str


def is_note() -> ColumnElement[bool]:
    """Condition that an annotation task holds a note."""
    return AnnotationTask.key.startswith(PREFIX, autoescape=True)


def is_noted() -> ColumnElement[bool]:
    """Condition that a comparison's outputs have a note or a star."""
    return exists().where(_is_of_comparison()).correlate(Comparison)


def noted(column: InstrumentedAttribute[str] | InstrumentedAttribute[str | None]) -> ScalarSelect[str | None]:
    """A column of a comparison's note, `Annotation.source` or `Annotation.reason`.

    NULL without a note.
    """
    found: Select[tuple[str | None]] = (
        select(column)
        .join(AnnotationTask, AnnotationTask.id == Annotation.task_id)
        .where(_is_of_comparison())
        .order_by(AnnotationTask.id)
        .limit(1)
        .correlate(Comparison)
    )
    return found.scalar_subquery()


def note_of(session: Session, comparison_id: int) -> NoteRecord | None:
    """The note on a comparison's outputs; None if they have no note."""
    row = session.scalar(_note(comparison_id))
    if row is None:
        return None
    return NoteRecord(is_starred=row.reason == STARRED, text=row.source, annotator=row.annotator)


def set_note(session: Session, comparison_id: int, note: NoteRecord, now: dt.datetime) -> None:
    """Store the note on a comparison's outputs.

    It replaces an earlier note, and an empty note removes it. Nothing is stored if the comparison has no
    output, for example because the engine failed.
    """
    row = session.scalar(_note(comparison_id))
    if not (note.is_starred or note.text):
        if row is not None:
            _delete(session, row.task_id)
        return
    is_new = row is None
    if row is None:
        task = _new_task(session, comparison_id)
        if task is None:
            return
        row = Annotation(task_id=task.id, verdict=None)
        session.add(row)
    row.reason = STARRED if note.is_starred else NOTED
    row.source, row.annotator, row.annotated_at = storable(note.text), note.annotator, now
    session.flush()
    if is_new:
        _count(session, session.get_one(AnnotationTask, row.task_id))


def _delete(session: Session, task_id: int) -> None:
    task = session.get_one(AnnotationTask, task_id)
    session.execute(delete(Annotation).where(Annotation.task_id == task_id))
    session.delete(task)
    session.flush()
    _count(session, task, gone=True)


def _count(session: Session, task: AnnotationTask, *, gone: bool = False) -> None:
    """Update a round's counts for a task and its annotation.

    Both were stored or deleted.
    """
    for table in ("annotation_tasks", "annotations"):
        add_to_count(session.connection(), "rounds", task.round_id, table, [task.id], gone=gone)


def _new_task(session: Session, comparison_id: int) -> AnnotationTask | None:
    found = session.execute(
        select(Campaign.name, Round.number, Comparison)
        .join(Round, Round.id == Comparison.round_id)
        .join(Campaign, Campaign.id == Round.campaign_id)
        .where(Comparison.id == comparison_id, Comparison.generation_a_id.is_not(None))
    ).one_or_none()
    if found is None:
        return None
    campaign, number, comparison = found
    place = f"{campaign}\n{number}\n{comparison.position}"
    digest = hashlib.sha256(place.encode()).hexdigest()
    task = AnnotationTask(
        key=f"{PREFIX}{digest}"[:KEY_LENGTH],
        round_id=comparison.round_id,
        example_id=comparison.example_id,
        generation_a_id=comparison.generation_a_id,
        generation_b_id=comparison.generation_b_id,
        presentation_order="original",
    )
    session.add(task)
    session.flush()
    return task


def _note(comparison_id: int) -> Select[tuple[Annotation]]:
    return (
        select(Annotation)
        .join(AnnotationTask, AnnotationTask.id == Annotation.task_id)
        .join(Comparison, _is_of_comparison())
        .where(Comparison.id == comparison_id)
        .order_by(AnnotationTask.id)
        .limit(1)
    )


def _is_of_comparison() -> ColumnElement[bool]:
    return and_(
        is_note(),
        AnnotationTask.round_id == Comparison.round_id,
        AnnotationTask.example_id == Comparison.example_id,
        AnnotationTask.generation_a_id == Comparison.generation_a_id,
        AnnotationTask.generation_b_id.is_not_distinct_from(Comparison.generation_b_id),
    )
