"""Annotation tasks of rounds, and their answers."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Select, exists, func, or_, select, update
from sqlalchemy.orm import Session, aliased

from winnow.storage.columns import ByCodePoints
from winnow.storage.engine.raw_sql import PARAMETERS_AT_ONCE, in_portions, rows_with
from winnow.storage.models import Annotation, AnnotationTask, Decision, Example, Generation, Round
from winnow.storage.records.notes import is_note
from winnow.storage.records.record_types import (
    AnnotationRecord,
    AnnotationTaskRecord,
    NewAnnotationTask,
    ShownTask,
)
from winnow.storage.records.row_counts import add_to_count


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenTask:
    """An annotation task of a campaign, and whether its round is recorded."""

    task: AnnotationTaskRecord
    is_used: bool
    """Whether the task's round is recorded, so that its answer is final."""


def add_tasks(session: Session, round_id: int, tasks: Sequence[NewAnnotationTask]) -> None:
    """Store tasks; if a task with the same key is stored, keep the stored one."""
    stored = keys_among(session, [each.key for each in tasks])
    new = [
        AnnotationTask(
            key=each.key,
            round_id=round_id,
            example_id=each.example_id,
            generation_a_id=each.generation_a_id,
            generation_b_id=each.generation_b_id,
            presentation_order=each.presentation_order,
        )
        for each in {task.key: task for task in tasks if task.key not in stored}.values()
    ]
    session.add_all(new)
    session.flush()
    add_to_count(session.connection(), "rounds", round_id, "annotation_tasks", [each.id for each in new])


def keys_among(session: Session, keys: Sequence[str]) -> set[str]:
    """The keys, among the given ones, under which a task is stored."""
    rows = rows_with(session.connection(), "key", "annotation_tasks", "key", list(dict.fromkeys(keys)))
    return {key for (key,) in rows}


def answers(session: Session, keys: Sequence[str]) -> dict[str, AnnotationRecord]:
    """Answers by the key of their task; tasks without an answer are omitted."""
    rows = rows_with(session.connection(), "key, id", "annotation_tasks", "key", list(dict.fromkeys(keys)))
    by_id = {id_: key for key, id_ in rows}
    found: dict[str, AnnotationRecord] = {}
    for some in in_portions(by_id, PARAMETERS_AT_ONCE):
        portion = select(Annotation).where(Annotation.task_id.in_(some))
        found |= {by_id[each.task_id]: _record(each) for each in session.scalars(portion)}
    return found


def lacking(session: Session, campaign_id: int) -> int:
    """Number of unanswered tasks in a campaign's unfinished rounds."""
    return session.scalars(select(func.count()).select_from(_open(campaign_id).subquery())).one()


def annotators(session: Session, campaign_id: int) -> list[str]:
    """Annotators of a campaign, in alphabetical order."""
    found = (
        select(Annotation.annotator)
        .join(AnnotationTask, AnnotationTask.id == Annotation.task_id)
        .join(Round, Round.id == AnnotationTask.round_id)
        .where(Round.campaign_id == campaign_id, ~is_note())
        .distinct()
    )
    return sorted(session.scalars(found))


def tasks(session: Session, campaign_id: int) -> list[GivenTask]:
    """All tasks of a campaign, round by round, in the order of assignment."""
    rows = session.execute(
        select(AnnotationTask, Annotation, exists().where(Decision.round_id == AnnotationTask.round_id))
        .join(Round, Round.id == AnnotationTask.round_id)
        .outerjoin(Annotation, Annotation.task_id == AnnotationTask.id)
        .where(Round.campaign_id == campaign_id, ~is_note())
        .order_by(Round.number, *_IN_ORDER)
    )
    return [
        GivenTask(task=_task(row, annotation), is_used=bool(is_used)) for row, annotation, is_used in rows
    ]


def task(session: Session, campaign_id: int, key: str) -> GivenTask | None:
    """A task of a campaign by its key, or by a unique prefix of the key.

    None if no single task matches.
    """
    found = session.execute(
        select(AnnotationTask, Annotation, exists().where(Decision.round_id == AnnotationTask.round_id))
        .join(Round, Round.id == AnnotationTask.round_id)
        .outerjoin(Annotation, Annotation.task_id == AnnotationTask.id)
        .where(
            Round.campaign_id == campaign_id, func.substr(AnnotationTask.key, 1, len(key)) == key, ~is_note()
        )
        .limit(2)
    ).all()
    if len(found) != 1:
        return None
    row, annotation, is_used = found[0]
    return GivenTask(task=_task(row, annotation), is_used=bool(is_used))


def next_open(
    session: Session, campaign_id: int, *, annotator: str, passed: Sequence[str], held_since: dt.datetime
) -> AnnotationTaskRecord | None:
    """First unanswered task that no other annotator was shown recently.

    None if no task is left.

    Args:
        session: Session that reads; it must write if the caller then holds the task.
        campaign_id: The campaign.
        annotator: Name of the annotator; tasks that this annotator holds are included.
        passed: Keys of tasks that the annotator has postponed.
        held_since: Time since which tasks shown to other annotators are reserved for them.
    """
    free = or_(
        AnnotationTask.held_by.is_(None),
        AnnotationTask.held_by == annotator,
        AnnotationTask.held_at < held_since,
    )
    query = _open(campaign_id).where(free).order_by(Round.number, *_IN_ORDER)
    # Of this many tasks at least one is not postponed, so not all of the tens of thousands are read.
    rows = session.scalars(query.limit(len(passed) + 1))
    return next((_task(row, None) for row in rows if row.key not in passed), None)


def hold(session: Session, task_id: int, annotator: str, now: dt.datetime) -> None:
    """Record to which annotator a task is shown."""
    session.execute(
        update(AnnotationTask).where(AnnotationTask.id == task_id).values(held_by=annotator, held_at=now)
    )


def release(session: Session, campaign_id: int, annotator: str) -> None:
    """Release all tasks of a campaign that an annotator holds."""
    rounds = select(Round.id).where(Round.campaign_id == campaign_id)
    session.execute(
        update(AnnotationTask)
        .where(AnnotationTask.held_by == annotator, AnnotationTask.round_id.in_(rounds))
        .values(held_by=None, held_at=None)
        .execution_options(synchronize_session=False)
    )


def lock(session: Session, task_id: int) -> None:
    """Prevent other answers to a task until the transaction ends.

    In SQLite no lock is needed.
    """
    session.get(AnnotationTask, task_id, with_for_update=True)


def shown(session: Session, task: AnnotationTaskRecord, *, with_targets: bool = False) -> ShownTask:
    """A task as annotators see it.

    It has the example, and the outputs in their presentation order.
    """
    second = aliased(Generation)
    key, number, fields, targets, text_a, text_b = session.execute(
        select(Example.key, Example.position, Example.fields, Example.targets, Generation.text, second.text)
        .select_from(AnnotationTask)
        .join(Example, Example.id == AnnotationTask.example_id)
        .join(Generation, Generation.id == AnnotationTask.generation_a_id)
        .outerjoin(second, second.id == AnnotationTask.generation_b_id)
        .where(AnnotationTask.id == task.id)
    ).one()
    texts = (text_a,) if task.generation_b_id is None else (text_a, text_b)
    if task.presentation_order == "swapped":
        texts = texts[::-1]
    return ShownTask(
        example=key,
        example_number=number,
        question=str(fields["input"]),
        targets=tuple(targets) if with_targets else (),
        texts=texts,
    )


def set_annotation(session: Session, task_id: int, annotation: AnnotationRecord) -> None:
    """Store the answer to a task; it replaces an earlier answer."""
    row = session.get(Annotation, task_id)
    if is_new := row is None:
        row = Annotation(task_id=task_id)
        session.add(row)
    row.verdict, row.reason = annotation.verdict, annotation.reason
    row.annotator, row.source = annotation.annotator, annotation.source
    row.annotated_at = annotation.annotated_at
    session.flush()
    if is_new:
        round_id = session.get_one(AnnotationTask, task_id).round_id
        add_to_count(session.connection(), "rounds", round_id, "annotations", [task_id])


_IN_ORDER = (AnnotationTask.example_id, ByCodePoints(AnnotationTask.key))
"""Order of tasks: grouped by example, and by key within an example."""


def _open(campaign_id: int) -> Select[tuple[AnnotationTask]]:
    return (
        select(AnnotationTask)
        .join(Round, Round.id == AnnotationTask.round_id)
        .where(
            Round.campaign_id == campaign_id,
            ~exists().where(Annotation.task_id == AnnotationTask.id),
            ~exists().where(Decision.round_id == Round.id),
        )
    )


def _task(row: AnnotationTask, annotation: Annotation | None) -> AnnotationTaskRecord:
    return AnnotationTaskRecord(
        id=row.id,
        key=row.key,
        round_id=row.round_id,
        example_id=row.example_id,
        generation_a_id=row.generation_a_id,
        generation_b_id=row.generation_b_id,
        presentation_order=row.presentation_order,
        annotation=None if annotation is None else _record(annotation),
    )


def _record(row: Annotation) -> AnnotationRecord:
    return AnnotationRecord(
        verdict=row.verdict,
        reason=row.reason,
        annotator=row.annotator,
        source=row.source,
        annotated_at=row.annotated_at,
    )
