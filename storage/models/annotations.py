"""People's judgments in the place of a model or a rule: the tasks that rounds set, and their answers."""

import datetime as dt

from sqlalchemy import CheckConstraint, ForeignKey, String
from sqlalchemy.orm import Mapped, mapped_column

from winnow.storage.columns import NAME
from winnow.storage.models.base import NEVER_TWICE, Base, WithDigest


class AnnotationTask(Base):
    """One text to rate, or two to compare; stored once all texts of its round are there."""

    __tablename__ = "annotation_tasks"
    __table_args__ = (
        CheckConstraint("presentation_order IN ('original', 'swapped')", name="presentation_order_known"),
        CheckConstraint("(held_by IS NULL) = (held_at IS NULL)", name="held_by_somebody"),
        NEVER_TWICE,
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    key: Mapped[str] = mapped_column(String(64), unique=True)
    """SHA-256 over the campaign and what is judged, hexadecimal; the order in which tasks are given."""
    round_id: Mapped[int] = mapped_column(ForeignKey("rounds.id"), index=True)
    """The round that needed it first."""
    example_id: Mapped[int] = mapped_column(ForeignKey("examples.id"))
    generation_a_id: Mapped[int] = mapped_column(ForeignKey("generations.id"))
    generation_b_id: Mapped[int | None] = mapped_column(ForeignKey("generations.id"))
    """The text of the second candidate of a pair; NULL for a rating."""
    presentation_order: Mapped[str] = mapped_column(String(16))
    """Whether the first candidate's text is shown first ("original", as of any single text) or second."""
    held_by: Mapped[str | None] = mapped_column(NAME)
    """The person who was shown it last and may be answering just now."""
    held_at: Mapped[dt.datetime | None]


class Annotation(WithDigest, Base):
    """A person's answer to a task: the one answer that counts."""

    __tablename__ = "annotations"
    __table_args__ = (
        CheckConstraint("verdict BETWEEN 0 AND 1", name="verdict_range"),
        CheckConstraint("(verdict IS NULL) = (reason IS NOT NULL)", name="verdict_or_reason"),
    )

    task_id: Mapped[int] = mapped_column(ForeignKey("annotation_tasks.id"), primary_key=True)
    verdict: Mapped[float | None]
    """Preference for the first candidate, however the texts stood; of a single text, its score."""
    reason: Mapped[str | None] = mapped_column(String(64))
    """The reason why there is no verdict."""
    annotator: Mapped[str] = mapped_column(NAME)
    """The name that the person gave, or that of their login."""
    source: Mapped[str] = mapped_column(NAME)
    """"terminal", "page", or the file it came in."""
    annotated_at: Mapped[dt.datetime]
