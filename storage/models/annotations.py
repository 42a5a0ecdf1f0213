"""Annotations in place of a model or a rule: the tasks that rounds create, and their answers."""

import datetime as dt

from sqlalchemy import CheckConstraint, ForeignKey, String
from sqlalchemy.orm import Mapped, mapped_column

from winnow.storage.columns import NAME
from winnow.storage.models.base import NEVER_TWICE, Base, WithDigest


class AnnotationTask(WithDigest, Base):
    """One output to rate, or two to compare; stored once all outputs of its round exist."""

    __tablename__ = "annotation_tasks"
    __table_args__ = (
        CheckConstraint("presentation_order IN ('original', 'swapped')", name="presentation_order_known"),
        CheckConstraint("(held_by IS NULL) = (held_at IS NULL)", name="held_by_somebody"),
        NEVER_TWICE,
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    key: Mapped[str] = mapped_column(String(64), unique=True)
    """SHA-256 over the campaign and the judged outputs, hexadecimal; the order in which tasks are
    assigned."""
    round_id: Mapped[int] = mapped_column(ForeignKey("rounds.id"), index=True)
    """First round that needs the answer."""
    example_id: Mapped[int] = mapped_column(ForeignKey("examples.id"))
    generation_a_id: Mapped[int] = mapped_column(ForeignKey("generations.id"))
    generation_b_id: Mapped[int | None] = mapped_column(ForeignKey("generations.id"))
    """Output of the second candidate of a pair; NULL for a rating."""
    presentation_order: Mapped[str] = mapped_column(String(16))
    """Whether the first candidate's output is shown first ("original", also for single outputs) or second."""
    held_by: Mapped[str | None] = mapped_column(NAME)
    """Annotator who was shown the task last and can be answering it now."""
    held_at: Mapped[dt.datetime | None]


class Annotation(WithDigest, Base):
    """An annotator's answer to a task; one per task."""

    __tablename__ = "annotations"
    __table_args__ = (
        CheckConstraint("verdict BETWEEN 0 AND 1", name="verdict_range"),
        CheckConstraint("(verdict IS NULL) = (reason IS NOT NULL)", name="verdict_or_reason"),
    )

    task_id: Mapped[int] = mapped_column(ForeignKey("annotation_tasks.id"), primary_key=True)
    verdict: Mapped[float | None]
    """Preference for the first candidate, in either presentation order; for a single output, its score."""
    reason: Mapped[str | None] = mapped_column(String(64))
    """Reason for a missing verdict."""
    annotator: Mapped[str] = mapped_column(NAME)
    """Name that the annotator gave, or the login name."""
    source: Mapped[str] = mapped_column(NAME)
    """"terminal", "page", or the file that contained it."""
    annotated_at: Mapped[dt.datetime]
