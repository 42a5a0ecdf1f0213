"""Sums over rounds beyond those of single candidates: duels by pair, texts paid for, texts taken from others.

Counted from a round's rows in the transaction that stores them, as `CandidateStats` are.
"""

from sqlalchemy import ForeignKey, String
from sqlalchemy.orm import Mapped, mapped_column

from winnow.storage.columns import LARGE, NAME
from winnow.storage.models.base import Base


class CampaignStats(Base):
    """Sums over all decisions of a campaign."""

    __tablename__ = "campaign_stats"

    campaign_id: Mapped[int] = mapped_column(ForeignKey("campaigns.id"), primary_key=True)
    rounds: Mapped[int]
    """Told ones."""
    comparisons: Mapped[int] = mapped_column(LARGE)
    """Sum over the campaign's decisions, as are all fields below."""
    answered: Mapped[int] = mapped_column(LARGE)
    scored: Mapped[int] = mapped_column(LARGE)
    generations: Mapped[int] = mapped_column(LARGE)
    input_tokens: Mapped[int] = mapped_column(LARGE)
    output_tokens: Mapped[int] = mapped_column(LARGE)
    seconds: Mapped[float]


class DuelStats(Base):
    """Results of the duels of two candidates so far, as seen by the one that stood first."""

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
    """Counts and sum of a further judge's scores of a candidate's comparisons so far."""

    __tablename__ = "metric_stats"

    candidate_id: Mapped[int] = mapped_column(ForeignKey("candidates.id"), primary_key=True)
    name: Mapped[str] = mapped_column(NAME, primary_key=True)
    """Of the metric."""
    scored: Mapped[int]
    unscored: Mapped[int]
    score_sum: Mapped[float]


class CostStats(Base):
    """Texts that the told rounds of a campaign paid for; each counts once, in the round that paid for it."""

    __tablename__ = "cost_stats"

    campaign_id: Mapped[int] = mapped_column(ForeignKey("campaigns.id"), primary_key=True)
    role: Mapped[str] = mapped_column(String(16), primary_key=True)
    """The role of the texts' owner: "candidate", "judge" or "other". A text that several share is the first
    candidate's, then the first judge's by name; "other" are answers of an autoevaluator and to unlabelled
    examples, and texts that are no answer."""
    name: Mapped[str] = mapped_column(NAME, primary_key=True)
    """Of the candidate or judge; empty for others."""
    model: Mapped[str] = mapped_column(NAME, primary_key=True)
    generations: Mapped[int]
    input_tokens: Mapped[int] = mapped_column(LARGE)
    output_tokens: Mapped[int] = mapped_column(LARGE)
    cached_tokens: Mapped[int] = mapped_column(LARGE)
    """Number of `cacheable_tokens` that were in the engine's prefix cache."""
    cacheable_tokens: Mapped[int] = mapped_column(LARGE)
    """Input tokens of the texts for which the engine told how many were in its prefix cache."""
    seconds: Mapped[float]


class ReuseStats(Base):
    """Texts that a campaign's told rounds took from others; each counts once, where it was first used."""

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
