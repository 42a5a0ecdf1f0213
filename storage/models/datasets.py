"""Examples of datasets, humans' answers to them, prompts that arrived, and what is remembered of files."""

import datetime as dt

from sqlalchemy import ForeignKey, Index, LargeBinary, String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from winnow.storage.columns import LARGE, NAME
from winnow.storage.json_types import JsonArray, JsonObject
from winnow.storage.models.base import NEVER_TWICE, Base, WithDigest


class Dataset(WithDigest, Base):
    """One content of a benchmark; the same file read twice is one dataset."""

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
    """The values that a template may show to a model."""
    input_digest: Mapped[str] = mapped_column(String(32))
    """The beginning of SHA-256 of the field `input`, hexadecimal: by it an example is found in other data."""
    targets: Mapped[JsonArray]
    """Accepted answers; never shown to a model."""


class Label(WithDigest, Base):
    """A human's label: the answer to an example without a target in its dataset, or that there is none.

    It serves all campaigns.
    """

    __tablename__ = "labels"

    id: Mapped[int] = mapped_column(primary_key=True)
    example_id: Mapped[int] = mapped_column(ForeignKey("examples.id"), unique=True)
    targets: Mapped[JsonArray]
    """Accepted answers, never shown to a model; none where no human can answer the example."""
    source: Mapped[str] = mapped_column(NAME)
    """The file it came in, or "terminal"."""
    labelled_at: Mapped[dt.datetime]


class StreamBatch(Base):
    """Prompts that came after a routed campaign was begun, as a dataset of their own."""

    __tablename__ = "stream_batches"
    __table_args__ = (UniqueConstraint("campaign_id", "number"), NEVER_TWICE)

    id: Mapped[int] = mapped_column(primary_key=True)
    campaign_id: Mapped[int] = mapped_column(ForeignKey("campaigns.id"))
    number: Mapped[int]
    """Counts a campaign's arrivals, from 0: its prompts are those of its dataset, then theirs in turn."""
    dataset_id: Mapped[int] = mapped_column(ForeignKey("datasets.id"), unique=True)


class Embedding(WithDigest, Base):
    """A text as a vector of length 1; every campaign with the same embedder shares it."""

    __tablename__ = "embeddings"
    __table_args__ = (UniqueConstraint("embedder", "digest"), NEVER_TWICE)

    id: Mapped[int] = mapped_column(primary_key=True)
    embedder: Mapped[str] = mapped_column(String(64))
    """SHA-256 over all that determines the vectors of an embedder, hexadecimal."""
    digest: Mapped[str] = mapped_column(String(64))
    """SHA-256 of the text, hexadecimal."""
    vector: Mapped[bytes] = mapped_column(LargeBinary)
    """Little-endian single-precision numbers, one after the other."""


class FileDigest(Base):
    """The state and digest of a large file as it was last read; all campaigns that name the file share it."""

    __tablename__ = "file_digests"

    id: Mapped[int] = mapped_column(primary_key=True)
    place: Mapped[str] = mapped_column(String(64), unique=True)
    """SHA-256 of the path, hexadecimal: a path may be too long for an index."""
    path: Mapped[str] = mapped_column(Text)
    size: Mapped[int] = mapped_column(LARGE)
    """Bytes."""
    modified_ns: Mapped[int] = mapped_column(LARGE)
    """Time of the last change of its content, in nanoseconds since 1970."""
    changed_ns: Mapped[int] = mapped_column(LARGE)
    """Time of the last change of its content or its entry, in nanoseconds since 1970."""
    inode: Mapped[str] = mapped_column(String(20))
    """A number that may be larger than a database can store."""
    sha256: Mapped[str] = mapped_column(String(64))
    """SHA-256 of its content, hexadecimal."""
