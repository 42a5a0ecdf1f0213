"""Prompts and model outputs, shared by all campaigns."""

import datetime as dt

from sqlalchemy import JSON, CheckConstraint, ForeignKey, Index, String, Text
from sqlalchemy import text as sql
from sqlalchemy.orm import Mapped, mapped_column

from winnow.storage.columns import LARGE, NAME, AnyText
from winnow.storage.json_types import JsonArray, JsonObject
from winnow.storage.models.base import NEVER_TWICE, Base, WithDigest


class Prompt(Base):
    """A prompt; each distinct prompt is stored once."""

    __tablename__ = "prompts"

    id: Mapped[int] = mapped_column(primary_key=True)
    digest: Mapped[str] = mapped_column(String(64), unique=True)
    """SHA-256 of the text in UTF-8, hexadecimal."""
    text: Mapped[str] = mapped_column(AnyText)


class Canary(WithDigest, Base):
    """Outputs of a served model for its canary prompts at one contact.

    See `tasks.campaign.contacts`. A row sends the first of sixteen prompts. A reference row, with which later
    rows are compared ("first", "changed"), sends its prompts twice; others send them once. A row that sends
    more prompts than its reference copies the reference's outputs, and later rows are compared with the new
    row. All campaigns share the rows.
    """

    __tablename__ = "canaries"
    __table_args__ = (
        CheckConstraint("verdict IN ('first', 'same', 'changed')", name="verdict_known"),
        CheckConstraint("changed >= 0 AND epoch >= 0", name="counts_not_negative"),
        NEVER_TWICE,
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    model: Mapped[str] = mapped_column(String(64), index=True)
    """Hexadecimal SHA-256 of what determines the model's outputs.
    It covers everything except the prompt and the sampling."""
    campaign_id: Mapped[int | None] = mapped_column(ForeignKey("campaigns.id"), index=True)
    """Campaign that sent the prompts; NULL once it was pruned."""
    name: Mapped[str] = mapped_column(NAME)
    """Name of the model in that campaign."""
    server: Mapped[str] = mapped_column(Text)
    """Base URL of the server."""
    epoch: Mapped[int]
    """Number of changes of the model's outputs so far, this row's change included."""
    prompts: Mapped[str] = mapped_column(String(64))
    """SHA-256 over the prompts and their sampling settings, hexadecimal."""
    texts: Mapped[JsonArray]
    """Output for each prompt; null if the server refused it."""
    repeated: Mapped[JsonArray]
    """Outputs of the second sending; empty if the prompts were sent once."""
    changed: Mapped[int]
    """Number of outputs that differ from the reference.
    At first contact, from the outputs of the second sending."""
    verdict: Mapped[str] = mapped_column(String(8))
    """"first", "same" or "changed"."""
    served_as: Mapped[str | None] = mapped_column(Text)
    """Server's name for the model behind all outputs.
    NULL if it reported no name or several."""
    input_tokens: Mapped[int]
    """Sum over all requests of this contact, like the output tokens."""
    output_tokens: Mapped[int]
    created_at: Mapped[dt.datetime]


class Generation(WithDigest, Base):
    """A model output, shared by all campaigns.

    `key` covers everything that determines it.
    """

    __tablename__ = "generations"
    __table_args__ = (
        CheckConstraint(
            "input_tokens >= 0 AND output_tokens >= 0 AND seconds >= 0 AND latency >= 0",
            name="counts_not_negative",
        ),
        CheckConstraint("cached_tokens BETWEEN 0 AND input_tokens", name="cached_tokens_of_input"),
        Index(None, "model", "served_as", sqlite_where=sql("served_as IS NOT NULL")),
        NEVER_TWICE,
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    key: Mapped[str] = mapped_column(String(64), unique=True)
    """SHA-256 over model and revision, rendered prompt, sampling, seed and replicate.
    It is also over conditions that prevent reuse of another output for which all of these are equal; see
    `tasks.campaign.reuse`."""
    request_key: Mapped[str | None] = mapped_column(String(64))
    """SHA-256 over the request alone; NULL if the key has no further conditions."""
    round_id: Mapped[int | None] = mapped_column(ForeignKey("rounds.id"), index=True)
    """Round that paid for the output.
    NULL if its campaign was deleted and another campaign uses it."""
    model: Mapped[str] = mapped_column(NAME)
    prompt_id: Mapped[int] = mapped_column(ForeignKey("prompts.id"))
    seed: Mapped[int] = mapped_column(LARGE)
    replicate: Mapped[int]
    text: Mapped[str] = mapped_column(AnyText)
    reasoning: Mapped[str | None] = mapped_column(AnyText)
    """Separate reasoning before the output; NULL if it was not requested."""
    choice_logprobs: Mapped[JsonObject | None]
    """Log-probability of each allowed output, or of each scored continuation.
    NULL for free generation."""
    token_logprobs: Mapped[JsonArray | None] = mapped_column(JSON(none_as_null=True))
    """Log-probability of each generated token.
    NULL if not requested or not reported by the engine."""
    finish_reason: Mapped[str] = mapped_column(String(32))
    """Reason why the output ended: "stop" or "length".
    "refused" if no output exists and the row only records the cost."""
    input_tokens: Mapped[int]
    output_tokens: Mapped[int]
    cached_tokens: Mapped[int | None]
    """Number of the input tokens found in the engine's prefix cache.
    NULL if not reported."""
    seconds: Mapped[float]
    """Share of the engine's time, in seconds."""
    latency: Mapped[float | None]
    """Seconds from request to response, among concurrent requests.
    NULL if the engine does not report it."""
    engine: Mapped[str] = mapped_column(NAME)
    served_as: Mapped[str | None] = mapped_column(Text)
    """Server's name for the model behind the output.
    NULL if not reported, or without a server."""
    canary_id: Mapped[int | None] = mapped_column(ForeignKey("canaries.id"))
    """Last canary of its model when the output was generated.
    NULL if the model is not served, or its server had no canary."""
    created_at: Mapped[dt.datetime]


class Pin(Base):
    """An output of another campaign that a round uses.

    It is pinned before a comparison or judgment refers to it. A pin protects the output from deletion.
    """

    __tablename__ = "pins"

    round_id: Mapped[int] = mapped_column(ForeignKey("rounds.id"), primary_key=True)
    generation_id: Mapped[int] = mapped_column(ForeignKey("generations.id"), primary_key=True)
