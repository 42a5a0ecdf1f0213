"""Datasets with their examples, human labels, arriving prompts, embeddings, and digests of files."""

import datetime as dt

from sqlalchemy import ForeignKey, Index, LargeBinary, String, Text, UniqueConstraint
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
