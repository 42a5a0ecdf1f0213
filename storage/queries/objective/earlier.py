"""Which earlier campaigns have outcomes on the same examples of one dataset."""

from collections.abc import Collection

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from winnow.storage.models import Candidate, Comparison, Example
from winnow.storage.records.campaigns import campaigns
from winnow.storage.records.values import CampaignRecord

SCORING = ("best-mean", "certify", "route")
"""Objectives whose comparisons are of one candidate each, which an index finds by example."""
POSITIONS_AT_ONCE = 1_000


def campaigns_before(session: Session, campaign: CampaignRecord) -> list[CampaignRecord]:
    """The scoring campaigns on a campaign's dataset that were begun before it, the latest first."""
    on_it = campaigns(session, dataset_id=campaign.dataset_id)
    return [each for each in reversed(on_it) if each.id < campaign.id and each.objective in SCORING]


def scored_positions(session: Session, campaign_id: int) -> set[int]:
    """Positions of the examples that a scoring campaign has comparisons on."""
    found = (
        select(Comparison.example_id)
        .join(Candidate, Candidate.id == Comparison.candidate_a_id)
        .where(Candidate.campaign_id == campaign_id, Comparison.candidate_b_id.is_(None))
    )
    return set(session.scalars(select(Example.position).where(Example.id.in_(found))))


def count_scored(session: Session, campaign: CampaignRecord, positions: Collection[int]) -> int:
    """On how many of some example positions a scoring campaign has comparisons."""
    is_scored = (
        select(Comparison.id)
        .join(Candidate, Candidate.id == Comparison.candidate_a_id)
        .where(
            Candidate.campaign_id == campaign.id,
            Comparison.example_id == Example.id,
            Comparison.candidate_b_id.is_(None),
        )
        .exists()
    )
    among = (
        select(func.count()).select_from(Example).where(Example.dataset_id == campaign.dataset_id, is_scored)
    )
    wanted = sorted(positions)
    parts = (wanted[at : at + POSITIONS_AT_ONCE] for at in range(0, len(wanted), POSITIONS_AT_ONCE))
    return sum(session.scalars(among.where(Example.position.in_(part))).one() for part in parts)
