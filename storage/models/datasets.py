"""Datasets and their examples, labels and annotations, arriving prompts, embeddings, digests of files."""

import datetime as dt

from sqlalchemy import CheckConstraint, ForeignKey, Index, LargeBinary, String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from winnow.storage.columns import LARGE, NAME
from winnow.storage.json_types import JsonArray, JsonObject
from winnow.storage.models.base import NEVER_TWICE, Base, WithDigest


class Dataset(WithDigest, Base):
    """Content of a benchmark; the same file read twice is one dataset."""

    __tablename__ = "datasets"

    id: Mapped[int] = mapped_column(primary_key=True)
    fingerprint: Mapped[str] = mapped_column(String(64), unique=True)
    """SHA-256 of the canonical content, hexadecimal."""
    name: Mapped[str] = mapped_column(NAME)
    path: Mapped[str] = mapped_column(Text)
    n_examples: Mapped[int]
    created_at: Mapped[dt.datetime]


class Example(WithDigest, Base):
    """One row of a dataset."""

    __tablename__ = "examples"
    __table_args__ = (
        UniqueConstraint("dataset_id", "position"),
        UniqueConstraint("dataset_id", "key"),
        Index(None, "dataset_id", "input_digest"),
        NEVER_TWICE,
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    dataset_id: Mapped[int] = mapped_column(ForeignKey("datasets.id"))
    position: Mapped[int]
    """Index of the example in algorithms, from 0."""
    key: Mapped[str] = mapped_column(NAME)
    fields: Mapped[JsonObject]
    """Values that a template can show to a model."""
    input_digest: Mapped[str] = mapped_column(String(32))
    """Beginning of SHA-256 of the field `input`, hexadecimal: finds an example in other data."""
    targets: Mapped[JsonArray]
    """Accepted answers; never shown to a model."""


class Label(WithDigest, Base):
    """Human label: the answer to an example without a target in its dataset, or that there is none.

    All campaigns share it.
    """

    __tablename__ = "labels"

    id: Mapped[int] = mapped_column(primary_key=True)
    example_id: Mapped[int] = mapped_column(ForeignKey("examples.id"), unique=True)
    targets: Mapped[JsonArray]
    """Accepted answers, never shown to a model; empty if no human can answer the example."""
    source: Mapped[str] = mapped_column(NAME)
    """File that contained it, or "terminal"."""
    labelled_at: Mapped[dt.datetime]


class StreamBatch(WithDigest, Base):
    """Prompts that arrived after a routed campaign began, as a separate dataset."""

    __tablename__ = "stream_batches"
    __table_args__ = (UniqueConstraint("campaign_id", "number"), NEVER_TWICE)

    id: Mapped[int] = mapped_column(primary_key=True)
    campaign_id: Mapped[int] = mapped_column(ForeignKey("campaigns.id"))
    number: Mapped[int]
    """Number of the arrival, from 0: the prompts of a campaign are those of its dataset, then these in
    order."""
    dataset_id: Mapped[int] = mapped_column(ForeignKey("datasets.id"), unique=True)


class Embedding(WithDigest, Base):
    """A text as a vector of length 1; shared by all campaigns with the same embedder."""

    __tablename__ = "embeddings"
    __table_args__ = (UniqueConstraint("embedder", "digest"), NEVER_TWICE)

    id: Mapped[int] = mapped_column(primary_key=True)
    embedder: Mapped[str] = mapped_column(String(64))
    """SHA-256 over all that determines the vectors of an embedder, hexadecimal."""
    digest: Mapped[str] = mapped_column(String(64))
    """SHA-256 of the text, hexadecimal."""
    vector: Mapped[bytes] = mapped_column(LargeBinary)
    """Little-endian single-precision numbers."""


class FileDigest(WithDigest, Base):
    """State and digest of a large file when it was last read; shared by all campaigns that use the file."""

    __tablename__ = "file_digests"

    id: Mapped[int] = mapped_column(primary_key=True)
    place: Mapped[str] = mapped_column(String(64), unique=True)
    """SHA-256 of the path, hexadecimal: a path can be too long for an index."""
    path: Mapped[str] = mapped_column(Text)
    size: Mapped[int] = mapped_column(LARGE)
    """Size in bytes."""
    modified_ns: Mapped[int] = mapped_column(LARGE)
    """Time of the last change of its content, in nanoseconds since 1970."""
    changed_ns: Mapped[int] = mapped_column(LARGE)
    """Time of the last change of its content or its entry, in nanoseconds since 1970."""
    inode: Mapped[str] = mapped_column(String(20))
    """Stored as text, because it can be larger than a database's integers."""
    sha256: Mapped[str] = mapped_column(String(64))
    """SHA-256 of its content, hexadecimal."""


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
