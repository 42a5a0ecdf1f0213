"""Results of rounds: comparisons with judgments, and decisions.

Counts and values per candidate are stored too. A decision's values for a candidate are stored as a row when
they change, and are valid until the candidate's next row: with ten thousand candidates, a round changes the
values of a few. Rounds are observed in the order of their ids, so a decision's values for a candidate are the
candidate's last row up to that decision's round; see `storage.records.candidate_states`.
"""

import datetime as dt

from sqlalchemy import CheckConstraint, ForeignKey, Index, String, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from winnow.storage.columns import LARGE, NAME, AnyText
from winnow.storage.json_types import JsonObject
from winnow.storage.models.base import NEVER_TWICE, Base


class Comparison(Base):
    """One scored pair.

    Either a candidate on an example (candidate_b NULL), or two candidates on one example.
    """

    __tablename__ = "comparisons"
    __table_args__ = (
        UniqueConstraint("round_id", "position"),
        CheckConstraint("outcome BETWEEN -1 AND 1", name="outcome_range"),
        CheckConstraint("(outcome IS NULL) = (reason IS NOT NULL)", name="outcome_or_reason"),
        CheckConstraint("human_loss BETWEEN 0 AND 1", name="human_loss_range"),
        CheckConstraint("auto_loss BETWEEN 0 AND 1", name="auto_loss_range"),
        CheckConstraint("unlabelled_loss BETWEEN 0 AND 1", name="unlabelled_loss_range"),
        CheckConstraint("unlabelled_missing BETWEEN 0 AND 1", name="unlabelled_missing_range"),
        # A benchmark pair is scored once; only a comparison without a score can be followed by another one. A
        # duel can use the same example again. For PostgreSQL, only the migration declares this index: here,
        # every process would have to import that dialect.
        Index(
            "uq_comparisons_candidate_example",
            "candidate_a_id",
            "example_id",
            text("(CASE WHEN outcome IS NULL THEN round_id ELSE 0 END)"),
            unique=True,
            sqlite_where=text("candidate_b_id IS NULL"),
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
    judge: Mapped[str] = mapped_column(NAME)
    answer: Mapped[str | None] = mapped_column(AnyText)
    """Answer that the judge extracted from the output."""
    outcome: Mapped[float | None]
    """Score or preference. NULL if it is missing, which does not count as 0."""
    reason: Mapped[str | None] = mapped_column(String(64))
    """Reason for a missing outcome."""
    detail: Mapped[str | None] = mapped_column(AnyText)
    """Details of the reason as a sentence; NULL without details."""
    no_answer: Mapped[bool]
    """Whether the judge found no answer in the output, whatever the score.
    False for duels."""
    human_loss: Mapped[float | None]
    """For certify, the loss by the human label, as the selector observed it.
    NULL if unknown."""
    auto_loss: Mapped[float | None]
    """The loss by the autoevaluator's answer instead of the label; NULL if unknown."""
    unlabelled_loss: Mapped[float | None]
    """Mean of the autoevaluator's losses on the example's unlabelled examples.
    These are the unlabelled examples that belong to this labelled example. Missing losses are left out."""
    unlabelled_missing: Mapped[float | None]
    """Share of these unlabelled examples whose loss is missing.
    NULL if the comparison has no such examples."""


class Output(Base):
    """One of several outputs whose scores form an outcome.

    A comparison of single outputs has no such rows.
    """

    __tablename__ = "outputs"
    __table_args__ = (
        CheckConstraint("score BETWEEN 0 AND 1", name="score_range"),
        CheckConstraint("(score IS NULL) = (reason IS NOT NULL)", name="score_or_reason"),
    )

    comparison_id: Mapped[int] = mapped_column(ForeignKey("comparisons.id"), primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True)
    """Number of the output, from 0. An output that could not be generated has no row."""
    generation_id: Mapped[int] = mapped_column(ForeignKey("generations.id"))
    answer: Mapped[str | None] = mapped_column(AnyText)
    """Answer that the judge extracted from the output."""
    score: Mapped[float | None]
    reason: Mapped[str | None] = mapped_column(String(64))
    """Reason for a missing score."""
    no_answer: Mapped[bool]
    preference: Mapped[float | None]
    """Score of the output by a judge that chooses among the outputs.
    NULL without such a judge."""


class Metric(Base):
    """A further judge's score of the outputs of a comparison.

    Used only by constraints.
    """

    __tablename__ = "metrics"
    __table_args__ = (
        CheckConstraint("score BETWEEN 0 AND 1", name="score_range"),
        CheckConstraint("(score IS NULL) = (reason IS NOT NULL)", name="score_or_reason"),
    )

    comparison_id: Mapped[int] = mapped_column(ForeignKey("comparisons.id"), primary_key=True)
    name: Mapped[str] = mapped_column(NAME, primary_key=True)
    """Name in the campaign."""
    score: Mapped[float | None]
    reason: Mapped[str | None] = mapped_column(String(64))
    """Reason for a missing score."""


class Judgment(Base):
    """One call of a model judge for a comparison."""

    __tablename__ = "judgments"
    __table_args__ = (
        UniqueConstraint("comparison_id", "number"),
        CheckConstraint("presentation_order IN ('original', 'swapped')", name="presentation_order_known"),
        CheckConstraint("(verdict IS NULL) = (reason IS NOT NULL)", name="verdict_or_reason"),
        NEVER_TWICE,
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    comparison_id: Mapped[int] = mapped_column(ForeignKey("comparisons.id"))
    number: Mapped[int]
    metric: Mapped[str | None] = mapped_column(NAME)
    """Metric for which the call was made; NULL for the outcome."""
    presentation_order: Mapped[str] = mapped_column(String(16))
    """Order of the outputs: "original" or "swapped".
    It is "original" if the first candidate's output was shown first, and for single outputs; otherwise
    "swapped"."""
    judge: Mapped[str] = mapped_column(NAME)
    repeat: Mapped[int]
    attempt: Mapped[int]
    """Number of the attempt; above 0 if the previous reply could not be parsed."""
    generation_id: Mapped[int | None] = mapped_column(ForeignKey("generations.id"))
    """Reply of the judge; NULL if its engine returned none."""
    verdict: Mapped[float | None]
    """Preference for the first candidate, in [0, 1], in either presentation order.
    For a single output, its score."""
    reason: Mapped[str | None] = mapped_column(String(64))


class Decision(Base):
    """Decision after a round, written in the same transaction as the round's outcomes.

    Its values for each candidate are in `storage.models.outcomes`.
    """

    __tablename__ = "decisions"

    id: Mapped[int] = mapped_column(primary_key=True)
    round_id: Mapped[int] = mapped_column(ForeignKey("rounds.id"), unique=True)
    best_candidate_id: Mapped[int | None] = mapped_column(ForeignKey("candidates.id"))
    against_candidate_id: Mapped[int | None] = mapped_column(ForeignKey("candidates.id"))
    """Candidate that all others are compared with in `differences`.
    NULL without differences."""
    differences_delta: Mapped[float | None]
    """Upper bound of the probability that any interval in `differences` is ever wrong.
    NULL without differences."""
    has_ranking: Mapped[bool]
    """Whether the decision orders candidates by `rankings`, not by estimates."""
    has_bets: Mapped[bool]
    changes: Mapped[int]
    """Number of changed rows stored with the decision.
    These are rows of `standings`, `rankings`, `differences` and `bets`."""
    claim: Mapped[JsonObject]
    """Claim about the best candidate; see `algorithms.claims.Claim`."""
    stop: Mapped[bool]
    reason: Mapped[str] = mapped_column(String(64))
    decided_at: Mapped[dt.datetime]
    best_estimate: Mapped[float | None]
    """Estimate of the best candidate, copied from `standings`.
    The next two are its bounds."""
    best_lower: Mapped[float | None]
    best_upper: Mapped[float | None]
    comparisons: Mapped[int]
    """Number of comparisons of the round; 0 if it asks pairs of earlier rounds again."""
    answered: Mapped[int]
    """Number of comparisons with all their outputs.
    The others are not charged to the budget."""
    scored: Mapped[int]
    """Number of comparisons with an outcome."""
    candidates: Mapped[int]
    """Number of different candidates in the comparisons."""
    generations: Mapped[int]
    """Number of outputs that the round paid for, including judges' replies.
    The next three columns have the tokens and seconds of these outputs."""
    input_tokens: Mapped[int] = mapped_column(LARGE)
    output_tokens: Mapped[int] = mapped_column(LARGE)
    seconds: Mapped[float]
    digest: Mapped[str | None] = mapped_column(String(32))
    """See `storage.records.rounds`.
    NULL for rounds stored before digests were introduced."""


class CandidateStats(Base):
    """Sums over a candidate's comparisons so far, updated in each round's transaction."""

    __tablename__ = "candidate_stats"

    candidate_id: Mapped[int] = mapped_column(ForeignKey("candidates.id"), primary_key=True)
    reason: Mapped[str] = mapped_column(String(64), primary_key=True)
    """Reason for a missing outcome; empty for comparisons with an outcome."""
    comparisons: Mapped[int]
    outcome_sum: Mapped[float]
    """Sum of the outcomes; for duels, from the candidate's side."""
    lowest: Mapped[float | None]
    """Lowest of these outcomes; the next column is the highest. NULL without outcomes."""
    highest: Mapped[float | None]
    texts: Mapped[int]
    """Number of the candidate's outputs in these comparisons.
    A comparison has one, or several (see `Output`)."""
    no_answer: Mapped[int]
    """Number of these outputs without an answer."""
    truncated: Mapped[int]
    """Number of these outputs that were cut off by max_tokens or the context window."""
    input_tokens: Mapped[int] = mapped_column(LARGE)
    """Sum over the compared outputs, like output tokens and seconds."""
    output_tokens: Mapped[int] = mapped_column(LARGE)
    seconds: Mapped[float]
    input_squares: Mapped[float]
    """Sum of squared input tokens.
    The next two are those of output tokens and seconds."""
    output_squares: Mapped[float]
    second_squares: Mapped[float]
    input_by_output: Mapped[float]
    """Sum of products of input and output tokens.
    The next two are products of seconds with each of these."""
    input_by_seconds: Mapped[float]
    output_by_seconds: Mapped[float]
    latency: Mapped[float]
    """Sum of the known latencies; the next column is the sum of their squares."""
    latency_squares: Mapped[float]
    timed: Mapped[int]
    """Number of outputs with a known latency."""
    detail: Mapped[str | None] = mapped_column(AnyText)
    """Details of one of the missing outcomes."""


class _FromRoundOn:
    """Key of a row that is valid from a round on.

    The candidate comes first, so that the index finds a candidate's last row.
    """

    # SQLite then stores one tree instead of two, which matters because the key is half of most rows.
    __table_args__ = {"sqlite_with_rowid": False}  # noqa: RUF012 -- SQLAlchemy reads it as a plain attribute

    candidate_id: Mapped[int] = mapped_column(ForeignKey("candidates.id"), primary_key=True, sort_order=-2)
    round_id: Mapped[int] = mapped_column(ForeignKey("rounds.id"), primary_key=True, sort_order=-1)


class Standing(_FromRoundOn, Base):
    """Estimate and status of a candidate.

    Every candidate has such a row from the first decision after it was added.
    """

    __tablename__ = "standings"

    estimate: Mapped[float | None]
    """Estimate of the candidate's value; NULL, like its bounds, if unknown."""
    lower: Mapped[float | None]
    upper: Mapped[float | None]
    status: Mapped[str] = mapped_column(String(64))
    """One of `algorithms.claims.ArmStatus`."""


class Ranking(_FromRoundOn, Base):
    """Score that orders a candidate, if the estimate does not.

    See `algorithms.decision.Decision`. If a candidate has no row, the value is unknown. The same holds for
    the tables below.
    """

    __tablename__ = "rankings"

    score: Mapped[float | None]


class Difference(_FromRoundOn, Base):
    """Difference of a candidate from another on the same examples.

    The other candidate is the decision's `against_candidate_id`.
    """

    __tablename__ = "differences"

    estimate: Mapped[float | None]
    lower: Mapped[float | None]
    upper: Mapped[float | None]


class Bet(_FromRoundOn, Base):
    """State of the bets against a candidate; see `algorithms.decision.Bets`."""

    __tablename__ = "bets"

    wealth: Mapped[float | None]
    """Wealth, for a stake of 1."""
    level: Mapped[float | None]
    """Wealth at which the candidate is eliminated; NULL if infinite."""
    out_in_round: Mapped[int | None]
    """Number of the round after which the candidate was eliminated.
    NULL if it was not eliminated."""
    out_at: Mapped[int | None] = mapped_column(LARGE)
    """Number of comparisons of all candidates at the elimination."""


class CampaignStats(Base):
    """Sums over all decisions of a campaign."""

    __tablename__ = "campaign_stats"

    campaign_id: Mapped[int] = mapped_column(ForeignKey("campaigns.id"), primary_key=True)
    rounds: Mapped[int]
    """Number of observed rounds."""
    comparisons: Mapped[int] = mapped_column(LARGE)
    """Sum over the campaign's decisions, like all fields below."""
    answered: Mapped[int] = mapped_column(LARGE)
    scored: Mapped[int] = mapped_column(LARGE)
    generations: Mapped[int] = mapped_column(LARGE)
    input_tokens: Mapped[int] = mapped_column(LARGE)
    output_tokens: Mapped[int] = mapped_column(LARGE)
    seconds: Mapped[float]


class DuelStats(Base):
    """Results of the duels of two candidates so far.

    They are given from the side of the first candidate.
    """

    __tablename__ = "duel_stats"

    candidate_a_id: Mapped[int] = mapped_column(ForeignKey("candidates.id"), primary_key=True)
    candidate_b_id: Mapped[int] = mapped_column(ForeignKey("candidates.id"), primary_key=True)
    duels: Mapped[int]
    scored: Mapped[int]
    """Duels with an outcome."""
    wins: Mapped[int]
    losses: Mapped[int]
    outcome_sum: Mapped[float]


class MetricStats(Base):
    """Counts and sum of a metric's scores in a candidate's comparisons so far."""

    __tablename__ = "metric_stats"

    candidate_id: Mapped[int] = mapped_column(ForeignKey("candidates.id"), primary_key=True)
    name: Mapped[str] = mapped_column(NAME, primary_key=True)
    scored: Mapped[int]
    unscored: Mapped[int]
    score_sum: Mapped[float]


class CostStats(Base):
    """Outputs that the observed rounds of a campaign paid for.

    Each counts once, in the round that paid.
    """

    __tablename__ = "cost_stats"

    campaign_id: Mapped[int] = mapped_column(ForeignKey("campaigns.id"), primary_key=True)
    role: Mapped[str] = mapped_column(String(16), primary_key=True)
    """Role of the outputs' owner: "candidate", "judge" or "other".
    A shared output belongs to the first candidate that uses it; if no candidate does, to the first judge
    by name. "other" are outputs of an autoevaluator, outputs on unlabelled examples, and outputs that are
    not an answer."""
    name: Mapped[str] = mapped_column(NAME, primary_key=True)
    """Name of the candidate or judge; empty for "other"."""
    model: Mapped[str] = mapped_column(NAME, primary_key=True)
    generations: Mapped[int]
    input_tokens: Mapped[int] = mapped_column(LARGE)
    output_tokens: Mapped[int] = mapped_column(LARGE)
    cached_tokens: Mapped[int] = mapped_column(LARGE)
    """Number of `cacheable_tokens` that were in the engine's prefix cache."""
    cacheable_tokens: Mapped[int] = mapped_column(LARGE)
    """Input tokens of the outputs for which the engine reported cached tokens."""
    seconds: Mapped[float]


class ReuseStats(Base):
    """Totals of outputs reused from another campaign, by candidate or judge.

    Only observed rounds count. Each output counts once, at its first use.
    """

    __tablename__ = "reuse_stats"

    campaign_id: Mapped[int] = mapped_column(ForeignKey("campaigns.id"), primary_key=True)
    role: Mapped[str] = mapped_column(String(16), primary_key=True)
    """"candidate" or "judge"."""
    name: Mapped[str] = mapped_column(NAME, primary_key=True)
    """Name of the candidate or judge."""
    taken_from_id: Mapped[int] = mapped_column(primary_key=True)
    """Campaign that had paid for the outputs, possibly deleted since.
    0 if it was already deleted."""
    generations: Mapped[int]
    input_tokens: Mapped[int] = mapped_column(LARGE)
    output_tokens: Mapped[int] = mapped_column(LARGE)
    seconds: Mapped[float]


class ReusedText(Base):
    """An output of another campaign that is already counted in `ReuseStats`."""

    __tablename__ = "reused_texts"

    campaign_id: Mapped[int] = mapped_column(ForeignKey("campaigns.id"), primary_key=True)
    generation_id: Mapped[int] = mapped_column(ForeignKey("generations.id"), primary_key=True)
