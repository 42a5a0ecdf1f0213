"""Datasets with examples, labels and annotations.

Campaigns with candidates, rounds, loads and leases.
"""

import datetime as dt

from sqlalchemy import (
    JSON,
    CheckConstraint,
    ForeignKey,
    Index,
    LargeBinary,
    String,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.orm import Mapped, mapped_column

from winnow.storage.columns import LARGE, NAME
from winnow.storage.json_types import JsonArray, JsonObject
from winnow.storage.models.base import NEVER_TWICE, Base, WithDigest


class Dataset(WithDigest, Base):
    """Content of a benchmark; files with equal content are one dataset."""

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
    """First 32 hexadecimal digits of SHA-256 of the field `input`.
    Finds an example in other data."""
    targets: Mapped[JsonArray]
    """Accepted answers; never shown to a model."""


class Label(WithDigest, Base):
    """Human label of an example without a target in its dataset.

    A label is the answer, or the statement that no answer exists. All campaigns on the dataset share it.
    """

    __tablename__ = "labels"

    id: Mapped[int] = mapped_column(primary_key=True)
    example_id: Mapped[int] = mapped_column(ForeignKey("examples.id"), unique=True)
    targets: Mapped[JsonArray]
    """Accepted answers, never shown to a model.
    Empty if no human can answer the example."""
    source: Mapped[str] = mapped_column(NAME)
    """File that contained the label, or "terminal"."""
    labelled_at: Mapped[dt.datetime]


class StreamBatch(WithDigest, Base):
    """Prompts that arrived after a routed campaign began, as a separate dataset."""

    __tablename__ = "stream_batches"
    __table_args__ = (UniqueConstraint("campaign_id", "number"), NEVER_TWICE)

    id: Mapped[int] = mapped_column(primary_key=True)
    campaign_id: Mapped[int] = mapped_column(ForeignKey("campaigns.id"))
    number: Mapped[int]
    """Number of the arrival, from 0.
    The prompts of a campaign are those of its dataset, then those of its arrivals in order."""
    dataset_id: Mapped[int] = mapped_column(ForeignKey("datasets.id"), unique=True)


class Embedding(WithDigest, Base):
    """A text as a vector of length 1, shared by all campaigns with the same embedder."""

    __tablename__ = "embeddings"
    __table_args__ = (UniqueConstraint("embedder", "digest"), NEVER_TWICE)

    id: Mapped[int] = mapped_column(primary_key=True)
    embedder: Mapped[str] = mapped_column(String(64))
    """SHA-256 of everything that determines the vectors of an embedder, hexadecimal."""
    digest: Mapped[str] = mapped_column(String(64))
    """SHA-256 of the text, hexadecimal."""
    vector: Mapped[bytes] = mapped_column(LargeBinary)
    """Little-endian single-precision numbers."""


class FileDigest(WithDigest, Base):
    """State and digest of a large file when it was last read.

    All campaigns that use the file share them.
    """

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
    """Time of the last change of its content or its directory entry.
    The unit is nanoseconds since 1970."""
    inode: Mapped[str] = mapped_column(String(20))
    """Stored as text, because it can be larger than a database's integers."""
    sha256: Mapped[str] = mapped_column(String(64))
    """SHA-256 of its content, hexadecimal."""


class AnnotationTask(WithDigest, Base):
    """One output to rate, or two to compare.

    Stored once all outputs of its round exist.
    """

    __tablename__ = "annotation_tasks"
    __table_args__ = (
        CheckConstraint("presentation_order IN ('original', 'swapped')", name="presentation_order_known"),
        CheckConstraint("(held_by IS NULL) = (held_at IS NULL)", name="held_by_somebody"),
        NEVER_TWICE,
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    key: Mapped[str] = mapped_column(String(64), unique=True)
    """SHA-256 over the campaign and the judged outputs, hexadecimal.
    Tasks are assigned in the order of their keys."""
    round_id: Mapped[int] = mapped_column(ForeignKey("rounds.id"), index=True)
    """First round that needs the answer."""
    example_id: Mapped[int] = mapped_column(ForeignKey("examples.id"))
    generation_a_id: Mapped[int] = mapped_column(ForeignKey("generations.id"))
    generation_b_id: Mapped[int | None] = mapped_column(ForeignKey("generations.id"))
    """Output of the second candidate of a pair; NULL for a rating."""
    presentation_order: Mapped[str] = mapped_column(String(16))
    """Order of the outputs: "original" or "swapped".
    It is "original" if the first candidate's output is shown first, and for single outputs; otherwise
    "swapped"."""
    held_by: Mapped[str | None] = mapped_column(NAME)
    """Annotator to whom the task was last shown, who may be answering it now."""
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
    """Preference for the first candidate, in either presentation order.
    For a single output, its score."""
    reason: Mapped[str | None] = mapped_column(String(64))
    """Reason for a missing verdict."""
    annotator: Mapped[str] = mapped_column(NAME)
    """Name that the annotator entered, or the login name."""
    source: Mapped[str] = mapped_column(NAME)
    """"terminal", "page", or the file that contained it."""
    annotated_at: Mapped[dt.datetime]


class Campaign(WithDigest, Base):
    """One question about one dataset and a fixed set of candidates."""

    __tablename__ = "campaigns"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(NAME, unique=True)
    objective: Mapped[str] = mapped_column(String(32))
    dataset_id: Mapped[int] = mapped_column(ForeignKey("datasets.id"), index=True)
    seed: Mapped[int] = mapped_column(LARGE)
    spec: Mapped[JsonObject]
    """Definition of the campaign, frozen at its first run."""
    execution: Mapped[JsonObject]
    """Settings of its execution, which can change from one run to the next."""
    versions: Mapped[JsonObject]
    """Versions of Winnow and its dependencies at the first run."""
    series: Mapped[str | None] = mapped_column(NAME, index=True)
    """Name that all campaigns of its schedule share: the name in their file.
    NULL without a schedule."""
    created_at: Mapped[dt.datetime]


class PrunedCampaign(WithDigest, Base):
    """A deleted campaign.

    The row is kept because later answers can be about examples that it used too.
    """

    __tablename__ = "pruned_campaigns"
    __table_args__ = ()

    campaign_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    """Former id of the deleted campaign."""
    name: Mapped[str] = mapped_column(NAME)
    objective: Mapped[str] = mapped_column(String(32))
    dataset_id: Mapped[int] = mapped_column(ForeignKey("datasets.id"))
    seed: Mapped[int] = mapped_column(LARGE)
    spec: Mapped[JsonObject]
    execution: Mapped[JsonObject]
    versions: Mapped[JsonObject]
    series: Mapped[str | None] = mapped_column(NAME)
    created_at: Mapped[dt.datetime]
    seen: Mapped[JsonArray]
    """Positions of the examples with outcomes, as ranges.
    The numbers are: first, one past the last, first, ..."""
    is_decided: Mapped[bool]
    """Whether the campaign had an answer after any of its rounds."""
    has_grown: Mapped[bool]
    """Whether candidates were added after the campaign began."""
    met: Mapped[JsonObject]
    """First and last epoch of each contacted served model; see `Canary`."""


class Candidate(WithDigest, Base):
    """A combination of model, prompt and sampling settings in a campaign."""

    __tablename__ = "candidates"
    __table_args__ = (
        UniqueConstraint("campaign_id", "position"),
        UniqueConstraint("campaign_id", "name"),
        NEVER_TWICE,
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    campaign_id: Mapped[int] = mapped_column(ForeignKey("campaigns.id"))
    position: Mapped[int]
    """Index of the arm in algorithms, from 0."""
    name: Mapped[str] = mapped_column(NAME)
    model: Mapped[JsonObject]
    prompt: Mapped[JsonObject]
    sampling: Mapped[JsonObject]
    first_round: Mapped[int] = mapped_column(server_default=text("0"))
    """First round in which the candidate took part.
    Above 0 if the candidate was added to a routed campaign later."""


class Round(WithDigest, Base):
    """The plan of a round: the pairs that a selector proposed.

    It is stored before any output is generated.
    """

    __tablename__ = "rounds"
    __table_args__ = (
        UniqueConstraint("campaign_id", "number"),
        CheckConstraint("planned_after BETWEEN 0 AND number", name="planned_after_earlier_ones"),
        NEVER_TWICE,
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    campaign_id: Mapped[int] = mapped_column(ForeignKey("campaigns.id"))
    number: Mapped[int]
    planned_after: Mapped[int]
    """Number of rounds observed when this round was planned.
    The rounds between were in flight."""
    arms: Mapped[JsonArray]
    """Candidate position of each planned comparison, or a pair of positions for duels."""
    examples: Mapped[JsonArray]
    """Example position of each planned comparison."""
    propensities: Mapped[JsonArray | None] = mapped_column(JSON(none_as_null=True))
    """Probability with which each candidate was drawn, given all earlier observations.
    NULL if candidates were not drawn at random."""
    planned_at: Mapped[dt.datetime]


class ModelLoad(WithDigest, Base):
    """One wait of a campaign for a model to be loaded, or to wake from sleep."""

    __tablename__ = "model_loads"
    __table_args__ = (
        CheckConstraint("kind IN ('load', 'wake')", name="kind_known"),
        CheckConstraint("seconds >= 0", name="seconds_not_negative"),
        NEVER_TWICE,
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    campaign_id: Mapped[int] = mapped_column(ForeignKey("campaigns.id"), index=True)
    model: Mapped[str] = mapped_column(NAME)
    devices: Mapped[JsonArray]
    """Devices of its engine, such as [0, 1]; empty if no device was assigned.
    On a cluster, its index among the devices for models."""
    kind: Mapped[str] = mapped_column(String(8))
    """"load" or "wake"."""
    seconds: Mapped[float]
    """Wall time in seconds until the model was ready."""
    ended_at: Mapped[dt.datetime]


class Lease(Base):
    """Right to write to a campaign.

    Every takeover increases `token`, and a writer must have the current token.
    """

    __tablename__ = "leases"

    campaign_id: Mapped[int] = mapped_column(ForeignKey("campaigns.id"), primary_key=True)
    token: Mapped[int]
    host: Mapped[str] = mapped_column(NAME)
    pid: Mapped[int]
    boot_id: Mapped[str] = mapped_column(NAME)
    pid_namespace: Mapped[str] = mapped_column(NAME)
    started_ticks: Mapped[int] = mapped_column(LARGE)
    """Clock ticks from boot to the start of the process.
    They distinguish a later process with the same pid."""
    beats: Mapped[int]
    """Number of heartbeats since the lease was taken.
    It shows that they continue, whatever the clocks say."""
    heartbeat_at: Mapped[dt.datetime]
    """Time of the last heartbeat, by PostgreSQL's clock.
    In SQLite by the holder's clock, for information only."""
    lifetime_s: Mapped[float]
    """Seconds without a heartbeat after which the lease can be taken over."""
    released_at: Mapped[dt.datetime | None]
