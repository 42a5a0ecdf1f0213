"""Campaigns, their candidates and rounds, the loads that they waited for, and who may write to them."""

import datetime as dt

from sqlalchemy import JSON, CheckConstraint, ForeignKey, String, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from winnow.storage.columns import LARGE, NAME
from winnow.storage.json_types import JsonArray, JsonObject
from winnow.storage.models.base import NEVER_TWICE, Base, WithDigest


class Campaign(WithDigest, Base):
    """One question asked of one dataset and a fixed set of candidates."""

    __tablename__ = "campaigns"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(NAME, unique=True)
    objective: Mapped[str] = mapped_column(String(32))
    dataset_id: Mapped[int] = mapped_column(ForeignKey("datasets.id"), index=True)
    seed: Mapped[int] = mapped_column(LARGE)
    spec: Mapped[JsonObject]
    """The identity of the campaign, frozen at its first run."""
    execution: Mapped[JsonObject]
    """Settings of how it is run, which may change from one run to the next."""
    versions: Mapped[JsonObject]
    """Releases of Winnow and of what it stands on, at the first run."""
    series: Mapped[str | None] = mapped_column(NAME, index=True)
    """The name that all campaigns of its schedule share: the one in their file."""
    created_at: Mapped[dt.datetime]


class PrunedCampaign(Base):
    """A deleted campaign, remembered since later answers may be about examples that it saw as well."""

    __tablename__ = "pruned_campaigns"
    __table_args__ = ()

    campaign_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    """The id that it had."""
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
    """Positions of the examples that it had outcomes on: first, one past the last, first, ..."""
    is_decided: Mapped[bool]
    """Whether it had an answer, after whichever round."""
    has_grown: Mapped[bool]
    """Whether candidates joined it once it had begun."""
    met: Mapped[JsonObject]
    """By served model that it met, the first and the last epoch; see `Canary`."""


class Candidate(WithDigest, Base):
    """One model x prompt x sampling of a campaign."""

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
    """The round that it first took part in; above 0 where it joined a routed campaign later."""


class Round(Base):
    """One plan: the pairs an algorithm asked for, stored before anything is generated."""

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
    """Number of rounds told when the algorithm asked for this one; those between were in flight."""
    arms: Mapped[JsonArray]
    """Candidate position of each planned comparison, or a pair of positions for duels."""
    examples: Mapped[JsonArray]
    """Example position of each planned comparison."""
    propensities: Mapped[JsonArray | None] = mapped_column(JSON(none_as_null=True))
    """Probability with which each candidate was drawn, all that was known before given; NULL where nothing
    was left to chance."""
    planned_at: Mapped[dt.datetime]


class ModelLoad(Base):
    """One time that a campaign waited for a model: it was loaded, or woken where it slept."""

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
    """Devices of its engine, such as [0, 1]; empty where nobody assigned any. On a cluster, its place among
    those for models."""
    kind: Mapped[str] = mapped_column(String(8))
    """"load" or "wake"."""
    seconds: Mapped[float]
    """Wall time until it could be asked."""
    ended_at: Mapped[dt.datetime]


class Lease(Base):
    """The right to write to a campaign. `token` grows at every takeover; a writer shows the one it has."""

    __tablename__ = "leases"

    campaign_id: Mapped[int] = mapped_column(ForeignKey("campaigns.id"), primary_key=True)
    token: Mapped[int]
    host: Mapped[str] = mapped_column(NAME)
    pid: Mapped[int]
    boot_id: Mapped[str] = mapped_column(NAME)
    pid_namespace: Mapped[str] = mapped_column(NAME)
    started_ticks: Mapped[int] = mapped_column(LARGE)
    """Clock ticks from the system's start to the process's; a later process may get the same pid."""
    beats: Mapped[int]
    """Heartbeats since it was taken; who watches it sees whether they go on, whatever any clock says."""
    heartbeat_at: Mapped[dt.datetime]
    """By PostgreSQL's clock; in SQLite by the holder's, for people to read."""
    lifetime_s: Mapped[float]
    """Seconds without a heartbeat after which it may be taken over."""
    released_at: Mapped[dt.datetime | None]
