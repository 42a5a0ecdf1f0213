"""Sums over rounds per campaign, pair and owner: duels, metrics, paid outputs, and reused outputs.

Counted from a round's rows in the transaction that stores them, like `CandidateStats`.
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
    """Number of observed rounds."""
    comparisons: Mapped[int] = mapped_column(LARGE)
    """Sum over the campaign's decisions; so are all fields below."""
    answered: Mapped[int] = mapped_column(LARGE)
    scored: Mapped[int] = mapped_column(LARGE)
    generations: Mapped[int] = mapped_column(LARGE)
    input_tokens: Mapped[int] = mapped_column(LARGE)
    output_tokens: Mapped[int] = mapped_column(LARGE)
    seconds: Mapped[float]


class DuelStats(Base):
    """Results of the duels of two candidates so far, from the side of the first one."""

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
    """Name of the metric."""
    scored: Mapped[int]
    unscored: Mapped[int]
    score_sum: Mapped[float]


class CostStats(Base):
    """Outputs that the observed rounds of a campaign paid for; each counts once, in the round that paid."""

    __tablename__ = "cost_stats"

    campaign_id: Mapped[int] = mapped_column(ForeignKey("campaigns.id"), primary_key=True)
    role: Mapped[str] = mapped_column(String(16), primary_key=True)
    """Role of the outputs' owner: "candidate", "judge" or "other". A shared output belongs to the first
    candidate that uses it, else to the first judge by name; "other" are outputs of an autoevaluator and on
    unlabelled examples, and outputs that are no answer."""
    name: Mapped[str] = mapped_column(NAME, primary_key=True)
    """Name of the candidate or judge; empty for others."""
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
    """Outputs of other campaigns that a campaign's observed rounds reused; each counts once, at first use."""

    __tablename__ = "reuse_stats"

    campaign_id: Mapped[int] = mapped_column(ForeignKey("campaigns.id"), primary_key=True)
    role: Mapped[str] = mapped_column(String(16), primary_key=True)
    """"candidate" or "judge"."""
    name: Mapped[str] = mapped_column(NAME, primary_key=True)
    """Name of the candidate or judge."""
    taken_from_id: Mapped[int] = mapped_column(primary_key=True)
    """Campaign that had paid, possibly deleted since; 0 if it was deleted before."""
    generations: Mapped[int]
    input_tokens: Mapped[int] = mapped_column(LARGE)
    output_tokens: Mapped[int] = mapped_column(LARGE)
    seconds: Mapped[float]


class ReusedText(Base):
    """An output of another campaign that `ReuseStats` has counted."""

    __tablename__ = "reused_texts"

    campaign_id: Mapped[int] = mapped_column(ForeignKey("campaigns.id"), primary_key=True)
    generation_id: Mapped[int] = mapped_column(ForeignKey("generations.id"), primary_key=True)
