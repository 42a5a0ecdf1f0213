"""Annotate outputs one by one, and store readers' notes."""

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy.orm import Session

from winnow.storage.engine.database import Database
from winnow.storage.json_types import JsonView
from winnow.storage.objectives import traits_of
from winnow.storage.records import annotations, leases
from winnow.storage.records.annotations import GivenTask
from winnow.storage.records.notes import NoteRecord, set_note
from winnow.storage.records.record_types import (
    AnnotationRecord,
    AnnotationTaskRecord,
    CampaignRecord,
    ShownTask,
)
from winnow.tasks.campaign.lease import is_gone, now, watch
from winnow.tasks.campaign.look import Look
from winnow.tasks.errors import WinnowError
from winnow.tasks.judges.human import UNCLEAR, in_order

TERMINAL, PAGE = "terminal", "page"
"""Stored origin of a judgment or label; for files it is the file's name."""
FIRST, SECOND, TIE = "first", "second", "tie"

HOLD = dt.timedelta(minutes=10)
"""Time for which a task is reserved for one annotator; after it, others can receive the task, too."""

LONGEST_NAME = 100
"""Maximum length of an annotator's name, in characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One of the possible judgments for a task."""

    name: str
    """Name of the choice, in files and for annotators."""
    verdict: float | None
    """The preference for the side shown first, or the score; None for "unclear"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A task as annotators see it, without the names of candidates."""

    key: str
    text: str
    """The question to annotators, from the campaign's file."""
    shown: ShownTask
    choices: tuple[Choice, ...]
    """The choices in the order of their keys, "unclear" last."""
    said: str | None
    """The earlier choice for this task; None if it is unanswered."""
    said_by: str | None
    """The annotator of the earlier choice; None if the task is unanswered."""
    left: int
    """Number of unanswered tasks, including this one if it is unanswered."""

    @property
    def titles(self) -> tuple[str, ...]:
        """Title of each output."""
        return ("Output",) if len(self.shown.texts) == 1 else ("First answer", "Second answer")


def choices_of(campaign: CampaignRecord) -> tuple[Choice, ...]:
    """The choices for a campaign's tasks.

    These are its levels in ascending order, or the sides of a pair and a tie; then "unclear".
    """
    judge: JsonView = campaign.spec["judge"]
    unclear = Choice(name=UNCLEAR, verdict=None)
    if traits_of(campaign.objective).compares_pairs:
        ties = (Choice(name=TIE, verdict=0.5),) if judge.get("ties", True) else ()
        return (Choice(name=FIRST, verdict=1.0), Choice(name=SECOND, verdict=0.0), *ties, unclear)
    levels: Mapping[str, float] = judge["levels"]
    return (*(Choice(name=name, verdict=float(levels[name])) for name in in_order(levels)), unclear)


def next_question(
    database: Database, campaign: CampaignRecord, annotator: str, passed: Sequence[str] = ()
) -> Question | None:
    """The next task for an annotator, which is then reserved; None if no task is left.

    Args:
        database: The database of the campaign.
        campaign: A campaign with a human judge.
        annotator: The annotator's name.
        passed: Keys of tasks that the annotator postponed.
    """
    require_name(annotator)
    with database.writing() as session:
        task = annotations.next_open(
            session, campaign.id, annotator=annotator, passed=passed, held_since=now() - HOLD
        )
        if task is None:
            return None
        annotations.hold(session, task.id, annotator, now())
        return _question(Look(session, campaign), task)


def progress_of(look: Look) -> tuple[int, int]:
    """Number of annotators so far, and of judgments that the round still needs."""
    return (
        len(annotations.annotators(look.session, look.record.id)),
        annotations.lacking(look.session, look.record.id),
    )


def release(database: Database, campaign: CampaignRecord, annotator: str) -> None:
    """Release the unanswered tasks that are reserved for an annotator."""
    with database.writing() as session:
        annotations.release(session, campaign.id, annotator)


def question_of(database: Database, campaign: CampaignRecord, key: str) -> Question:
    """Read a task without reserving it.

    Raises:
        WinnowError: No task has this key.
    """
    with database.reading() as session:
        return _question(Look(session, campaign), _required(Look(session, campaign), key).task)


def answer(
    database: Database,
    campaign: CampaignRecord,
    key: str,
    choice: Choice,
    *,
    annotator: str,
    source: str,
    may_change: bool = False,
) -> None:
    """Store an annotator's choice for a task immediately.

    Args:
        database: The database of the campaign.
        campaign: A campaign with a human judge.
        key: Key of the task.
        choice: One of `choices_of`.
        annotator: The annotator's name.
        source: Origin of the choice, such as `TERMINAL`.
        may_change: Whether the choice can replace the annotator's earlier one.

    Raises:
        WinnowError: Another annotator answered the task in the meantime, or its answer is already used.
    """
    require_name(annotator)
    if may_change:
        watch(database, campaign.id, now=now())
    with database.writing() as session:
        given = _required(Look(session, campaign), key)
        annotations.lock(session, given.task.id)
        given = _required(Look(session, campaign), key)
        require_answerable(
            Look(session, campaign), given, f"the judgment of {_place(session, given)}", may_change
        )
        before = given.task.annotation
        if before is not None and before.annotator != annotator:
            raise WinnowError(
                f"{before.annotator} has judged {_place(session, given)} in the meantime, and this judgment "
                "is kept; continue with the next task"
            )
        annotations.set_annotation(
            session, given.task.id, annotation_of(given.task, choice, annotator=annotator, source=source)
        )


def require_answerable(
    look: Look, given: GivenTask, what: str, may_change: bool, remedy: str = "remove it"
) -> None:
    """Refuse to change a judgment that is used, or may be in use by a process.

    Args:
        look: A campaign with a human judge.
        given: The task, and its earlier answer.
        what: Beginning of the error message.
        may_change: Whether an earlier answer can be replaced.
        remedy: End of the error message if it cannot be replaced.

    Raises:
        WinnowError: The judgment is or may be in use, or cannot be replaced; gives the remedy.
    """
    before = given.task.annotation
    if given.is_used and before is not None:
        raise WinnowError(f"{what} was used in a stored comparison and cannot change")
    if before is None:
        return
    if not may_change:
        raise WinnowError(
            f"{what} already exists, from {before.annotator} ({before.source}), and is kept; {remedy}"
        )
    lease = leases.find(look.session, look.record.id)
    if lease is not None and leases.is_live(lease, is_gone=is_gone):
        raise WinnowError(
            f"{what} cannot change while {look.record.name!r} is run by {lease.holder}, which may be using "
            "it; stop that process first"
        )


def annotation_of(
    task: AnnotationTaskRecord, choice: Choice, *, annotator: str, source: str
) -> AnnotationRecord:
    """The row that stores a choice.

    For a pair, it has the preference for the first candidate, whichever order was shown.
    """
    verdict = choice.verdict
    if verdict is not None and task.presentation_order == "swapped":
        verdict = 1.0 - verdict
    return AnnotationRecord(
        verdict=verdict,
        reason=UNCLEAR if verdict is None else None,
        annotator=annotator,
        source=source[:255],
        annotated_at=now(),
    )


def said_of(task: AnnotationTaskRecord, choices: Sequence[Choice]) -> str | None:
    """Name of the earlier choice for a task.

    None if the task is unanswered, or if no choice has its verdict.
    """
    if task.annotation is None:
        return None
    stored = task.annotation.verdict
    is_swapped = stored is not None and task.presentation_order == "swapped"
    verdict = 1.0 - stored if is_swapped and stored is not None else stored
    return next((each.name for each in choices if each.verdict == verdict), None)


def require_name(annotator: str, place: str = "") -> None:
    """Refuse an invalid annotator name.

    Args:
        annotator: The name.
        place: Source of the name, with which the error message begins.

    Raises:
        WinnowError: The name is blank, too long or not printable.
    """
    if not annotator.strip() or len(annotator) > LONGEST_NAME or not annotator.isprintable():
        raise WinnowError(f"{place}give the annotator's name, 1 to {LONGEST_NAME} printable characters")


def _question(look: Look, task: AnnotationTaskRecord) -> Question:
    choices, judge = choices_of(look.record), look.record.spec["judge"]
    return Question(
        key=task.key,
        text=judge["question"],
        shown=annotations.shown(look.session, task, with_targets=bool(judge.get("reference"))),
        choices=choices,
        said=said_of(task, choices),
        said_by=None if task.annotation is None else task.annotation.annotator,
        left=annotations.lacking(look.session, look.record.id),
    )


def _required(look: Look, key: str) -> GivenTask:
    given = annotations.task(look.session, look.record.id, key)
    if given is None:
        raise WinnowError(f"{look.record.name!r} has no task with the id {key!r}; correct the id")
    return given


def _place(session: Session, given: GivenTask) -> str:
    return f"example {annotations.shown(session, given.task).example!r}"


LONGEST_NOTE = 1_000
"""Maximum length of a note, in characters."""
UNNAMED = "a reader"
"""Stored author of a note if the reader gave no name."""


def take_note(database: Database, comparison_id: int, *, is_starred: bool, text: str, annotator: str) -> None:
    """Store a star, a note or both; without either, remove earlier ones.

    Args:
        database: The database of the comparison.
        comparison_id: Id of the comparison whose outputs the note is about.
        is_starred: Whether the comparison gets a star.
        text: The note; can be empty.
        annotator: Name of the reader.

    Raises:
        WinnowError: The note is too long, or the name is invalid.
    """
    require_name(annotator)
    if len(text) > LONGEST_NOTE:
        raise WinnowError(f"the note has {len(text):,} characters; shorten it to {LONGEST_NOTE:,}")
    note = NoteRecord(is_starred=is_starred, text=text.strip(), annotator=annotator)
    with database.writing() as session:
        set_note(session, comparison_id, note, now())
