"""The schema, in the order the data flows. Rows are inserted, not rewritten, but for leases and tallies.

`campaigns.execution` may also change: it holds what never affects which pairs are chosen or how they score.
So may `campaigns.spec` of a routed campaign, whose candidates may grow in number, and a label, up to the
moment a comparison was made with it.
"""

import datetime as dt
from typing import Any

from sqlalchemy import (
    JSON,
    CheckConstraint,
    ForeignKey,
    Index,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from storage.columns import LARGE, NAME, AnyText, UtcDateTime

NAMING_CONVENTION = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}


NEVER_TWICE = {"sqlite_autoincrement": True}
"""SQLite would give the id of a deleted row to the next one; some process may still hold it."""


class Base(DeclarativeBase):
    """All constraints are named, so that a migration can drop them on every database."""

    __table_args__: Any = NEVER_TWICE
    metadata = MetaData(naming_convention=NAMING_CONVENTION)
    type_annotation_map = {  # noqa: RUF012 -- SQLAlchemy reads it as a plain class attribute
        dt.datetime: UtcDateTime(),
        dict[str, Any]: JSON(none_as_null=True),
        list[Any]: JSON(),
    }


def table_of(model: type[Base]) -> Table:
    """The table that a model's rows are in."""
    table = model.__table__
    assert isinstance(table, Table)
    return table


class Dataset(Base):
    """One content of a benchmark; the same file read twice is one dataset."""

    __tablename__ = "datasets"

    id: Mapped[int] = mapped_column(primary_key=True)
    fingerprint: Mapped[str] = mapped_column(String(64), unique=True)
    """SHA-256 of the canonical content, hexadecimal."""
    name: Mapped[str] = mapped_column(NAME)
    path: Mapped[str] = mapped_column(Text)
    n_examples: Mapped[int]
    created_at: Mapped[dt.datetime]


class Example(Base):
    """One row of a dataset."""

    __tablename__ = "examples"
    __table_args__ = (
        UniqueConstraint("dataset_id", "position"),
        UniqueConstraint("dataset_id", "key"),
        NEVER_TWICE,
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    dataset_id: Mapped[int] = mapped_column(ForeignKey("datasets.id"))
    position: Mapped[int]
    """Index of the example in algorithms, from 0."""
    key: Mapped[str] = mapped_column(NAME)
    fields: Mapped[dict[str, Any]]
    """What a template may show to a model."""
    targets: Mapped[list[Any]]
    """Accepted answers; never shown to a model."""


class Label(Base):
    """What a human answers to an example whose dataset has no target for it, or that nobody can.

    It serves all campaigns.
    """

    __tablename__ = "labels"

    id: Mapped[int] = mapped_column(primary_key=True)
    example_id: Mapped[int] = mapped_column(ForeignKey("examples.id"), unique=True)
    targets: Mapped[list[Any]]
    """Accepted answers, never shown to a model; none where no human can answer the example."""
    source: Mapped[str] = mapped_column(NAME)
    """The file it came in, or "terminal"."""
    labelled_at: Mapped[dt.datetime]


class Campaign(Base):
    """One question asked of one dataset and a fixed set of candidates."""

    __tablename__ = "campaigns"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(NAME, unique=True)
    objective: Mapped[str] = mapped_column(String(32))
    dataset_id: Mapped[int] = mapped_column(ForeignKey("datasets.id"), index=True)
    seed: Mapped[int] = mapped_column(LARGE)
    spec: Mapped[dict[str, Any]]
    """The identity of the campaign, frozen at its first run."""
    execution: Mapped[dict[str, Any]]
    """How it is run: may change from one run to the next."""
    versions: Mapped[dict[str, Any]]
    """Releases of Winnow and of what it stands on, at the first run."""
    family: Mapped[str | None] = mapped_column(NAME, index=True)
    """What the campaigns that one schedule begins have in common: the name in their file."""
    created_at: Mapped[dt.datetime]


class Arrival(Base):
    """Prompts that came after a routed campaign was begun, as a dataset of their own."""

    __tablename__ = "arrivals"
    __table_args__ = (UniqueConstraint("campaign_id", "number"), NEVER_TWICE)

    id: Mapped[int] = mapped_column(primary_key=True)
    campaign_id: Mapped[int] = mapped_column(ForeignKey("campaigns.id"))
    number: Mapped[int]
    """Counts a campaign's arrivals, from 0: its prompts are those of its dataset, then theirs in turn."""
    dataset_id: Mapped[int] = mapped_column(ForeignKey("datasets.id"), unique=True)


class Embedding(Base):
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
    """What a large file held when it was last read; every campaign that names the file shares it."""

    __tablename__ = "file_digests"

    id: Mapped[int] = mapped_column(primary_key=True)
    place: Mapped[str] = mapped_column(String(64), unique=True)
    """SHA-256 of the path, hexadecimal: a path may be too long for an index."""
    path: Mapped[str] = mapped_column(Text)
    size: Mapped[int] = mapped_column(LARGE)
    """Bytes."""
    modified_ns: Mapped[int] = mapped_column(LARGE)
    """When its content last changed, in nanoseconds since 1970."""
    changed_ns: Mapped[int] = mapped_column(LARGE)
    """When its content or its entry last changed."""
    inode: Mapped[str] = mapped_column(String(20))
    """A number that may be larger than a database can store."""
    sha256: Mapped[str] = mapped_column(String(64))
    """Of what it held, hexadecimal."""


class Candidate(Base):
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
    model: Mapped[dict[str, Any]]
    prompt: Mapped[dict[str, Any]]
    sampling: Mapped[dict[str, Any]]
    first_round: Mapped[int] = mapped_column(server_default=text("0"))
    """The round that it first took part in; above 0 where it joined a routed campaign later."""


class Round(Base):
    """One plan: the pairs an algorithm asked for, stored before anything is generated."""

    __tablename__ = "rounds"
    __table_args__ = (UniqueConstraint("campaign_id", "number"), NEVER_TWICE)

    id: Mapped[int] = mapped_column(primary_key=True)
    campaign_id: Mapped[int] = mapped_column(ForeignKey("campaigns.id"))
    number: Mapped[int]
    arms: Mapped[list[Any]]
    """Candidate position of each planned comparison, or a pair of positions for duels."""
    examples: Mapped[list[Any]]
    """Example position of each planned comparison."""
    propensities: Mapped[list[Any] | None] = mapped_column(JSON(none_as_null=True))
    """Probability with which each candidate was drawn, all that was known before given; NULL where nothing
    was left to chance."""
    planned_at: Mapped[dt.datetime]


class Prompt(Base):
    """One text that models were shown, stored once however often they were."""

    __tablename__ = "prompts"

    id: Mapped[int] = mapped_column(primary_key=True)
    digest: Mapped[str] = mapped_column(String(64), unique=True)
    """SHA-256 of the text in UTF-8, hexadecimal."""
    text: Mapped[str] = mapped_column(AnyText)


class Canary(Base):
    """What a served model answered to its canary prompts at one contact; see `tasks.canaries`.

    The first contact asks twice, later ones once, or twice where the answers have changed: such a row is
    what later ones are compared with. It serves all campaigns.
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
    """Which campaign asked; NULL once it was pruned."""
    name: Mapped[str] = mapped_column(NAME)
    """What that campaign calls the model."""
    server: Mapped[str] = mapped_column(Text)
    """Base URL of the server that was asked."""
    epoch: Mapped[int]
    """How often the model's answers had changed by then, this time included."""
    prompts: Mapped[str] = mapped_column(String(64))
    """SHA-256 over the prompts and how they were sampled, hexadecimal."""
    texts: Mapped[list[Any]]
    """The answer to each prompt; null where the server refused it."""
    repeated: Mapped[list[Any]]
    """The same of the second time; empty where they were asked once."""
    changed: Mapped[int]
    """How many texts differ from those compared with; at first contact, from those of the second time."""
    verdict: Mapped[str] = mapped_column(String(8))
    """"first", "same" or "changed"."""
    input_tokens: Mapped[int]
    """Of all requests of this contact, as are the output tokens."""
    output_tokens: Mapped[int]
    created_at: Mapped[dt.datetime]


class Generation(Base):
    """One text a model produced. Shared by all campaigns: `key` holds everything that determines it."""

    __tablename__ = "generations"
    __table_args__ = (
        CheckConstraint(
            "input_tokens >= 0 AND output_tokens >= 0 AND seconds >= 0", name="counts_not_negative"
        ),
        NEVER_TWICE,
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    key: Mapped[str] = mapped_column(String(64), unique=True)
    """SHA-256 over model and revision, rendered prompt, sampling, seed and replicate; and over whatever keeps
    the text from being used where another one is that has all of these, see `tasks.reuse`."""
    request_key: Mapped[str | None] = mapped_column(String(64))
    """SHA-256 over the former alone; NULL where there is nothing else."""
    round_id: Mapped[int | None] = mapped_column(ForeignKey("rounds.id"), index=True)
    """The round that paid for it; NULL where its campaign was deleted and another one uses the text."""
    model: Mapped[str] = mapped_column(NAME)
    prompt_id: Mapped[int] = mapped_column(ForeignKey("prompts.id"))
    seed: Mapped[int] = mapped_column(LARGE)
    replicate: Mapped[int]
    text: Mapped[str] = mapped_column(AnyText)
    choice_logprobs: Mapped[dict[str, Any] | None]
    """Log-probability of each text it was allowed to be; NULL where it was free."""
    finish_reason: Mapped[str] = mapped_column(String(32))
    input_tokens: Mapped[int]
    output_tokens: Mapped[int]
    seconds: Mapped[float]
    engine: Mapped[str] = mapped_column(NAME)
    canary_id: Mapped[int | None] = mapped_column(ForeignKey("canaries.id"))
    """The last word of its server on being what it was; NULL where its model is not served, or gave none."""
    created_at: Mapped[dt.datetime]


class Pin(Base):
    """A text of another campaign that a round uses and no comparison or game of it refers to (yet)."""

    __tablename__ = "pins"

    round_id: Mapped[int] = mapped_column(ForeignKey("rounds.id"), primary_key=True)
    generation_id: Mapped[int] = mapped_column(ForeignKey("generations.id"), primary_key=True)


class Comparison(Base):
    """One scored pair: a candidate on an example (candidate_b NULL), or two candidates on one example."""

    __tablename__ = "comparisons"
    __table_args__ = (
        UniqueConstraint("round_id", "position"),
        CheckConstraint("outcome BETWEEN -1 AND 1", name="outcome_range"),
        CheckConstraint("(outcome IS NULL) = (reason IS NOT NULL)", name="outcome_or_reason"),
        CheckConstraint("human_loss BETWEEN 0 AND 1", name="human_loss_range"),
        CheckConstraint("auto_loss BETWEEN 0 AND 1", name="auto_loss_range"),
        CheckConstraint("unlabelled_loss BETWEEN 0 AND 1", name="unlabelled_loss_range"),
        CheckConstraint("unlabelled_missing BETWEEN 0 AND 1", name="unlabelled_missing_range"),
        # A benchmark pair is scored once; a duel may meet the same example again.
        Index(
            "uq_comparisons_candidate_example",
            "candidate_a_id",
            "example_id",
            unique=True,
            sqlite_where=text("candidate_b_id IS NULL"),
            postgresql_where=text("candidate_b_id IS NULL"),
        ),
        NEVER_TWICE,
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    round_id: Mapped[int] = mapped_column(ForeignKey("rounds.id"))
    position: Mapped[int]
    candidate_a_id: Mapped[int] = mapped_column(ForeignKey("candidates.id"))
    candidate_b_id: Mapped[int | None] = mapped_column(ForeignKey("candidates.id"))
    example_id: Mapped[int] = mapped_column(ForeignKey("examples.id"))
    generation_a_id: Mapped[int | None] = mapped_column(ForeignKey("generations.id"))
    generation_b_id: Mapped[int | None] = mapped_column(ForeignKey("generations.id"))
    judge: Mapped[str] = mapped_column(String(64))
    answer: Mapped[str | None] = mapped_column(AnyText)
    """What the judge read from the output."""
    outcome: Mapped[float | None]
    """Score or preference; NULL when there is none, which is not a zero."""
    reason: Mapped[str | None] = mapped_column(String(64))
    """Why there is no outcome."""
    detail: Mapped[str | None] = mapped_column(AnyText)
    """The reason in a sentence, where there is more to say."""
    no_answer: Mapped[bool]
    """Whether the judge found no answer in the output, however that is scored; a duel has no such flag."""
    human_loss: Mapped[float | None]
    """For certify, what the algorithm was told of the example with its label; NULL where it is not known."""
    auto_loss: Mapped[float | None]
    """The same with the autoevaluator's answer in the label's place."""
    unlabelled_loss: Mapped[float | None]
    """Mean of the same over the unlabelled examples that belong to this labelled one, as far as known."""
    unlabelled_missing: Mapped[float | None]
    """Share of these examples whose loss is not known; NULL where none belong to it."""


class Game(Base):
    """One call of a model judge behind a comparison."""

    __tablename__ = "games"
    __table_args__ = (
        UniqueConstraint("comparison_id", "number"),
        CheckConstraint("placement IN ('original', 'swapped')", name="placement_known"),
        CheckConstraint("(verdict IS NULL) = (reason IS NOT NULL)", name="verdict_or_reason"),
        NEVER_TWICE,
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    comparison_id: Mapped[int] = mapped_column(ForeignKey("comparisons.id"))
    number: Mapped[int]
    placement: Mapped[str] = mapped_column(String(16))
    """Whether the first candidate's answer was shown first ("original") or second ("swapped")."""
    judge: Mapped[str] = mapped_column(String(64))
    repeat: Mapped[int]
    attempt: Mapped[int]
    """Above 0 where the reply before it could not be read."""
    generation_id: Mapped[int | None] = mapped_column(ForeignKey("generations.id"))
    """The judge's reply; NULL where its engine gave none."""
    verdict: Mapped[float | None]
    """How far the first candidate is preferred, in [0, 1], however the answers were placed."""
    reason: Mapped[str | None] = mapped_column(String(64))


class Decision(Base):
    """What was believed once a round's outcomes were in; written in the same transaction as they are."""

    __tablename__ = "decisions"

    id: Mapped[int] = mapped_column(primary_key=True)
    round_id: Mapped[int] = mapped_column(ForeignKey("rounds.id"), unique=True)
    best_candidate_id: Mapped[int | None] = mapped_column(ForeignKey("candidates.id"))
    estimates: Mapped[list[Any]]
    """One number per candidate position; null where nothing is known."""
    lower: Mapped[list[Any]]
    upper: Mapped[list[Any]]
    ranking: Mapped[list[Any] | None] = mapped_column(JSON(none_as_null=True))
    """What candidates are ordered by, where that is no estimate of what the bounds are of; see
    `algorithms.decision.Decision`."""
    status: Mapped[list[Any]]
    """One short word per candidate position: what is known of it."""
    claim: Mapped[dict[str, Any]]
    """What is claimed of the best candidate; see `algorithms.decision.Claim`."""
    stop: Mapped[bool]
    reason: Mapped[str] = mapped_column(String(64))
    decided_at: Mapped[dt.datetime]
    best_estimate: Mapped[float | None]
    """Of the best candidate, as are its bounds: what `estimates` and the others say at its position."""
    best_lower: Mapped[float | None]
    best_upper: Mapped[float | None]
    comparisons: Mapped[int]
    """How many the round has."""
    answered: Mapped[int]
    """How many of them have every text that they compare; the others cost nothing of the budget."""
    scored: Mapped[int]
    """How many of them have an outcome."""
    candidates: Mapped[int]
    """How many different ones they are of."""
    generations: Mapped[int]
    """How many texts the round paid for, judges' replies included; with their tokens and seconds below."""
    input_tokens: Mapped[int] = mapped_column(LARGE)
    output_tokens: Mapped[int] = mapped_column(LARGE)
    seconds: Mapped[float]


class Tally(Base):
    """How a candidate's comparisons ended so far; counted from a round's rows in their own transaction."""

    __tablename__ = "tallies"

    candidate_id: Mapped[int] = mapped_column(ForeignKey("candidates.id"), primary_key=True)
    reason: Mapped[str] = mapped_column(String(64), primary_key=True)
    """Why they have no outcome; empty for those that have one."""
    comparisons: Mapped[int]
    points: Mapped[float]
    """Sum of the outcomes, in a duel as the candidate sees them."""
    lowest: Mapped[float | None]
    """The lowest of these outcomes, and the highest; NULL where there is none."""
    highest: Mapped[float | None]
    texts: Mapped[int]
    """How many of them have the candidate's text."""
    no_answer: Mapped[int]
    """How many of these texts hold no answer."""
    truncated: Mapped[int]
    """How many of these texts were ended by max_tokens or the context window."""
    input_tokens: Mapped[int] = mapped_column(LARGE)
    """Of the generations compared, as are the output tokens and the seconds."""
    output_tokens: Mapped[int] = mapped_column(LARGE)
    seconds: Mapped[float]
    detail: Mapped[str | None] = mapped_column(AnyText)
    """The detail of one of them."""


class Load(Base):
    """One time that a campaign waited for a model: it was loaded, or woken where it slept."""

    __tablename__ = "loads"
    __table_args__ = (
        CheckConstraint("kind IN ('load', 'wake')", name="kind_known"),
        CheckConstraint("seconds >= 0", name="seconds_not_negative"),
        NEVER_TWICE,
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    campaign_id: Mapped[int] = mapped_column(ForeignKey("campaigns.id"), index=True)
    model: Mapped[str] = mapped_column(NAME)
    devices: Mapped[list[Any]]
    """Where its engine runs, such as [0, 1]; empty where nobody assigned any. On a cluster, which of the
    places for models it had."""
    kind: Mapped[str] = mapped_column(String(8))
    """"load" or "wake"."""
    seconds: Mapped[float]
    """Wall time until it could be asked."""
    ended_at: Mapped[dt.datetime]


class Lease(Base):
    """Who may write to a campaign. `token` grows at every takeover; a writer shows the one it was given."""

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
