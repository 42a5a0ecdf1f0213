"""What rounds add up to beyond their candidates: who met whom, who was paid for, what was taken from others.

Counted from a round's rows in the transaction that stores them, as `CandidateStats` are.
"""

from sqlalchemy import ForeignKey, String
from sqlalchemy.orm import Mapped, mapped_column

from winnow.storage.columns import LARGE, NAME
from winnow.storage.models.base import Base


class CampaignStats(Base):
    """What the decisions of a campaign add up to, all of them together."""

    __tablename__ = "campaign_stats"

    campaign_id: Mapped[int] = mapped_column(ForeignKey("campaigns.id"), primary_key=True)
    rounds: Mapped[int]
    """Told ones."""
    comparisons: Mapped[int] = mapped_column(LARGE)
    """These and all below are sums of what each decision says of its round."""
    answered: Mapped[int] = mapped_column(LARGE)
    scored: Mapped[int] = mapped_column(LARGE)
    generations: Mapped[int] = mapped_column(LARGE)
    input_tokens: Mapped[int] = mapped_column(LARGE)
    output_tokens: Mapped[int] = mapped_column(LARGE)
    seconds: Mapped[float]


class DuelStats(Base):
    """How the duels of two candidates ended so far, as the one sees them that stood first."""

    __tablename__ = "duel_stats"

    candidate_a_id: Mapped[int] = mapped_column(ForeignKey("candidates.id"), primary_key=True)
    candidate_b_id: Mapped[int] = mapped_column(ForeignKey("candidates.id"), primary_key=True)
    duels: Mapped[int]
    scored: Mapped[int]
    """Those with an outcome."""
    wins: Mapped[int]
    losses: Mapped[int]
    outcome_sum: Mapped[float]


class MetricStats(Base):
    """What a further judge said of a candidate's comparisons so far."""

    __tablename__ = "metric_stats"

    candidate_id: Mapped[int] = mapped_column(ForeignKey("candidates.id"), primary_key=True)
    name: Mapped[str] = mapped_column(NAME, primary_key=True)
    """Of the metric."""
    scored: Mapped[int]
    unscored: Mapped[int]
    score_sum: Mapped[float]


class CostStats(Base):
    """What the told rounds of a campaign paid for; each text counts once, in the round that paid for it."""

    __tablename__ = "cost_stats"

    campaign_id: Mapped[int] = mapped_column(ForeignKey("campaigns.id"), primary_key=True)
    role: Mapped[str] = mapped_column(String(16), primary_key=True)
    """Whose text it is, "candidate", "judge" or "other". One that several share is the first candidate's,
    then the first judge's by name; "other" are answers of an autoevaluator and to unlabelled examples, and
    texts that are no answer."""
    name: Mapped[str] = mapped_column(NAME, primary_key=True)
    """Of the candidate or judge; empty for others."""
    model: Mapped[str] = mapped_column(NAME, primary_key=True)
    generations: Mapped[int]
    input_tokens: Mapped[int] = mapped_column(LARGE)
    output_tokens: Mapped[int] = mapped_column(LARGE)
    cached_tokens: Mapped[int] = mapped_column(LARGE)
    """How many of the next ones were in the engine's prefix cache."""
    cacheable_tokens: Mapped[int] = mapped_column(LARGE)
    """The input tokens of texts of which the engine told how many of them were."""
    seconds: Mapped[float]


class ReuseStats(Base):
    """What the told rounds of a campaign took from others; each text counts once, where it was first used."""

    __tablename__ = "reuse_stats"

    campaign_id: Mapped[int] = mapped_column(ForeignKey("campaigns.id"), primary_key=True)
    role: Mapped[str] = mapped_column(String(16), primary_key=True)
    """candidate or judge."""
    name: Mapped[str] = mapped_column(NAME, primary_key=True)
    """Of the candidate or judge."""
    taken_from_id: Mapped[int] = mapped_column(primary_key=True)
    """The campaign that had paid, which may be deleted since; 0 where it was deleted before."""
    generations: Mapped[int]
    input_tokens: Mapped[int] = mapped_column(LARGE)
    output_tokens: Mapped[int] = mapped_column(LARGE)
    seconds: Mapped[float]


class ReusedText(Base):
    """A text of another campaign that `ReuseStats` has counted."""

    __tablename__ = "reused_texts"

    campaign_id: Mapped[int] = mapped_column(ForeignKey("campaigns.id"), primary_key=True)
    generation_id: Mapped[int] = mapped_column(ForeignKey("generations.id"), primary_key=True)
