"""Campaigns, their candidates and rounds, model loads, and leases."""

import datetime as dt

from sqlalchemy import JSON, CheckConstraint, ForeignKey, String, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from winnow.storage.columns import LARGE, NAME
from winnow.storage.json_types import JsonArray, JsonObject
from winnow.storage.models.base import NEVER_TWICE, Base, WithDigest


class Campaign(WithDigest, Base):
    """One question about one dataset and a fixed set of candidates."""

    __tablename__ = "campaigns"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(NAME, unique=True)
    objective: Mapped[str] = mapped_column(String(32))
    dataset_id: Mapped[int] = mapped_column(ForeignKey("datasets.id"), index=True)
    seed: Mapped[int] = mapped_column(LARGE)
    spec: Mapped[JsonObject]
    """Identity of the campaign, frozen at its first run."""
    execution: Mapped[JsonObject]
    """Settings of its execution, which can change from one run to the next."""
    versions: Mapped[JsonObject]
    """Versions of Winnow and its dependencies at the first run."""
    series: Mapped[str | None] = mapped_column(NAME, index=True)
    """Name that all campaigns of its schedule share: the one in their file."""
    created_at: Mapped[dt.datetime]


class PrunedCampaign(WithDigest, Base):
    """A deleted campaign, kept because later answers can be about examples that it used as well."""

    __tablename__ = "pruned_campaigns"
    __table_args__ = ()

    campaign_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    """Its former id."""
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
    """Positions of the examples with outcomes, as ranges: first, one past the last, first, ..."""
    is_decided: Mapped[bool]
    """Whether it had an answer, after any round."""
    has_grown: Mapped[bool]
    """Whether candidates were added after it began."""
    met: Mapped[JsonObject]
    """First and last epoch by contacted served model; see `Canary`."""


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
    """First round in which it took part; above 0 if it was added to a routed campaign later."""


class Round(WithDigest, Base):
    """One plan: the pairs that a selector proposed, stored before anything is generated."""

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
    """Number of rounds observed when this one was proposed; those between were in flight."""
    arms: Mapped[JsonArray]
    """Candidate position of each planned comparison, or a pair of positions for duels."""
    examples: Mapped[JsonArray]
    """Example position of each planned comparison."""
    propensities: Mapped[JsonArray | None] = mapped_column(JSON(none_as_null=True))
    """Probability with which each candidate was drawn, given everything known before; NULL without
    randomness."""
    planned_at: Mapped[dt.datetime]


class ModelLoad(WithDigest, Base):
    """One wait of a campaign for a model: it was loaded, or woken from sleep."""

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
    """Devices of its engine, such as [0, 1]; empty if none were assigned. On a cluster, its index among the
    devices for models."""
    kind: Mapped[str] = mapped_column(String(8))
    """"load" or "wake"."""
    seconds: Mapped[float]
    """Wall time until it was ready."""
    ended_at: Mapped[dt.datetime]


class Lease(Base):
    """Right to write to a campaign. Every takeover increases `token`; a writer must have the current one."""

    __tablename__ = "leases"

    campaign_id: Mapped[int] = mapped_column(ForeignKey("campaigns.id"), primary_key=True)
    token: Mapped[int]
    host: Mapped[str] = mapped_column(NAME)
    pid: Mapped[int]
    boot_id: Mapped[str] = mapped_column(NAME)
    pid_namespace: Mapped[str] = mapped_column(NAME)
    started_ticks: Mapped[int] = mapped_column(LARGE)
    """Clock ticks from boot to the start of the process, because a later process can get the same pid."""
    beats: Mapped[int]
    """Heartbeats since it was taken: an observer can see that they continue, independent of clocks."""
    heartbeat_at: Mapped[dt.datetime]
    """Time by PostgreSQL's clock; in SQLite by the holder's, for information only."""
    lifetime_s: Mapped[float]
    """Seconds without a heartbeat after which it can be taken over."""
    released_at: Mapped[dt.datetime | None]
