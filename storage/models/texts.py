"""Prompts that models were given and texts that they wrote, shared by all campaigns."""

import datetime as dt

from sqlalchemy import JSON, CheckConstraint, ForeignKey, Index, String, Text
from sqlalchemy import text as sql
from sqlalchemy.orm import Mapped, mapped_column

from winnow.storage.columns import LARGE, NAME, AnyText
from winnow.storage.json_types import JsonArray, JsonObject
from winnow.storage.models.base import NEVER_TWICE, Base, WithDigest


class Prompt(Base):
    """One text that models were shown, stored once however often they were."""

    __tablename__ = "prompts"

    id: Mapped[int] = mapped_column(primary_key=True)
    digest: Mapped[str] = mapped_column(String(64), unique=True)
    """SHA-256 of the text in UTF-8, hexadecimal."""
    text: Mapped[str] = mapped_column(AnyText)


class Canary(WithDigest, Base):
    """The answers of a served model to its canary prompts at one contact; see `tasks.campaign.canaries`.

    A row that later ones are compared with ("first", "changed") is asked twice, others once. Each asks the
    first of sixteen prompts. One that asks more than the row that it is compared with takes over its answers,
    and later ones are compared with it. It serves all campaigns.
    """

    __tablename__ = "canaries"
    __table_args__ = (
        CheckConstraint("verdict IN ('first', 'same', 'changed')", name="verdict_known"),
        CheckConstraint("changed >= 0 AND epoch >= 0", name="counts_not_negative"),
        NEVER_TWICE,
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    model: Mapped[str] = mapped_column(String(64), index=True)
    """SHA-256 over all that determines the model's texts but for prompt and sampling, hexadecimal."""
    campaign_id: Mapped[int | None] = mapped_column(ForeignKey("campaigns.id"), index=True)
    """The campaign that asked; NULL once it was pruned."""
    name: Mapped[str] = mapped_column(NAME)
    """The model's name in that campaign."""
    server: Mapped[str] = mapped_column(Text)
    """Base URL of the server that was asked."""
    epoch: Mapped[int]
    """Number of times that the model's answers had changed by then, this time included."""
    prompts: Mapped[str] = mapped_column(String(64))
    """SHA-256 over the prompts and how they were sampled, hexadecimal."""
    texts: Mapped[JsonArray]
    """The answer to each prompt; null where the server refused it."""
    repeated: Mapped[JsonArray]
    """The answers of the second time; empty where the prompts were asked once."""
    changed: Mapped[int]
    """Number of texts unlike those compared with; at first contact, unlike those of the second time."""
    verdict: Mapped[str] = mapped_column(String(8))
    """"first", "same" or "changed"."""
    served_as: Mapped[str | None] = mapped_column(Text)
    """The server's name for the model that wrote all of them; NULL where it told none or several names."""
    input_tokens: Mapped[int]
    """Of all requests of this contact, as are the output tokens."""
    output_tokens: Mapped[int]
    created_at: Mapped[dt.datetime]


class Generation(WithDigest, Base):
    """One text a model produced. Shared by all campaigns: `key` holds everything that determines it."""

    __tablename__ = "generations"
    __table_args__ = (
        CheckConstraint(
            "input_tokens >= 0 AND output_tokens >= 0 AND seconds >= 0 AND latency >= 0",
            name="counts_not_negative",
        ),
        CheckConstraint("cached_tokens BETWEEN 0 AND input_tokens", name="cached_tokens_of_input"),
        Index(
            None,
            "model",
            "served_as",
            sqlite_where=sql("served_as IS NOT NULL"),
        ),
        NEVER_TWICE,
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    key: Mapped[str] = mapped_column(String(64), unique=True)
    """SHA-256 over model and revision, rendered prompt, sampling, seed and replicate; and over whatever keeps
    the text from being used where another one is that has all of these, see `tasks.campaign.reuse`."""
    request_key: Mapped[str | None] = mapped_column(String(64))
    """SHA-256 over the former alone; NULL where there is nothing else."""
    round_id: Mapped[int | None] = mapped_column(ForeignKey("rounds.id"), index=True)
    """The round that paid for it; NULL where its campaign was deleted and another one uses the text."""
    model: Mapped[str] = mapped_column(NAME)
    prompt_id: Mapped[int] = mapped_column(ForeignKey("prompts.id"))
    seed: Mapped[int] = mapped_column(LARGE)
    replicate: Mapped[int]
    text: Mapped[str] = mapped_column(AnyText)
    reasoning: Mapped[str | None] = mapped_column(AnyText)
    """The model's reasoning before its text, told apart from it; NULL where nobody asked for that."""
    choice_logprobs: Mapped[JsonObject | None]
    """Log-probability of each text it was allowed to be, or of each continuation that was weighed; NULL where
    it was free."""
    token_logprobs: Mapped[JsonArray | None] = mapped_column(JSON(none_as_null=True))
    """Log-probability of each token that was written; NULL where nobody asked or the engine tells none."""
    finish_reason: Mapped[str] = mapped_column(String(32))
    """"stop" or "length"; "refused" where it is no answer and only says what it took."""
    input_tokens: Mapped[int]
    output_tokens: Mapped[int]
    cached_tokens: Mapped[int | None]
    """Number of the input tokens that the engine had in its prefix cache; NULL where it did not tell."""
    seconds: Mapped[float]
    """Its share of the engine's time."""
    latency: Mapped[float | None]
    """Seconds from its request to its answer, beside what else was asked; NULL where the engine does not
    tell."""
    engine: Mapped[str] = mapped_column(NAME)
    served_as: Mapped[str | None] = mapped_column(Text)
    """The server's name for the model that wrote it; NULL where it did not tell, or no server was asked."""
    canary_id: Mapped[int | None] = mapped_column(ForeignKey("canaries.id"))
    """The last canary of its model then; NULL where the model is not served, or its server gave none."""
    created_at: Mapped[dt.datetime]


class Pin(Base):
    """A text of another campaign that a round uses and no comparison or judgment of it refers to (yet)."""

    __tablename__ = "pins"

    round_id: Mapped[int] = mapped_column(ForeignKey("rounds.id"), primary_key=True)
    generation_id: Mapped[int] = mapped_column(ForeignKey("generations.id"), primary_key=True)
